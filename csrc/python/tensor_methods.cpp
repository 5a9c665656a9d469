// Properties and methods of Tensor that are no operators.
#include "python/tensor_methods.h"

#include <algorithm>
#include <cstring>

#include "core/sparse.h"
#include "kernels/spatial.h"
#include "op/hooks/memory.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

// A subclass with its own __torch_function__ sees property reads as calls of the property's getter.
PyObject* overridden_property(PyObject* o, const char* name) {
  PyObject* descriptor = PyDict_GetItemString(tensor_base_type->tp_dict, name);
  Ref getter(check(PyObject_GetAttrString(descriptor, "__get__")));
  return call_override(getter.get(), &o, 1, nullptr, {o});
}

template <class F>
PyObject* property(PyObject* o, const char* name, F&& f) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(o) != tensor_type && torch_function_enabled() && has_override(o))
      return overridden_property(o, name);
    return f(unwrap(o));
  });
}
// A method's name as a template argument.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&s)[n]) { std::copy(s, s + n, text); }
};

// A subclass with its own __torch_function__ (or a mode) sees method calls too. Null when there is
// none.
PyObject* overridden_method(PyObject* o, const char* name, PyObject* const* args, Py_ssize_t n,
                            PyObject* names) {
  std::vector<PyObject*> flat{o}, found;
  flat.insert(flat.end(), args, args + n + (names ? PyTuple_GET_SIZE(names) : 0));
  for (PyObject* a : flat) collect_overloaded(a, found);
  if (found.empty() && !override_active()) return nullptr;
  return call_override(PyDict_GetItemString(tensor_base_type->tp_dict, name), flat.data(),
                       size_t(n + 1), names, found);
}
bool may_be_overridden(PyObject* o) {
  return (Py_TYPE(o) != tensor_type || override_active()) && torch_function_enabled();
}

template <Name name, auto f>
PyObject* no_arguments(PyObject* o, PyObject* unused) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o))
      if (PyObject* r = overridden_method(o, name.text, nullptr, 0, nullptr)) return r;
    return check(f(o, unused));
  });
}
template <Name name, auto f>
PyObject* fast_arguments(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o))
      if (PyObject* r = overridden_method(o, name.text, args, n, names)) return r;
    return check(f(o, args, n, names));
  });
}
template <Name name, auto f>
PyObject* keyword_arguments(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o)) {
      std::vector<PyObject*> flat(&PyTuple_GET_ITEM(args, 0),
                                  &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args));
      Ref names;
      if (kwargs) {
        names = Ref(check(PySequence_Tuple(kwargs)));
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) flat.push_back(value);
      }
      if (PyObject* r =
              overridden_method(o, name.text, flat.data(), PyTuple_GET_SIZE(args), names.get()))
        return r;
    }
    return check(f(o, args, kwargs));
  });
}

#define PROPERTY(name, expression)                                                              \
  PyObject* get_##name(PyObject* o, void*) {                                                    \
    return property(o, #name,                                                                   \
                    [&]([[maybe_unused]] const Tensor& t) -> PyObject* { return expression; }); \
  }

Tensor matrix_transpose(const Tensor& t, const char* name) {
  if (t.dim() == 0) return t;  // as PyTorch still has it
  if (t.dim() < 2)
    runtime_error("tensor.", name, " is only supported on matrices or batches of matrices. Got ",
                  t.dim(), "-D tensor.");
  return op::transpose(t, -2, -1);
}
Tensor reverse_dims(const Tensor& t) {
  Dims order;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d);
  return op::permute(t, order);
}
Tensor hermitian(const Tensor& t) {
  if (t.dim() != 2 && t.dim() != 0)
    runtime_error("tensor.H is only supported on matrices (2-D tensors). Got ", t.dim(),
                  "-D tensor. For batches of matrices, consider using tensor.mH");
  return t.dim() ? op::conj(op::transpose(t, 0, 1)) : op::conj(t);
}

NodeRef valid_grad_fn(const Tensor& t) {
  if (t->flags & kNoGradView && t->base && t->base->keys & kKeyGrad && t->made_at != t.version())
    runtime_error(
        "A view was created in no_grad mode and its base or another view of its base has been "
        "modified inplace "
        "with grad mode enabled. The history of this view is not known; make the view outside of "
        "the no_grad block.");
  return grad_fn_of(t);
}

