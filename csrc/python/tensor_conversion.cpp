// Methods of Tensor that change dtype, device or memory format.
#include <cstring>
#include <utility>

#include "kernels/spatial.h"
#include "op/hooks/memory.h"
#include "op/ops/copying.h"
#include "python/interop.h"
#include "python/method_override.h"

namespace facula::python {
namespace {

Tensor converted(const Tensor& t, DType dtype, Device device, bool copy, MemoryFormat format) {
  if (device.type != DeviceType::None) device = resolve_device(device);
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
    PyObject* stranger = nullptr;  // a dtype or tensor of Python's that does the conversion itself
    auto take = [&](PyObject* a) {
      if (a == Py_None) return;
      if (is_tensor(a)) {
        if (Py_TYPE(a) != tensor_type && torch_function_enabled() && has_override(a)) stranger = a;
        dtype = unwrap(a).dtype();
        device = unwrap(a).device();
      } else if (accepts_dtype(a)) dtype = dtype_of(a);
      else if (PyBool_Check(a)) {
        (flags++ == 1 ? copy : non_blocking) = a == Py_True;  // non_blocking, then copy
      } else if (is_device(a) || PyUnicode_Check(a) || PyLong_Check(a))
        device = tensor_device_of(a);
      else if (is_memory_format(a)) format = memory_format_of(a);
      else if (torch_function_enabled() && has_override(a)) stranger = a;
      else type_error("to(): expected a dtype, a device or a tensor, got ", Py_TYPE(a)->tp_name);
    };
    for (Py_ssize_t i = 0; i < n; ++i) take(args[i]);
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
      PyObject* a = args[n + k];
      if (!std::strcmp(name, "copy")) copy = check(PyObject_IsTrue(a));
      else if (!std::strcmp(name, "non_blocking")) non_blocking = check(PyObject_IsTrue(a));
      else if (!std::strcmp(name, "dtype") && a != Py_None && !accepts_dtype(a) && !has_override(a))
        type_error("to(): argument 'dtype' must be facula.dtype, not ", Py_TYPE(a)->tp_name);
      else if (!std::strcmp(name, "memory_format") || !std::strcmp(name, "dtype") ||
               !std::strcmp(name, "device") || !std::strcmp(name, "tensor") ||
               !std::strcmp(name, "other"))
        take(a);
      else
        raise_python(PyExc_TypeError,
                     std::string("to() got an unexpected keyword argument '") + name + "'");
    }
    if (stranger) {
      std::vector<PyObject*> all{o};
      all.insert(all.end(), args, args + n + (names ? PyTuple_GET_SIZE(names) : 0));
      return call_override(PyDict_GetItemString(tensor_base_type->tp_dict, "to"), all.data(),
                           size_t(n) + 1, names, {stranger});
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

}  // namespace

PyMethodDef tensor_conversions[] = {
    FACULA_FAST("to", to,
                "to($self, *args, dtype=None, device=None, non_blocking=False, copy=False, "
                "memory_format=None)\n--\n\n"
                "This tensor in another dtype, on another device or in another memory format."),
    FACULA_KEYWORDS("float", to_float,
                    "float($self, memory_format=None)\n--\n\n"
                    "As float32."),
    FACULA_KEYWORDS("double", to_double,
                    "double($self, memory_format=None)\n--\n\n"
                    "As float64."),
    FACULA_KEYWORDS("half", to_half,
                    "half($self, memory_format=None)\n--\n\n"
                    "As float16."),
    FACULA_KEYWORDS("bfloat16", to_bfloat16,
                    "bfloat16($self, memory_format=None)\n--\n\n"
                    "As bfloat16."),
    FACULA_KEYWORDS("long", to_long,
                    "long($self, memory_format=None)\n--\n\n"
                    "As int64."),
    FACULA_KEYWORDS("int", to_int,
                    "int($self, memory_format=None)\n--\n\n"
                    "As int32."),
    FACULA_KEYWORDS("short", to_short,
                    "short($self, memory_format=None)\n--\n\n"
                    "As int16."),
    FACULA_KEYWORDS("char", to_char,
                    "char($self, memory_format=None)\n--\n\n"
                    "As int8."),
    FACULA_KEYWORDS("byte", to_byte,
                    "byte($self, memory_format=None)\n--\n\n"
                    "As uint8."),
    FACULA_KEYWORDS("bool", to_bool,
                    "bool($self, memory_format=None)\n--\n\n"
                    "As bool."),
    FACULA_KEYWORDS("cfloat", to_cfloat,
                    "cfloat($self, memory_format=None)\n--\n\n"
                    "As complex64."),
    FACULA_KEYWORDS("cdouble", to_cdouble,
                    "cdouble($self, memory_format=None)\n--\n\n"
                    "As complex128."),
    FACULA_KEYWORDS("cpu", cpu,
                    "cpu($self, memory_format=None)\n--\n\n"
                    "A copy in host memory, or the tensor itself."),
    FACULA_KEYWORDS("cuda", cuda,
                    "cuda($self, device=None, non_blocking=False, memory_format=None)\n--\n\n"
                    "A copy on a CUDA device."),
    {}};

}  // namespace facula::python
