// The worker's end of its stream of batches, as far as every batch passes it: tasks, making batches
// of them and writing these down. Small batches are made in a microsecond, of which Python would
// take the most if it stood in between.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "python/batch_codec.h"
#include "python/batch_tasks.h"

namespace facula::python {

PyTypeObject* tasks_type = nullptr;

PyObject* caught() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
}

namespace {

PyObject* new_tasks(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&tasks_of(self)) Tasks;
  return self;
}

void free_tasks(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  tasks_of(self).~Tasks();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* append_task(PyObject* self, PyObject* task) {
  return guarded([&] {
    Tasks& t = tasks_of(self);
    t.entries.push_back({Ref::borrow(task)});
    ++t.count;
    return Py_NewRef(Py_None);
  });
}

// append_packed(data, size, item): a task for each `size` of the numbers in bytes, which take
// `item` bytes each; the last task may have fewer. With size 0 each number is one.
PyObject* append_packed(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* data;
    Py_ssize_t size, item;
    if (!PyArg_ParseTuple(args, "Snn:append_packed", &data, &size, &item)) throw PythonError{};
    if (size < 0) value_error("append_packed(): the size is ", size);
    if (item != 4 && item != 8) value_error("append_packed(): numbers have ", item, " bytes");
    Tasks& t = tasks_of(self);
    if (PyBytes_GET_SIZE(data) >= item) {
      t.entries.push_back({Ref::borrow(data), 0, size, item});
      t.count += t.entries.back().tasks();
    }
    return Py_NewRef(Py_None);
  });
}

// append_repeated(task, times)
PyObject* append_repeated(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* task;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(args, "On:append_repeated", &task, &times)) throw PythonError{};
    if (times <= 0) return Py_NewRef(Py_None);
    Tasks& t = tasks_of(self);
    t.entries.push_back({Ref::borrow(task), -1, 0, 0, times});
    t.count += times;
    return Py_NewRef(Py_None);
  });
}

