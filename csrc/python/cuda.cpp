// facula.cuda: what Python asks of the CUDA backend about devices, streams, events and graphs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cuda/backend.h"
#include "cuda/context.h"
#include "cuda/copy.h"
#include "cuda/driver.h"
#include "cuda/graph.h"
#include "cuda/jit.h"
#include "cuda/libraries.h"
#include "cuda/nvrtc.h"
#include "cuda/translate.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {

void init_cuda_memory(nb::module_& m);
void init_cuda_profile(nb::module_& m);

Device current_cuda_device() {
  return Device{DeviceType::CUDA, int8_t(cuda::current_device())};
}

namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Handle = uintptr_t;  // of a stream or an event, as Python holds it

cuda::CuStream stream_of(Handle handle) {
  return reinterpret_cast<cuda::CuStream>(handle);
}
cuda::CuEvent event_of(Handle handle) {
  return reinterpret_cast<cuda::CuEvent>(handle);
}
template <class T>
Handle handle_of(T* pointer) {
  return reinterpret_cast<Handle>(pointer);
}

void init_devices(nb::module_& m) {
  m.def("_cuda_is_available", [] { return cuda::is_available(); });
  m.def("_cuda_unavailable_reason", [] { return std::string(cuda::unavailable_reason()); });
  m.def("_cuda_driver_version", [] { return cuda::driver_version(); });
  m.def("_cuda_device_count", [] { return cuda::device_count(); });
  m.def("_cuda_current_device", [] { return cuda::current_device(); });
  m.def("_cuda_set_device", [](int d) { cuda::translated([&] { cuda::set_current_device(d); }); });
  m.def(
      "_cuda_synchronize", [](int d) { cuda::translated([&] { cuda::synchronize(d); }); },
      Unlocked());
  m.def("_cuda_profiler", [](bool on) {
    cuda::translated([&] {
      cuda::use_device(cuda::current_device());
      if (on) FACULA_CU(cuProfilerStart);
      else FACULA_CU(cuProfilerStop);
    });
  });
  m.def("_cuda_can_access_peer", [](int d, int peer) {
    return cuda::translated([&] {
      cuda::check_device(d), cuda::check_device(peer);
      int can = 0;
      FACULA_CU(cuDeviceCanAccessPeer, &can, d, peer);
      return can != 0;
    });
  });
  m.def("_cuda_properties", [](int d) {
    const auto& p = cuda::translated([&]() -> auto& { return cuda::device_properties(d); });
    nb::dict out;
    out["name"] = p.name;
    out["major"] = p.major;
    out["minor"] = p.minor;
    out["total_memory"] = p.total_memory;
    out["multi_processor_count"] = p.multiprocessors;
    out["is_integrated"] = int(p.integrated);
    out["warp_size"] = p.warp_size;
    out["max_threads_per_block"] = p.max_threads_per_block;
    out["max_threads_per_multi_processor"] = p.max_threads_per_multiprocessor;
    out["regs_per_multiprocessor"] = p.registers_per_multiprocessor;
    out["shared_memory_per_block"] = p.shared_memory_per_block;
    out["shared_memory_per_block_optin"] = p.shared_memory_per_block_optin;
    out["shared_memory_per_multiprocessor"] = p.shared_memory_per_multiprocessor;
    out["L2_cache_size"] = p.l2_cache_size;
    out["clock_rate"] = p.clock_rate;
    out["memory_clock_rate"] = p.memory_clock_rate;
    out["memory_bus_width"] = p.memory_bus_width;
    out["is_multi_gpu_board"] = int(p.multi_gpu_board);
    out["pci_bus_id"] = p.pci_bus;
    out["pci_device_id"] = p.pci_device;
    out["pci_domain_id"] = p.pci_domain;
    out["uuid"] = p.uuid;
    return out;
  });
  m.def("_cuda_wait_report", [] { return int(cuda::wait_report()); });
  m.def("_cuda_set_wait_report", [](int r) { cuda::set_wait_report(cuda::WaitReport(r)); });
  m.def("_cuda_architectures",
        [] { return cuda::translated([] { return cuda::nvrtc_architectures(); }); });
  m.def("_cuda_search_paths", [](const std::vector<std::string>& paths) {
    std::vector<const char*> p;
    for (auto& s : paths) p.push_back(s.c_str());
    cuda::set_cuda_search_paths(p.data(), p.size());
  });
  m.def("_cuda_kernel_directory", [](const std::string& d) { cuda::set_kernel_directory(d); });
}