uint32_t tracked_version(const Tensor& t) {
  if (t->flags & kInference) runtime_error("Inference tensors do not track version counter.");
  return t->flags & kUntracked ? 0 : t.version();  // .data counts for itself
}
Tensor grad_of(const Tensor& t) {
  if (t->autograd && t->autograd->grad.defined()) return t->autograd->grad;
  if (t.needs_grad() && !is_leaf(t) && !t->autograd->retain_cell)
    check(PyErr_WarnEx(PyExc_UserWarning,
                       "The .grad attribute of a Tensor that is not a leaf Tensor is being "
                       "accessed. Its .grad attribute won't be "
                       "populated during autograd.backward(). If you indeed want the .grad field "
                       "to be populated for a non-leaf "
                       "Tensor, use .retain_grad() on the non-leaf Tensor.",
                       1));
  return Tensor();
}

PROPERTY(shape, make_size(t.sizes()))
PROPERTY(dtype, to_python(t.dtype()))
PROPERTY(device, to_python(t.device()))
PROPERTY(layout,
         check(PyObject_GetAttrString(PyImport_AddModule("facula._C"), layout_name(layout_of(t)))))
PROPERTY(is_sparse, PyBool_FromLong(layout_of(t) == SparseLayout::Coo))
PROPERTY(is_sparse_csr, PyBool_FromLong(layout_of(t) == SparseLayout::Csr))
PROPERTY(ndim, PyLong_FromLongLong(t.dim()))
PROPERTY(itemsize, PyLong_FromSize_t(t.item_size()))
PROPERTY(nbytes, PyLong_FromLongLong(t.numel() * int64_t(t.item_size())))
PROPERTY(T, wrap(reverse_dims(t)))
PROPERTY(mT, wrap(matrix_transpose(t, "mT")))
PROPERTY(H, wrap(hermitian(t)))
PROPERTY(mH, wrap(op::conj(matrix_transpose(t, "mH"))))
PROPERTY(is_cuda, PyBool_FromLong(t.is_cuda()))
PROPERTY(is_cpu, PyBool_FromLong(t.is_cpu()))
PROPERTY(is_meta, PyBool_FromLong(t.is_meta()))
PROPERTY(is_leaf, PyBool_FromLong(is_leaf(t)))
PROPERTY(requires_grad, PyBool_FromLong(requires_grad(t)))
PROPERTY(_version, PyLong_FromUnsignedLong(tracked_version(t)))
PROPERTY(_base, t->base ? wrap(Tensor::share(t->base)) : Py_NewRef(Py_None))
PROPERTY(grad_fn, wrap_node(valid_grad_fn(t)))
PROPERTY(grad, wrap_or_none(grad_of(t)))
PROPERTY(output_nr, PyLong_FromUnsignedLong(t->autograd ? t->autograd->output_nr : 0))
PROPERTY(retains_grad, PyBool_FromLong(t->autograd && t->autograd->retain_cell && !is_leaf(t)))
PROPERTY(real, wrap(t.is_complex() ? op::real(t) : t))
PROPERTY(imag, wrap(op::imag(t)))
// The same for every tensor, so overrides are not asked.
PyObject* get_never(PyObject*, void*) {
  return Py_NewRef(Py_False);
}

PyObject* get_data(PyObject* o, void*) {
  return guarded([&] {
    Tensor d = detach_tensor(unwrap(o));
    d->flags |= kUntracked;
    if (Py_TYPE(o) != tensor_type && has_override(o)) return wrap_as(d, Py_TYPE(o));
    return wrap(d);
  });
}