// drop_until(type): drops tasks up to one of that type.
PyObject* drop_until(PyObject* self, PyObject* type) {
  return guarded([&] {
    Tasks& t = tasks_of(self);
    while (!t.entries.empty() && !t.starts_with(type)) {
      const Tasks::Entry dropped = std::move(t.entries.front());
      t.entries.pop_front();
      t.count -= dropped.tasks();
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* pop_task(PyObject* self, PyObject*) {
  return guarded([&] {
    if (tasks_of(self).entries.empty()) index_error("there are no tasks");
    return tasks_of(self).pop();
  });
}

// first(): the first task if it stands there by itself, else None.
PyObject* first_task(PyObject* self, PyObject*) {
  const auto& entries = tasks_of(self).entries;
  return Py_NewRef(entries.empty() || entries.front().at >= 0 ? Py_None
                                                              : entries.front().object.get());
}

// first_index(): the first task, whichever way it stands there.
PyObject* first_index(PyObject* self, PyObject*) {
  return guarded([&] {
    if (tasks_of(self).entries.empty()) index_error("there are no tasks");
    return tasks_of(self).first();
  });
}

Py_ssize_t count_tasks(PyObject* self) {
  return tasks_of(self).count;
}

PyObject* tasks_busy(PyObject* self, void*) {
  return PyBool_FromLong(tasks_of(self).busy);
}
PyGetSetDef tasks_properties[] = {{"busy", tasks_busy, nullptr, nullptr, nullptr}, {}};

PyMethodDef tasks_methods[] = {{"append", append_task, METH_O, nullptr},
                               {"append_packed", append_packed, METH_VARARGS, nullptr},
                               {"append_repeated", append_repeated, METH_VARARGS, nullptr},
                               {"drop_until", drop_until, METH_O, nullptr},
                               {"popleft", pop_task, METH_NOARGS, nullptr},
                               {"first", first_task, METH_NOARGS, nullptr},
                               {"first_index", first_index, METH_NOARGS, nullptr},
                               {}};
PyType_Slot tasks_slots[] = {{Py_tp_new, (void*)new_tasks},      {Py_tp_dealloc, (void*)free_tasks},
                             {Py_tp_methods, tasks_methods},     {Py_tp_getset, tasks_properties},
                             {Py_sq_length, (void*)count_tasks}, {0, nullptr}};
PyType_Spec tasks_spec = {"facula._C._Tasks", sizeof(PyTasks), 0, Py_TPFLAGS_DEFAULT, tasks_slots};

struct Piece {
  int64_t kind;
  int64_t batches;
  bool inside;  // in the shared memory, from `begin` to `end`; else in `data`
  size_t begin, end;
  std::string data;
};

constexpr size_t kMessageBytes = 17 << 16;  // of a slot for batches in their short form
constexpr size_t kFreshSlots = 32;          // that are made known with one message

// What has been made and not sent so far. Another thread may take it at any time, between batches
// or while one of them is being made; the GIL keeps them apart. Short forms are written to memory
// that the loader reads them from, as far as there is some.
struct Writer {
  size_t limit = 0;        // bytes of a batch in its short form
  int64_t small_kind = 0;  // of pieces that are such batches
  Ref marker;              // the type of what stands among the tasks and is none
  Ref slots_object;
  SlotWriter* slots = nullptr;
  int64_t slot = -1;              // the memory: one of the slots
  size_t used = 0;                // of the memory
  std::unique_ptr<char[]> spare;  // for a batch when there is no memory
  std::vector<Piece> pieces;
  size_t bytes = 0;
  size_t placed = 0;   // bytes in slots besides those
  double seconds = 0;  // spent on what is here
  double last = 0;     // spent on the last batch

  // Read without the GIL by whoever watches.
  std::atomic<int64_t> batches{0};
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> unwatched{false};
  std::mutex mutex;
  std::condition_variable wake;

  bool has_room() const { return slot >= 0 && used + BatchEncoder::room(limit) <= kMessageBytes; }
  char* place() {
    if (slot < 0) slot = slots->take(kMessageBytes);
    if (has_room()) return slots->data(slot) + used;
    if (!spare) spare.reset(new char[BatchEncoder::room(limit)]);
    return spare.get();
  }
  // Notes that a short form stands where place() said.
  void keep(size_t size) {
    if (!has_room()) {
      pieces.push_back({small_kind, 1, false, 0, 0, std::string(spare.get(), size)});
      return;
    }
    if (pieces.empty() || !pieces.back().inside)
      pieces.push_back({small_kind, 0, true, used, used, {}});
    ++pieces.back().batches;
    pieces.back().end = used += size;
  }
  void count(size_t size, double spent, int64_t made) {
    bytes += size;
    seconds += spent;
    batches.store(batches.load(std::memory_order_relaxed) + made);
    if (unwatched.load()) {
      std::lock_guard lock(mutex);
      unwatched = false;
      wake.notify_one();
    }
  }
};

struct PyWriter {
  PyObject_HEAD Writer w;
};
Writer& writer_of(PyObject* o) {
  return reinterpret_cast<PyWriter*>(o)->w;
}

PyObject* new_writer(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t limit;
    long long kind;
    PyObject *marker, *slots;
    if (!PyArg_ParseTuple(args, "nLOO:_BatchWriter", &limit, &kind, &marker, &slots))
      throw PythonError{};
    SlotWriter& found = slot_writer(slots);
    if (BatchEncoder::room(size_t(limit)) > kMessageBytes)
      value_error("_BatchWriter(): a batch of ", limit, " bytes does not fit into a message");
    PyObject* self = check(type->tp_alloc(type, 0));
    Writer& w = *new (&writer_of(self)) Writer;
    w.limit = size_t(limit);
    w.small_kind = kind;
    w.marker = Ref::borrow(marker);
    w.slots_object = Ref::borrow(slots);
    w.slots = &found;
    return self;
  });
}

void free_writer(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  writer_of(self).~Writer();
  type->tp_free(self);
  Py_DECREF(type);
}

// Sends off the tensors of a batch that lie in slots. The batch must be gone by then, whose end may
// run other threads, so its form is written to the memory after that.
size_t finish_placed(Writer& w, const BatchEncoder& encoder, const char* form, Ref batch) {
  std::string copied(form, encoder.size());
  batch = Ref();
  for (const auto& p : encoder.placed) {
    const int64_t slot = w.slots->sent(p.slot, p.bytes);
    std::memcpy(copied.data() + p.at, &slot, sizeof slot);
    w.placed += p.bytes;
  }
  std::memcpy(w.place(), copied.data(), copied.size());
  return copied.size();
}

// make(tasks, fetch, quick, patience, bytes): does tasks one after the other. None when it is time
// to send, when a marker comes, or when there are no more; else what is left to the caller: an
// exception, or a batch without a short form (in a list).
PyObject* make(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tasks_object, *fetch;
    double quick, patience;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "O!Oddn:make", tasks_type, &tasks_object, &fetch, &quick, &patience,
                          &most))
      throw PythonError{};
    Writer& w = writer_of(self);
    Tasks& tasks = tasks_of(tasks_object);
    double began = now();
    while (w.last <= quick && w.seconds <= patience && w.bytes <= size_t(most) &&
           (!w.batches || w.slots->fresh.size() < kFreshSlots) && tasks.count) {
      if (tasks.starts_with(w.marker.get())) break;
      Ref task(tasks.pop());
      Ref batch(PyObject_CallOneArg(fetch, task.get()));
      if (!batch) return caught();
      // Another thread may have taken the pieces, and the memory, meanwhile.
      char* const form = w.place();
      BatchEncoder encoder(form, w.limit, w.slots);
      const bool written = encoder.write(batch.get());
      size_t size = encoder.size();
      if (!encoder.placed.empty() && written) {
        task = Ref();
        size = finish_placed(w, encoder, form, std::move(batch));
      }
      const double ended = now();
      const double spent = ended - began;
      began = ended;
      w.last = spent;
      if (!written) {
        w.seconds += spent;
        Ref list(check(PyList_New(1)));
        PyList_SET_ITEM(list.get(), 0, batch.release());
        return list.release();
      }
      w.keep(size);
      w.count(size, spent, 1);
    }
    return Py_NewRef(Py_None);
  });
}

