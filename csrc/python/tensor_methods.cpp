// Methods of Tensor that are no operators; those that convert are in tensor_conversion.cpp.
#include "core/sparse.h"
#include "op/hooks/memory.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "python/method_override.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

// The one argument `dim` of a method that has no other; null when it is not given.
PyObject* only_dim(const char* method, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (n + named > 1)
    type_error(method, "() takes at most 1 argument, dim, but ", n + named, " were given");
  if (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dim") != 0)
    type_error(method, "() got an unexpected keyword argument '",
               PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, 0)), "'; it takes dim");
  return n + named == 0 || args[0] == Py_None ? nullptr : args[0];
}

PyObject* size(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(o);
    PyObject* given = only_dim("size", args, n, names);
    if (!given) return make_size(t.sizes());
    int64_t d = index_of(given);
    if (t.dim() == 0) dim_error(d, 0);
    return PyLong_FromLongLong(t.size(d));
  });
}
PyObject* stride(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(o);
    if (is_sparse(t)) runtime_error("Sparse tensors do not have strides");
    PyObject* given = only_dim("stride", args, n, names);
    if (!given) return make_tuple(t.strides());
    const int64_t d = index_of(given);
    if (t.dim() == 0) dim_error(d, 0);
    return PyLong_FromLongLong(t.stride(d));
  });
}
PyObject* dim(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).dim());
}
PyObject* numel(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).numel());
}
PyObject* storage_offset(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).offset());
}
PyObject* element_size(PyObject* o, PyObject*) {
  return PyLong_FromSize_t(unwrap(o).item_size());
}
PyObject* data_address(const Tensor& t) {
  return PyLong_FromVoidPtr(t->storage->data ? t.data() : nullptr);
}
PyObject* data_ptr(PyObject* o, PyObject*) {
  const Tensor& t = unwrap(o);
  if (t.is_wrapped()) return guarded([&] { return data_address(readable(t, ".data_ptr()")); });
  return data_address(t);
}
PyObject* is_view(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o)->base != nullptr);
}
PyObject* is_conj(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o)->keys & kKeyConj);
}
PyObject* is_neg(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o)->keys & kKeyNeg);
}
PyObject* is_inference(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o)->flags & kInference);
}
PyObject* is_complex_(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).is_complex());
}
PyObject* is_floating_(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).is_floating());
}
PyObject* is_signed_(PyObject* o, PyObject*) {
  DType d = unwrap(o).dtype();
  return PyBool_FromLong(d != DType::Bool && !is_unsigned(d));
}
PyObject* device_number(PyObject* o, PyObject*) {
  Device d = unwrap(o).device();
  return PyLong_FromLong(d.is_cuda() ? d.index : -1);
}

PyObject* is_contiguous(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"memory_format", nullptr};
    PyObject* format = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &format))
      throw PythonError{};
    if (format && !is_memory_format(format))
      type_error("memory_format must be facula.memory_format, not ", Py_TYPE(format)->tp_name);
    if (is_sparse(unwrap(o))) {
      if (layout_of(unwrap(o)) == SparseLayout::Coo) Py_RETURN_FALSE;
      runtime_error("Sparse CSR tensors do not have is_contiguous");
    }
    return PyBool_FromLong(
        unwrap(o).is_contiguous(format ? memory_format_of(format) : MemoryFormat::Contiguous));
  });
}

PyObject* item(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1)
      runtime_error("a Tensor with ", t.numel(),
                    " elements cannot be converted to Scalar: item() needs exactly one element, "
                    "the shape is ",
                    t.sizes());
    return to_python(read_item(t));
  });
}

PyObject* complex(PyObject* o, PyObject*) {
  const Tensor& t = unwrap(o);
  if (t.numel() != 1)
    value_error(
        "only one element tensors can be converted to Python scalars (complex() of a tensor of "
        "shape ",
        t.sizes(), ")");
  warn_of_lost_gradient(t);
  const Complex<double> c = read_item(t).to_complex();
  return PyComplex_FromDoubles(c.re, c.im);
}

