// The small Python objects: dtype, device, memory_format, layout and Size.
#include <cstring>

#include "cuda/driver.h"
#include "python/py.h"
#include "python/tensor_methods.h"

namespace facula::python {
namespace {

struct PyDType {
  PyObject_HEAD DType d;
};
struct PyDevice {
  PyObject_HEAD Device d;
};
struct PyNamed {  // memory_format and layout: a value with a name
  PyObject_HEAD int value;
  const char* name;
};

PyTypeObject *dtype_type, *device_type, *format_type, *layout_type, *size_type;
PyObject* dtypes[kDTypes];
PyObject* formats[4];

DType self_dtype(PyObject* o) {
  return reinterpret_cast<PyDType*>(o)->d;
}
// A dtype that the package defines in Python has no loops, and answers for itself.
DType computable_dtype(PyObject* o) {
  if (self_dtype(o) == DType::None) {
    PyErr_Format(PyExc_TypeError, "%R is not a dtype that operators compute with", o);
    throw PythonError{};
  }
  return self_dtype(o);
}
PyObject* dtype_new(PyTypeObject* type, PyObject*, PyObject*) {
  if (type == dtype_type)
    return PyErr_Format(PyExc_TypeError, "cannot create 'facula.dtype' instances");
  PyObject* o = type->tp_alloc(type, 0);
  if (o) reinterpret_cast<PyDType*>(o)->d = DType::None;
  return o;
}
Device self_device(PyObject* o) {
  return reinterpret_cast<PyDevice*>(o)->d;
}

// ---- dtype
PyObject* dtype_repr(PyObject* o) {
  return PyUnicode_FromFormat("facula.%s", dtype_name(self_dtype(o)));
}
PyObject* dtype_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(dtype_name(self_dtype(o)));
}
PyObject* dtype_to_real(PyObject* o, PyObject*) {
  return guarded([&] { return to_python(facula::to_real(computable_dtype(o))); });
}
PyObject* dtype_to_complex(PyObject* o, PyObject*) {
  return guarded([&] { return to_python(facula::to_complex(computable_dtype(o))); });
}
PyObject* dtype_is_floating(PyObject* o, void*) {
  return guarded([&] { return PyBool_FromLong(is_floating(computable_dtype(o))); });
}
PyObject* dtype_is_complex(PyObject* o, void*) {
  return guarded([&] { return PyBool_FromLong(is_complex(computable_dtype(o))); });
}
PyObject* dtype_is_signed(PyObject* o, void*) {
  return guarded([&] {
    DType d = computable_dtype(o);
    return PyBool_FromLong(d != DType::Bool && !is_unsigned(d));
  });
}
PyObject* dtype_itemsize(PyObject* o, void*) {
  return guarded([&] { return PyLong_FromSize_t(item_size(computable_dtype(o))); });
}
PyObject* dtype_copy(PyObject* o, PyObject*) {
  return Py_NewRef(o);
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The real dtype of a complex one."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype of a real one."},
    {"__copy__", dtype_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", dtype_copy, METH_O, nullptr},
    {}};
PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr, "True for floating-point dtypes.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "True for complex dtypes.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "True when negative numbers can be held.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {}};
PyType_Slot dtype_slots[] = {
    {Py_tp_repr, (void*)dtype_repr},
    {Py_tp_new, (void*)dtype_new},
    {Py_tp_methods, dtype_methods},
    {Py_tp_getset, dtype_getset},
    {Py_tp_doc, (void*)"The type of a tensor's elements, such as ``facula.float32``."},
    {}};
PyType_Spec dtype_spec = {"facula.dtype", sizeof(PyDType), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, dtype_slots};

// ---- device
int8_t device_index(int64_t i) {
  if (i < 0) runtime_error("Device index must not be negative, got ", i);
  if (i > 127) runtime_error("Device index must be between 0 and 127, got ", i);
  return int8_t(i);
}
PyObject* make_device(Device d) {
  PyObject* o = check(device_type->tp_alloc(device_type, 0));
  reinterpret_cast<PyDevice*>(o)->d = d;
  return o;
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"type", "index", nullptr};
    PyObject *type = nullptr, *index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(names), &type, &index))
      throw PythonError{};
    Device d = device_of(type);
    if (index && index != Py_None) {
      if (d.index >= 0)
        runtime_error(
            "type (string) must not include an index because index was passed explicitly: ",
            to_string(d));
      if (!is_index(index))
        type_error("device(): argument 'index' must be int, not ", type_name(index));
      d.index = device_index(index_of(index));
    }
    return make_device(d);
  });
}
PyObject* device_repr(PyObject* o) {
  Device d = self_device(o);
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", device_type_name(d.type));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(d.type),
                              int(d.index));
}
PyObject* device_str(PyObject* o) {
  return PyUnicode_FromString(to_string(self_device(o)).c_str());
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != device_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = self_device(a) == self_device(b);
  return PyBool_FromLong(op == Py_EQ ? equal : !equal);
}
Py_hash_t device_hash(PyObject* o) {
  return int(self_device(o).type) * 1000 + self_device(o).index + 7;
}
PyObject* device_get_type(PyObject* o, void*) {
  return PyUnicode_FromString(device_type_name(self_device(o).type));
}
PyObject* device_get_index(PyObject* o, void*) {
  Device d = self_device(o);
  return d.index < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(d.index);
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  Device d = self_device(o);
  if (d.index < 0) return Py_BuildValue("(O(s))", device_type, device_type_name(d.type));
  return Py_BuildValue("(O(si))", device_type, device_type_name(d.type), int(d.index));
}
PyObject* device_enter(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref stack(import_attribute("facula._device_context", "push"));
    check(stack.get());
    Ref r(check(PyObject_CallOneArg(stack.get(), o)));
    return Py_NewRef(o);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  return guarded([&] {
    Ref stack(import_attribute("facula._device_context", "pop"));
    check(stack.get());
    return check(PyObject_CallNoArgs(stack.get()));
  });
}
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Makes this the default device for new tensors."},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
    {}};
