// A short binary form of small batches: tensors, numbers, texts and containers of them. Pickling
// costs more than making a batch of a few numbers does; this is what lets workers pay even then.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "cpu/stream.h"
#include "python/batch_slots.h"

namespace facula::python {

// How deep containers may lie in one another.
inline constexpr int kDeepest = 32;

enum BatchTag : char {
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
  kPlaced = 'P',  // a tensor whose elements lie in shared memory
};

// Writes a batch to memory of at least `room(limit)` bytes.
class BatchEncoder {
 public:
  // What may be written before it turns out that a batch is too long: an item of almost `limit`
  // after almost `limit` bytes of others, with its sizes.
  static constexpr size_t room(size_t limit) { return 2 * limit + 1024; }

  // A tensor in shared memory.
  struct Placed {
    int64_t slot;
    size_t bytes, at;  // `at`: where the number of the slot stands, from the begin of the batch
  };
  std::vector<Placed> placed;

  // `slots`, or null: where large tensors lie, or are copied to.
  BatchEncoder(char* out, size_t limit, SlotWriter* slots = nullptr)
      : out_(out), limit_(limit), slots_(slots) {}

  // False for what has no short form.
  bool write(PyObject* batch) {
    if (encode(batch, 0)) return true;
    for (const Placed& p : placed) slots_->cancel(p.slot);
    return false;
  }
  size_t size() const { return size_; }

 private:
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

  bool tag(BatchTag t) {
    if (size_ >= limit_) return false;
    out_[size_++] = t;
    return true;
  }
  void append(const char* data, size_t n) {
    std::memcpy(out_ + size_, data, n);
    size_ += n;
  }
  template <class T>
  bool put(T v) {
    append(reinterpret_cast<const char*>(&v), sizeof v);
    return true;
  }
  bool bytes(const char* data, size_t n) {
    if (n >= limit_) return false;
    put(uint64_t(n));
    append(data, n);
    return true;
  }
  // What stands in two places is one object on the other side, too: a pickle says so.
  bool first_time(PyObject* o) {
    if (o == empty_tuple()) return true;
    constexpr size_t kFew = 32;
    if (seen_.size() < kFew) {
      if (std::find(seen_.begin(), seen_.end(), o) != seen_.end()) return false;
      seen_.push_back(o);
      return true;
    }
    if (many_seen_.empty()) many_seen_.insert(seen_.begin(), seen_.end());
    return many_seen_.insert(o).second;
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
    if (t->keys || !t.is_contiguous() || (dict && PyDict_GET_SIZE(dict))) return false;
    const int64_t slot = slots_ && size >= kSharedBytes ? slot_of(t, size) : -1;
    if (size >= limit_ && slot < 0) return false;
    if (slot >= 0) placed.push_back({slot, size, 0});
    if (!tag(slot < 0 ? kTensor : kPlaced)) return false;
    put(uint8_t(t.dtype()));
    put(uint8_t(t.dim()));
    for (int64_t s : t.sizes()) put(s);
    if (slot < 0) {
      if (size) append(t.data(), size);
    } else {
      placed.back().at = size_;
      put(slot);
    }
    return true;
  }
  // Where the tensor lies, or now lies; -1 when there are too many slots already.
  int64_t slot_of(const Tensor& t, size_t size) {
    int64_t slot = slots_->send(t.data());
    if (slot >= 0) return slot;
    slot = slots_->take(size, slots_->may_make(size));
    if (slot >= 0) {
      copy_to_slot(slots_->data(slot), t.data(), size, size);
      finish_streams();
    }
    return slot;
  }

  char* out_;
  size_t size_ = 0, limit_;
  SlotWriter* slots_;
  std::vector<PyObject*> seen_;              // the first of them
  std::unordered_set<PyObject*> many_seen_;  // all, once there are more
};

// Reads a batch. `slots`, or null, are those of the worker.
class BatchDecoder {
 public:
  BatchDecoder(const char* begin, size_t size, SlotReader* slots = nullptr)
      : at_(begin), end_(begin + size), slots_(slots) {}

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
      case kPlaced: return wrap(placed_tensor());
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
  DType geometry(Dims& sizes) {
    const auto dtype = DType(take<uint8_t>());
    if (dtype >= DType::Count) broken();
    for (int n = take<uint8_t>(); n; --n) sizes.push_back(take<int64_t>());
    return dtype;
  }
  Tensor tensor() {
    Dims sizes;
    const DType dtype = geometry(sizes);
    Dims strides = contiguous_strides(sizes);
    const size_t size = checked_extent(sizes, strides, dtype);
    const char* data = skip(size);
    Tensor t = empty_tensor(sizes, dtype, Device{});
    if (size) std::memcpy(t.data(), data, size);
    return t;
  }
  Tensor placed_tensor() {
    Dims sizes;
    const DType dtype = geometry(sizes);
    const auto slot = take<int64_t>();
    if (!slots_) broken();
    Dims strides = contiguous_strides(sizes);
    const size_t size = checked_extent(sizes, strides, dtype);
    return tensor_on_storage(slots_->storage(slot, size), sizes, strides, 0, dtype);
  }

  const char* at_;
  const char* end_;
  SlotReader* slots_;
};

// The batches of one message. Each is read when it is asked for: tensors that are made and die one
// after the other use the same memory again, which a message's worth of them would not.
struct BatchReader {
  PyObject_HEAD Py_buffer data;  // let go of after the last batch
  PyObject* slots;               // of the worker
  size_t at, end;
  Py_ssize_t left;
};
bool is_batch_reader(PyObject* o);
PyObject* next_batch(BatchReader* reader);  // there must be one left

void init_batch_writer(PyObject* module);
void init_object_copies(PyObject* module);
void init_batch_stream(PyObject* module);

}  // namespace facula::python
