// Arrays into tensors and tensors into arrays, through NumPy's public protocols: the buffer
// protocol and the array interface. NumPy is imported when somebody asks for an array, never
// before.
#include <bit>
#include <cstring>

#include "core/sparse.h"
#include "cuda/context.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

constexpr bool kLittle = std::endian::native == std::endian::little;

// A function of the numpy module, imported on first use.
PyObject* numpy_function(const char* name, PyObject*& cached) {
  if (!cached) cached = import_attribute("numpy", name);
  if (!cached)
    raise_python(PyExc_RuntimeError, "Numpy is not available: install it to exchange arrays");
  return cached;
}

// ---- arrays into tensors

[[noreturn]] void unsupported_array(PyObject* array) {
  Ref dtype(check(PyObject_GetAttrString(array, "dtype")));
  Ref type(check(PyObject_GetAttrString(dtype.get(), "type")));
  Ref name(check(PyObject_GetAttrString(type.get(), "__name__")));
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError{};
  type_error("can't convert np.ndarray of type numpy.", text,
             ". The only supported types are: ", supported_array_dtypes());
}

// Struct-module formats as NumPy writes them: an optional byte order and a letter, 'Z' for complex.
DType dtype_of_format(const char* format, int64_t bytes, bool& foreign_order) {
  if (!format) return bytes == 1 ? DType::UInt8 : DType::None;
  foreign_order = bytes > 1 && (*format == (kLittle ? '>' : '<') || (kLittle && *format == '!'));
  if (std::strchr("@=<>^|!", *format)) ++format;
  bool complex = *format == 'Z';
  if (complex) ++format;
  if (!*format || format[1]) return DType::None;
  if (complex) return std::strchr("fd", *format) ? dtype_of_kind('c', bytes) : DType::None;
  // The letters of integers have different sizes under different byte orders: the item size
  // decides.
  if (std::strchr("bhilqn", *format)) return dtype_of_kind('i', bytes);
  if (std::strchr("BHILQN", *format)) return dtype_of_kind('u', bytes);
  if (std::strchr("efdg", *format)) return dtype_of_kind('f', bytes);
  return *format == '?' ? DType::Bool : DType::None;
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_ndarray(array)) type_error("expected np.ndarray (got ", type_name(array), ")");
    return wrap(tensor_from_ndarray(array));
  });
}

// ---- tensors into arrays

// The C struct behind __array_struct__, as NumPy's array interface documents it.
struct ArrayStruct {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_intptr_t* shape;
  Py_intptr_t* strides;
  void* data;
  PyObject* descr;
};
enum ArrayFlag { kAligned = 0x100, kNotSwapped = 0x200, kWriteable = 0x400 };

// The base of an array over a tensor's memory. It holds the storage and not the tensor, whose
// storage may be exchanged (x.data = y) while the array lives.
struct PyMemory {
  PyObject_VAR_HEAD Storage* storage;
  ArrayStruct interface;  // shape and strides follow as the variable part
};
PyTypeObject* memory_type;

void memory_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (Storage* s = reinterpret_cast<PyMemory*>(o)->storage) s->unref();
  type->tp_free(o);
  Py_DECREF(type);
}

void release_struct(PyObject* capsule) {
  Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
}

PyObject* memory_struct(PyObject* o, void*) {
  Ref capsule(PyCapsule_New(&reinterpret_cast<PyMemory*>(o)->interface, nullptr, release_struct));
  if (!capsule || PyCapsule_SetContext(capsule.get(), o) != 0) return nullptr;
  Py_INCREF(o);  // the struct is part of the object
  return capsule.release();
}

PyGetSetDef memory_getset[] = {{"__array_struct__", memory_struct, nullptr, nullptr, nullptr}, {}};
PyType_Slot memory_slots[] = {{Py_tp_dealloc, (void*)memory_dealloc},
                              {Py_tp_getset, memory_getset},
                              {Py_tp_doc, (void*)"The memory of a tensor under an array."},
                              {}};
