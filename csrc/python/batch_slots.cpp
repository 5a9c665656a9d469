#include "python/batch_slots.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/shared_memory.h"
#include "cpu/stream.h"

namespace facula::python {
namespace {

constexpr size_t kMostLent = 32;
constexpr size_t kMostFresh = 64;        // descriptors that wait for the next message
constexpr size_t kManySlots = 256;       // more than that are made for large tensors alone
constexpr size_t kLargeBytes = 1 << 18;  // each mapping is one of 65530 that Linux allows
constexpr size_t kKeptSlots = 4, kKeptBytes = 1 << 26;  // free ones that the system does not get

void give_back(Storage* s) {
  auto* node = static_cast<Returns::Node*>(s->context);
  // A node that kept what it lies in would keep it for good.
  const std::shared_ptr<Returns> to = std::move(node->to);
  node->mapping.reset();
  to->push(node);
}

void give_back_fixed(Storage* s) {
  give_back(s);
}

Storage* storage_in(int64_t slot, const std::shared_ptr<Mapping>& mapping, size_t bytes,
                    const std::shared_ptr<Returns>& returns) {
  auto node = std::make_unique<Returns::Node>(Returns::Node{slot, mapping, returns});
  Storage* s = borrow_storage(mapping->data, bytes, Device{}, give_back, node.get());
  node.release();
  return s;
}

}  // namespace

void copy_to_slot(char* to, const char* from, size_t bytes, size_t whole) {
  constexpr size_t kStreamed = 1 << 20;
  if (whole >= kStreamed) stream_copy(to, from, int64_t(bytes));
  else std::memcpy(to, from, bytes);
}

Mapping::Mapping(int descriptor, size_t bytes) : size(bytes) {
  void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (found == MAP_FAILED)
    runtime_error("cannot map ", bytes, " bytes of shared memory: ", std::strerror(errno));
  data = static_cast<char*>(found);
}
Mapping::~Mapping() {
  munmap(data, size);
}

void release_slot_buffer(Storage* s) {
  release_buffer(s);
}

bool may_leave_slot(const Storage* s) {
  return s->release == give_back || s->release == release_slot_buffer;
}

void leave_slot(Storage* s) {
  Storage* other = allocate_storage(s->nbytes, s->device);
  if (s->nbytes) std::memcpy(other->data, s->data, s->nbytes);
  std::swap(s->data, other->data);
  std::swap(s->release, other->release);
  std::swap(s->context, other->context);
  s->resizable = true;
  other->unref();
}

void stay_in_slot(Storage* s) {
  if (s->release == give_back) s->release = give_back_fixed;
  if (s->release == release_slot_buffer) s->release = release_buffer;
}

// ---- in the worker

SlotWriter::~SlotWriter() {
  for (const Fresh& f : fresh) close(f.descriptor);
}

void SlotWriter::settle() {
  ended_->for_each([&](int64_t number) {
    std::erase(lent_, number);
    Slot& slot = slots_.at(number);
    if (slot.state == State::Sending) slot.state = State::Away;
    else set_free(number, slot);
  });
}

void SlotWriter::set_free(int64_t number, Slot& slot) {
  slot.state = State::Free;
  free_.push_back({number, slot.mapping->size});
  free_bytes_ += slot.mapping->size;
}

int64_t SlotWriter::take(size_t bytes, bool make) {
  settle();
  static const auto page = size_t(sysconf(_SC_PAGESIZE));
  const size_t size = (std::max<size_t>(bytes, 1) + page - 1) / page * page;
  // The smallest that fits, and of those the one that was in use last, which may be in the cache.
  size_t best = free_.size(), best_size = 4 * size + kLargeBytes;
  for (size_t i = free_.size(); i-- > 0 && best_size != size;) {
    if (free_[i].size >= size && free_[i].size < best_size) {
      best = i;
      best_size = free_[i].size;
    }
  }
  if (best < free_.size()) {
    const int64_t number = free_[best].number;
    free_.erase(free_.begin() + ptrdiff_t(best));
    free_bytes_ -= best_size;
    slots_.at(number).state = State::Away;
    return number;
  }
  if (!make) return -1;
  fresh.reserve(fresh.size() + 1);
  const int descriptor = make_shared_file(size);
  try {
    slots_.emplace(count_, Slot{std::make_shared<Mapping>(descriptor, size), State::Away});
  } catch (...) {
    close(descriptor);
    throw;
  }
  fresh.push_back({count_, size, descriptor});
  return count_++;
}

bool SlotWriter::may_make(size_t bytes) const {
  return fresh.size() < kMostFresh && (bytes >= kLargeBytes || slots_.size() < kManySlots);
}

Tensor SlotWriter::tensor(IntSpan sizes, DType dtype) {
  Dims strides = contiguous_strides(sizes);
  const size_t bytes = checked_extent(sizes, strides, dtype);
  if (lent() >= kMostLent) return {};
  const int64_t number = take(bytes, may_make(bytes));
  if (number < 0) return {};
  Slot& slot = slots_.at(number);
  Storage* s = storage_in(number, slot.mapping, bytes, ended_);
  slot.state = State::Lent;
  lent_.push_back(number);
  return tensor_on_storage(s, sizes, strides, 0, dtype);
}

int64_t SlotWriter::send(const void* address) {
  settle();
  for (int64_t number : lent_) {
    Slot& slot = slots_.at(number);
    if (slot.state == State::Lent && slot.mapping->data == address) {
      slot.state = State::Sending;
      return number;
    }
  }
  return -1;
}

int64_t SlotWriter::sent(int64_t number, size_t bytes) {
  settle();
  Slot& slot = slots_.at(number);
  if (slot.state != State::Sending) return number;
  const std::shared_ptr<Mapping> mapping = slot.mapping;
  slot.state = State::Lent;
  const int64_t other = take(bytes);
  std::memcpy(data(other), mapping->data, bytes);
  return other;
}

void SlotWriter::cancel(int64_t number) {
  settle();
  Slot& slot = slots_.at(number);
  if (slot.state == State::Sending) slot.state = State::Lent;
  else release(number);
}

void SlotWriter::release(int64_t number) {
  const auto found = slots_.find(number);
  if (found != slots_.end() && found->second.state == State::Away) set_free(number, found->second);
}

std::vector<int64_t> SlotWriter::surplus() {
  settle();
  std::vector<int64_t> dropped;
  if (free_.size() <= kKeptSlots || (free_bytes_ <= kKeptBytes && free_.size() <= kManySlots))
    return dropped;
  std::stable_sort(free_.begin(), free_.end(),
                   [](const FreeSlot& a, const FreeSlot& b) { return a.size > b.size; });
  size_t kept = 0, total = 0;
  for (const FreeSlot& f : free_) {
    total += f.size;
    if (kept >= kKeptSlots && (total > kKeptBytes || kept >= kManySlots)) {
      dropped.push_back(f.number);
      free_bytes_ -= f.size;
      slots_.erase(f.number);
    } else {
      free_[kept++] = f;
    }
  }
  free_.resize(kept);
  return dropped;
}

// ---- in the loader

void SlotReader::open(int64_t number, int descriptor, size_t bytes) {
  slots_[number] = std::make_shared<Mapping>(descriptor, bytes);
}

size_t SlotReader::bytes(int64_t number) const {
  const auto found = slots_.find(number);
  if (found == slots_.end()) value_error("there is no slot ", number);
  return found->second->size;
}

Storage* SlotReader::storage(int64_t number, size_t bytes) {
  if (bytes > this->bytes(number))
    value_error("a tensor of ", bytes, " bytes does not fit into slot ", number);
  return storage_in(number, slots_.at(number), bytes, released_);
}

// ---- for Python

namespace {

template <class T>
struct Holder {
  PyObject_HEAD T* held;
};
template <class T>
T& held_in(PyObject* o) {
  return *reinterpret_cast<Holder<T>*>(o)->held;
}
template <class T>
PyObject* make_holder(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref self(check(type->tp_alloc(type, 0)));
    reinterpret_cast<Holder<T>*>(self.get())->held = new T;
    return self.release();
  });
}
template <class T>
void free_holder(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Holder<T>*>(self)->held;
  type->tp_free(self);
  Py_DECREF(type);
}
template <class T>
Py_ssize_t size_of_held(PyObject* self) {
  return Py_ssize_t(held_in<T>(self).size());
}

