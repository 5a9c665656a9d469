// facula.UntypedStorage: the bytes under tensors. A storage has at most one Python object at a
// time, so that identity tells whether two tensors share memory.
#include <algorithm>
#include <cstring>

#include "op/ops/copying.h"
#include "op/tensor_operators.h"
#include "python/batch_slots.h"

namespace facula::python {
namespace {

struct PyStorage {
  PyObject_HEAD Storage* storage;  // owned
  Py_ssize_t exports;              // buffers that are out; the memory must not move
  bool resizable_before;           // what the storage goes back to after the last export
  PyObject* weakrefs;
};
PyTypeObject* storage_type;

PyStorage* cast(PyObject* o) {
  return reinterpret_cast<PyStorage*>(o);
}
Storage* self_storage(PyObject* o) {
  return cast(o)->storage;
}

PyObject* adopt_storage(PyTypeObject* type, Storage* s) {  // takes over the caller's reference
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) {
    s->unref();
    throw PythonError{};
  }
  cast(o)->storage = s;
  s->python = o;
  return o;
}

void storage_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Storage* s = self_storage(o);
  if (s && s->python == o) s->python = nullptr;
  if (cast(o)->weakrefs) PyObject_ClearWeakRefs(o);
  if (s) s->unref();
  type->tp_free(o);
  Py_DECREF(type);
}

// The bytes [start, start + count) as a tensor.
Tensor bytes_tensor(Storage* s, int64_t start, int64_t count) {
  s->retain();
  return tensor_on_storage(s, Dims{count}, Dims{1}, start, DType::UInt8);
}
Tensor bytes_tensor(PyObject* o) {
  return bytes_tensor(self_storage(o), 0, int64_t(self_storage(o)->nbytes));
}

void refuse_meta(const Storage* s) {
  if (s->device.is_meta()) fail(ErrorKind::NotImplemented, "Not available for 'meta' device type");
}

Tensor host_bytes(Storage* s, int64_t start, int64_t count) {
  refuse_meta(s);
  return convert_tensor(bytes_tensor(s, start, count), DType::None, Device{}, false);
}

int64_t byte_count(PyObject* o, const char* function) {
  int64_t n = index_of(o);
  if (n < 0) runtime_error(function, ": the size must not be negative, got ", n);
  return n;
}

uint8_t byte_of(PyObject* value, const char* otherwise) {
  if (!PyLong_Check(value)) runtime_error(otherwise, type_name(value));
  auto v = PyLong_AsUnsignedLongLongMask(value);
  if (PyErr_Occurred()) throw PythonError{};
  return uint8_t(v);
}

// ---- making

Storage* storage_from_bytes(const char* bytes, size_t n, Device device) {
  Tensor t = empty_tensor(Dims{int64_t(n)}, DType::UInt8, Device{});
  if (n) std::memcpy(t.data(), bytes, n);
  t = convert_tensor(t, DType::None, device, false);
  t->storage->retain();
  return t->storage;
}

PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"", "device", nullptr};
    PyObject *given = nullptr, *where = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                     &given, &where))
      throw PythonError{};
    Device device = where == Py_None ? Device{} : resolve_device(device_of(where));
    if (!given) return adopt_storage(type, allocate_storage(0, device));
    if (is_index(given))
      return adopt_storage(type,
                           allocate_storage(size_t(byte_count(given, "UntypedStorage()")), device));
    if (PyUnicode_Check(given))
      type_error("UntypedStorage(): expected a size or a sequence of bytes, got str");
    Ref bytes(check(PyBytes_FromObject(given)));
    return adopt_storage(type, storage_from_bytes(PyBytes_AS_STRING(bytes.get()),
                                                  size_t(PyBytes_GET_SIZE(bytes.get())), device));
  });
}

PyObject* rebuild_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *data, *where;
    if (!PyArg_ParseTuple(args, "OO:_rebuild_storage", &data, &where)) throw PythonError{};
    Device device = resolve_device(device_of(where));
    if (is_index(data))
      return adopt_storage(
          storage_type, allocate_storage(size_t(byte_count(data, "_rebuild_storage()")), device));
    if (!PyBytes_Check(data))
      type_error("_rebuild_storage(): expected bytes, got ", type_name(data));
    return adopt_storage(storage_type, storage_from_bytes(PyBytes_AS_STRING(data),
                                                          size_t(PyBytes_GET_SIZE(data)), device));
  });
}

// ---- bytes