// x.data = y: this tensor takes over y's memory, its history stays.
int set_data(PyObject* o, PyObject* value, void*) {
  return guarded(
      [&]() -> int {
        if (!value || !is_tensor(value))
          type_error("Variable data has to be a tensor, but got ",
                     value ? Py_TYPE(value)->tp_name : "nothing");
        const Tensor& t = unwrap(o);
        const Tensor& v = unwrap(value);
        if (v.is(t)) return 0;
        if (t.is_wrapped() || v.is_wrapped())
          runtime_error(
              "mutating directly with `.data` inside of a function transform (vmap, grad, jvp ...) "
              "is not allowed. Use copy_() or make a new tensor.");
        if (requires_grad(t) && !is_differentiable_dtype(v.dtype()))
          runtime_error(
              "data set to a tensor that requires gradients must be floating point or complex "
              "dtype, got ",
              v.dtype());
        if (t.dtype() != v.dtype() || t.device() != v.device()) forget_accumulator(t);
        v->storage->retain();
        Storage* old = t->storage;
        t->storage = v->storage;
        t->dtype = v->dtype;
        t->device = v->device;
        constexpr uint8_t kMemoryKeys = kKeyCuda | kKeyMeta | kKeySparse;
        t->keys = uint8_t((t->keys & ~kMemoryKeys) | (v->keys & kMemoryKeys));
        t->offset = v->offset;
        t->set_geometry(v.sizes(), v.strides());
        old->unref();
        return 0;
      },
      -1);
}

int set_grad(PyObject* o, PyObject* value, void*) {
  return guarded(
      [&]() -> int {
        const Tensor& t = unwrap(o);
        if (!value || value == Py_None) {
          if (t->autograd) t->autograd->grad.reset();
          return 0;
        }
        if (!is_tensor(value))
          type_error("assigned grad expected to be a Tensor or None but got grad of type ",
                     Py_TYPE(value)->tp_name);
        const Tensor& g = unwrap(value);
        if (g.is(t)) runtime_error("can't assign Variable as its own grad");
        if (!same(g.sizes(), t.sizes()))
          runtime_error("assigned grad has data of a different size: the tensor has shape ",
                        t.sizes(), " and the gradient ", g.sizes());
        if (g.dtype() != t.dtype())
          runtime_error("assigned grad has data of a different type: the tensor is ", t.dtype(),
                        " and the gradient ", g.dtype());
        if (g.device() != t.device())
          runtime_error("assigned grad has data located on a different device");
        ensure_autograd(t).grad = g;
        return 0;
      },
      -1);
}

int set_requires(PyObject* o, PyObject* value, void*) {
  return guarded(
      [&]() -> int {
        if (!value || !PyBool_Check(value))
          raise_python(PyExc_RuntimeError, "requires_grad must be a bool");
        set_requires_grad(unwrap(o), value == Py_True);
        return 0;
      },
      -1);
}

int set_part(PyObject* o, PyObject* value, bool real) {
  return guarded(
      [&]() -> int {
        Tensor part =
            real ? (unwrap(o).is_complex() ? op::real(unwrap(o)) : unwrap(o)) : op::imag(unwrap(o));
        if (is_tensor(value)) op::copy_(part, unwrap(value));
        else op::fill_(part, scalar_of(value));
        return 0;
      },
      -1);
}
int set_real(PyObject* o, PyObject* v, void*) {
  return set_part(o, v, true);
}
int set_imag(PyObject* o, PyObject* v, void*) {
  return set_part(o, v, false);
}

// ---- methods

PyObject* size(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(o);
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    if (total == 0 || args[0] == Py_None) return make_size(t.sizes());
    int64_t d = index_of(args[0]);
    if (t.dim() == 0) dim_error(d, 0);
    return PyLong_FromLongLong(t.size(d));
  });
}
PyObject* stride(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(o);
    if (is_sparse(t)) runtime_error("Sparse tensors do not have strides");
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    if (total == 0 || args[0] == Py_None) return make_tuple(t.strides());
    if (t.dim() == 0) dim_error(index_of(args[0]), 0);
    return PyLong_FromLongLong(t.stride(index_of(args[0])));
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
    int on = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p", const_cast<char**>(names), &on))
      throw PythonError{};
    set_requires_grad(unwrap(o), on);
    return Py_NewRef(o);
  });
}
PyObject* retain_grad_(PyObject* o, PyObject*) {
  return guarded([&] {
    retain_grad(unwrap(o));
    return Py_NewRef(Py_None);
  });
}

// ---- conversion