PyTypeObject *writer_type = nullptr, *reader_type = nullptr;
thread_local SlotWriter* here = nullptr;

PyObject* numbers(const std::vector<int64_t>& found) {
  Ref list(check(PyList_New(0)));
  for (int64_t n : found) {
    Ref number(check(PyLong_FromLongLong(n)));
    check(PyList_Append(list.get(), number.get()));
  }
  return list.release();
}

template <class F>
PyObject* for_numbers(PyObject* list, F&& f) {
  return guarded([&] {
    Ref items(check(PySequence_Fast(list, "expected a list of slots")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      f(index_of(PySequence_Fast_GET_ITEM(items.get(), i)));
    return Py_NewRef(Py_None);
  });
}

// lend_here(on): whether large batches of this thread are stacked in these slots.
PyObject* lend_here(PyObject* self, PyObject* on) {
  here = on == Py_True ? &held_in<SlotWriter>(self) : nullptr;
  return Py_NewRef(Py_None);
}

// place(buffers): (slot, [where each of them begins])
PyObject* place(PyObject* self, PyObject* list) {
  return guarded([&]() -> PyObject* {
    constexpr size_t kAlignment = 64;
    SlotWriter& w = held_in<SlotWriter>(self);
    struct Buffers : std::vector<Py_buffer> {
      ~Buffers() {
        for (Py_buffer& b : *this) PyBuffer_Release(&b);
      }
    } buffers;
    Ref items(check(PySequence_Fast(list, "expected a list of buffers")));
    std::vector<int64_t> begins;
    size_t end = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      Py_buffer b;
      check(PyObject_GetBuffer(PySequence_Fast_GET_ITEM(items.get(), i), &b, PyBUF_SIMPLE));
      buffers.push_back(b);
      begins.push_back(int64_t(end));
      end += (size_t(b.len) + kAlignment - 1) / kAlignment * kAlignment;
    }
    const int64_t number = w.take(end);
    for (size_t i = 0; i < buffers.size(); ++i)
      std::memcpy(w.data(number) + begins[i], buffers[i].buf, size_t(buffers[i].len));
    Ref places(numbers(begins));
    return check(Py_BuildValue("(LO)", (long long)number, places.get()));
  });
}

PyObject* send(PyObject* self, PyObject* address) {
  return guarded([&] {
    void* at = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) throw PythonError{};
    return check(PyLong_FromLongLong(held_in<SlotWriter>(self).send(at)));
  });
}