PyGetSetDef device_getset[] = {
    {"type", device_get_type, nullptr, "'cpu', 'cuda' or 'meta'.", nullptr},
    {"index", device_get_index, nullptr, "The index, or None.", nullptr},
    {}};
PyType_Slot device_slots[] = {
    {Py_tp_new, (void*)device_new},
    {Py_tp_repr, (void*)device_repr},
    {Py_tp_str, (void*)device_str},
    {Py_tp_richcompare, (void*)device_compare},
    {Py_tp_hash, (void*)device_hash},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {Py_tp_doc, (void*)"Where a tensor lives: ``facula.device('cuda', 0)``."},
    {}};
PyType_Spec device_spec = {"facula.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, device_slots};

// ---- memory_format and layout
PyObject* named_repr(PyObject* o) {
  return PyUnicode_FromFormat("facula.%s", reinterpret_cast<PyNamed*>(o)->name);
}
PyObject* named_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(reinterpret_cast<PyNamed*>(o)->name);
}
PyMethodDef named_methods[] = {{"__reduce__", named_reduce, METH_NOARGS, nullptr}, {}};
PyType_Slot format_slots[] = {{Py_tp_repr, (void*)named_repr},
                              {Py_tp_methods, named_methods},
                              {Py_tp_doc, (void*)"The order of dimensions in memory."},
                              {}};
PyType_Spec format_spec = {"facula.memory_format", sizeof(PyNamed), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, format_slots};
PyType_Slot layout_slots[] = {
    {Py_tp_repr, (void*)named_repr},
    {Py_tp_methods, named_methods},
    {Py_tp_doc, (void*)"How a tensor's elements are kept: always ``facula.strided``; "
                       "the others can be named, but no tensor has them."},
    {}};
PyType_Spec layout_spec = {"facula.layout", sizeof(PyNamed), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, layout_slots};

PyObject* make_named(PyTypeObject* type, int value, const char* name) {
  PyObject* o = check(type->tp_alloc(type, 0));
  reinterpret_cast<PyNamed*>(o)->value = value;
  reinterpret_cast<PyNamed*>(o)->name = name;
  return o;
}