PyType_Spec memory_spec = {"facula._C.ArrayMemory", sizeof(PyMemory), sizeof(Py_intptr_t),
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

PyObject* ndarray_over(const Tensor& t) {
  size_t n = t.sizes().size();
  Ref owner(check(memory_type->tp_alloc(memory_type, Py_ssize_t(2 * n))));
  auto* m = reinterpret_cast<PyMemory*>(owner.get());
  auto* dims = reinterpret_cast<Py_intptr_t*>(m + 1);
  for (size_t i = 0; i < n; ++i) {
    dims[i] = Py_intptr_t(t.sizes()[i]);
    dims[n + i] = Py_intptr_t(t.strides()[i] * int64_t(t.item_size()));
  }
  m->interface = {2,
                  int(n),
                  kind_of(t.dtype()),
                  int(t.item_size()),
                  kAligned | kNotSwapped | kWriteable,
                  dims,
                  dims + n,
                  t.numel() ? t.data() : nullptr,
                  nullptr};
  t->storage->retain();
  m->storage = t->storage;
  fix_memory(t->storage);
  static PyObject* asarray = nullptr;
  return check(PyObject_CallOneArg(numpy_function("asarray", asarray), owner.get()));
}

PyObject* to_ndarray(const Tensor& given, bool force) {
  if (given.is_lazy() && !force)
    runtime_error("Can't call numpy() on Tensor that has ",
                  given->keys & kKeyConj ? "conjugate" : "negative",
                  " bit set. Use tensor.resolve_", given->keys & kKeyConj ? "conj" : "neg",
                  "().numpy() instead.");
  Tensor t = readable(given, ".numpy()");
  if (!t.is_cpu() && (t.is_meta() || !force))
    type_error(
        "can't convert ", t.device(),
        " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  if (requires_grad(t)) {
    if (!force && grad_enabled())
      runtime_error(
          "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    t = detach_tensor(t);
  }
  if (!t.is_cpu()) t = convert_tensor(t, DType::None, Device{}, false);
  if (!kind_of(t.dtype()))
    type_error("Got unsupported ScalarType ", legacy_dtype_name(t.dtype()),
               ": NumPy has no such dtype. Convert first, with Tensor.float()");
  return ndarray_over(t);
}

bool keyword_is(PyObject* names, Py_ssize_t k, const char* name) {
  return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), name) == 0;
}
[[noreturn]] void unexpected_keyword(const char* function, PyObject* names, Py_ssize_t k) {
  const char* given = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
  if (!given) throw PythonError{};
  type_error(function, "() got an unexpected keyword argument '", given, "'");
}

PyObject* numpy(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = call_method_override(self, "numpy", args, n, names)) return r;
    if (n > 0)
      type_error("numpy() takes 0 positional arguments but ", n,
                 n == 1 ? " was given" : " were given");
    bool force = false;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      if (!keyword_is(names, k, "force")) unexpected_keyword("numpy", names, k);
      if (!PyBool_Check(args[k]))
        type_error("numpy(): argument 'force' must be bool, not ", type_name(args[k]));
      force = args[k] == Py_True;
    }
    return to_ndarray(unwrap(self), force);
  });
}

PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = call_method_override(self, "__array__", args, n, names)) return r;
    if (n > 2)
      type_error("__array__() takes at most 2 positional arguments but ", n, " were given");
    PyObject* dtype = n > 0 ? args[0] : Py_None;
    PyObject* copy = n > 1 ? args[1] : Py_None;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      if (keyword_is(names, k, "dtype")) dtype = args[n + k];
      else if (keyword_is(names, k, "copy")) copy = args[n + k];
      else unexpected_keyword("__array__", names, k);
    }
    bool must_copy = copy != Py_None && check(PyObject_IsTrue(copy)),
         must_share = copy != Py_None && !must_copy;
    Ref array(to_ndarray(unwrap(self), false));
    Ref result = array;
    if (dtype != Py_None) {
      Ref astype(check(PyObject_GetAttrString(array.get(), "astype")));
      Ref positional(check(PyTuple_Pack(1, dtype)));
      Ref named(check(Py_BuildValue("{s:O}", "copy", Py_False)));
      result = Ref(check(PyObject_Call(astype.get(), positional.get(), named.get())));
      if (must_share && result.get() != array.get())
        value_error(
            "Unable to avoid copy while creating an array of another dtype; leave copy=False out");
    }
    if (must_copy && result.get() == array.get())
      return check(PyObject_CallMethod(array.get(), "copy", nullptr));
    return result.release();
  });
}

