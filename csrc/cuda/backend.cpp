// Puts CUDA under the families: memory, elementwise work, reductions, copies, products.
#include "cuda/backend.h"

#include <cstring>
#include <exception>
#include <mutex>

#include "core/device_copy.h"
#include "core/device_read.h"
#include "cpu/cast.h"
#include "cuda/allocator.h"
#include "cuda/attention.h"
#include "cuda/backward_streams.h"
#include "cuda/convolution.h"
#include "cuda/copy.h"
#include "cuda/creation.h"
#include "cuda/fft.h"
#include "cuda/graph_random.h"
#include "cuda/images.h"
#include "cuda/indexing.h"
#include "cuda/linalg.h"
#include "cuda/lists.h"
#include "cuda/losses.h"
#include "cuda/matmul.h"
#include "cuda/moments.h"
#include "cuda/normalization.h"
#include "cuda/pinned.h"
#include "cuda/random.h"
#include "cuda/recurrent.h"
#include "cuda/reduce.h"
#include "cuda/sampling.h"
#include "cuda/softmax.h"
#include "cuda/sparse_rows.h"
#include "cuda/translate.h"
#include "op/device_hooks.h"
#include "op/hooks/memory.h"
#include "op/ops/copying.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"

namespace facula::cuda {

void (*let_go_of_interpreter)(void (*)(void*), void*) = nullptr;

namespace {

// Runs f, which waits for the device; other Python threads run meanwhile. No lock may be held: a
// thread that waits for it may have the GIL, which this one needs afterwards.
template <class F>
void wait_without_interpreter(F&& f) {
  if (!let_go_of_interpreter) return f();
  // Exceptions do not cross the Python layer's function.
  struct Call {
    F& f;
    std::exception_ptr error;
  } call{f, nullptr};
  let_go_of_interpreter(
      [](void* p) {
        auto& call = *static_cast<Call*>(p);
        try {
          call.f();
        } catch (...) {
          call.error = std::current_exception();
        }
      },
      &call);
  if (call.error) std::rethrow_exception(call.error);
}

void* allocate_memory(size_t bytes, int device) {
  return translated([&] { return allocate(bytes, device < 0 ? current_device() : device); });
}
void release_memory(void* data, size_t, int device) {
  deallocate(data, device < 0 ? 0 : device);
}

void copy_bytes(void* to, const void* from, size_t bytes, Device device) {
  translated([&] {
    CuStream stream = current_stream(device.index);
    copy_on_device(to, from, bytes, device.index, stream);
    record_stream(const_cast<void*>(from), device.index, stream);
  });
}
void read_memory(void* host, const void* memory, size_t bytes, int device) {
  wait_without_interpreter([&] {
    translated([&] { copy_to_host(host, memory, bytes, device, current_stream(device)); });
  });
}

// Byte strides of a tensor over a broadcast shape.
void fill_strides(int64_t* to, const Tensor& t, IntSpan shape) {
  int64_t lead = int64_t(shape.size()) - t.dim();
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t k = int64_t(d) - lead;
    to[d] =
        k < 0 || (t.sizes()[k] == 1 && shape[d] != 1) ? 0 : t.strides()[k] * int64_t(t.item_size());
  }
}

void elementwise(const OpDef& op, const ElementwiseDef& def, const Value* args, const Tensor& out,
                 DType compute, DType loop_out, const void* params) {
  translated([&] {
    ElementwiseLaunch launch;
    launch.name = op.name;
    launch.body = def.formula[int(category(compute))];
    launch.compute = compute;
    launch.result = loop_out;
    launch.ndim = int(out.dim());
    std::memcpy(launch.sizes, out.sizes().data(), size_t(out.dim()) * sizeof(int64_t));
    launch.ptrs[0] = out.data();
    launch.dtypes[0] = out.dtype();
    fill_strides(launch.strides[0], out, out.sizes());
    // Numbers and 0-dim host tensors travel with the launch.
    for (int i = 0; i < def.inputs; ++i) {
      const Value& v = args[def.operands[i]];
      const bool mask = def.bool_operands >> i & 1;
      if (v.is_tensor() && v.tensor().is_cuda()) {
        launch.masks = uint8_t(launch.masks | mask << launch.inputs);
        const int k = ++launch.inputs;
        launch.ptrs[k] = v.tensor().data();
        launch.dtypes[k] = v.tensor().dtype();
        fill_strides(launch.strides[k], v.tensor(), out.sizes());
        continue;
      }
      launch.numbers = uint8_t(launch.numbers | 1 << i);
      const DType wanted = mask ? DType::Bool : compute;
      unsigned char* slot = launch.params.next(wanted, operand_name(i));
      if (!v.is_tensor()) v.scalar().store(wanted, slot);
      else
        cast_loop(v.tensor().dtype(), wanted)(reinterpret_cast<char*>(slot), 16, v.tensor().data(),
                                              0, 1);
    }
    for (int i = 0; i < def.params; ++i) {
      const char* slot = static_cast<const char*>(params) + 16 * i;
      DType d = def.param_kinds[i] == ParamKind::Compute ? compute
                : def.param_kinds[i] == ParamKind::Real  ? DType::Float64
                : def.param_kinds[i] == ParamKind::Int   ? DType::Int64
                                                         : DType::Bool;
      std::memcpy(launch.params.next(d, op.args[def.param_args[i]].name), slot, 16);
    }
    launch_elementwise(launch, out.device().index, current_stream(out.device().index));
  });
}

void reduce(const OpDef& op, const ReduceDef& def, const Tensor& in, uint64_t dims,
            const Tensor& out) {
  translated([&] {
    ReduceLaunch launch;
    launch.name = op.name;
    launch.formula.init = def.init;
    launch.formula.combine = def.combine;
    launch.compute = def.result != DType::None ? def.result : compute_dtype(out.dtype());
    launch.in = in.data();
    launch.out = out.data();
    launch.in_dtype = in.dtype();
    launch.out_dtype = out.dtype();
    launch.ndim = int(in.dim());
    launch.reduced = dims;
    int64_t o = 0;
    bool keepdim = out.dim() == in.dim();
    for (int64_t d = 0; d < in.dim(); ++d) {
      bool gone = dims >> d & 1;
      launch.sizes[d] = in.sizes()[d];
      launch.in_strides[d] = in.strides()[d] * int64_t(in.item_size());
      launch.out_strides[d] = gone ? 0 : out.strides()[o] * int64_t(out.item_size());
      if (!gone || keepdim) ++o;
    }
    launch_reduce(launch, in.device().index, current_stream(in.device().index));
  });
}

void copy(const Tensor& from, const Tensor& to) {
  if (to.numel() == 0) return;
  translated([&] {
    const Tensor& on = to.is_cuda() ? to : from;
    int device = on.device().index;
    CuStream stream = current_stream(device);
    if (from.is_cuda() && to.is_cuda() && from.device() == to.device()) {
      StridedCopy c;
      c.to = to.data();
      c.from = from.data();
      c.to_dtype = to.dtype();
      c.from_dtype = from.dtype();
      c.ndim = int(to.dim());
      std::memcpy(c.sizes, to.sizes().data(), size_t(to.dim()) * sizeof(int64_t));
      fill_strides(c.to_strides, to, to.sizes());
      fill_strides(c.from_strides, from, to.sizes());
      copy_strided(c, device, stream);
      return;
    }
    // Between memories, only dense bytes of one dtype travel; the rest is arranged on either side.
    const bool same_places = same(from.sizes(), to.sizes()) && same(from.strides(), to.strides()) &&
                             non_overlapping_and_dense(to.sizes(), to.strides());
    const bool both_dense =
        same(from.sizes(), to.sizes()) && from.is_contiguous() && to.is_contiguous();
    if (from.dtype() != to.dtype() || (!same_places && !both_dense)) {
      Tensor packed = empty_tensor(to.sizes(), to.dtype(), from.device());
      op::copy_(packed, from);
      Tensor landed = to.is_contiguous() ? to : empty_tensor(to.sizes(), to.dtype(), to.device());
      copy(packed, landed);
      if (!landed.is(to)) op::copy_(to, landed);
      return;
    }
    size_t bytes = size_t(to.numel()) * to.item_size();
    if (to.is_cuda() && from.is_cuda()) {
      // The copy starts after what makes the source, and the source's memory is kept until its end.
      const int source = from.device().index;
      CuEvent made = create_event(source, false);
      record_event(source, made, current_stream(source));
      wait_event(device, stream, made);
      destroy_event(source, made);
      copy_between_devices(to.data(), to.device().index, from.data(), from.device().index, bytes,
                           stream);
      CuEvent copied = create_event(device, false);
      record_event(device, copied, stream);
      wait_event(source, current_stream(source), copied);
      destroy_event(device, copied);
      return;
    }
    const Tensor& host = to.is_cuda() ? from : to;
    const bool waits = !copies_return_early || !is_pinned(host.data());
    wait_without_interpreter([&] {
      if (to.is_cuda()) copy_to_device(to.data(), from.data(), bytes, device, stream, waits);
      else copy_to_host(to.data(), from.data(), bytes, device, stream, waits);
    });
    if (!waits) record_pinned(host->storage->data, device, stream);
  });
}

void fill(const Tensor& t, const Scalar& value) {
  translated([&] {
    alignas(16) char element[16];
    value.store(t.dtype(), element);
    int64_t strides[kMaxDims];
    fill_strides(strides, t, t.sizes());
    fill_strided(t.data(), t.dtype(), element, int(t.dim()), t.sizes().data(), strides,
                 t.device().index, current_stream(t.device().index));
  });
}

}  // namespace

void register_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_device_memory(DeviceType::CUDA, {allocate_memory, release_memory});
    read_device_memory = read_memory;
    register_device_hooks({elementwise, reduce, copy, fill});
    copy_within_device = copy_bytes;
    device_memory.current_device.set(current_device);
    device_memory.pinned_storage.set(pinned_storage);
    register_backward_streams();
    register_creation();
    register_attention();
    register_images();
    register_indexing();
    register_moments();
    register_random();
    register_graph_random();
    register_losses();
    register_normalization();
    register_products();
    register_recurrent();
    register_sampling();
    register_convolution();
    register_softmax();
    register_sparse_rows();
    register_fft();
    register_linalg();
    register_lists();
  });
}

}  // namespace facula::cuda