// ---- Size: a tuple of ints with numel()
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Ref t(check(PyTuple_Type.tp_new(type, args, kwargs)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(t.get(), i);
      if (!PyLong_Check(item) && !is_index(item))
        type_error("facula.Size() takes an iterable of 'int' (item ", i, " is '",
                   Py_TYPE(item)->tp_name, "')");
      const int64_t n = index_of(item);
      if (PyLong_Check(item)) continue;
      PyTuple_SET_ITEM(t.get(), i, PyLong_FromLongLong(n));
      Py_DECREF(item);
    }
    return t.release();
  });
}
PyObject* size_repr(PyObject* o) {
  std::string s = "facula.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    s += (i ? ", " : "") + std::to_string(PyLong_AsLongLong(PyTuple_GET_ITEM(o, i)));
  return PyUnicode_FromString((s + "])").c_str());
}
PyObject* size_numel(PyObject* o, PyObject*) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    n *= PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
  return PyLong_FromLongLong(n);
}
PyObject* as_size(PyObject* tuple) {  // steals
  if (!tuple || !PyTuple_Check(tuple) || Py_TYPE(tuple) == size_type) return tuple;
  PyObject* s = PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple);
  Py_DECREF(tuple);
  return s;
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
// Also for tuple + Size, which tuple's own concatenation would answer with a tuple.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* size_subscript(PyObject* a, PyObject* i) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(a, i));
}
PyObject* size_reduce(PyObject* o, PyObject*) {
  Ref plain(PySequence_Tuple(o));
  Ref items(PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o)));
  return Py_BuildValue("(O(O))", size_type, items.get());
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {}};
PyType_Slot size_slots[] = {{Py_tp_base, (void*)&PyTuple_Type},
                            {Py_tp_new, (void*)size_new},
                            {Py_tp_repr, (void*)size_repr},
                            {Py_tp_methods, size_methods},
                            {Py_sq_concat, (void*)size_concat},
                            {Py_nb_add, (void*)size_add},
                            {Py_sq_repeat, (void*)size_repeat},
                            {Py_mp_subscript, (void*)size_subscript},
                            {Py_tp_doc, (void*)"The shape of a tensor: a tuple of ints."},
                            {}};
PyType_Spec size_spec = {"facula.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TUPLE_SUBCLASS,
                         size_slots};

PyTypeObject* make_type(PyType_Spec& spec) {
  return reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

}  // namespace

void init_value_types(PyObject* module) {
  dtype_type = make_type(dtype_spec);
  device_type = make_type(device_spec);
  format_type = make_type(format_spec);
  layout_type = make_type(layout_spec);
  size_type = make_type(size_spec);
  auto add = [&](const char* name, PyObject* o) { check(PyModule_AddObjectRef(module, name, o)); };
  add("dtype", (PyObject*)dtype_type);
  add("device", (PyObject*)device_type);
  add("memory_format", (PyObject*)format_type);
  add("layout", (PyObject*)layout_type);
  add("Size", (PyObject*)size_type);
  for (int i = 0; i < kDTypes; ++i) {
    dtypes[i] = check(dtype_type->tp_alloc(dtype_type, 0));
    reinterpret_cast<PyDType*>(dtypes[i])->d = DType(i);
    add(dtype_name(DType(i)), dtypes[i]);
  }
  const char* names[] = {"contiguous_format", "preserve_format", "channels_last",
                         "channels_last_3d"};
  for (int i = 0; i < 4; ++i) add(names[i], formats[i] = make_named(format_type, i, names[i]));
  // Programs compare with the other layouts; no tensor has one.
  const char* layouts[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                           "sparse_bsr", "sparse_bsc", "_mkldnn",    "jagged"};
  for (int i = 0; i < 8; ++i) add(layouts[i], make_named(layout_type, i, layouts[i]));
}

PyObject* to_python(DType d) {
  return Py_NewRef(d == DType::None ? Py_None : dtypes[int(d)]);
}
PyObject* to_python(Device d) {
  return make_device(d);
}
PyObject* to_python(MemoryFormat f) {
  return Py_NewRef(formats[int(f)]);
}

