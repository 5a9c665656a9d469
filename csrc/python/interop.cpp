// Memory of others under tensors: who keeps it alive, buffers, array interfaces, asarray.
#include "python/interop.h"

#include <atomic>
#include <cstring>

#include "op/ops/copying.h"
#include "op/tensor_operators.h"
#include "python/allocation_site.h"
#include "python/array_interface.h"

namespace facula::python {
namespace {

std::atomic<bool> g_interpreter_gone{false};
bool g_warn_always = false;

struct Buffer {  // an export that ends with the scope, unless it was taken over
  Py_buffer* view = nullptr;

  Buffer(PyObject* o, int flags) : view(new Py_buffer) {
    if (PyObject_GetBuffer(o, view, flags) == 0) return;
    delete view;
    throw PythonError{};
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() {
    if (!view) return;
    PyBuffer_Release(view);
    delete view;
  }
  Py_buffer* take() { return std::exchange(view, nullptr); }
};

// A tensor over the bytes from `at` on; the export lives as long as the tensor's storage.
Tensor tensor_over_buffer(Buffer& buffer, char* at, size_t bytes, IntSpan sizes, IntSpan strides,
                          DType dtype) {
  static bool warned = false;
  if (buffer.view->readonly) warn_not_writable("buffer", warned);
  Storage* s = borrow_storage(bytes ? at : nullptr, bytes, Device{}, release_buffer, nullptr);
  s->context = buffer.take();
  return made_here(tensor_on_storage(s, sizes, strides, 0, dtype));
}

Tensor tensor_from_buffer(PyObject* o, DType dtype, int64_t count, int64_t offset) {
  if (!PyObject_CheckBuffer(o))
    value_error("object does not implement Python buffer protocol: ", type_name(o));
  Buffer buffer(o, PyBUF_SIMPLE);
  int64_t length = buffer.view->len, item = int64_t(item_size(dtype));
  if (length <= 0 || count == 0)
    value_error("both buffer length (", length, ") and count (", count, ") must not be 0");
  if (offset < 0 || offset >= length)
    value_error("offset (", offset,
                " bytes) must be non-negative and no greater than buffer length (", length,
                " bytes) minus 1");
  int64_t available = length - offset;
  if (count < 0) {
    if (available % item)
      value_error("buffer length (", available, " bytes) after offset (", offset,
                  " bytes) must be a multiple of element size (", item, ")");
    count = available / item;
  } else if (count > available / item) {
    value_error("requested buffer length (", count, " * ", item, " bytes) after offset (", offset,
                " bytes) must not be greater than actual buffer length (", length, " bytes)");
  }
  return tensor_over_buffer(buffer, static_cast<char*>(buffer.view->buf) + offset,
                            size_t(count * item), Dims{count}, Dims{1}, dtype);
}

Tensor tensor_from_interface(PyObject* o, PyObject* interface) {
  const ArrayInterface array(o, interface, "__array_interface__");
  if (array.has_address()) return array.at_address(Device{});
  PyObject *data = array.entry("data"), *start = array.entry("offset");
  Buffer buffer(data ? data : o, PyBUF_SIMPLE);
  int64_t offset = start ? index_of(start) : 0;
  if (offset < 0 || offset > buffer.view->len || array.bytes > size_t(buffer.view->len - offset))
    value_error("__array_interface__: shape ", IntSpan(array.sizes), " at offset ", offset,
                " does not fit into a buffer of ", int64_t(buffer.view->len), " bytes");
  return tensor_over_buffer(buffer, static_cast<char*>(buffer.view->buf) + offset, array.bytes,
                            array.sizes, array.strides, array.dtype);
}

// ---- asarray, as_tensor, frombuffer

enum class Copy { IfNeeded, Always, Never };

Copy copy_of(PyObject* o) {
  if (!o || o == Py_None) return Copy::IfNeeded;
  if (!PyBool_Check(o))
    type_error("asarray(): argument 'copy' must be bool or None, not ", type_name(o));
  return o == Py_True ? Copy::Always : Copy::Never;
}
DType optional_dtype(PyObject* o) {
  return o && o != Py_None ? dtype_of(o) : DType::None;
}
Device optional_device(PyObject* o) {
  return o && o != Py_None ? resolve_device(device_of(o)) : kNoDevice;
}

bool is_plain_data(PyObject* o) {  // what most calls pass, and what has no array protocol
  return PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyUnicode_Check(o) || o == Py_None ||
         is_number(o);
}

PyObject* as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"data", "dtype", "device", nullptr};
    PyObject *data, *dtype_arg = nullptr, *device_arg = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", const_cast<char**>(names),
                                     &data, &dtype_arg, &device_arg))
      throw PythonError{};
    if (dtype_arg && !accepts_dtype(dtype_arg) && has_override(dtype_arg)) {  // one of Python's
      Ref alone(check(PyTuple_Pack(1, data)));
      Ref plain(check(as_tensor(nullptr, alone.get(), nullptr)));
      return check(device_arg ? PyObject_CallMethod(plain.get(), "to", "OO", device_arg, dtype_arg)
                              : PyObject_CallMethod(plain.get(), "to", "O", dtype_arg));
    }
    DType dtype = optional_dtype(dtype_arg);
    Device device = optional_device(device_arg);
    if (is_tensor(data)) {
      if (device.type == DeviceType::None && !default_device().is_cpu()) device = default_device();
      Tensor t = convert_tensor(unwrap(data), dtype, device, false);
      return t.is(unwrap(data)) ? Py_NewRef(data) : wrap(t);
    }
    Tensor t;
    if (!is_plain_data(data)) t = share_array(data);
    if (!t.defined()) return wrap(tensor_from_data(data, dtype, device));
    if (device.type == DeviceType::None) device = default_device();
    return wrap(convert_tensor(t, dtype, device, false));
  });
}