Tensor converted(const Tensor& t, DType dtype, Device device, bool copy, MemoryFormat format) {
  if (device.type != DeviceType::None && device.is_cuda() && device.index < 0)
    device = current_cuda_device();
  bool same_dtype = dtype == DType::None || dtype == t.dtype();
  bool same_device = device.type == DeviceType::None || device == t.device();
  bool same_format =
      format == MemoryFormat::None || format == MemoryFormat::Preserve || t.is_contiguous(format);
  // Where a size is 1 both formats fit; strides decide, as in PyTorch.
  if (same_format &&
      (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d))
    same_format = suggests_channels_last(t);
  if (same_dtype && same_device && same_format && !copy) return t;
  if (t.is_complex() && dtype != DType::None && !is_complex(dtype) && dtype != DType::Bool) {
    static bool shown = false;
    if (!std::exchange(shown, true))
      check(PyErr_WarnEx(PyExc_UserWarning,
                         "Casting complex values to real discards the imaginary part. Tensor.real "
                         "says so. This warning is shown once in a program.",
                         1));
  }
  return op::_to_copy(t, dtype, device, format);
}

PyObject* to(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    DType dtype = DType::None;
    Device device = kNoDevice;
    bool copy = false, non_blocking = false;
    MemoryFormat format = MemoryFormat::None;
    int flags = 0;
    auto take = [&](PyObject* a) {
      if (a == Py_None) return;
      if (is_tensor(a)) {
        dtype = unwrap(a).dtype();
        device = unwrap(a).device();
      } else if (accepts_dtype(a)) dtype = dtype_of(a);
      else if (PyBool_Check(a)) {
        (flags++ == 1 ? copy : non_blocking) = a == Py_True;  // non_blocking, then copy
      } else if (is_device(a) || PyUnicode_Check(a) || PyLong_Check(a)) device = device_of(a);
      else if (is_memory_format(a)) format = memory_format_of(a);
      else type_error("to(): expected a dtype, a device or a tensor, got ", Py_TYPE(a)->tp_name);
    };
    if (n == 0 && (!names || PyTuple_GET_SIZE(names) == 0))
      raise_python(PyExc_TypeError,
                   "to() received an invalid combination of arguments: expected a dtype, a device "
                   "or a tensor");
    for (Py_ssize_t i = 0; i < n; ++i) take(args[i]);
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
      PyObject* a = args[n + k];
      if (!std::strcmp(name, "copy")) copy = PyObject_IsTrue(a);
      else if (!std::strcmp(name, "non_blocking")) non_blocking = PyObject_IsTrue(a) > 0;
      else if (!std::strcmp(name, "memory_format") || !std::strcmp(name, "dtype") ||
               !std::strcmp(name, "device") || !std::strcmp(name, "tensor") ||
               !std::strcmp(name, "other"))
        take(a);
      else
        raise_python(PyExc_TypeError,
                     std::string("to() got an unexpected keyword argument '") + name + "'");
    }
    CopiesReturnEarly early(non_blocking);
    Tensor r = converted(unwrap(o), dtype, device, copy, format);
    return r.is(unwrap(o)) ? Py_NewRef(o) : wrap(r);
  });
}

PyObject* to_dtype(PyObject* o, DType d, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"memory_format", nullptr};
    PyObject* format = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &format))
      throw PythonError{};
    Tensor r = converted(
        unwrap(o), d, kNoDevice, false,
        format && is_memory_format(format) ? memory_format_of(format) : MemoryFormat::None);
    return r.is(unwrap(o)) ? Py_NewRef(o) : wrap(r);
  });
}
#define CONVERSION(name, d)                                       \
  PyObject* name(PyObject* o, PyObject* args, PyObject* kwargs) { \
    return to_dtype(o, DType::d, args, kwargs);                   \
  }
CONVERSION(to_float, Float32)
CONVERSION(to_double, Float64)
CONVERSION(to_half, Float16)
CONVERSION(to_bfloat16, BFloat16)
CONVERSION(to_long, Int64)
CONVERSION(to_int, Int32)
CONVERSION(to_short, Int16)
CONVERSION(to_char, Int8)
CONVERSION(to_byte, UInt8)
CONVERSION(to_bool, Bool)
CONVERSION(to_cfloat, Complex64)
CONVERSION(to_cdouble, Complex128)