void init_streams(nb::module_& m) {
  m.def("_cuda_stream_new", [](int d, int priority) {
    return cuda::translated([&] { return handle_of(cuda::pooled_stream(d, priority)); });
  });
  m.def("_cuda_stream_current",
        [](int d) { return cuda::translated([&] { return handle_of(cuda::current_stream(d)); }); });
  m.def("_cuda_stream_set", [](int d, Handle s) {
    cuda::translated([&] { cuda::set_current_stream(d, stream_of(s)); });
  });
  m.def("_cuda_stream_query", [](int d, Handle s) {
    return cuda::translated([&] { return cuda::stream_is_idle(d, stream_of(s)); });
  });
  m.def(
      "_cuda_stream_synchronize",
      [](int d, Handle s) { cuda::translated([&] { cuda::synchronize_stream(d, stream_of(s)); }); },
      Unlocked());
  m.def("_cuda_stream_priority", [](int d, Handle s) {
    return cuda::translated([&] {
      cuda::use_device(d);
      int priority = 0;
      FACULA_CU(cuStreamGetPriority, stream_of(s), &priority);
      return priority;
    });
  });
  m.def("_cuda_stream_priority_range", [](int d) {
    return cuda::translated([&] {
      int lowest = 0, highest = 0;
      cuda::stream_priority_range(d, &lowest, &highest);
      return std::make_tuple(lowest, highest);
    });
  });
  m.def("_cuda_stream_wait", [](int d, Handle s, Handle e) {
    cuda::translated([&] { cuda::wait_event(d, stream_of(s), event_of(e)); });
  });
  m.def("_cuda_stream_is_capturing", [](int d, Handle s) {
    return cuda::translated([&] { return cuda::stream_is_capturing(d, stream_of(s)); });
  });
  m.def("_cuda_event_new", [](int d, bool timing, bool blocking) {
    return cuda::translated([&] { return handle_of(cuda::create_event(d, timing, blocking)); });
  });
  m.def("_cuda_event_free",
        [](int d, Handle e) { cuda::translated([&] { cuda::destroy_event(d, event_of(e)); }); });
  m.def("_cuda_event_record", [](int d, Handle e, Handle s) {
    cuda::translated([&] { cuda::record_event(d, event_of(e), stream_of(s)); });
  });
  m.def("_cuda_event_query", [](int d, Handle e) {
    return cuda::translated([&] { return cuda::event_is_done(d, event_of(e)); });
  });
  m.def(
      "_cuda_event_synchronize",
      [](int d, Handle e) { cuda::translated([&] { cuda::synchronize_event(d, event_of(e)); }); },
      Unlocked());
  m.def("_cuda_event_elapsed", [](int d, Handle start, Handle end) {
    return cuda::translated(
        [&] { return cuda::elapsed_milliseconds(d, event_of(start), event_of(end)); });
  });
}

void init_graphs(nb::module_& m) {
  using cuda::Graph;
  nb::class_<Graph>(m, "_CudaGraph")
      .def(nb::init<bool>())
      .def("begin",
           [](Graph& g, uint64_t pool, int mode) {
             cuda::translated([&] { g.begin_capture(pool, cuda::CuCaptureMode(mode)); });
           })
      .def("end", [](Graph& g) { cuda::translated([&] { g.end_capture(); }); })
      .def("instantiate", [](Graph& g) { cuda::translated([&] { g.instantiate(); }); })
      .def("replay", [](Graph& g) { cuda::translated([&] { g.replay(); }); })
      .def("reset", [](Graph& g) { cuda::translated([&] { g.reset(); }); })
      .def("pool", &Graph::pool)
      .def("write_dot",
           [](Graph& g, const std::string& path) { cuda::translated([&] { g.write_dot(path); }); });
}

}  // namespace

void init_cuda(nb::module_& m) {
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void*) {
        try {
          std::rethrow_exception(p);
        } catch (const Error&) {
          set_python_error();
        }
      },
      nullptr);
  cuda::register_backend();
  cuda::let_go_of_interpreter = [](void (*wait)(void*), void* argument) {
    if (!PyGILState_Check()) return wait(argument);
    WithoutGil released;
    wait(argument);
  };
  init_devices(m);
  init_streams(m);
  init_graphs(m);
  init_cuda_memory(m);
  init_cuda_profile(m);
}

}  // namespace facula::python