// The results of NumPy's functions on tensors come back as tensors, truth values as uint8, which
// dates from when PyTorch had no others.
PyObject* array_wrap(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = call_method_override(self, "__array_wrap__", args, n, names)) return r;
    if (n < 1) type_error("__array_wrap__() missing 1 required positional argument: 'array'");
    if (!is_ndarray(args[0])) return Py_NewRef(args[0]);
    const Tensor result = tensor_from_ndarray(args[0]);
    return wrap(result.dtype() == DType::Bool ? op::view_dtype(result, DType::UInt8) : result);
  });
}

[[noreturn]] void no_attribute(const std::string& why) {
  raise_python(PyExc_AttributeError, why);
}

// AttributeError for what has no interface, so that hasattr says so and NumPy goes on to __array__,
// which gives the right exception.
PyObject* array_interface(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    if (Py_TYPE(self) != tensor_type) {
      static PyObject* name = check(PyUnicode_InternFromString("__array__"));
      if (_PyType_Lookup(Py_TYPE(self), name) != PyDict_GetItem(tensor_base_type->tp_dict, name) ||
          (torch_function_enabled() && has_override(self)))
        no_attribute("this subclass of Tensor converts itself in __array__");
    }
    if (!t.is_cpu() || is_sparse(t) || requires_grad(t) || !kind_of(t.dtype()))
      no_attribute(
          "only CPU tensors of NumPy's dtypes that do not require grad have __array_interface__");
    fix_memory(t->storage);
    Dims byte_strides(t.strides());
    for (int64_t& s : byte_strides) s *= int64_t(t.item_size());
    Ref shape(make_tuple(t.sizes())), memory(wrap_storage(t->storage));
    Ref strides(t.is_contiguous() ? Py_NewRef(Py_None) : make_tuple(byte_strides));
    // The storage and not an address: whoever makes an array of this keeps the memory alive.
    return check(Py_BuildValue(
        "{s:O,s:s,s:O,s:O,s:L,s:i}", "shape", shape.get(), "typestr", typestr_of(t.dtype()).c_str(),
        "strides", strides.get(), "data", memory.get(), "offset",
        static_cast<long long>(t.numel() ? t.offset() * int64_t(t.item_size()) : 0), "version", 3));
  });
}

PyObject* cuda_array_interface(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    if (!t.is_cuda())
      no_attribute(
          text("Can't get __cuda_array_interface__ on a tensor on ", t.device(),
               ". If CUDA data is required use tensor.cuda() to copy tensor to device memory."));
    if (is_sparse(t))
      no_attribute(text("Can't get __cuda_array_interface__ on a tensor of layout facula.",
                        layout_name(layout_of(t)),
                        ". Use .to_dense() to convert to a dense tensor, or .values()."));
    if (requires_grad(t))
      runtime_error(
          "Can't get __cuda_array_interface__ on Tensor that requires grad. Use tensor.detach() "
          "first.");
    if (!kind_of(t.dtype()))
      no_attribute(text(t.dtype(), " has no __cuda_array_interface__; use DLPack"));
    fix_memory(t->storage);
    Dims byte_strides(t.strides());
    for (int64_t& s : byte_strides) s *= int64_t(t.item_size());
    Ref shape(make_tuple(t.sizes())),
        strides(t.is_contiguous() ? Py_NewRef(Py_None) : make_tuple(byte_strides));
    Ref address(check(PyLong_FromVoidPtr(t.numel() ? t.data() : nullptr)));
    // Who reads the memory on another stream waits for this one; 1 is the default stream.
    const auto handle = reinterpret_cast<uintptr_t>(cuda::current_stream(t.device().index));
    Ref stream(check(PyLong_FromUnsignedLongLong(handle ? handle : 1)));
    return check(Py_BuildValue("{s:O,s:s,s:O,s:(OO),s:i,s:O}", "shape", shape.get(), "typestr",
                               typestr_of(t.dtype()).c_str(), "strides", strides.get(), "data",
                               address.get(), Py_False, "version", 3, "stream", stream.get()));
  });
}

#define FAST(name, f, doc) {name, (PyCFunction)(void*)f, METH_FASTCALL | METH_KEYWORDS, doc}
PyMethodDef methods[] = {
    FAST("numpy", numpy,
         "numpy(*, force=False) -> numpy.ndarray\n\n"
         "An array over the memory of this tensor. ``force=True`` detaches and copies to the host "
         "first.\n\n"
         "Example::\n\n    >>> facula.ones(2).numpy()\n    array([1., 1.], dtype=float32)\n"),
    FAST("__array__", array_method, "__array__(dtype=None, copy=None): what numpy.asarray calls."),
    FAST("__array_wrap__", array_wrap, "Makes tensors of the results of NumPy's functions."),
    {}};
