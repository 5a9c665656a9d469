// facula.cuda.memory, pinned memory, and streams that use a tensor's memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "autograd/node_streams.h"
#include "cuda/allocator.h"
#include "cuda/memory_pool.h"
#include "cuda/pinned.h"
#include "cuda/translate.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"
#include "python/allocation_site.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {
namespace {

void put_count(nb::dict& out, const std::string& name, const cuda::Count& c) {
  out[(name + ".current").c_str()] = c.current;
  out[(name + ".peak").c_str()] = c.peak;
  out[(name + ".allocated").c_str()] = c.allocated;
  out[(name + ".freed").c_str()] = c.freed;
}

void put_counts(nb::dict& out, const std::string& name, const cuda::Counts& counts) {
  put_count(out, name + ".all", counts.all);
  put_count(out, name + ".small_pool", counts.small);
  put_count(out, name + ".large_pool", counts.large);
}

nb::dict statistics(int device) {
  const cuda::AllocatorStats s = cuda::translated([&] { return cuda::allocator_stats(device); });
  nb::dict out;
  put_counts(out, "allocation", s.allocation);
  put_counts(out, "segment", s.segment);
  put_counts(out, "active", s.active);
  put_counts(out, "inactive_split", s.inactive_split);
  put_counts(out, "allocated_bytes", s.allocated_bytes);
  put_counts(out, "reserved_bytes", s.reserved_bytes);
  put_counts(out, "active_bytes", s.active_bytes);
  put_counts(out, "inactive_split_bytes", s.inactive_split_bytes);
  put_counts(out, "requested_bytes", s.requested_bytes);
  const auto limit = cuda::allocator_settings().max_split;
  out["max_split_size"] = limit == SIZE_MAX ? int64_t(-1) : int64_t(limit);
  out["num_alloc_retries"] = s.retries;
  out["num_ooms"] = s.out_of_memory;
  out["num_device_alloc"] = s.driver_allocations;
  out["num_device_free"] = s.driver_frees;
  return out;
}

nb::list frames_of(const SourceLocation& where) {
  nb::list out;
  if (!where.code) return out;
  const std::string text = describe_location(where);
  const size_t colon = text.rfind(':');
  nb::dict frame;
  frame["filename"] = text.substr(0, colon);
  frame["line"] = std::stoi(text.substr(colon + 1));
  out.append(frame);
  return out;
}

nb::list snapshot(int device) {
  constexpr const char* kStates[] = {"inactive", "active_allocated", "active_awaiting_free"};
  nb::list out;
  for (const cuda::SegmentRecord& s :
       cuda::translated([&] { return cuda::memory_snapshot(device); })) {
    nb::dict segment;
    size_t allocated = 0, active = 0;
    nb::list blocks;
    for (const cuda::BlockRecord& b : s.blocks) {
      nb::dict block;
      block["address"] = b.address;
      block["size"] = b.size;
      block["requested_size"] = b.requested;
      block["state"] = kStates[b.state];
      block["frames"] = frames_of(b.made_at);
      blocks.append(block);
      allocated += b.state == 1 ? b.size : 0;
      active += b.state ? b.size : 0;
    }
    segment["device"] = device;
    segment["address"] = s.address;
    segment["total_size"] = s.size;
    segment["allocated_size"] = allocated;
    segment["active_size"] = active;
    segment["stream"] = reinterpret_cast<uintptr_t>(s.stream);
    segment["segment_type"] = s.small ? "small" : "large";
    segment["segment_pool_id"] = nb::make_tuple(s.pool, 0);
    segment["is_expandable"] = s.expandable;
    segment["blocks"] = blocks;
    out.append(segment);
  }
  return out;
}

const Tensor& tensor_of(nb::handle h, const char* what) {
  if (!is_tensor(h.ptr())) throw nb::type_error(what);
  return unwrap(h.ptr());
}

// A copy of a host tensor in page-locked memory; a pinned one is returned as it is.
nb::object pin(nb::handle h) {
  const Tensor& t = tensor_of(h, "pin_memory expects a tensor");
  try {
    if (!t.is_cpu())
      runtime_error("cannot pin '", t.device(), "': only dense CPU tensors can be pinned");
    if (cuda::is_pinned(t->storage->data)) return nb::borrow(h);
    GradGuard off(false);
    const Tensor shape = op::contiguous(t);
    Tensor out = tensor_on_storage(
        cuda::pinned_storage(size_t(t.numel()) * t.item_size()), t.sizes(),
        non_overlapping_and_dense(t.sizes(), t.strides()) ? t.strides() : IntSpan(shape.strides()),
        0, t.dtype());
    op::copy_(out, t);
    return nb::steal(wrap(out));
  } catch (...) {
    set_python_error();
    throw nb::python_error();
  }
}

thread_local constinit SourceLocation allocation_site;  // of the work that runs without the GIL

}  // namespace