Py_ssize_t storage_length(PyObject* o) {
  return Py_ssize_t(self_storage(o)->nbytes);
}

PyObject* read_byte(Storage* s, int64_t i) {
  if (i < 0 || i >= int64_t(s->nbytes))
    index_error("index ", i, " out of range for storage of size ", s->nbytes);
  return check(PyLong_FromLong(static_cast<unsigned char>(*host_bytes(s, i, 1).data())));
}
PyObject* storage_item(PyObject* o, Py_ssize_t i) {
  return guarded([&] { return read_byte(self_storage(o), i); });
}

void release_parent(Storage* s) {
  static_cast<Storage*>(s->context)->unref();
}

// The range of an index or slice; slices step by one, as their bytes are shared.
std::pair<int64_t, int64_t> byte_range(Storage* s, PyObject* key) {
  auto size = Py_ssize_t(s->nbytes);
  if (PySlice_Check(key)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) throw PythonError{};
    if (step != 1)
      runtime_error("Trying to slice with a step of ", step, ", but only a step of 1 is supported");
    Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
    return {start, count};
  }
  if (!is_index(key)) type_error("can't index a facula.UntypedStorage with ", type_name(key));
  int64_t given = index_of(key), i = given < 0 ? given + size : given;
  if (i < 0 || i >= size)
    index_error("index ", given, " out of range for storage of size ", s->nbytes);
  return {i, 1};
}

PyObject* storage_getitem(PyObject* o, PyObject* key) {
  return guarded([&]() -> PyObject* {
    Storage* s = self_storage(o);
    auto [start, count] = byte_range(s, key);
    if (!PySlice_Check(key)) return read_byte(s, start);
    char* data = s->data && count ? static_cast<char*>(s->data) + start : nullptr;
    Storage* part = borrow_storage(data, size_t(count), s->device, release_parent, s);
    s->retain();
    fix_memory(s);
    return adopt_storage(storage_type, part);
  });
}

int storage_setitem(PyObject* o, PyObject* key, PyObject* value) {
  return guarded(
      [&]() -> int {
        if (!value) type_error("facula.UntypedStorage does not support the deletion of bytes");
        Storage* s = self_storage(o);
        refuse_meta(s);
        uint8_t byte = byte_of(value, "can only set storage content with a int types, but got ");
        auto [start, count] = byte_range(s, key);
        if (count) op::fill_(bytes_tensor(s, start, count), Scalar(int(byte)));
        return 0;
      },
      -1);
}

PyObject* tolist(PyObject* o, PyObject*) {
  return guarded([&] {
    Tensor t = host_bytes(self_storage(o), 0, int64_t(self_storage(o)->nbytes));
    Ref list(check(PyList_New(Py_ssize_t(t.numel()))));
    for (int64_t i = 0; i < t.numel(); ++i)
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), check(PyLong_FromLong(t.data_as<uint8_t>()[i])));
    return list.release();
  });
}

PyObject* fill_(PyObject* o, PyObject* value) {
  return guarded([&] {
    refuse_meta(self_storage(o));
    uint8_t byte = byte_of(value, "fill_ expects int, but got ");
    op::fill_(bytes_tensor(o), Scalar(int(byte)));
    return Py_NewRef(o);
  });
}

PyObject* copy_(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"source", "non_blocking", nullptr};
    PyObject *source, *non_blocking = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:copy_", const_cast<char**>(names), &source,
                                     &non_blocking))
      throw PythonError{};
    if (!is_storage(source))
      type_error("copy_(): argument 'source' must be UntypedStorage, not ", type_name(source));
    if (self_storage(o)->nbytes != self_storage(source)->nbytes)
      runtime_error("size does not match, self was ", self_storage(o)->nbytes,
                    " bytes but src was ", self_storage(source)->nbytes, " bytes");
    if (self_storage(o) != self_storage(source)) op::copy_(bytes_tensor(o), bytes_tensor(source));
    return Py_NewRef(o);
  });
}

PyObject* wrap_bytes(const Tensor& t) {
  return wrap_storage(t->storage);
}