PyObject* make_tuple(IntSpan v) {
  PyObject* t = check(PyTuple_New(Py_ssize_t(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(t, Py_ssize_t(i), PyLong_FromLongLong(v[i]));
  return t;
}
PyObject* make_size(IntSpan v) {
  // A tuple allocated as Size directly: the constructor would go through an argument tuple.
  PyObject* t = check(size_type->tp_alloc(size_type, Py_ssize_t(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(t, Py_ssize_t(i), PyLong_FromLongLong(v[i]));
  return t;
}

bool is_dtype(PyObject* o) {
  return Py_TYPE(o) == dtype_type;
}
bool accepts_dtype(PyObject* o) {
  return is_dtype(o) || o == (PyObject*)&PyBool_Type || o == (PyObject*)&PyLong_Type ||
         o == (PyObject*)&PyFloat_Type || o == (PyObject*)&PyComplex_Type;
}
DType dtype_of(PyObject* o) {
  if (is_dtype(o)) return self_dtype(o);
  if (o == (PyObject*)&PyBool_Type) return DType::Bool;
  if (o == (PyObject*)&PyLong_Type) return DType::Int64;
  if (o == (PyObject*)&PyFloat_Type) return DType::Float64;
  if (o == (PyObject*)&PyComplex_Type) return DType::Complex128;
  type_error("expected a facula.dtype, got ", Py_TYPE(o)->tp_name);
}

bool is_device(PyObject* o) {
  return Py_TYPE(o) == device_type;
}
Device device_of(PyObject* o) {
  if (is_device(o)) return self_device(o);
  if (PyUnicode_Check(o)) return parse_device(PyUnicode_AsUTF8(o));
  if (is_index(o) && !PyBool_Check(o)) {
    const Device d{DeviceType::CUDA, device_index(index_of(o))};
    if (!cuda::is_available())
      runtime_error("Cannot access accelerator device when none is available: got the index ",
                    int(d.index), " in place of a device");
    return d;
  }
  type_error("expected a facula.device, a string such as 'cuda:0' or an index, got ",
             Py_TYPE(o)->tp_name);
}

bool is_memory_format(PyObject* o) {
  return Py_TYPE(o) == format_type;
}
MemoryFormat memory_format_of(PyObject* o) {
  return MemoryFormat(reinterpret_cast<PyNamed*>(o)->value);
}
bool is_layout(PyObject* o) {
  return Py_TYPE(o) == layout_type;
}
int64_t layout_number(PyObject* o) {
  return reinterpret_cast<PyNamed*>(o)->value;
}
bool is_size(PyObject* o) {
  return Py_TYPE(o) == size_type;
}

// ---- numbers

bool is_index(PyObject* o) {
  if (PyLong_Check(o)) return true;
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    return t.numel() == 1 && is_integral(t.dtype()) && t.dim() == 0;
  }
  return !PyFloat_Check(o) && PyIndex_Check(o);
}

int64_t index_of(PyObject* o, ErrorKind too_large) {
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1 || !is_integral(t.dtype(), true))
      type_error(
          "only integer tensors of a single element can be converted to an index, got dtype ",
          t.dtype(), " and shape ", t.sizes());
    return read_item(t).to_int();
  }
  Ref i(PyNumber_Index(o));
  check(i.get());
  int64_t v = PyLong_AsLongLong(i.get());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(too_large, "Overflow when unpacking long long: the integer does not fit into 64 bits");
  }
  return v;
}

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o) || PySequence_Check(o) || is_tensor_of_pytorch(o))
    return false;
  // NumPy scalars and other numbers: anything that converts, but no arrays.
  PyTypeObject* t = Py_TYPE(o);
  const char* name = t->tp_name;
  if (std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name, "numpy.ndarray") != 0)
    return t->tp_as_number && (t->tp_as_number->nb_float || t->tp_as_number->nb_index);
  return t->tp_as_number && t->tp_as_number->nb_index;
}

Scalar scalar_of(PyObject* o) {
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyLong_Check(o)) {
    int overflow = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Scalar(v);
    if (overflow > 0) {
      uint64_t u = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) return Scalar(u);
      PyErr_Clear();
    }
    raise_python(PyExc_OverflowError, "int too big to convert: it does not fit into 64 bits");
  }
  if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    return Scalar(Complex<double>(c.real, c.imag));
  }
  if (is_tensor(o)) return read_item(unwrap(o));
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.bool", 10) == 0) return Scalar(PyObject_IsTrue(o) == 1);
  if (PyIndex_Check(o)) {
    Ref i(check(PyNumber_Index(o)));
    return scalar_of(i.get());
  }
  if (std::strncmp(name, "numpy.complex", 13) == 0) {
    Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError{};
    return Scalar(Complex<double>(c.real, c.imag));
  }
  double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return Scalar(v);
}

PyObject* to_python(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool: return PyBool_FromLong(s.to<bool>());
    case Scalar::Kind::Int: return PyLong_FromLongLong(s.to_int());
    case Scalar::Kind::UInt: return PyLong_FromUnsignedLongLong(s.to<uint64_t>());
    case Scalar::Kind::Float: return PyFloat_FromDouble(s.to_double());
    default: return PyComplex_FromDoubles(s.to_complex().re, s.to_complex().im);
  }
}

}  // namespace facula::python
