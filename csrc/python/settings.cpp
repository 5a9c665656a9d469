// facula._C: settings for the whole program, and the recording of operator calls.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "core/float_mode.h"
#include "cuda/cudnn.h"
#include "cuda/matmul.h"
#include "op/profiler.h"
#include "op/settings.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {

namespace {

nb::list python_events(const std::vector<ProfileEvent>& events) {
  nb::list out;
  for (const ProfileEvent& e : events) {
    nb::list shapes;
    const nb::object result = e.result ? nb::steal(make_tuple(*e.result)) : nb::none();
    for (const Dims& d : e.shapes) shapes.append(nb::steal(make_tuple(d)));
    out.append(nb::make_tuple(e.name, e.start_ns, e.end_ns, e.thread, e.id, e.memory,
                              e.device_memory, shapes, result));
  }
  return out;
}

// A range that Python opens and closes.
struct OpenRange {
  std::unique_ptr<ProfiledRange> range;
  void close() { range.reset(); }
};

}  // namespace

void init_settings(nb::module_& m) {
  m.def("_set_deterministic", [](bool on, bool warn_only) {
    settings.deterministic = on;
    settings.deterministic_warn_only = warn_only;
  });
  m.def("_deterministic", [] { return settings.deterministic.load(); });
  m.def("_deterministic_warn_only", [] { return settings.deterministic_warn_only.load(); });
  m.def("_set_fill_uninitialized_memory", [](bool on) { settings.fill_uninitialized_memory = on; });
  m.def("_fill_uninitialized_memory", [] { return settings.fill_uninitialized_memory.load(); });
  m.def("_set_loss_broadcast_warning", [](bool on) { settings.loss_broadcast_warning = on; });
  m.def("_loss_broadcast_warning", [] { return settings.loss_broadcast_warning.load(); });
  m.def("_set_allow_tf32", [](bool on) { cuda::set_allow_tf32(on); });
  m.def("_allow_tf32", [] { return cuda::allow_tf32(); });
  m.def("_cudnn_version", [] { return cuda::is_available() ? cuda::cudnn_version() : 0; });
  m.def("_set_cudnn", [](bool enabled, bool benchmark, bool deterministic, bool allow_tf32) {
    cuda::cudnn_settings.enabled = enabled;
    cuda::cudnn_settings.benchmark = benchmark;
    cuda::cudnn_settings.deterministic = deterministic;
    cuda::cudnn_settings.allow_tf32 = allow_tf32;
  });
  m.def("_set_flush_denormal", [](bool on) {
    set_float_mode(on ? float_mode() | kFlushDenormal : float_mode() & ~kFlushDenormal);
    return kFlushDenormal != 0;
  });

  m.def("_start_profiling", [](bool shapes) { start_profiling(shapes); });
  m.def("_stop_profiling", [] { return python_events(stop_profiling()); });
  m.def("_profiling", [] { return profiling.load(); });
  m.def("_profile_clock", [] { return profile_clock(); });
  nb::class_<OpenRange>(m, "_ProfiledRange")
      .def("__init__",
           [](OpenRange* self, const std::string& name) {
             new (self) OpenRange{profiling ? std::make_unique<ProfiledRange>(name) : nullptr};
           })
      .def("close", &OpenRange::close);
}

}  // namespace facula::python