PyGetSetDef properties[] = {{"__array_interface__", array_interface, nullptr,
                             "The memory of a CPU tensor in NumPy's array interface.", nullptr},
                            {"__cuda_array_interface__", cuda_array_interface, nullptr,
                             "The memory of a CUDA tensor for other libraries.", nullptr},
                            {}};
PyMethodDef functions[] = {
    {"_from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray) -> Tensor\n\n"
     "A tensor over the memory of an array, which it keeps alive: writes on either side show on "
     "the other.\n\n"
     "Example::\n\n    >>> facula.from_numpy(numpy.array([1, 2]))\n    tensor([1, 2])\n"},
    {}};

}  // namespace

DType dtype_of_kind(char kind, int64_t bytes) {
  for (int i = 0; i < kDTypes; ++i)
    if (kind_of(DType(i)) == kind && int64_t(item_size(DType(i))) == bytes) return DType(i);
  return DType::None;
}

char kind_of(DType d) {
  switch (d) {
    case DType::Bool: return 'b';
    case DType::Float16:
    case DType::Float32:
    case DType::Float64: return 'f';
    default:
      if (is_complex(d)) return 'c';
      return is_integral(d) ? is_unsigned(d) ? 'u' : 'i' : 0;
  }
}

std::string typestr_of(DType d) {
  std::string order = item_size(d) == 1 ? "|" : kLittle ? "<" : ">";
  return order + kind_of(d) + std::to_string(item_size(d));
}

const char* supported_array_dtypes() {
  return "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
         "uint32, uint16, uint8, and bool.";
}

bool is_ndarray(PyObject* o) {
  static PyTypeObject* type = nullptr;
  if (!type) {  // no array exists before somebody has imported NumPy
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    if (!module) return false;
    Ref found = optional_attribute(module, "ndarray");
    if (!found || !PyType_Check(found.get())) return false;
    type = reinterpret_cast<PyTypeObject*>(found.release());
  }
  return PyObject_TypeCheck(o, type);
}

Tensor tensor_from_ndarray(PyObject* array) {
  struct View {
    Py_buffer b;
    ~View() { PyBuffer_Release(&b); }
  } view;
  if (PyObject_GetBuffer(array, &view.b, PyBUF_RECORDS_RO) < 0) {
    view.b.obj = nullptr;  // nothing to release
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
      throw PythonError{};
    PyErr_Clear();
    unsupported_array(array);  // dtypes without a format, such as datetime64
  }
  int64_t item = view.b.itemsize;
  bool foreign_order = false;
  DType dtype = dtype_of_format(view.b.format, item, foreign_order);
  if (dtype == DType::None) unsupported_array(array);
  if (foreign_order)
    value_error(
        "given numpy array has byte order different from the native byte order; convert it first, "
        "with "
        "array.astype(array.dtype.newbyteorder('='))");
  Dims sizes, strides;
  for (int i = 0; i < view.b.ndim; ++i) {
    sizes.push_back(view.b.shape[i]);
    if (view.b.strides[i] % item && view.b.shape[i] > 1)
      value_error(
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array "
          "to reallocate the memory.");
    strides.push_back(view.b.strides[i] / item);
  }
  size_t bytes = checked_extent(sizes, strides, dtype);
  static bool warned = false;
  if (view.b.readonly) warn_not_writable("NumPy array", warned);
  Storage* s =
      borrow_storage(bytes ? view.b.buf : nullptr, bytes, Device{}, release_object, nullptr);
  s->context = Py_NewRef(array);
  return made_here(tensor_on_storage(s, sizes, strides, 0, dtype));
}

void init_numpy(PyObject* module) {
  memory_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&memory_spec)));
  add_functions(module, functions);
  add_methods(tensor_base_type, methods);
  add_properties(tensor_base_type, properties);
  Ref priority(check(PyLong_FromLong(1000)));
  check(PyDict_SetItemString(tensor_base_type->tp_dict, "__array_priority__", priority.get()));
  PyType_Modified(tensor_base_type);
}

}  // namespace facula::python