PyObject* sent(PyObject* self, PyObject* args) {
  return guarded([&] {
    long long number;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "Ln:sent", &number, &bytes)) throw PythonError{};
    return check(PyLong_FromLongLong(held_in<SlotWriter>(self).sent(number, size_t(bytes))));
  });
}

PyObject* cancel(PyObject* self, PyObject* list) {
  return for_numbers(list, [&](int64_t number) { held_in<SlotWriter>(self).cancel(number); });
}
PyObject* release(PyObject* self, PyObject* list) {
  return for_numbers(list, [&](int64_t number) { held_in<SlotWriter>(self).release(number); });
}
PyObject* surplus(PyObject* self, PyObject*) {
  return guarded([&] { return numbers(held_in<SlotWriter>(self).surplus()); });
}

// take_fresh(): [(slot, bytes, descriptor)], of which the caller closes the descriptors.
PyObject* take_fresh(PyObject* self, PyObject*) {
  return guarded([&] {
    auto& fresh = held_in<SlotWriter>(self).fresh;
    Ref list(check(PyList_New(0)));
    for (const auto& f : fresh) {
      Ref entry(
          check(Py_BuildValue("(Lni)", (long long)f.number, Py_ssize_t(f.size), f.descriptor)));
      check(PyList_Append(list.get(), entry.get()));
    }
    fresh.clear();
    return list.release();
  });
}

PyObject* count_lent(PyObject* self, void*) {
  return PyLong_FromSize_t(held_in<SlotWriter>(self).lent());
}
PyObject* count_free(PyObject* self, void*) {
  return PyLong_FromSize_t(held_in<SlotWriter>(self).free());
}

// _slot_tensor(sizes, dtype): a tensor in a slot, or None where there are no slots.
PyObject* slot_tensor(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *sizes, *dtype;
    if (!PyArg_ParseTuple(args, "O!O:_slot_tensor", &PyTuple_Type, &sizes, &dtype))
      throw PythonError{};
    if (!is_dtype(dtype)) type_error("expected facula.dtype, got ", type_name(dtype));
    SlotWriter* slots = slots_here();
    if (!slots) return Py_NewRef(Py_None);
    Dims dims;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); ++i)
      dims.push_back(index_of(PyTuple_GET_ITEM(sizes, i)));
    return wrap_or_none(slots->tensor(dims, dtype_of(dtype)));
  });
}

PyObject* has_slots(PyObject*, PyObject*) {
  return PyBool_FromLong(slots_here() != nullptr);
}

