// What Python asks of sparse tensors beside operators.
#include "core/sparse.h"

#include <nanobind/nanobind.h>

#include "python/py.h"
#include "sparse/pattern.h"

namespace nb = nanobind;

namespace facula::python {
namespace {

const Tensor& tensor_of(const nb::object& o) {
  if (!is_tensor(o.ptr()))
    raise_python(PyExc_TypeError, "expected a Tensor, not " + type_name(o.ptr()));
  return unwrap(o.ptr());
}

template <class F>
auto translated(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (nb::python_error&) {
    throw;
  } catch (...) {
    set_python_error();
    throw nb::python_error();
  }
}

Dims dims_of(const nb::object& sizes) {
  Dims dims;
  for (nb::handle h : sizes) dims.push_back(index_of(h.ptr()));
  return dims;
}

nb::object info(const nb::object& o) {
  const Tensor& t = tensor_of(o);
  if (!is_sparse(t)) return nb::none();
  const SparseParts& p = sparse_parts(t);
  return nb::make_tuple(int(p.layout), p.sparse_dim, p.dense_dim, p.nnz(), p.coalesced);
}

// Whether the plain indices are sorted; raises when the parts do not fit together.
bool checked(int layout, const nb::object& indices, const nb::object& plain,
             const nb::object& values, const nb::object& sizes) {
  const Dims dims = dims_of(sizes);
  if (SparseLayout(layout) == SparseLayout::Coo) {
    sparse::check_coo(tensor_of(indices), tensor_of(values), dims);
    return false;
  }
  return sparse::check_compressed(SparseLayout(layout), tensor_of(indices), tensor_of(plain),
                                  tensor_of(values), dims);
}

void resize(const nb::object& o, const nb::object& sizes, int64_t sparse_dim, int64_t dense_dim,
            bool clear) {
  const Tensor& t = tensor_of(o);
  sparse::resize(t, dims_of(sizes), sparse_dim, dense_dim, clear);
}

void set_coalesced(const nb::object& o, bool coalesced) {
  const Tensor& t = tensor_of(o);
  SparseParts parts = sparse_parts(t);
  parts.coalesced = coalesced;
  replace_parts(t, t.sizes(), std::move(parts));
}

}  // namespace

void init_sparse(nb::module_& m) {
  m.def(
      "_sparse_info", [](nb::object t) { return translated([&] { return info(t); }); },
      "(layout, sparse_dim, dense_dim, nnz, coalesced) of a sparse tensor, None of others.");
  m.def(
      "_sparse_check",
      [](int layout, nb::object indices, nb::object plain, nb::object values, nb::object sizes) {
        return translated([&] { return checked(layout, indices, plain, values, sizes); });
      },
      nb::arg("layout"), nb::arg("indices"), nb::arg("plain").none(), nb::arg("values"),
      nb::arg("sizes"), "Raises when the parts do not describe a tensor; whether they are sorted.");
  m.def(
      "_sparse_resize",
      [](nb::object t, nb::object sizes, int64_t sparse_dim, int64_t dense_dim, bool clear) {
        translated([&] { resize(t, sizes, sparse_dim, dense_dim, clear); });
      },
      "Changes the sizes of a COO tensor in place.");
  m.def(
      "_sparse_set_coalesced",
      [](nb::object t, bool coalesced) { translated([&] { set_coalesced(t, coalesced); }); },
      "Declares that the positions are sorted and distinct.");
  m.def(
      "_sparse_host_as_device", [](bool on) { return sparse::host_as_device.exchange(on); },
      "For tests: whether positions in host memory are dealt with as those on devices; as before.");
}

}  // namespace facula::python
