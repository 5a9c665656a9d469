// A short binary form of small batches: tensors, numbers, texts and containers of them. Pickling
// costs more than making a batch of a few numbers does; this is what lets workers pay even then.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "python/interop.h"

namespace facula::python {
namespace {

constexpr int kDeepest = 32;

enum Tag : char {
  kNone = 'N',
  kTrue = 't',
  kFalse = 'f',
  kInt = 'i',
  kFloat = 'd',
  kText = 's',
  kBytes = 'b',
  kList = 'l',
  kTuple = 'u',
  kDict = 'm',
  kTensor = 'T',
};

class Encoder {
 public:
  explicit Encoder(size_t limit) : limit_(limit) {}
  std::string out;

  // False for what has no short form; `out` is of no use then.
  bool encode(PyObject* o, int depth) {
    if (o == Py_None) return tag(kNone);
    if (o == Py_True) return tag(kTrue);
    if (o == Py_False) return tag(kFalse);
    if (Py_TYPE(o) == tensor_type) return first_time(o) && encode_tensor(o);
    if (PyLong_CheckExact(o)) {
      int overflow = 0;
      const int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
      return !overflow && tag(kInt) && put(v);
    }
    if (PyFloat_CheckExact(o)) return tag(kFloat) && put(PyFloat_AS_DOUBLE(o));
    if (PyUnicode_CheckExact(o)) {
      Py_ssize_t n;
      const char* text = PyUnicode_AsUTF8AndSize(o, &n);
      if (!text) PyErr_Clear();  // lone surrogates
      return text && tag(kText) && bytes(text, size_t(n));
    }
    if (PyBytes_CheckExact(o))
      return tag(kBytes) && bytes(PyBytes_AS_STRING(o), size_t(PyBytes_GET_SIZE(o)));
    if (depth == kDeepest || !first_time(o)) return false;
    if (PyList_CheckExact(o)) return tag(kList) && encode_items(o, depth);
    if (PyTuple_CheckExact(o)) return tag(kTuple) && encode_items(o, depth);
    if (!PyDict_CheckExact(o)) return false;
    if (!tag(kDict) || !put(uint64_t(PyDict_GET_SIZE(o)))) return false;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!encode(key, depth + 1) || !encode(value, depth + 1)) return false;
    return true;
  }

 private:
  bool tag(Tag t) {
    out.push_back(t);
    return out.size() < limit_;
  }
  template <class T>
  bool put(T v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
    return true;
  }
  bool bytes(const char* data, size_t n) {
    if (n >= limit_) return false;
    put(uint64_t(n));
    out.append(data, n);
    return true;
  }
  // What stands in two places is one object on the other side, too: a pickle says so.
  bool first_time(PyObject* o) {
    if (o == empty_tuple()) return true;
    if (std::find(seen_.begin(), seen_.end(), o) != seen_.end()) return false;
    if (seen_.size() >= 64) return false;
    seen_.push_back(o);
    return true;
  }
  static PyObject* empty_tuple() {
    static PyObject* empty = PyTuple_New(0);
    return empty;
  }
  bool encode_items(PyObject* o, int depth) {
    PyObject** items = PySequence_Fast_ITEMS(o);
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    put(uint64_t(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!encode(items[i], depth + 1)) return false;
    return true;
  }
  bool encode_tensor(PyObject* o) {
    const Tensor& t = unwrap(o);
    PyObject* dict = reinterpret_cast<PyTensor*>(o)->dict;
    const size_t size = size_t(t.numel()) * item_size(t.dtype());
    if (t->keys || !t.is_contiguous() || size >= limit_ || (dict && PyDict_GET_SIZE(dict)))
      return false;
    tag(kTensor);
    put(uint8_t(t.dtype()));
    put(uint8_t(t.dim()));
    for (int64_t s : t.sizes()) put(s);
    out.append(size ? t.data() : "", size);
    return out.size() < limit_;
  }

  size_t limit_;
  std::vector<PyObject*> seen_;
};

class Decoder {
 public:
  Decoder(const char* begin, size_t size) : at_(begin), end_(begin + size) {}

