// Tensors and the storage under them: Tensor.untyped_storage, set_ and is_set_to.
#include "core/sparse.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

PyObject* untyped_storage(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor t = unwrap(self);
    if (is_sparse(t))
      fail(ErrorKind::NotImplemented, "Cannot access storage of ",
           layout_of(t) == SparseLayout::Coo ? "SparseTensorImpl" : "SparseCsrTensorImpl",
           ": it has no memory of its own; use .to_dense() first");
    if (t.is_wrapped()) t = readable(t, ".untyped_storage()");
    return wrap_storage(t->storage);
  });
}

PyObject* is_set_to(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"tensor", nullptr};
    PyObject* other;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:is_set_to", const_cast<char**>(names),
                                     &other))
      throw PythonError{};
    if (!is_tensor(other))
      type_error("is_set_to(): argument 'tensor' (position 1) must be Tensor, not ",
                 type_name(other));
    const Tensor &a = unwrap(self), &b = unwrap(other);
    return PyBool_FromLong(a->storage == b->storage && a.offset() == b.offset() &&
                           a.dtype() == b.dtype() && same(a.sizes(), b.sizes()) &&
                           same(a.strides(), b.strides()));
  });
}

Dims ints_of(PyObject* o, const char* name) {
  if (is_index(o)) return Dims{index_of(o)};
  if (!PyTuple_Check(o) && !PyList_Check(o))
    type_error("set_(): argument '", name, "' must be tuple of ints, not ", type_name(o));
  Ref items(check(PySequence_Tuple(o)));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    dims.push_back(index_of(PyTuple_GET_ITEM(items.get(), i)));
  return dims;
}

// What a tensor is set to: a storage and a geometry over it.
struct View {
  Ref owner;  // the storage's object: parsing runs code that could let go of the storage
  Storage* storage;
  int64_t offset = 0;
  Dims sizes, strides;
};

View view_of(const Tensor& t, PyObject* source, PyObject* offset, PyObject* size,
             PyObject* stride) {
  View v;
  if (!source) {
    if (offset || size || stride) type_error("set_(): missing the argument 'source'");
    Tensor empty = empty_tensor(Dims{0}, t.dtype(), t.device());
    v.owner = Ref(wrap_storage(empty->storage));
    v.storage = empty->storage;
    v.sizes = Dims{0};
    v.strides = Dims{1};
    return v;
  }
  if (t.is_wrapped() || (is_tensor(source) && unwrap(source).is_wrapped()))
    runtime_error(
        "set_() is not possible with tensors inside of a function transform (vmap, grad, jvp ...). "
        "Make a new tensor instead.");
  if (is_tensor(source)) {
    const Tensor& from = unwrap(source);
    if (from.dtype() != t.dtype())
      runtime_error("Could not set tensor of type ", from.dtype(), " to a tensor of type ",
                    t.dtype());
    if (grad_enabled() && requires_grad(from))
      runtime_error(
          "set_() has no derivative, but its source requires grad. Pass source.detach().");
    v.owner = Ref(wrap_storage(from->storage));
    v.storage = from->storage;
    v.offset = from.offset();
    v.sizes.assign(from.sizes());
    v.strides.assign(from.strides());
  } else {
    v.owner = is_storage(source) ? Ref::borrow(source)
                                 : optional_attribute(source, "_untyped_storage");  // a typed one
    if (!v.owner || !is_storage(v.owner.get()))
      type_error("set_(): argument 'source' must be a storage or a Tensor, not ",
                 type_name(source));
    v.storage = storage_of(v.owner.get());
    v.sizes = Dims{int64_t(v.storage->nbytes / t.item_size())};
    v.strides = Dims{1};
  }
  if (!offset && !size && !stride) return v;
  if (!offset || !size)
    type_error("set_(): expected storage_offset and size beside the source, and stride or nothing");
  v.offset = index_of(offset);
  if (v.offset < 0) runtime_error("Tensor: invalid storage offset ", v.offset);
  v.sizes = ints_of(size, "size");
  checked_numel(v.sizes);
  v.strides = stride ? ints_of(stride, "stride") : contiguous_strides(v.sizes);
  if (v.strides.size() != v.sizes.size())
    runtime_error("mismatch in length of strides and shape: size ", IntSpan(v.sizes),
                  " and stride ", IntSpan(v.strides));
  for (int64_t s : v.strides)
    if (s < 0)
      runtime_error("set_(): negative strides are not supported, got ", IntSpan(v.strides));
  return v;
}