// _make_batches(tasks, fetch, made, hungry, quick, patience): does tasks one after the other and
// appends to the list `made`, which another thread may take from meanwhile, until a batch took
// longer than `quick`, all of them longer than `patience`, or the bytearray `hungry` holds 1.
// (None or an exception, how many, seconds of most of them)
PyObject* make_batches(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tasks_object, *fetch, *made, *hungry;
    double quick, patience;
    if (!PyArg_ParseTuple(args, "O!OO!O!dd:_make_batches", tasks_type, &tasks_object, &fetch,
                          &PyList_Type, &made, &PyByteArray_Type, &hungry, &quick, &patience))
      throw PythonError{};
    if (PyByteArray_GET_SIZE(hungry) != 1) value_error("_make_batches(): expected one flag");
    Tasks& tasks = tasks_of(tasks_object);
    if (tasks.busy) return check(Py_BuildValue("(Oid)", Py_None, 0, 0.0));
    const Busy busy(tasks);
    std::vector<double> times;
    const double begin = now();
    double last = begin;
    Ref error;
    while (tasks.count && (times.empty() || (times.back() <= quick && last - begin <= patience &&
                                             !*PyByteArray_AS_STRING(hungry)))) {
      Ref task(tasks.pop());
      Ref batch(call_in_worker(fetch, task.get()));
      if (!batch) {
        error = Ref(caught());
        break;
      }
      check(PyList_Append(made, batch.get()));
      const double ended = now();
      times.push_back(ended - last);
      last = ended;
    }
    // Some batches took longer because another thread held the GIL.
    double typical = 0;
    if (!times.empty()) {
      const auto middle = times.begin() + ptrdiff_t(times.size() / 2);
      std::nth_element(times.begin(), middle, times.end());
      typical = *middle;
    }
    return check(
        Py_BuildValue("(Ond)", error ? error.get() : Py_None, Py_ssize_t(times.size()), typical));
  });
}