PyObject* asarray(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"obj", "dtype", "device", "copy", "requires_grad", nullptr};
    PyObject *o, *dtype_arg = nullptr, *device_arg = nullptr, *copy_arg = nullptr;
    PyObject* grad_arg = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:asarray", const_cast<char**>(names), &o,
                                     &dtype_arg, &device_arg, &copy_arg, &grad_arg))
      throw PythonError{};
    DType dtype = optional_dtype(dtype_arg);
    Device device = optional_device(device_arg);
    Copy copy = copy_of(copy_arg);

    Tensor t;
    if (is_tensor(o)) {
      t = unwrap(o);
    } else if (!is_plain_data(o)) {
      t = share_array(o);
      if (!t.defined() && PyObject_CheckBuffer(o))
        t = tensor_from_buffer(o, dtype == DType::None ? default_dtype() : dtype, -1, 0);
    }
    if (t.defined()) {
      bool other_dtype = dtype != DType::None && dtype != t.dtype();
      bool other_device = device.type != DeviceType::None && device != t.device();
      if (copy == Copy::Never && other_device)
        value_error("can't alias tensor from device '", t.device(), "' to '", device,
                    "'; leave copy=False out");
      if (copy == Copy::Never && other_dtype)
        value_error("can't alias tensor with dtype ", t.dtype(), " into dtype ", dtype,
                    "; leave copy=False out");
      t = convert_tensor(t, dtype, device, copy == Copy::Always);
    } else {
      if (copy == Copy::Never)
        value_error("can't alias arbitrary sequence into a tensor; leave copy=False out");
      t = tensor_from_data(o, dtype, device);
    }
    const int want_grad = grad_arg == Py_None ? -1 : PyObject_IsTrue(grad_arg);  // -1: as obj
    if (want_grad < 0 && PyErr_Occurred()) throw PythonError{};
    if (want_grad > 0) set_requires_grad(t, true);
    else if (want_grad == 0 && requires_grad(t)) t = detach_tensor(t);
    return is_tensor(o) && t.is(unwrap(o)) ? Py_NewRef(o) : wrap(t);
  });
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *o, *dtype_arg = nullptr;
    Py_ssize_t count = -1, offset = 0;
    int want_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Onnp:frombuffer", const_cast<char**>(names),
                                     &o, &dtype_arg, &count, &offset, &want_grad))
      throw PythonError{};
    if (!dtype_arg) type_error("frombuffer() missing 1 required argument: 'dtype'");
    if (!is_dtype(dtype_arg))
      type_error("frombuffer(): argument 'dtype' must be facula.dtype, not ", type_name(dtype_arg));
    Tensor t = tensor_from_buffer(o, dtype_of(dtype_arg), count, offset);
    if (want_grad) set_requires_grad(t, true);
    return wrap(t);
  });
}