PyObject* clone(PyObject* o, PyObject*) {
  return guarded([&] { return wrap_bytes(op::clone(bytes_tensor(o))); });
}
PyObject* deepcopy(PyObject* o, PyObject* memo) {
  return guarded([&] {
    Ref key(check(PyLong_FromVoidPtr(o)));
    if (PyDict_Check(memo))
      if (PyObject* done = PyDict_GetItemWithError(memo, key.get())) return Py_NewRef(done);
    Ref made(check(clone(o, nullptr)));
    if (PyDict_Check(memo)) check(PyDict_SetItem(memo, key.get(), made.get()));
    return made.release();
  });
}
PyObject* to_device(PyObject* o, Device device) {
  if (device == self_storage(o)->device) return Py_NewRef(o);
  return wrap_bytes(convert_tensor(bytes_tensor(o), DType::None, device, false));
}
PyObject* cpu(PyObject* o, PyObject*) {
  return guarded([&] {
    refuse_meta(self_storage(o));
    return to_device(o, Device{});
  });
}
PyObject* cuda(PyObject* o, PyObject* args) {
  return guarded([&] {
    PyObject* where = Py_None;
    if (!PyArg_ParseTuple(args, "|O:cuda", &where)) throw PythonError{};
    Device device = where == Py_None ? Device{DeviceType::CUDA, -1} : device_of(where);
    if (!device.is_cuda()) runtime_error("Invalid device, must be cuda device, got ", device);
    refuse_meta(self_storage(o));
    return to_device(o, resolve_device(device));
  });
}

PyObject* resize_(PyObject* o, PyObject* size) {
  return guarded([&] {
    Storage* s = self_storage(o);
    auto n = size_t(byte_count(size, "resize_()"));
    if (n != s->nbytes) s->resize(n);
    return Py_NewRef(o);
  });
}

PyObject* share_memory_(PyObject* o, PyObject*) {
  return guarded([&] {
    Storage* s = self_storage(o);
    if (may_leave_slot(s) && !cast(o)->exports) leave_slot(s);
    s->share();
    cast(o)->resizable_before = false;
    return Py_NewRef(o);
  });
}
PyObject* is_shared(PyObject* o, PyObject*) {
  return PyBool_FromLong(self_storage(o)->is_shared());
}

PyObject* reduce(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Storage* s = self_storage(o);
    static PyObject* rebuild = nullptr;
    if (!rebuild) rebuild = import_attribute("facula._C", "_rebuild_storage");
    if (!rebuild) raise_python(PyExc_RuntimeError, "facula._C is not importable");
    Ref where(check(PyUnicode_FromString(to_string(s->device).c_str())));
    if (s->device.is_meta())
      return check(Py_BuildValue("(O(nO))", rebuild, Py_ssize_t(s->nbytes), where.get()));
    Tensor t = host_bytes(s, 0, int64_t(s->nbytes));
    Ref bytes(
        check(PyBytes_FromStringAndSize(t.numel() ? t.data() : nullptr, Py_ssize_t(t.numel()))));
    return check(Py_BuildValue("(O(OO))", rebuild, bytes.get(), where.get()));
  });
}

PyObject* storage_repr(PyObject* o) {
  return guarded([&] {
    Storage* s = self_storage(o);
    constexpr int64_t kShown = 1000;
    std::string out;
    if (s->device.is_meta()) {
      out = "...\n";
    } else {
      Tensor t = host_bytes(s, 0, std::min(int64_t(s->nbytes), kShown));
      for (int64_t i = 0; i < t.numel(); ++i)
        out += " " + std::to_string(t.data_as<uint8_t>()[i]) + "\n";
      if (int64_t(s->nbytes) > kShown) out += " ...\n";
    }
    out += text("[facula.UntypedStorage(device=", s->device, ") of size ", s->nbytes, "]");
    return check(PyUnicode_FromString(out.c_str()));
  });
}

PyObject* nbytes(PyObject* o, PyObject*) {
  return PyLong_FromSize_t(self_storage(o)->nbytes);
}
PyObject* element_size(PyObject*, PyObject*) {
  return PyLong_FromLong(1);
}
PyObject* data_ptr(PyObject* o, PyObject*) {
  return PyLong_FromVoidPtr(self_storage(o)->data);
}
PyObject* resizable(PyObject* o, PyObject*) {
  return PyBool_FromLong(self_storage(o)->resizable);
}
PyObject* get_device(PyObject* o, void*) {
  return guarded([&] { return to_python(self_storage(o)->device); });
}
PyObject* get_is_cuda(PyObject* o, void*) {
  return PyBool_FromLong(self_storage(o)->device.is_cuda());
}
PyObject* get_cdata(PyObject* o, void*) {
  return PyLong_FromVoidPtr(self_storage(o));
}