PyObject* cpu(PyObject* o, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor r = converted(unwrap(o), DType::None, Device{}, false, MemoryFormat::None);
    return r.is(unwrap(o)) ? Py_NewRef(o) : wrap(r);
  });
}
PyObject* cuda(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", "non_blocking", "memory_format", nullptr};
    PyObject *where = nullptr, *blocking = nullptr, *format = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO", const_cast<char**>(names), &where,
                                     &blocking, &format))
      throw PythonError{};
    Device d = where && where != Py_None ? device_of(where) : Device{DeviceType::CUDA, -1};
    if (!d.is_cuda()) runtime_error("Invalid device, must be cuda device, got ", d);
    CopiesReturnEarly early(blocking && check(PyObject_IsTrue(blocking)));
    Tensor r = converted(
        unwrap(o), DType::None, d, false,
        format && is_memory_format(format) ? memory_format_of(format) : MemoryFormat::None);
    return r.is(unwrap(o)) ? Py_NewRef(o) : wrap(r);
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
    if (!same(dims, t.sizes())) resize_tensor(t, dims);
    if (format != MemoryFormat::None) t->set_geometry(dims, strides_for(dims, format));
    return Py_NewRef(o);
  });
}

}  // namespace

PyObject* convert_array(PyObject* array) {
  static PyObject* f = import_attribute("facula", "from_numpy");
  if (!f) throw PythonError{};
  return check(PyObject_CallOneArg(f, array));
}