PyObject* set_warn_always(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  g_warn_always = value;
  Py_RETURN_NONE;
}
PyObject* is_warn_always_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(g_warn_always);
}

#define KEYWORDS(name, f, doc) {name, (PyCFunction)(void*)f, METH_VARARGS | METH_KEYWORDS, doc}
PyMethodDef functions[] = {
    KEYWORDS("_as_tensor", as_tensor,
             "as_tensor(data, dtype=None, device=None) -> Tensor\n\n"
             "``data`` as a tensor, over the same memory where dtype and device allow it.\n\n"
             "Example::\n\n    >>> facula.as_tensor([1, 2])\n    tensor([1, 2])\n"),
    KEYWORDS(
        "_asarray", asarray,
        "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor\n\n"
        "``obj`` as a tensor: a tensor, array, DLPack exporter, buffer, number or sequence. Memory "
        "is\n"
        "shared where it can be; ``copy=True`` always copies, ``copy=False`` never does. A buffer "
        "is\n"
        "read as elements of ``dtype``.\n\n"
        "Example::\n\n    >>> facula.asarray(bytearray(8), dtype=facula.float32)\n    tensor([0., "
        "0.])\n"),
    KEYWORDS("_frombuffer", frombuffer,
             "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
             "A one-dimensional tensor over the memory of an object with the buffer protocol, "
             "which cannot\n"
             "be resized while the tensor lives.\n\n"
             "Example::\n\n    >>> facula.frombuffer(bytearray(b'ab'), dtype=facula.uint8)\n"
             "    tensor([97, 98], dtype=facula.uint8)\n"),
    {"_set_warn_always", set_warn_always, METH_O,
     "Shows warnings that come once every time (for tests)."},
    {"_is_warn_always_enabled", is_warn_always_enabled, METH_NOARGS, "What _set_warn_always set."},
    {}};

}  // namespace

bool interpreter_alive() {
  if (g_interpreter_gone.load(std::memory_order_relaxed)) return false;
  // A thread that asks for the GIL while the interpreter shuts down is ended or hangs, unless it is
  // the one that shuts it down, which has the GIL.
#if PY_VERSION_HEX >= 0x030D0000
  bool ending = Py_IsFinalizing();
#else
  bool ending = _Py_IsFinalizing();
#endif
  return !ending || PyGILState_Check();
}

void release_object(Storage* s) {
  run_with_gil([&] { Py_XDECREF(static_cast<PyObject*>(s->context)); });
}

void release_buffer(Storage* s) {
  auto* view = static_cast<Py_buffer*>(s->context);
  if (!view) return;
  run_with_gil([&] { PyBuffer_Release(view); });
  delete view;
}

size_t checked_extent(IntSpan sizes, Dims& strides, DType dtype) {
  if (sizes.size() > kMaxDims)
    value_error("a tensor has at most ", kMaxDims, " dimensions, this array has ", sizes.size());
  int64_t numel = checked_numel(sizes);
  if (numel == 0) {
    strides = contiguous_strides(sizes);
    return 0;
  }
  int64_t last = 0, bytes = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0 && sizes[i] == 1) strides[i] = 1;
    if (strides[i] < 0)
      value_error(
          "At least one stride in the given numpy array is negative, and tensors with negative "
          "strides are not currently supported. Copy the array first, with array.copy()");
    int64_t reach;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      value_error("sizes ", sizes, " and strides ", IntSpan(strides),
                  " overflow the address range");
  }
  if (__builtin_mul_overflow(last + 1, int64_t(item_size(dtype)), &bytes))
    value_error("sizes ", sizes, " and strides ", IntSpan(strides), " overflow the address range");
  return size_t(bytes);
}

