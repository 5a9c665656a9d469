// facula.cuda: what Python asks of the CUDA backend.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cuda/allocator.h"
#include "cuda/backend.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/jit.h"
#include "cuda/libraries.h"
#include "cuda/translate.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {

Device current_cuda_device() {
  return Device{DeviceType::CUDA, int8_t(cuda::current_device())};
}

void init_cuda(nb::module_& m) {
  cuda::register_backend();
  m.def("_cuda_is_available", [] { return cuda::is_available(); });
  m.def("_cuda_unavailable_reason", [] { return std::string(cuda::unavailable_reason()); });
  m.def("_cuda_device_count", [] { return cuda::device_count(); });
  m.def("_cuda_current_device", [] { return cuda::current_device(); });
  m.def("_cuda_set_device", [](int d) { cuda::set_current_device(d); });
  m.def(
      "_cuda_synchronize", [](int d) { cuda::translated([&] { cuda::synchronize(d); }); },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("_cuda_properties", [](int d) {
    const auto& p = cuda::device_properties(d);
    nb::dict out;
    out["name"] = p.name;
    out["major"] = p.major;
    out["minor"] = p.minor;
    out["total_memory"] = p.total_memory;
    out["multi_processor_count"] = p.multiprocessors;
    out["warp_size"] = p.warp_size;
    out["L2_cache_size"] = p.l2_cache_size;
    return out;
  });
  m.def("_cuda_memory_info", [](int d) {
    auto i = cuda::memory_info(d);
    return std::make_tuple(i.free, i.total);
  });
  m.def("_cuda_memory_stats", [](int d) {
    auto s = cuda::allocator_stats(d);
    nb::dict out;
    out["allocated"] = s.allocated;
    out["reserved"] = s.reserved;
    out["peak_allocated"] = s.peak_allocated;
    out["peak_reserved"] = s.peak_reserved;
    return out;
  });
  m.def("_cuda_reset_peak", [](int d) { cuda::reset_peak_stats(d); });
  m.def("_cuda_empty_cache", [](int d) { cuda::empty_cache(d); });
  m.def("_cuda_search_paths", [](const std::vector<std::string>& paths) {
    std::vector<const char*> p;
    for (auto& s : paths) p.push_back(s.c_str());
    cuda::set_cuda_search_paths(p.data(), p.size());
  });
  m.def("_cuda_kernel_directory", [](const std::string& d) { cuda::set_kernel_directory(d); });
}

}  // namespace facula::python