// open(slot, bytes, descriptor), which stays the caller's.
PyObject* open_slot(PyObject* self, PyObject* args) {
  return guarded([&] {
    long long number;
    Py_ssize_t bytes;
    int descriptor;
    if (!PyArg_ParseTuple(args, "Lni:open", &number, &bytes, &descriptor)) throw PythonError{};
    held_in<SlotReader>(self).open(number, descriptor, size_t(bytes));
    return Py_NewRef(Py_None);
  });
}

// block(slot): its memory; the slot is free again when nobody refers to that.
PyObject* block(PyObject* self, PyObject* number) {
  return guarded([&] {
    SlotReader& r = held_in<SlotReader>(self);
    const int64_t n = index_of(number);
    Storage* s = r.storage(n, r.bytes(n));
    PyObject* o = wrap_storage(s);
    s->unref();
    return o;
  });
}

PyObject* take_released(PyObject* self, PyObject*) {
  return guarded([&] {
    std::vector<int64_t> found;
    held_in<SlotReader>(self).released().for_each([&](int64_t slot) { found.push_back(slot); });
    std::reverse(found.begin(), found.end());  // those that were in use last come last
    return numbers(found);
  });
}

PyObject* forget(PyObject* self, PyObject* list) {
  return for_numbers(list, [&](int64_t number) { held_in<SlotReader>(self).forget(number); });
}

PyMethodDef writer_methods[] = {{"lend_here", lend_here, METH_O, nullptr},
                                {"place", place, METH_O, nullptr},
                                {"send", send, METH_O, nullptr},
                                {"sent", sent, METH_VARARGS, nullptr},
                                {"cancel", cancel, METH_O, nullptr},
                                {"release", release, METH_O, nullptr},
                                {"surplus", surplus, METH_NOARGS, nullptr},
                                {"take_fresh", take_fresh, METH_NOARGS, nullptr},
                                {}};
PyGetSetDef writer_properties[] = {{"lent", count_lent, nullptr, nullptr, nullptr},
                                   {"free", count_free, nullptr, nullptr, nullptr},
                                   {}};
PyMethodDef reader_methods[] = {{"open", open_slot, METH_VARARGS, nullptr},
                                {"block", block, METH_O, nullptr},
                                {"take_released", take_released, METH_NOARGS, nullptr},
                                {"forget", forget, METH_O, nullptr},
                                {}};
PyType_Slot writer_slots[] = {{Py_tp_new, (void*)make_holder<SlotWriter>},
                              {Py_tp_dealloc, (void*)free_holder<SlotWriter>},
                              {Py_tp_methods, writer_methods},
                              {Py_tp_getset, writer_properties},
                              {Py_sq_length, (void*)size_of_held<SlotWriter>},
                              {0, nullptr}};
PyType_Slot reader_slots[] = {{Py_tp_new, (void*)make_holder<SlotReader>},
                              {Py_tp_dealloc, (void*)free_holder<SlotReader>},
                              {Py_tp_methods, reader_methods},
                              {Py_sq_length, (void*)size_of_held<SlotReader>},
                              {0, nullptr}};
PyType_Spec writer_spec = {"facula._C._SlotWriter", sizeof(Holder<SlotWriter>), 0,
                           Py_TPFLAGS_DEFAULT, writer_slots};
PyType_Spec reader_spec = {"facula._C._SlotReader", sizeof(Holder<SlotReader>), 0,
                           Py_TPFLAGS_DEFAULT, reader_slots};
PyMethodDef functions[] = {{"_slot_tensor", slot_tensor, METH_VARARGS,
                            "_slot_tensor(sizes, dtype): a tensor in memory that a worker shares "
                            "with its loader, or None."},
                           {"_has_slots", has_slots, METH_NOARGS,
                            "_has_slots(): whether this thread may get such memory."},
                           {}};

}  // namespace

SlotWriter* slots_here() {
  return here && here->is_ours() ? here : nullptr;
}
SlotWriter& slot_writer(PyObject* o) {
  if (Py_TYPE(o) != writer_type) type_error("expected _SlotWriter, got ", type_name(o));
  return held_in<SlotWriter>(o);
}
SlotReader& slot_reader(PyObject* o) {
  if (Py_TYPE(o) != reader_type) type_error("expected _SlotReader, got ", type_name(o));
  return held_in<SlotReader>(o);
}

void init_batch_slots(PyObject* module) {
  writer_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&writer_spec)));
  reader_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&reader_spec)));
  check(PyModule_AddObjectRef(module, "_SlotWriter", (PyObject*)writer_type));
  check(PyModule_AddObjectRef(module, "_SlotReader", (PyObject*)reader_type));
  add_functions(module, functions);
}

}  // namespace facula::python
