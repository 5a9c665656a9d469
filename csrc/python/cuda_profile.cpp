// facula._C: what devices did while a profile was recorded.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "cuda/device_profile.h"
#include "cuda/libraries.h"
#include "cuda/translate.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {

namespace {

nb::tuple triple(const int (&numbers)[3]) {
  return nb::make_tuple(numbers[0], numbers[1], numbers[2]);
}

// (kind, name, start, end, device, stream, correlation, range, details)
nb::tuple python_activity(const cuda::DeviceActivity& a) {
  using Kind = cuda::DeviceActivity::Kind;
  nb::dict details;
  details["context"] = a.context;
  if (a.kind == Kind::Kernel) {
    details["registers per thread"] = a.registers;
    details["shared memory"] = a.shared_memory;
    details["grid"] = triple(a.grid);
    details["block"] = triple(a.block);
  } else {
    details["bytes"] = a.bytes;
    const double nanoseconds = double(a.end_ns - a.start_ns);
    details["memory bandwidth (GB/s)"] = nanoseconds > 0 ? double(a.bytes) / nanoseconds : 0.0;
  }
  const char* kind = a.kind == Kind::Kernel ? "kernel"
                     : a.kind == Kind::Copy ? "gpu_memcpy"
                                            : "gpu_memset";
  return nb::make_tuple(kind, a.name, a.start_ns, a.end_ns, a.device, a.stream, a.correlation,
                        a.range, details);
}

// (kind, name, start, end, thread, correlation, range)
nb::tuple python_call(const cuda::DeviceCall& c) {
  return nb::make_tuple(c.of_runtime ? "cuda_runtime" : "cuda_driver", c.name, c.start_ns, c.end_ns,
                        c.thread, c.correlation, c.range);
}

nb::tuple python_profile() {
  cuda::DeviceProfile profile;
  {
    nb::gil_scoped_release released;
    profile = cuda::translated([] { return cuda::stop_device_profile(); });
  }
  nb::list activities, calls;
  for (const auto& a : profile.activities) activities.append(python_activity(a));
  for (const auto& c : profile.calls) calls.append(python_call(c));
  return nb::make_tuple(activities, calls, profile.dropped);
}

}  // namespace

void init_cuda_profile(nb::module_& m) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def(
      "_cuda_prepare_profile", [] { cuda::translated([] { cuda::prepare_device_profile(); }); },
      Unlocked());
  m.def(
      "_cuda_start_profile",
      [](bool memory) { cuda::translated([&] { cuda::start_device_profile(memory); }); },
      Unlocked());
  m.def("_cuda_stop_profile", python_profile);
  m.def("_cuda_can_profile",
        [] { return cuda::is_available() && cuda::find_library(cuda::Library::Cupti, nullptr); });
}

}  // namespace facula::python
