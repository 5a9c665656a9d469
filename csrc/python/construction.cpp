// tensor(data): nested sequences, numbers and arrays become tensors.
#include <cstring>

#include "op/elementwise.h"
#include "op/hooks/memory.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "python/tensor_methods.h"

namespace facula::python {
namespace {

bool is_sequence(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyUnicode_Check(o) || PyBytes_Check(o) || is_tensor(o) || is_number(o)) return false;
  return PySequence_Check(o) && !PyDict_Check(o);
}

// The shape, read along the first elements; depth is limited, so a list that contains itself ends.
// A tensor in a list counts as a number.
void find_shape(PyObject* o, Dims& shape) {
  Ref at = Ref::borrow(o);
  while (true) {
    if (!is_sequence(at.get())) {
      if (!PyUnicode_Check(at.get())) return;
      if (shape.size() == 0) type_error("new(): invalid data type 'str'");
      value_error("too many dimensions 'str': expected a number at dim ", shape.size(),
                  ", got a string");
    }
    Py_ssize_t n = PySequence_Size(at.get());
    if (n < 0) throw PythonError{};
    shape.push_back(n);
    if (shape.size() > kMaxDims)
      value_error("too many dimensions: a tensor has at most ", kMaxDims,
                  " (does the list contain itself?)");
    if (n == 0) return;
    at = Ref(check(PySequence_GetItem(at.get(), 0)));
  }
}

void find_dtype(PyObject* o, DType& d, int depth) {
  if (depth > kMaxDims)
    value_error("too many dimensions: a tensor has at most ", kMaxDims,
                " (does the list contain itself?)");
  if (is_tensor(o)) {
    d = promote_types(d, unwrap(o).dtype());
  } else if (is_sequence(o)) {
    Ref fast(check(PySequence_Fast(o, "expected a sequence")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(fast.get(), i);
      if (item == o) type_error("new(): self-referential lists are incompatible");
      find_dtype(item, d, depth + 1);
    }
  } else if (PyFloat_CheckExact(o)) {
    d = promote_types(d, default_dtype());
  } else if (PyLong_CheckExact(o)) {
    d = promote_types(d, DType::Int64);
  } else if (is_number(o)) {
    const char* name = Py_TYPE(o)->tp_name;
    auto numpy_is = [&](const char* kind) {
      return !std::strncmp(name, "numpy.", 6) && !std::strcmp(name + 6, kind);
    };
    if (PyBool_Check(o) || numpy_is("bool") || numpy_is("bool_")) {
      d = promote_types(d, DType::Bool);
      return;
    }
    for (int k = 0; k < kDTypes; ++k)
      if (numpy_is(dtype_name(DType(k)))) {
        d = promote_types(d, DType(k));
        return;
      }
    Scalar s = scalar_of(o);
    d = promote_types(d, s.is_complex() ? default_complex_dtype()
                         : s.is_float() ? default_dtype()
                                        : DType::Int64);
  } else {
    constexpr const char* accepted =
        ": numbers, sequences of numbers, arrays and tensors can become a tensor";
    if (PyUnicode_Check(o) || PyBytes_Check(o))
      type_error("new(): invalid data type '", Py_TYPE(o)->tp_name, "'", accepted);
    runtime_error("Could not infer dtype of ", Py_TYPE(o)->tp_name, accepted);
  }
}

void store_number(DType d, PyObject* o, char* p) {
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1 && is_integral(d))
      type_error(
          "only integer tensors of a single element can be converted to an index, got shape ",
          t.sizes(), "; join tensors with stack()");
    if (t.numel() != 1)
      value_error("only one element tensors can be converted to Python scalars, got shape ",
                  t.sizes(), "; join tensors with stack()");
    warn_of_lost_gradient(t);
    read_item(t).store(d, p);
    return;
  }
  if (!is_number(o)) type_error("must be real number, not ", Py_TYPE(o)->tp_name);
  if (PyLong_CheckExact(o)) {  // may be larger than any integer dtype
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow && d == DType::Bool) return Scalar(true).store(d, p);
    if (overflow && !is_integral(d)) {
      const double v = PyLong_AsDouble(o);
      if (v == -1 && PyErr_Occurred()) throw PythonError{};
      return Scalar(v).store(d, p);
    }
    if (overflow && d != DType::UInt64)
      value_error("Overflow when unpacking long long: the integer does not fit into ", d);
  }
  Scalar s = scalar_of(o);
  if (s.is_complex() && !is_complex(d)) type_error("can't convert complex to ", dtype_name(d));
  if (is_integral(d)) s.check_fits(d);
  s.store(d, p);
}

void fill(PyObject* o, IntSpan shape, size_t depth, DType d, char*& p) {
  size_t item = item_size(d);
  if (depth == shape.size()) {
    if (is_sequence(o))
      type_error("'", Py_TYPE(o)->tp_name, "' object cannot be interpreted as a number: at dim ",
                 depth, " some elements are sequences and others are not");
    store_number(d, o, p);
    p += item;
    return;
  }
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (!same(t.sizes(), shape.subspan(depth)))
      value_error("expected a tensor of shape ", shape.subspan(depth), " at dim ", depth, " (got ",
                  t.sizes(), ")");
    GradGuard off(false);
    Tensor flat = op::contiguous(op::_to_copy(t, d, Device{}));
    std::memcpy(p, flat.data(), size_t(flat.numel()) * item);
    p += size_t(flat.numel()) * item;
    return;
  }
  if (!is_sequence(o))
    type_error("not a sequence: expected a sequence of length ", shape[depth], " at dim ", depth,
               ", got ", Py_TYPE(o)->tp_name);
  Ref fast(check(PySequence_Fast(o, "expected a sequence")));
  Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  if (n != shape[depth])
    value_error("expected sequence of length ", shape[depth], " at dim ", depth, " (got ", n, ")");
  PyObject** items = PySequence_Fast_ITEMS(fast.get());
  if (depth + 1 == shape.size() && d == DType::Float32) {  // the common leaf
    float* f = reinterpret_cast<float*>(p);
    Py_ssize_t i = 0;
    for (; i < n && PyFloat_CheckExact(items[i]); ++i) f[i] = float(PyFloat_AS_DOUBLE(items[i]));
    p += size_t(i) * item;
    for (; i < n; ++i) fill(items[i], shape, depth + 1, d, p);
    return;
  }
  for (Py_ssize_t i = 0; i < n; ++i) fill(items[i], shape, depth + 1, d, p);
}