PyObject* nested_list(const Tensor& t, int64_t d, const char* p) {
  if (d == t.dim()) return to_python(Scalar::load(t.dtype(), p));
  int64_t n = t.sizes()[d], step = t.strides()[d] * int64_t(t.item_size());
  Ref list(check(PyList_New(Py_ssize_t(n))));
  for (int64_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), check(nested_list(t, d + 1, p + i * step)));
  return list.release();
}
PyObject* tolist(PyObject* o, PyObject*) {
  return guarded([&] {
    Tensor t = readable(unwrap(o), ".tolist()");
    if (t.is_meta()) fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data!");
    if (!t.is_cpu()) t = op::_to_copy(detach_tensor(t), DType::None, Device{});
    return nested_list(t, 0, t.numel() ? t.data() : nullptr);
  });
}

PyObject* requires_grad_(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"requires_grad", nullptr};
    PyObject* on = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &on))
      throw PythonError{};
    if (!PyBool_Check(on))
      type_error("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
                 Py_TYPE(on)->tp_name);
    const Tensor& t = unwrap(o);
    if (on == Py_True && !is_differentiable_dtype(t.dtype()))
      runtime_error("only Tensors of floating point dtype can require gradients, but this one is ",
                    t.dtype());
    set_requires_grad(t, on == Py_True);
    return Py_NewRef(o);
  });
}
PyObject* retain_grad_(PyObject* o, PyObject*) {
  return guarded([&] {
    retain_grad(unwrap(o));
    return Py_NewRef(Py_None);
  });
}

PyObject* as_subclass(PyObject* o, PyObject* cls) {
  return guarded([&] {
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject*)cls, tensor_base_type))
      type_error("as_subclass(): cls must inherit from Tensor, but ",
                 PyType_Check(cls) ? ((PyTypeObject*)cls)->tp_name : "it", " does not");
    return wrap_as(op::alias(unwrap(o)), (PyTypeObject*)cls);
  });
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *cls, *data;
    int grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p", const_cast<char**>(names), &cls, &data,
                                     &grad))
      throw PythonError{};
    if (!PyType_Check(cls)) type_error("cls must be a type (got ", Py_TYPE(cls)->tp_name, ")");
    if (!PyType_IsSubtype((PyTypeObject*)cls, tensor_base_type))
      type_error("cls must be a subclass of facula.Tensor");
    if (!is_tensor(data)) type_error("data must be a Tensor, got ", Py_TYPE(data)->tp_name);
    Tensor t = detach_tensor(unwrap(data));
    if (grad) set_requires_grad(t, true);
    return wrap_as(t, (PyTypeObject*)cls);
  });
}

PyObject* resize_(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    const Tensor& t = unwrap(o);
    if (is_sparse(t))
      runtime_error("resize_(): a sparse tensor has no memory of its own; use sparse_resize_()");
    MemoryFormat format = MemoryFormat::None;
    Py_ssize_t at = 0;
    for (PyObject *name, *value; kwargs && PyDict_Next(kwargs, &at, &name, &value);) {
      if (PyUnicode_CompareWithASCIIString(name, "memory_format") != 0)
        type_error("resize_() got an unexpected keyword argument '", PyUnicode_AsUTF8(name), "'");
      if (value == Py_None) continue;
      if (!is_memory_format(value))
        type_error("resize_(): argument 'memory_format' must be facula.memory_format, not ",
                   type_name(value));
      format = memory_format_of(value);
      if (format == MemoryFormat::Preserve)
        runtime_error("Unsupported memory format: preserve_format has nothing to preserve here");
    }
    if (requires_grad(t)) runtime_error("cannot resize variables that require grad");
    if (t.is_wrapped())
      runtime_error(
          "resize_() is not possible on a tensor inside of a function transform (vmap, grad, jvp "
          "...). Make a new tensor instead.");
    PyObject* first = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
    PyObject* list = first && PySequence_Check(first) && !is_tensor(first) ? first : args;
    Ref sizes(check(PySequence_Tuple(list)));
    Dims dims;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); ++i)
      dims.push_back(index_of(PyTuple_GET_ITEM(sizes.get(), i)));
    if (format != MemoryFormat::None) strides_for(dims, format);  // refuses a wrong rank
    if (!same(dims, t.sizes())) {
      resize_tensor(t, dims);
      t.bump_version("resize_");
    }
    if (format != MemoryFormat::None) t->set_geometry(dims, strides_for(dims, format));
    return Py_NewRef(o);
  });
}

}  // namespace