// The storage of a tensor that set_ gives a geometry may grow, as in resize_.
void grow_for(const View& v, DType dtype) {
  Dims strides = v.strides;
  size_t extent = checked_extent(v.sizes, strides, dtype);
  if (!extent) return;
  int64_t start, need;
  if (__builtin_mul_overflow(v.offset, int64_t(item_size(dtype)), &start) ||
      __builtin_add_overflow(start, int64_t(extent), &need))
    runtime_error("set_(): storage offset ", v.offset, " overflows the address range");
  if (size_t(need) > v.storage->nbytes) v.storage->resize(size_t(need));
}

PyObject* set_(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = call_method_override(self, "set_", args, n, names)) return r;
    static const char* const known[] = {"source", "storage_offset", "size", "stride"};
    PyObject* given[4] = {};
    if (n > 4) type_error("set_() takes at most 4 arguments but ", n, " were given");
    for (Py_ssize_t i = 0; i < n; ++i) given[i] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      PyObject* name = PyTuple_GET_ITEM(names, k);
      int at = 0;
      while (at < 4 && PyUnicode_CompareWithASCIIString(name, known[at]) != 0) ++at;
      if (at == 4 || given[at]) {
        const char* text = PyUnicode_AsUTF8(name);
        if (!text) throw PythonError{};
        type_error("set_() got an unexpected keyword argument '", text, "'");
      }
      given[at] = args[n + k];
    }
    for (PyObject*& g : given)
      if (g == Py_None) g = nullptr;

    const Tensor& t = unwrap(self);
    if (is_sparse(t) || (given[0] && is_tensor(given[0]) && is_sparse(unwrap(given[0]))))
      runtime_error(
          "set_() is not possible with sparse tensors, which have no memory of their own");
    View v = view_of(t, given[0], given[1], given[2], given[3]);
    if (v.storage->device != t.device())
      runtime_error("Attempted to set the storage of a tensor on device \"", t.device(),
                    "\" to a storage on different device \"", v.storage->device,
                    "\".  This is no longer allowed; the devices must match.");
    if (grad_enabled() && requires_grad(t)) {
      check_inplace(defs::copy_, t);
      runtime_error(
          "set_() has no derivative, but the tensor has a history. Call it on x.detach() or under "
          "facula.no_grad().");
    }
    grow_for(v, t.dtype());

    Storage* old = t->storage;
    v.storage->retain();
    t->storage = v.storage;
    t->offset = v.offset;
    t->set_geometry(v.sizes, v.strides);
    if (TensorImpl* base = std::exchange(t->base, nullptr)) Tensor::adopt(base);
    t->flags &= uint8_t(~(kNoGradView | kMultiOutputView));
    // A node that saved this tensor must see that it changed, whatever the new storage's count is.
    if (old->saved_for_backward && !(t->flags & (kInference | kUntracked)) &&
        v.storage->version <= old->version)
      v.storage->version = old->version + 1;
    old->unref();
    return Py_NewRef(self);
  });
}

PyMethodDef methods[] = {
    {"untyped_storage", untyped_storage, METH_NOARGS,
     "untyped_storage() -> UntypedStorage\n\n"
     "The memory under this tensor, the same object for every view.\n\n"
     "Example::\n\n    >>> facula.ones(2).untyped_storage().nbytes()\n    8\n"},
    {"is_set_to", (PyCFunction)(void*)is_set_to, METH_VARARGS | METH_KEYWORDS,
     "True when the other tensor has the same storage, offset, shape and strides."},
    {"set_", (PyCFunction)(void*)set_, METH_FASTCALL | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None) -> Tensor\n\n"
     "Makes this tensor a view of a storage or of another tensor's memory.\n\n"
     "Example::\n\n    >>> facula.ones(1).set_(facula.arange(4.), 1, (2,), (2,))\n"
     "    tensor([1., 3.])\n"},
    {}};

}  // namespace

void init_set_storage() {
  add_methods(tensor_base_type, methods);
}

}  // namespace facula::python