// add(kind, data, batches, seconds): what Python has written.
PyObject* add(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long kind, batches;
    const char* data;
    Py_ssize_t size;
    double spent;
    if (!PyArg_ParseTuple(args, "Ly#Ld:add", &kind, &data, &size, &batches, &spent))
      throw PythonError{};
    Writer& w = writer_of(self);
    w.pieces.push_back({kind, batches, false, 0, 0, std::string(data, size_t(size))});
    w.last = std::max(w.last, spent);
    w.count(size_t(size), spent, batches);
    return Py_NewRef(Py_None);
  });
}

// take(copied): ([(kind, batches, data), ...], batches, seconds, bytes in slots, slot); nothing is
// left. The slot with the short forms goes along when more than `copied` bytes stand there, and
// data then is a pair of places in it; else it is used again, and -1 returned.
PyObject* take(PyObject* self, PyObject* most_copied) {
  return guarded([&]() -> PyObject* {
    Writer& w = writer_of(self);
    const bool away = w.used > size_t(index_of(most_copied));
    const char* memory = w.used ? w.slots->data(w.slot) : nullptr;
    std::vector<Piece> pieces;
    pieces.swap(w.pieces);
    const int64_t batches = w.batches.exchange(0);
    const double seconds = w.seconds;
    const size_t placed = w.placed;
    const int64_t slot = away ? std::exchange(w.slot, -1) : -1;
    ++w.taken;
    w.bytes = w.used = w.placed = 0;
    w.seconds = w.last = 0;
    Ref list(check(PyList_New(0)));
    for (const Piece& p : pieces) {
      const char* data = p.inside ? memory + p.begin : p.data.data();
      const size_t size = p.inside ? p.end - p.begin : p.data.size();
      Ref content(check(p.inside && away
                            ? Py_BuildValue("(nn)", Py_ssize_t(p.begin), Py_ssize_t(p.end))
                            : PyBytes_FromStringAndSize(data, Py_ssize_t(size))));
      Ref piece(
          check(Py_BuildValue("(LLO)", (long long)p.kind, (long long)p.batches, content.get())));
      check(PyList_Append(list.get(), piece.get()));
    }
    return check(Py_BuildValue("(OLdnL)", list.get(), (long long)batches, seconds,
                               Py_ssize_t(placed), (long long)slot));
  });
}

// watch(seconds): returns when something is there that nobody has taken for so long. Runs without
// the GIL, which the thread that makes batches would have to hand over and wait for.
PyObject* watch(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    double seconds;
    if (!PyArg_ParseTuple(args, "d:watch", &seconds)) throw PythonError{};
    Writer& w = writer_of(self);
    auto without_gil = std::make_unique<WithoutGil>();
    for (int idle = 0;;) {
      const uint64_t seen = w.taken;
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      if (w.taken != seen) {
        idle = 0;
      } else if (w.batches > 0) {
        break;
      } else if (++idle == 20) {
        std::unique_lock lock(w.mutex);
        w.unwatched = true;
        if (w.batches > 0) w.unwatched = false;  // it came before count() could see that
        w.wake.wait(lock, [&] { return !w.unwatched; });
        idle = 0;
      }
    }
    without_gil.reset();
    return Py_NewRef(Py_None);
  });
}

int holds_any(PyObject* self) {
  return writer_of(self).batches > 0;
}

PyMethodDef writer_methods[] = {{"make", make, METH_VARARGS, nullptr},
                                {"add", add, METH_VARARGS, nullptr},
                                {"take", take, METH_O, nullptr},
                                {"watch", watch, METH_VARARGS, nullptr},
                                {}};
PyType_Slot writer_slots[] = {{Py_tp_new, (void*)new_writer},
                              {Py_tp_dealloc, (void*)free_writer},
                              {Py_tp_methods, writer_methods},
                              {Py_nb_bool, (void*)holds_any},
                              {0, nullptr}};
PyType_Spec writer_spec = {"facula._C._BatchWriter", sizeof(PyWriter), 0, Py_TPFLAGS_DEFAULT,
                           writer_slots};

}  // namespace

void init_batch_writer(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_make_batches", make_batches, METH_VARARGS,
       "_make_batches(tasks, fetch, made, hungry, quick, patience): makes batches in a thread."},
      {}};
  add_functions(module, functions);
  tasks_type = add_type(module, tasks_spec, "_Tasks");
  add_type(module, writer_spec, "_BatchWriter");
}

}  // namespace facula::python