// ---- the buffer protocol, so that storages can be written to files without a copy

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  PyStorage* self = cast(o);
  Storage* s = self->storage;
  if (!s->device.is_cpu()) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError,
                    "only storages on the CPU can be read as buffers; use .cpu() first");
    return -1;
  }
  if (PyBuffer_FillInfo(view, o, s->data, Py_ssize_t(s->nbytes), 0, flags) < 0) return -1;
  if (self->exports++ == 0) {
    self->resizable_before = s->resizable;
    s->resizable = false;
  }
  return 0;
}
void release_buffer_of(PyObject* o, Py_buffer*) {
  PyStorage* self = cast(o);
  if (--self->exports == 0) self->storage->resizable = self->resizable_before;
}

#define KEYWORDS(name, f, doc) {name, (PyCFunction)(void*)f, METH_VARARGS | METH_KEYWORDS, doc}
PyMethodDef storage_methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "How many bytes."},
    {"size", nbytes, METH_NOARGS, "How many bytes."},
    {"element_size", element_size, METH_NOARGS, "Always 1."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first byte, or 0."},
    {"resizable", resizable, METH_NOARGS, "False when others point into the memory."},
    {"resize_", resize_, METH_O, "Changes the number of bytes, keeping those that remain."},
    {"tolist", tolist, METH_NOARGS, "The bytes as a list of ints."},
    {"fill_", fill_, METH_O, "Sets every byte."},
    KEYWORDS("copy_", copy_,
             "copy_(source, non_blocking=None): takes over the bytes of another storage."),
    {"clone", clone, METH_NOARGS, "A copy with its own memory."},
    {"__copy__", clone, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"share_memory_", share_memory_, METH_NOARGS,
     "Moves the bytes to where processes that are forked from now on see and write them, too."},
    {"is_shared", is_shared, METH_NOARGS, "True after share_memory_, and on CUDA devices."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"cpu", cpu, METH_NOARGS, "A copy in host memory, or the storage itself."},
    {"cuda", cuda, METH_VARARGS, "A copy on a CUDA device, or the storage itself."},
    {}};
PyGetSetDef storage_getset[] = {
    {"device", get_device, nullptr, "Where the bytes are.", nullptr},
    {"is_cuda", get_is_cuda, nullptr, "True on a CUDA device.", nullptr},
    {"_cdata", get_cdata, nullptr, "A number that identifies the storage.", nullptr},
    {}};
PyMemberDef storage_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyStorage, weakrefs), READONLY, nullptr}, {}};
PyType_Slot storage_slots[] = {
    {Py_tp_new, (void*)storage_new},
    {Py_tp_dealloc, (void*)storage_dealloc},
    {Py_tp_repr, (void*)storage_repr},
    {Py_tp_methods, storage_methods},
    {Py_tp_getset, storage_getset},
    {Py_tp_members, storage_members},
    {Py_sq_length, (void*)storage_length},
    {Py_sq_item, (void*)storage_item},
    {Py_mp_length, (void*)storage_length},
    {Py_mp_subscript, (void*)storage_getitem},
    {Py_mp_ass_subscript, (void*)storage_setitem},
    {Py_bf_getbuffer, (void*)get_buffer},
    {Py_bf_releasebuffer, (void*)release_buffer_of},
    {Py_tp_doc, (void*)"The bytes under tensors: ``facula.ones(2).untyped_storage()``."},
    {}};
PyType_Spec storage_spec = {"facula.UntypedStorage", sizeof(PyStorage), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, storage_slots};

PyMethodDef functions[] = {
    {"_rebuild_storage", rebuild_storage, METH_VARARGS, "What pickled storages call."}, {}};

}  // namespace

bool is_storage(PyObject* o) {
  return PyObject_TypeCheck(o, storage_type);
}
Storage* storage_of(PyObject* o) {
  return self_storage(o);
}

void fix_memory(Storage* s) {
  stay_in_slot(s);
  s->resizable = false;
  if (s->python) cast(static_cast<PyObject*>(s->python))->resizable_before = false;
}

PyObject* wrap_storage(Storage* s) {
  // An object that is being deallocated is no longer this storage's object.
  if (auto* o = static_cast<PyObject*>(s->python); o && Py_REFCNT(o) > 0) return Py_NewRef(o);
  s->retain();
  return adopt_storage(storage_type, s);
}

void init_storage_type(PyObject* module) {
  storage_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&storage_spec)));
  check(PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type)));
  add_functions(module, functions);
  init_set_storage();
}

}  // namespace facula::python