void warn_once(const char* message, bool& shown) {
  if (shown && !g_warn_always) return;
  shown = true;
  check(PyErr_WarnEx(PyExc_UserWarning, message, 1));
}

void warn_not_writable(const char* what, bool& shown) {
  const std::string message =
      text("The given ", what, " is not writable, and tensors are always writable: writing to ",
           "this tensor changes memory that was meant to stay as it is. Copy the ", what,
           " first, or make it writable. This warning is shown once in a program.");
  warn_once(message.c_str(), shown);
}

Ref optional_attribute(PyObject* o, const char* name) {
  Ref found(PyObject_GetAttrString(o, name));
  if (found) return found;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError{};
  PyErr_Clear();
  return {};
}

Device resolve_device(Device d) {
  if (d.is_cuda()) return d.index < 0 ? current_cuda_device() : d;
  return Device{d.type, -1};
}

Tensor convert_tensor(const Tensor& t, DType dtype, Device device, bool copy) {
  bool same_dtype = dtype == DType::None || dtype == t.dtype();
  bool same_device = device.type == DeviceType::None || device == t.device();
  if (same_dtype && same_device && !copy) return t;
  if (t.numel() < 1 << 16) return op::_to_copy(t, dtype, device);
  note_allocation_site();
  WithoutGil released;
  return op::_to_copy(t, dtype, device);
}

PyObject* call_method_override(PyObject* self, const char* name, PyObject* const* args,
                               Py_ssize_t count, PyObject* names) {
  if (Py_TYPE(self) == tensor_type && !override_active()) return nullptr;
  if (!torch_function_enabled()) return nullptr;
  std::vector<PyObject*> overloaded;
  if (has_override(self)) overloaded.push_back(self);
  if (overloaded.empty() && !override_active()) return nullptr;
  PyObject* method = PyDict_GetItemString(tensor_base_type->tp_dict, name);
  if (!method) return nullptr;
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + count + (names ? PyTuple_GET_SIZE(names) : 0));
  return call_override(method, all.data(), size_t(count) + 1, names, overloaded);
}

void add_properties(PyTypeObject* type, PyGetSetDef* properties) {
  for (; properties->name; ++properties) {
    Ref d(check(PyDescr_NewGetSet(type, properties)));
    check(PyDict_SetItemString(type->tp_dict, properties->name, d.get()));
  }
  PyType_Modified(type);
}

Tensor share_array(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o)) return {};
  if (PyType_Check(o))  // has the protocols' attributes of its instances
    type_error("a class cannot become a tensor, got ", reinterpret_cast<PyTypeObject*>(o)->tp_name);
  if (is_ndarray(o)) return tensor_from_ndarray(o);
  if (is_dlpack_capsule(o)) return tensor_from_dlpack(o);
  if (Ref interface = optional_attribute(o, "__array_interface__"))
    return tensor_from_interface(o, interface.get());
  if (optional_attribute(o, "__dlpack__")) return tensor_from_dlpack(o);
  if (Ref interface = optional_attribute(o, "__cuda_array_interface__"))
    return tensor_from_cuda_interface(o, interface.get());
  if (Ref method = optional_attribute(o, "__array__")) {
    Ref array(check(PyObject_CallNoArgs(method.get())));
    if (!is_ndarray(array.get()))
      type_error(type_name(o), ".__array__() must return an array, not ", type_name(array.get()));
    return tensor_from_ndarray(array.get());
  }
  return {};
}

void init_interop(PyObject* module) {
  Py_AtExit([] { g_interpreter_gone = true; });
  add_functions(module, functions);
  init_numpy(module);
  init_dlpack(module);
  init_shared_memory(module);
  init_batch_codec(module);
  init_collate(module);
  init_kernel_hook(module);
}

}  // namespace facula::python