  PyObject* decode(int depth = 0) {
    if (depth > kDeepest) broken();
    switch (take<char>()) {
      case kNone: return Py_NewRef(Py_None);
      case kTrue: return Py_NewRef(Py_True);
      case kFalse: return Py_NewRef(Py_False);
      case kInt: return check(PyLong_FromLongLong(take<int64_t>()));
      case kFloat: return check(PyFloat_FromDouble(take<double>()));
      case kText: {
        const size_t n = length();
        return check(PyUnicode_DecodeUTF8(skip(n), Py_ssize_t(n), nullptr));
      }
      case kBytes: {
        const size_t n = length();
        return check(PyBytes_FromStringAndSize(skip(n), Py_ssize_t(n)));
      }
      case kList: {
        const auto n = Py_ssize_t(length());
        Ref list(check(PyList_New(n)));
        for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, decode(depth + 1));
        return list.release();
      }
      case kTuple: {
        const auto n = Py_ssize_t(length());
        Ref tuple(check(PyTuple_New(n)));
        for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, decode(depth + 1));
        return tuple.release();
      }
      case kDict: {
        Ref dict(check(PyDict_New()));
        for (size_t n = length(); n; --n) {
          Ref key(decode(depth + 1));
          Ref value(decode(depth + 1));
          check(PyDict_SetItem(dict.get(), key.get(), value.get()));
        }
        return dict.release();
      }
      case kTensor: return wrap(tensor());
      default: broken();
    }
  }
  bool done() const { return at_ == end_; }
  size_t rest() const { return size_t(end_ - at_); }
  [[noreturn]] static void broken() { value_error("a batch from a worker cannot be read"); }

 private:
  const char* skip(size_t n) {
    if (n > size_t(end_ - at_)) broken();
    const char* here = at_;
    at_ += n;
    return here;
  }
  template <class T>
  T take() {
    T v;
    std::memcpy(&v, skip(sizeof v), sizeof v);
    return v;
  }
  size_t length() {  // of bytes or items: there cannot be more of either than bytes left
    const auto n = take<uint64_t>();
    if (n > size_t(end_ - at_)) broken();
    return size_t(n);
  }
  Tensor tensor() {
    const auto dtype = DType(take<uint8_t>());
    if (dtype >= DType::Count) broken();
    Dims sizes;
    for (int n = take<uint8_t>(); n; --n) sizes.push_back(take<int64_t>());
    Dims strides = contiguous_strides(sizes);
    const size_t size = checked_extent(sizes, strides, dtype);
    const char* data = skip(size);
    Tensor t = empty_tensor(sizes, dtype, Device{});
    if (size) std::memcpy(t.data(), data, size);
    return t;
  }

  const char* at_;
  const char* end_;
};

PyObject* pack_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) type_error("_pack_batch() takes a batch and a size, got ", count, " arguments");
    Encoder encoder(size_t(index_of(args[1])));
    if (!encoder.encode(args[0], 0)) return Py_NewRef(Py_None);
    return check(PyBytes_FromStringAndSize(encoder.out.data(), Py_ssize_t(encoder.out.size())));
  });
}

PyObject* unpack_batch(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Py_buffer buffer;
    if (PyObject_GetBuffer(o, &buffer, PyBUF_SIMPLE) < 0) throw PythonError{};
    struct Release {
      Py_buffer& buffer;
      ~Release() { PyBuffer_Release(&buffer); }
    } release{buffer};
    Decoder decoder(static_cast<const char*>(buffer.buf), size_t(buffer.len));
    Ref result(decoder.decode());
    if (!decoder.done()) Decoder::broken();
    return result.release();
  });
}

// The batches of one message. Each is read when it is asked for: tensors that are made and die one
// after the other use the same memory again, which a message's worth of them would not.
struct BatchReader {
  PyObject_HEAD PyObject* data;  // bytes
  size_t at;
  Py_ssize_t left;
};
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

PyObject* next_batch(PyObject* self) {
  auto* reader = reinterpret_cast<BatchReader*>(self);
  if (reader->left <= 0) return nullptr;
  return guarded([&]() -> PyObject* {
    const size_t size = size_t(PyBytes_GET_SIZE(reader->data));
    Decoder decoder(PyBytes_AS_STRING(reader->data) + reader->at, size - reader->at);
    PyObject* batch = decoder.decode();
    reader->at = size - decoder.rest();
    --reader->left;
    return batch;
  });
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
                              {Py_tp_iternext, (void*)next_batch},
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
    {"_unpack_batch", unpack_batch, METH_O, "The batch of which _pack_batch made bytes."},
    {"_read_batches", (PyCFunction)(void*)read_batches, METH_FASTCALL,
     "_read_batches(data, count): an iterator over batches whose short forms stand in a row."},
    {}};

}  // namespace

void init_batch_codec(PyObject* module) {
  reader_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&reader_spec)));
  add_functions(module, functions);
}

}  // namespace facula::python
