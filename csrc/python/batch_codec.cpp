// Batches in their short form, for Python.
#include "python/batch_codec.h"

#include <memory>

#include "core/crc32c.h"
#include "python/plain_values.h"
#include "python/worker_random.h"

namespace facula::python {
namespace {

PyObject* pack_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) type_error("_pack_batch() takes a batch and a size, got ", count, " arguments");
    const auto limit = size_t(std::clamp<int64_t>(index_of(args[1]), 0, 1 << 30));
    std::unique_ptr<char[]> out(new char[BatchEncoder::room(limit)]);
    BatchEncoder encoder(out.get(), limit);
    if (!encoder.write(args[0])) return Py_NewRef(Py_None);
    return check(PyBytes_FromStringAndSize(out.get(), Py_ssize_t(encoder.size())));
  });
}

PyObject* unpack_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 1) type_error("_unpack_batch() takes bytes, got ", count, " arguments");
    Py_buffer buffer;
    if (PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE) < 0) throw PythonError{};
    struct Release {
      Py_buffer& buffer;
      ~Release() { PyBuffer_Release(&buffer); }
    } release{buffer};
    BatchDecoder decoder(static_cast<const char*>(buffer.buf), size_t(buffer.len));
    Ref result(decoder.decode());
    if (!decoder.done()) BatchDecoder::broken();
    return result.release();
  });
}

// Whether a batch is as good as one that came from a worker: nobody else has it, nor anything in
// it, nor the memory of its tensors and arrays.
class OnlyOwner {
 public:
  explicit OnlyOwner(size_t limit) : left_(limit / 2) {}  // of longer ones the form itself says
  bool of(PyObject* o, int depth = 0) {
    if (o == Py_None || PyBool_Check(o) || PyFloat_CheckExact(o)) return spend(16);
    if (PyLong_CheckExact(o)) {
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(o, &overflow);
      return !overflow && spend(16);
    }
    if (PyUnicode_CheckExact(o))
      return PyUnicode_IS_ASCII(o) && spend(16 + size_t(PyUnicode_GET_LENGTH(o)));
    if (PyBytes_CheckExact(o)) return spend(16 + size_t(PyBytes_GET_SIZE(o)));
    if (Py_REFCNT(o) != 1 || depth == kDeepest || !spend(16)) return false;
    if (Py_TYPE(o) == tensor_type) return of_tensor(o);
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || is_packed_sequence(o)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        if (!of(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return false;
      return true;
    }
    if (!PyDict_CheckExact(o)) return of_array(o);
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!of(key, depth + 1) || !of(value, depth + 1)) return false;
    return true;
  }

 private:
  bool spend(size_t bytes) {
    const bool fits = bytes <= left_;
    if (fits) left_ -= bytes;
    return fits;
  }
  bool of_tensor(PyObject* o) {
    const auto* py = reinterpret_cast<PyTensor*>(o);
    const TensorImpl* t = py->impl;
    const Storage* s = t->storage;
    const size_t size = size_t(t->numel) * item_size(t->dtype);
    return t->refs == 1 && !t->keys && t->flags == kContiguous && !t->base && !t->autograd &&
           !(py->dict && PyDict_GET_SIZE(py->dict)) && !py->weakrefs && s->refs == 1 &&
           s->version == 0 && !s->context && !s->python && s->resizable && s->nbytes == size &&
           t->offset == 0 && spend(size + 128);
  }

  // Arrays have no short form, however small they are.
  static bool of_array(PyObject* o) {
    if (!is_array_of_numbers(o)) return false;
    const Ref base(check(PyObject_GetAttrString(o, "base")));
    Py_buffer buffer;
    if (base.get() != Py_None) return false;
    if (PyObject_GetBuffer(o, &buffer, PyBUF_CONTIG) < 0) {  // it has gaps, or is read-only
      PyErr_Clear();
      return false;
    }
    PyBuffer_Release(&buffer);
    return true;
  }
  // A tuple with a class of this package.
  static bool is_packed_sequence(PyObject* o) {
    if (!PyTuple_Check(o) || std::strcmp(Py_TYPE(o)->tp_name, "PackedSequence")) return false;
    static PyObject* packed = [] {
      const Ref module(check(PyImport_ImportModule("facula.nn.utils.rnn")));
      return check(PyObject_GetAttrString(module.get(), "PackedSequence"));
    }();
    return reinterpret_cast<PyObject*>(Py_TYPE(o)) == packed;
  }

