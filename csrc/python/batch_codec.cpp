// Batches in their short form, for Python.
#include "python/batch_codec.h"

#include "core/crc32c.h"

namespace facula::python {
namespace {

PyObject* pack_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) type_error("_pack_batch() takes a batch and a size, got ", count, " arguments");
    std::string out;
    if (!BatchEncoder(out, size_t(index_of(args[1]))).write(args[0])) return Py_NewRef(Py_None);
    return check(PyBytes_FromStringAndSize(out.data(), Py_ssize_t(out.size())));
  });
}

PyObject* unpack_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 1 && count != 2) type_error("_unpack_batch() takes bytes, and how to find slots");
    Py_buffer buffer;
    if (PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE) < 0) throw PythonError{};
    struct Release {
      Py_buffer& buffer;
      ~Release() { PyBuffer_Release(&buffer); }
    } release{buffer};
    BatchDecoder decoder(static_cast<const char*>(buffer.buf), size_t(buffer.len),
                         count == 2 ? args[1] : nullptr);
    Ref result(decoder.decode());
    if (!decoder.done()) BatchDecoder::broken();
    return result.release();
  });
}

PyTypeObject* reader_type = nullptr;

PyObject* read_batches(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 || !PyBytes_CheckExact(args[0]))
      type_error("_read_batches() takes bytes and the number of batches");
    const int64_t left = index_of(args[1]);
    auto* reader = reinterpret_cast<BatchReader*>(check(reader_type->tp_alloc(reader_type, 0)));
    reader->data = Py_NewRef(args[0]);
    reader->at = 0;
    reader->left = Py_ssize_t(left);
    return reinterpret_cast<PyObject*>(reader);
  });
}

PyObject* next_in_reader(PyObject* self) {
  auto* reader = reinterpret_cast<BatchReader*>(self);
  if (reader->left <= 0) return nullptr;
  return guarded([&] { return next_batch(reader); });
}

Py_ssize_t batches_left(PyObject* self) {
  return reinterpret_cast<BatchReader*>(self)->left;
}

void free_reader(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<BatchReader*>(self)->data);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot reader_slots[] = {{Py_tp_dealloc, (void*)free_reader},
                              {Py_tp_iter, (void*)PyObject_SelfIter},
                              {Py_tp_iternext, (void*)next_in_reader},
                              {Py_sq_length, (void*)batches_left},
                              {0, nullptr}};
PyType_Spec reader_spec = {"facula._C._BatchReader", sizeof(BatchReader), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, reader_slots};

PyObject* checksum(PyObject*, PyObject* o) {
  return guarded([&] {
    Py_buffer buffer;
    if (PyObject_GetBuffer(o, &buffer, PyBUF_SIMPLE) < 0) throw PythonError{};
    const uint32_t sum = crc32c(buffer.buf, size_t(buffer.len));
    PyBuffer_Release(&buffer);
    return check(PyLong_FromUnsignedLong(sum));
  });
}

PyMethodDef functions[] = {
    {"_crc32c", checksum, METH_O, "The CRC-32C of bytes."},
    {"_pack_batch", (PyCFunction)(void*)pack_batch, METH_FASTCALL,
     "_pack_batch(batch, limit): bytes, or None when it is too long or has no short form."},
    {"_unpack_batch", (PyCFunction)(void*)unpack_batch, METH_FASTCALL,
     "_unpack_batch(data, place=None): the batch of which _pack_batch made bytes."},
    {"_read_batches", (PyCFunction)(void*)read_batches, METH_FASTCALL,
     "_read_batches(data, count): an iterator over batches whose short forms stand in a row."},
    {}};

}  // namespace

bool is_batch_reader(PyObject* o) {
  return Py_TYPE(o) == reader_type;
}

PyObject* next_batch(BatchReader* reader) {
  const size_t size = size_t(PyBytes_GET_SIZE(reader->data));
  BatchDecoder decoder(PyBytes_AS_STRING(reader->data) + reader->at, size - reader->at);
  PyObject* batch = decoder.decode();
  reader->at = size - decoder.rest();
  --reader->left;
  return batch;
}

void init_batch_codec(PyObject* module) {
  reader_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&reader_spec)));
  add_functions(module, functions);
  init_batch_stream(module);
}

}  // namespace facula::python
