// facula._C: puts the Python layer together. nanobind binds what is not hot.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/cast.h"
#include "python/py.h"

namespace nb = nanobind;

namespace facula::python {
void init_cuda(nb::module_& m);
void init_transforms(nb::module_& m);
void init_settings(nb::module_& m);
void init_sparse(nb::module_& m);
void init_autocast(nb::module_& m);
void init_optim(PyObject* module);
}  // namespace facula::python

NB_MODULE(_C, m) {
  using namespace facula::python;  // the init functions, once each
  PyObject* module = m.ptr();
  try {
    init_value_types(module);
    init_overrides(module);
    init_operators(module);
    init_tensor_type(module);
    init_node_type(module);
    init_function_type(module);
    init_hooks(module);
    init_autograd(module);
    init_construction(module);
    init_generator_type(module);
    init_storage_type(module);
    init_module_base(module);
    init_interop(module);
    init_optim(module);
    init_source_locations();
  } catch (...) {
    set_python_error();
    throw nb::python_error();
  }
  init_cuda(m);
  init_transforms(m);
  init_settings(m);
  init_sparse(m);
  init_autocast(m);
  m.def(
      "get_num_threads", [] { return facula::num_threads(); }, "Threads that share parallel work.");
  m.def(
      "set_num_threads",
      [](int n) {
        if (n < 1) facula::runtime_error("set_num_threads expects a positive integer, got ", n);
        facula::set_num_threads(n);
      },
      nb::arg("n"), "Sets how many threads share parallel work.");
  m.def("_set_blas_library",
        [](const std::string& path) { facula::set_blas_library(path.c_str()); });
  m.def("_isa", [] { return facula::isa_level(); }, "0 baseline, 1 x86-64-v3, 2 x86-64-v4.");
  m.def(
      "_swap_tensors",
      [](nb::object a, nb::object b) {
        if (!is_tensor(a.ptr()) || !is_tensor(b.ptr()))
          throw nb::type_error("_swap_tensors expects two tensors");
        swap_tensors(a.ptr(), b.ptr());
      },
      "Exchanges what two tensor objects stand for.");
  m.def("_host_trim", [] { facula::host_trim(); }, "Gives cached host memory back to the system.");
  m.def("_host_memory_stats", [] {
    auto s = facula::host_memory_stats();
    nb::dict d;
    d["allocated_bytes"] = s.allocated_bytes;
    d["peak_bytes"] = s.peak_bytes;
    d["cached_bytes"] = s.cached_bytes;
    d["allocations"] = s.allocations;
    d["system_allocations"] = s.system_allocations;
    return d;
  });
}