bool is_array_like(PyObject* o) {
  if (is_tensor(o) || PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o)) return false;
  if (is_number(o)) return false;
  for (const char* name :
       {"__array_interface__", "__dlpack__", "__cuda_array_interface__", "__array__"})
    if (PyObject_HasAttrString(o, name)) return true;
  return false;
}

struct DataArguments {
  PyObject* data = nullptr;
  DType dtype = DType::None;
  Device device = kNoDevice;
  int requires_grad = 0;
  bool pin_memory = false;
};

DataArguments parse(const char* format, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  DataArguments a;
  PyObject *dtype = nullptr, *device = nullptr, *pin = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &a.data, &dtype,
                                   &device, &a.requires_grad, &pin))
    throw PythonError{};
  if (dtype && dtype != Py_None) a.dtype = dtype_of(dtype);
  if (device && device != Py_None) a.device = tensor_device_of(device);
  a.pin_memory = pin && check(PyObject_IsTrue(pin));
  return a;
}

Tensor pinned(const Tensor& t) {
  if (!t.is_cpu())
    runtime_error("tensor(): only dense CPU tensors can be pinned, not a tensor on ", t.device());
  Storage* storage = device_memory.pinned_storage(size_t(t.numel()) * t.item_size());
  Tensor out = tensor_on_storage(storage, t.sizes(), contiguous_strides(t.sizes()), 0, t.dtype());
  GradGuard off(false);
  return op::copy_(out, t);
}

PyObject* tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static PyObject* name = PyUnicode_InternFromString("dtype");
    PyObject* dtype = kwargs ? PyDict_GetItem(kwargs, name) : nullptr;  // borrowed
    const bool stranger = dtype && !accepts_dtype(dtype) && torch_function_enabled() &&
                          has_override(dtype);  // a dtype of Python's
    if (override_active() || stranger) {  // a mode sees the call, and calls again without itself
      static PyObject* handle;
      import_once(handle, "facula._C", "_handle_torch_function");
      static PyObject* self;
      import_once(self, "facula._C", "tensor");
      if (!handle || !self) throw PythonError{};
      Ref relevant(check(stranger ? PyTuple_Pack(1, dtype) : PyTuple_New(0)));
      return check(PyObject_CallFunction(handle, "OOOO", self, relevant.get(), args,
                                         kwargs ? kwargs : Py_None));
    }
    DataArguments a = parse("O|$OOpO:tensor", args, kwargs);
    Tensor t;
    if (is_tensor(a.data)) {
      PyErr_WarnEx(
          PyExc_UserWarning,
          "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
          "or sourceTensor.detach().clone().requires_grad_(True), rather than "
          "facula.tensor(sourceTensor).",
          1);
      if (PyErr_Occurred()) throw PythonError{};
      const bool elsewhere = a.device.type == DeviceType::None && !default_device().is_cpu();
      t = op::_to_copy(detach_tensor(unwrap(a.data)), a.dtype,
                       elsewhere ? default_device() : a.device);
    } else {
      t = tensor_from_data(a.data, a.dtype, a.device);
    }
    if (a.pin_memory) t = pinned(t);
    if (a.requires_grad) set_requires_grad(t, true);
    return wrap(t);
  });
}

PyMethodDef functions[] = {
    {"tensor", (PyCFunction)(void*)tensor, METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\n"
     "A new tensor with a copy of ``data``: a number, nested sequences, an array or a tensor.\n\n"
     "Example::\n\n    >>> facula.tensor([[1., 2.], [3., 4.]])\n    tensor([[1., 2.],\n            "
     "[3., 4.]])\n"},
    {}};

}  // namespace

Tensor tensor_from_data(PyObject* data, DType dtype, Device device) {
  if (device.type == DeviceType::None) device = default_device();
  Tensor t;
  if (is_array_like(data)) {
    static PyObject* convert;
    import_once(convert, "facula._C", "_asarray");
    if (!convert) throw PythonError{};
    Ref array(PyObject_CallOneArg(convert, data));
    if (!array) throw PythonError{};
    t = op::_to_copy(unwrap(array.get()), dtype, Device{});
  } else {
    Dims shape;
    find_shape(data, shape);
    if (dtype == DType::None) {
      DType found = DType::None;
      find_dtype(data, found, 0);
      dtype = found == DType::None ? default_dtype() : found;
    }
    t = empty_tensor(shape, dtype, Device{});
    char* p = static_cast<char*>(t->storage->data);
    fill(data, shape, 0, dtype, p);
  }
  return made_here(device.is_cpu() ? t : op::_to_copy(t, DType::None, device));
}

void init_construction(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