  size_t left_;
};

// _as_from_worker(batch, limit[, otherwise]): the batch as it comes from a worker: nobody else has
// its memory. Where it has no short form, and might have code of its own, what `otherwise` makes of
// it, or a TypeError. A batch that the caller holds otherwise is copied.
PyObject* as_from_worker(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 && count != 3) type_error("_as_from_worker() takes a batch and a size");
    const auto limit = size_t(std::clamp<int64_t>(index_of(args[1]), 0, 1 << 30));
    if (OnlyOwner(limit).of(args[0])) return Py_NewRef(args[0]);
    Ref packed(check(pack_batch(self, args, 2)));
    if (packed.get() == Py_None && count == 3) return check(PyObject_CallOneArg(args[2], args[0]));
    if (packed.get() == Py_None) type_error("a ", type_name(args[0]), " has no short form");
    PyObject* const form = packed.get();
    return check(unpack_batch(self, &form, 1));
  });
}

PyTypeObject* reader_type = nullptr;

// _read_batches(data, count, begin, end, slots)
PyObject* read_batches(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *data, *slots;
    Py_ssize_t count, begin, end;
    if (!PyArg_ParseTuple(args, "OnnnO:_read_batches", &data, &count, &begin, &end, &slots))
      throw PythonError{};
    slot_reader(slots);
    Ref self(check(reader_type->tp_alloc(reader_type, 0)));
    auto* reader = reinterpret_cast<BatchReader*>(self.get());
    check(PyObject_GetBuffer(data, &reader->data, PyBUF_SIMPLE));
    if (begin < 0 || begin > end || end > reader->data.len) BatchDecoder::broken();
    reader->at = size_t(begin);
    reader->end = size_t(end);
    reader->left = count;
    reader->slots = Py_NewRef(slots);
    return self.release();
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
  auto* reader = reinterpret_cast<BatchReader*>(self);
  PyBuffer_Release(&reader->data);
  Py_XDECREF(reader->slots);
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
    {"_as_from_worker", (PyCFunction)(void*)as_from_worker, METH_FASTCALL,
     "_as_from_worker(batch, limit[, otherwise]): the batch in memory that nobody else has."},
    {"_unpack_batch", (PyCFunction)(void*)unpack_batch, METH_FASTCALL,
     "_unpack_batch(data): the batch of which _pack_batch made bytes."},
    {"_read_batches", read_batches, METH_VARARGS,
     "_read_batches(data, count, begin, end, slots): an iterator over batches whose short forms "
     "stand in a row between these places of a buffer."},
    {}};

}  // namespace

bool is_batch_reader(PyObject* o) {
  return Py_TYPE(o) == reader_type;
}

PyObject* next_batch(BatchReader* reader) {
  const auto* data = static_cast<const char*>(reader->data.buf);
  BatchDecoder decoder(data + reader->at, reader->end - reader->at, &slot_reader(reader->slots));
  Ref batch(decoder.decode());
  reader->at = reader->end - decoder.rest();
  if (--reader->left <= 0) PyBuffer_Release(&reader->data);
  return batch.release();
}

void init_batch_codec(PyObject* module) {
  reader_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&reader_spec)));
  add_functions(module, functions);
  init_batch_slots(module);
  init_worker_random(module);
  init_facts(module);
  init_object_copies(module);
  init_item_types(module);
  init_batch_writer(module);
  init_batch_stream(module);
}

}  // namespace facula::python