void note_allocation_site() {
  if (cuda::tracking_allocations()) [[unlikely]]
    allocation_site = capture_location();
}

void init_cuda_memory(nb::module_& m) {
  cuda::locate_allocation = [] {
    return PyGILState_Check() ? capture_location() : allocation_site;
  };
  m.def("_cuda_memory_info", [](int d) {
    auto i = cuda::translated([&] { return cuda::memory_info(d); });
    return std::make_tuple(i.free, i.total);
  });
  m.def("_cuda_memory_stats", statistics);
  m.def("_cuda_pinned_stats", [] {
    const cuda::PinnedStats s = cuda::pinned_stats();
    nb::dict out;
    put_count(out, "allocations", s.segments);
    put_count(out, "allocated_bytes", s.reserved);
    put_count(out, "active_requests", s.live);
    put_count(out, "active_bytes", s.live_bytes);
    out["num_host_alloc"] = s.segments.allocated;
    out["num_host_free"] = s.segments.freed;
    return out;
  });
  m.def("_cuda_reset_pinned_stats", [](bool peaks) { cuda::reset_pinned_stats(peaks); });
  m.def("_cuda_hold_pool",
        [](int d, uint64_t pool) { cuda::translated([&] { cuda::hold_memory_pool(d, pool); }); });
  m.def("_cuda_release_pool", [](int d, uint64_t pool) {
    cuda::translated([&] { cuda::release_memory_pool(d, pool); });
  });
  m.def("_cuda_pool_users", [](int d, uint64_t pool) {
    return cuda::translated([&] { return cuda::memory_pool_users(d, pool); });
  });
  m.def("_cuda_route", [](int d, uint64_t pool, bool on) {
    cuda::translated([&] { on ? cuda::begin_pool_route(d, pool) : cuda::end_pool_route(d, pool); });
  });
  m.def("_cuda_reset_peak", [](int d) { cuda::reset_peak_stats(d); });
  m.def("_cuda_reset_accumulated", [](int d) { cuda::reset_accumulated_stats(d); });
  m.def(
      "_cuda_empty_cache",
      [](int d) {
        cuda::translated([&] {
          cuda::empty_cache(d);
          cuda::empty_pinned_cache();
        });
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("_cuda_memory_fraction", [](int d, double fraction) {
    cuda::translated([&] { cuda::set_memory_fraction(d, fraction); });
  });
  m.def("_cuda_allocator_settings", [] {
    auto s = cuda::allocator_settings();
    return std::make_tuple(s.max_split == SIZE_MAX ? int64_t(-1) : int64_t(s.max_split),
                           s.expandable);
  });
  m.def("_cuda_configure_allocator",
        [](const std::string& text) { cuda::configure_allocator(text); });
  m.def("_cuda_track_allocations", [](bool on) { cuda::track_allocations(on); });
  m.def("_cuda_tracks_allocations", [] { return cuda::tracking_allocations(); });
  m.def("_cuda_memory_snapshot", snapshot);
  m.def("_cuda_new_memory_pool", [] { return cuda::new_memory_pool(); });
  m.def("_cuda_allocate", [](size_t bytes, int d, uintptr_t stream) {
    return cuda::translated([&] {
      return reinterpret_cast<uintptr_t>(
          cuda::allocate(bytes, d, reinterpret_cast<cuda::CuStream>(stream)));
    });
  });
  m.def("_cuda_deallocate", [](uintptr_t pointer) {
    auto* memory = reinterpret_cast<void*>(pointer);
    const int device = cuda::translated([&] { return cuda::device_of_pointer(memory); });
    if (device < 0) value_error("there is no device memory at this address: ", pointer);
    cuda::deallocate(memory, device);
  });
  m.def("_cuda_record_stream", [](nb::handle tensor, uintptr_t stream) {
    const Tensor& t = tensor_of(tensor, "record_stream expects a tensor");
    if (!t.is_cuda()) runtime_error("record_stream expects a CUDA tensor, got one on ", t.device());
    stream_hooks.record(t, reinterpret_cast<void*>(stream));
  });
  m.def("_cuda_pin", pin);
  m.def("_cuda_is_pinned", [](nb::handle tensor) {
    const Tensor& t = tensor_of(tensor, "is_pinned expects a tensor");
    return t.is_cpu() && cuda::is_pinned(t->storage->data);
  });
}

}  // namespace facula::python