#define GETTER(name, doc) {#name, get_##name, nullptr, doc, nullptr}
PyGetSetDef tensor_properties[] = {
    GETTER(shape, "The sizes of the dimensions."),
    GETTER(dtype, "The type of the elements."),
    GETTER(device, "Where the tensor lives."),
    GETTER(layout, "How the elements lie in memory: facula.strided, facula.sparse_coo ..."),
    GETTER(ndim, "How many dimensions."),
    GETTER(itemsize, "Bytes of one element."),
    GETTER(nbytes, "Bytes of all elements."),
    GETTER(T, "All dimensions reversed."),
    GETTER(mT, "The last two dimensions exchanged."),
    GETTER(H, "The conjugate transposed matrix."),
    GETTER(mH, "mT of the conjugate."),
    GETTER(is_cuda, "True on a CUDA device."),
    GETTER(is_cpu, "True in host memory."),
    GETTER(is_meta, "True without memory."),
    GETTER(is_leaf, "True when no operation made this tensor under autograd."),
    {"requires_grad", get_requires_grad, set_requires, "True when gradients are wanted.", nullptr},
    GETTER(_version, "How often the memory was written in place."),
    GETTER(_base, "The tensor this one is a view of."),
    GETTER(grad_fn, "The node that made this tensor."),
    {"grad", get_grad, set_grad, "The gradient, or None.", nullptr},
    {"_grad", get_grad, set_grad, nullptr, nullptr},
    {"_grad_fn", get_grad_fn, nullptr, nullptr, nullptr},
    GETTER(output_nr, "Which output of grad_fn this is."),
    GETTER(retains_grad, "True after retain_grad()."),
    {"data", get_data, set_data, "The same memory without history.", nullptr},
    {"real", get_real, set_real, "The real part.", nullptr},
    {"imag", get_imag, set_imag, "The imaginary part.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
     "The attributes of this one object.", nullptr},
    GETTER(is_sparse, "True in the layout facula.sparse_coo."),
    GETTER(is_sparse_csr, "True in the layout facula.sparse_csr."),
    {"is_quantized", get_never, nullptr, "False: there are no quantized tensors.", nullptr},
    {"is_mps", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_nested", get_never, nullptr, "True for nested tensors, which are a subclass.", nullptr},
    {"is_mkldnn", get_never, nullptr, "False: oneDNN's own layouts are not used.", nullptr},
    {"is_xpu", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_vulkan", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_ipu", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_maia", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_xla", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {"is_mtia", get_never, nullptr,
     "False: tensors live on the CPU, on CUDA devices or on the meta device.", nullptr},
    {}};

#define PLAIN(name, f, doc) {name, no_arguments<name, f>, METH_NOARGS, doc}
#define FAST(name, f, doc) \
  {name, (PyCFunction)(void*)fast_arguments<name, f>, METH_FASTCALL | METH_KEYWORDS, doc}
#define KEYWORDS(name, f, doc) \
  {name, (PyCFunction)(void*)keyword_arguments<name, f>, METH_VARARGS | METH_KEYWORDS, doc}
PyMethodDef tensor_methods[] = {
    FAST("size", size,
         "size($self, dim=None)\n--\n\n"
         "All sizes, or that of one dimension."),
    FAST("stride", stride,
         "stride($self, dim=None)\n--\n\n"
         "All strides, or that of one dimension."),
    FAST("to", to,
         "to($self, *args, dtype=None, device=None, non_blocking=False, copy=False, "
         "memory_format=None)\n--\n\n"
         "This tensor in another dtype, on another device or in another memory format."),
    PLAIN("dim", dim, "How many dimensions."),
    PLAIN("ndimension", dim, "How many dimensions."),
    PLAIN("numel", numel, "How many elements."),
    PLAIN("nelement", numel, "How many elements."),
    PLAIN("storage_offset", storage_offset, "Position of the first element in the storage."),
    PLAIN("element_size", element_size, "Bytes of one element."),
    PLAIN("data_ptr", data_ptr, "Address of the first element."),
    PLAIN("_is_view", is_view, nullptr),
    PLAIN("is_conj", is_conj, "True for a conjugate that is computed when it is read."),
    PLAIN("is_neg", is_neg, "True for a negative that is computed when it is read."),
    PLAIN("is_inference", is_inference, "True when made in inference mode."),
    PLAIN("is_complex", is_complex_, "True for complex dtypes."),
    PLAIN("is_floating_point", is_floating_, "True for floating-point dtypes."),
    PLAIN("is_signed", is_signed_, "True when negative numbers can be held."),
    PLAIN("get_device", device_number, "The CUDA index, or -1."),
    KEYWORDS("is_contiguous", is_contiguous,
             "is_contiguous($self, memory_format=None)\n--\n\n"
             "True when the memory is in the order of the dimensions."),
    PLAIN("__complex__", complex, nullptr),
    PLAIN("item", item, "The only element as a Python number."),
    PLAIN("tolist", tolist, "The elements as nested lists."),
    KEYWORDS("requires_grad_", requires_grad_,
             "requires_grad_($self, requires_grad=True)\n--\n\n"
             "Sets requires_grad and returns the tensor."),
    PLAIN("retain_grad", retain_grad_, "Keeps .grad although this is no leaf."),
    KEYWORDS("float", to_float,
             "float($self, memory_format=None)\n--\n\n"
             "As float32."),
    KEYWORDS("double", to_double,
             "double($self, memory_format=None)\n--\n\n"
             "As float64."),
    KEYWORDS("half", to_half,
             "half($self, memory_format=None)\n--\n\n"
             "As float16."),
    KEYWORDS("bfloat16", to_bfloat16,
             "bfloat16($self, memory_format=None)\n--\n\n"
             "As bfloat16."),
    KEYWORDS("long", to_long,
             "long($self, memory_format=None)\n--\n\n"
             "As int64."),
    KEYWORDS("int", to_int,
             "int($self, memory_format=None)\n--\n\n"
             "As int32."),
    KEYWORDS("short", to_short,
             "short($self, memory_format=None)\n--\n\n"
             "As int16."),
    KEYWORDS("char", to_char,
             "char($self, memory_format=None)\n--\n\n"
             "As int8."),
    KEYWORDS("byte", to_byte,
             "byte($self, memory_format=None)\n--\n\n"
             "As uint8."),
    KEYWORDS("bool", to_bool,
             "bool($self, memory_format=None)\n--\n\n"
             "As bool."),
    KEYWORDS("cfloat", to_cfloat,
             "cfloat($self, memory_format=None)\n--\n\n"
             "As complex64."),
    KEYWORDS("cdouble", to_cdouble,
             "cdouble($self, memory_format=None)\n--\n\n"
             "As complex128."),
    KEYWORDS("cpu", cpu,
             "cpu($self, memory_format=None)\n--\n\n"
             "A copy in host memory, or the tensor itself."),
    KEYWORDS("cuda", cuda,
             "cuda($self, device=None, non_blocking=False, memory_format=None)\n--\n\n"
             "A copy on a CUDA device."),
    {"as_subclass", as_subclass, METH_O, "The same memory as an object of a subclass."},
    {"_make_subclass", (PyCFunction)(void*)make_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    KEYWORDS("resize_", resize_,
             "resize_($self, *sizes, memory_format=None)\n--\n\n"
             "Changes the shape, growing the storage when needed."),
    {}};

}  // namespace facula::python