PyObject* overridden_method(PyObject* o, const char* name, PyObject* const* args, Py_ssize_t n,
                            PyObject* names) {
  std::vector<PyObject*> flat{o}, found;
  flat.insert(flat.end(), args, args + n + (names ? PyTuple_GET_SIZE(names) : 0));
  for (PyObject* a : flat) collect_overloaded(a, found);
  if (found.empty() && !override_active()) return nullptr;
  return call_override(PyDict_GetItemString(tensor_base_type->tp_dict, name), flat.data(),
                       size_t(n + 1), names, found);
}

PyObject* convert_array(PyObject* array) {
  static PyObject* f;
  import_once(f, "facula", "from_numpy");
  if (!f) throw PythonError{};
  return check(PyObject_CallOneArg(f, array));
}

PyMethodDef tensor_methods[] = {
    FACULA_FAST("size", size,
                "size($self, dim=None)\n--\n\n"
                "All sizes, or that of one dimension."),
    FACULA_FAST("stride", stride,
                "stride($self, dim=None)\n--\n\n"
                "All strides, or that of one dimension."),
    FACULA_PLAIN("dim", dim, "How many dimensions."),
    FACULA_PLAIN("ndimension", dim, "How many dimensions."),
    FACULA_PLAIN("numel", numel, "How many elements."),
    FACULA_PLAIN("nelement", numel, "How many elements."),
    FACULA_PLAIN("storage_offset", storage_offset, "Position of the first element in the storage."),
    FACULA_PLAIN("element_size", element_size, "Bytes of one element."),
    FACULA_PLAIN("data_ptr", data_ptr, "Address of the first element."),
    FACULA_PLAIN("_is_view", is_view, nullptr),
    FACULA_PLAIN("is_conj", is_conj, "True for a conjugate that is computed when it is read."),
    FACULA_PLAIN("is_neg", is_neg, "True for a negative that is computed when it is read."),
    FACULA_PLAIN("is_inference", is_inference, "True when made in inference mode."),
    FACULA_PLAIN("is_complex", is_complex_, "True for complex dtypes."),
    FACULA_PLAIN("is_floating_point", is_floating_, "True for floating-point dtypes."),
    FACULA_PLAIN("is_signed", is_signed_, "True when negative numbers can be held."),
    FACULA_PLAIN("get_device", device_number, "The CUDA index, or -1."),
    FACULA_KEYWORDS("is_contiguous", is_contiguous,
                    "is_contiguous($self, memory_format=None)\n--\n\n"
                    "True when the memory is in the order of the dimensions."),
    FACULA_PLAIN("__complex__", complex, nullptr),
    FACULA_PLAIN("item", item, "The only element as a Python number."),
    FACULA_PLAIN("tolist", tolist, "The elements as nested lists."),
    FACULA_KEYWORDS("requires_grad_", requires_grad_,
                    "requires_grad_($self, requires_grad=True)\n--\n\n"
                    "Sets requires_grad and returns the tensor."),
    FACULA_PLAIN("retain_grad", retain_grad_, "Keeps .grad although this is no leaf."),
    {"as_subclass", as_subclass, METH_O, "The same memory as an object of a subclass."},
    {"_make_subclass", (PyCFunction)(void*)make_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    FACULA_KEYWORDS("resize_", resize_,
                    "resize_($self, *sizes, memory_format=None)\n--\n\n"
                    "Changes the shape, growing the storage when needed."),
    {}};

}  // namespace facula::python
