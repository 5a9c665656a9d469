// facula._C: the settings of autocast in the calling thread. Devices: 0 is the CPU, 1 is CUDA.
#include <nanobind/nanobind.h>

#include "op/autocast.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {

void init_autocast(nb::module_& m) {
  m.def("_autocast_enabled", [](int device) { return bool(thread_state.autocast >> device & 1); });
  m.def("_autocast_active", [] { return thread_state.autocast != 0; });
  m.def("_set_autocast_enabled", [](int device, bool on) {
    const unsigned bit = 1u << device, now = thread_state.autocast;
    thread_state.autocast = uint8_t(on ? now | bit : now & ~bit);
  });
  m.def("_autocast_dtype",
        [](int device) { return nb::steal(to_python(autocast_settings().dtype[device & 1])); });
  m.def("_set_autocast_dtype", [](int device, nb::object dtype) {
    autocast_settings().dtype[device & 1] = dtype_of(dtype.ptr());
  });
  m.def("_autocast_cache_enabled", [] { return autocast_settings().cache; });
  m.def("_set_autocast_cache_enabled", [](bool on) { autocast_settings().cache = on; });
  m.def("_autocast_increment_nesting", [] { return ++autocast_settings().nesting; });
  m.def("_autocast_decrement_nesting", [] { return --autocast_settings().nesting; });
  m.def("_clear_autocast_cache", [] { clear_autocast_cache(); });
}

}  // namespace facula::python
