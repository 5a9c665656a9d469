// The two ends of a worker's stream of batches, as far as every batch passes them: making batches
// and writing them down in the worker, reading them in turn in the loader. Small batches are made
// in a microsecond, of which Python would take the most if it stood in between.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "python/batch_codec.h"

namespace facula::python {
namespace {

double now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

// ---- in the worker

// What is to be done: indices of batches, one by one or packed, and markers among them. A batch of
// packed ones becomes a list when its turn comes: thousands of lists would keep the garbage
// collector busy.
struct Tasks {
  struct Entry {
    Ref object;                    // the task, or bytes with numbers
    Py_ssize_t at = -1, size = 0;  // in those: the next number, and numbers in a batch, 0 for none
    Py_ssize_t item = 0;           // bytes of a number: 4 or 8
    Py_ssize_t times = 1;          // that a task stands here

    Py_ssize_t tasks() const {
      if (at < 0) return times;
      const Py_ssize_t left = PyBytes_GET_SIZE(object.get()) / item - at;
      return size ? (left + size - 1) / size : left;
    }
  };
  std::deque<Entry> entries;
  Py_ssize_t count = 0;
  bool busy = false;  // somebody makes a batch of one of them

  // The next task, of which there must be one.
  PyObject* first() {
    Entry& e = entries.front();
    if (e.at < 0) return Py_NewRef(e.object.get());
    const auto total = PyBytes_GET_SIZE(e.object.get()) / e.item;
    const char* data = PyBytes_AS_STRING(e.object.get());
    auto number = [&](Py_ssize_t i) {
      const char* from = data + (e.at + i) * e.item;
      int32_t narrow;
      int64_t wide;
      if (e.item == 8) std::memcpy(&wide, from, sizeof wide);
      else wide = (std::memcpy(&narrow, from, sizeof narrow), narrow);
      return check(PyLong_FromLongLong(wide));
    };
    Ref task;
    if (e.size == 0) {
      task = Ref(number(0));
    } else {
      const Py_ssize_t n = std::min(e.size, total - e.at);
      task = Ref(check(PyList_New(n)));
      for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(task.get(), i, number(i));
    }
    return task.release();
  }
  PyObject* pop() {
    Entry& e = entries.front();
    Ref task(first());
    --count;
    if (e.at < 0) --e.times;
    else e.at += std::max<Py_ssize_t>(e.size, 1);
    if (e.item ? e.at * e.item >= PyBytes_GET_SIZE(e.object.get()) : e.times == 0)
      entries.pop_front();
    return task.release();
  }
  void put_back(Ref task) {
    entries.push_front({std::move(task)});
    ++count;
  }
  bool starts_with(PyObject* type) const {
    return !entries.empty() && entries.front().at < 0 &&
           reinterpret_cast<PyObject*>(Py_TYPE(entries.front().object.get())) == type;
  }
};

struct PyTasks {
  PyObject_HEAD Tasks t;
};
Tasks& tasks_of(PyObject* o) {
  return reinterpret_cast<PyTasks*>(o)->t;
}

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
PyTypeObject* tasks_type = nullptr;

// While it lasts, tasks are done by the thread that made it.
struct Busy {
  explicit Busy(Tasks& t) : tasks(t) { tasks.busy = true; }
  ~Busy() { tasks.busy = false; }
  Busy(const Busy&) = delete;
  Tasks& tasks;
};

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

// The exception that is set, as an object; others than Exception (an interrupt) go on their way.
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

// ---- in the loader

// What code of this thread finds out about the worker that it runs in: a tuple, or null outside of
// workers.
thread_local PyObject* acting_as = nullptr;

// _act_as(what): sets it, or takes it away with None, and returns what it was.
PyObject* act_as(PyObject*, PyObject* what) {
  PyObject* before = acting_as;
  acting_as = what == Py_None ? nullptr : Py_NewRef(what);
  return before ? before : Py_NewRef(Py_None);
}
PyObject* get_acting_as(PyObject*, PyObject*) {
  return Py_NewRef(acting_as ? acting_as : Py_None);
}

// Batches of a worker that the loader makes itself. What may be made in a thread of the worker
// comes first (`made`, and tasks that are busy). A batch that fails stays a task.
struct PyOwn {
  PyObject_HEAD PyObject *tasks, *made, *as, *fetch, *error;

  bool ready() const {
    const Tasks& t = tasks_of(tasks);
    return fetch != Py_None && error == Py_None && !t.busy && t.count && !PyList_GET_SIZE(made);
  }
  // Null when it failed; what is no Exception (an interrupt) goes on its way.
  PyObject* next() {
    Tasks& t = tasks_of(tasks);
    Ref kept = Ref::borrow(reinterpret_cast<PyObject*>(this));
    const Busy busy(t);
    Ref task(t.pop()), call = Ref::borrow(fetch);
    PyObject* before = std::exchange(acting_as, as == Py_None ? acting_as : as);
    PyObject* batch = call_in_worker(call.get(), task.get());
    acting_as = before;
    if (!batch) {
      Ref caught_error(caught());
      Py_SETREF(error, caught_error.release());
      t.put_back(std::move(task));
    }
    return batch;
  }
};
PyOwn* own_of(PyObject* o) {
  return reinterpret_cast<PyOwn*>(o);
}
PyTypeObject* own_type = nullptr;

// _OwnBatches(tasks, made, as): `as` is for _act_as() while batches are made.
PyObject* new_own(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *tasks, *made, *as;
    if (!PyArg_ParseTuple(args, "O!O!O:_OwnBatches", tasks_type, &tasks, &PyList_Type, &made, &as))
      throw PythonError{};
    PyObject* self = check(type->tp_alloc(type, 0));
    PyOwn& own = *own_of(self);
    own.tasks = Py_NewRef(tasks);
    own.made = Py_NewRef(made);
    own.as = Py_NewRef(as);
    own.fetch = Py_NewRef(Py_None);
    own.error = Py_NewRef(Py_None);
    return self;
  });
}

int traverse_own(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  PyOwn& own = *own_of(self);
  for (PyObject* o : {own.tasks, own.made, own.as, own.fetch, own.error}) Py_VISIT(o);
  return 0;
}

int clear_own(PyObject* self) {
  PyOwn& own = *own_of(self);
  for (PyObject** o : {&own.as, &own.fetch, &own.error})
    Py_XDECREF(std::exchange(*o, Py_NewRef(Py_None)));
  return 0;
}

void free_own(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyOwn& own = *own_of(self);
  for (PyObject* o : {own.tasks, own.made, own.as, own.fetch, own.error}) Py_XDECREF(o);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef own_members[] = {{"tasks", T_OBJECT, offsetof(PyOwn, tasks), READONLY, nullptr},
                             {"fetch", T_OBJECT, offsetof(PyOwn, fetch), 0, nullptr},
                             {"error", T_OBJECT, offsetof(PyOwn, error), 0, nullptr},
                             {}};
PyType_Slot own_slots[] = {{Py_tp_new, (void*)new_own},           {Py_tp_dealloc, (void*)free_own},
                           {Py_tp_traverse, (void*)traverse_own}, {Py_tp_clear, (void*)clear_own},
                           {Py_tp_members, own_members},          {0, nullptr}};
PyType_Spec own_spec = {"facula._C._OwnBatches", sizeof(PyOwn), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, own_slots};

// Whose batches come, in which order. What is not simply the next batch of a reader is left to the
// method `_next_after_turns` of the subclass.
struct Turns {
  std::deque<uint32_t> order;    // the worker of each batch to come
  std::vector<Ref> readers;      // of each worker
  std::vector<Py_ssize_t> came;  // from each worker
  Py_ssize_t allowed = 0;        // batches until the subclass is asked in any case

  // Of the batches that the loader makes itself, some are timed, and so is what the program does
  // after them.
  uint32_t made_here = 0;
  double last = 0;   // seconds of the last one that was timed
  double ended = 0;  // when the last one was made, if that was timed
  std::vector<double> seconds, pauses;
  bool slow = false;  // one of them was

  void note(std::vector<double>& times, double value) const {
    constexpr size_t kMost = 256;
    if (times.size() < kMost) times.push_back(value);
    else times[made_here % kMost] = value;
  }

  PyObject* make_here(PyOwn& own) {
    constexpr uint32_t kEach = 8;
    constexpr double kQuick = 5e-6, kSlow = 2e-3;
    if (ended != 0) {
      note(pauses, now() - std::exchange(ended, 0));
    }
    if (made_here++ % kEach && last < kQuick) return own.next();
    const double began = now();
    PyObject* batch = own.next();
    ended = now();
    last = ended - began;
    note(seconds, last);
    if (last > kSlow) {
      slow = true;
      allowed = 1;  // this one
    }
    return batch;
  }
};

struct PyStream {
  PyObject_HEAD Turns t;
};
Turns& turns_of(PyObject* o) {
  return reinterpret_cast<PyStream*>(o)->t;
}

PyObject* new_stream(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&turns_of(self)) Turns;
  return self;
}

void free_stream(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  turns_of(self).~Turns();
  type->tp_free(self);
  Py_DECREF(type);
}

// The next batch of a worker; null when it must be waited for. A reader is null, one of messages,
// a list whose last item is the next batch, or makes batches itself.
PyObject* next_of(Turns& turns, PyObject* reader) {
  if (!reader) return nullptr;
  if (Py_TYPE(reader) == own_type) {
    PyOwn* own = own_of(reader);
    return own->ready() ? turns.make_here(*own) : nullptr;
  }
  if (!PyList_CheckExact(reader)) {
    auto* r = reinterpret_cast<BatchReader*>(reader);
    return r->left > 0 ? next_batch(r) : nullptr;
  }
  const Py_ssize_t n = PyList_GET_SIZE(reader);
  if (!n) return nullptr;
  PyObject* batch = Py_NewRef(PyList_GET_ITEM(reader, n - 1));
  check(PyList_SetSlice(reader, n - 1, n, nullptr));
  return batch;
}

PyObject* next_in_turn(PyObject* self) {
  return guarded([&]() -> PyObject* {
    static PyObject* otherwise = PyUnicode_InternFromString("_next_after_turns");
    Turns& t = turns_of(self);
    if (t.allowed > 0 && !t.order.empty()) {
      const uint32_t number = t.order.front();
      auto count = [&] {
        t.order.pop_front();
        --t.allowed;
        ++t.came[number];
      };
      PyObject* batch;
      try {
        batch = next_of(t, t.readers[number].get());
      } catch (const PythonError&) {  // nobody will make it again
        count();
        throw;
      }
      if (batch) {
        count();
        return batch;
      }
    }
    return PyObject_CallMethodNoArgs(self, otherwise);
  });
}

// _allow(readers, count): so many batches may be taken from readers, one for each worker.
PyObject* allow(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* readers;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!n:_allow", &PyList_Type, &readers, &count)) throw PythonError{};
    std::vector<Ref> found;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(readers); ++i) {
      PyObject* reader = PyList_GET_ITEM(readers, i);
      const bool known =
          is_batch_reader(reader) || PyList_CheckExact(reader) || Py_TYPE(reader) == own_type;
      found.push_back(known ? Ref::borrow(reader) : Ref());
    }
    Turns& t = turns_of(self);
    for (uint32_t number : t.order)
      if (number >= found.size()) index_error("_allow(): there is no worker ", number);
    t.came.resize(found.size());
    t.readers.swap(found);
    t.allowed = count;
    return Py_NewRef(Py_None);
  });
}

// _plan(workers, count): so many more batches, of these workers in turn.
PyObject* plan(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* workers;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!n:_plan", &PyList_Type, &workers, &count)) throw PythonError{};
    std::vector<uint32_t> numbers;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(workers); ++i)
      numbers.push_back(uint32_t(index_of(PyList_GET_ITEM(workers, i))));
    Turns& t = turns_of(self);
    t.allowed = 0;
    for (Py_ssize_t i = 0; i < count && !numbers.empty(); ++i)
      t.order.push_back(numbers[size_t(i) % numbers.size()]);
    return Py_NewRef(Py_None);
  });
}

PyObject* planned(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(turns_of(self).order.size());
}

// _first_planned(): the worker of the next batch, or -1.
PyObject* first_planned(PyObject* self, PyObject*) {
  const auto& order = turns_of(self).order;
  return PyLong_FromLongLong(order.empty() ? -1 : order.front());
}

// _unplan(worker, all): drops the next batch of a worker, or all of them.
PyObject* unplan(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned int number;
    int all;
    if (!PyArg_ParseTuple(args, "Ip:_unplan", &number, &all)) throw PythonError{};
    auto& order = turns_of(self).order;
    const auto found = std::find(order.begin(), order.end(), number);
    if (all) order.erase(std::remove(found, order.end(), number), order.end());
    else if (found != order.end()) order.erase(found);
    return Py_NewRef(Py_None);
  });
}

// _turns_taken(): how many batches came from each worker since the last call.
PyObject* turns_taken(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Turns& t = turns_of(self);
    Ref list(check(PyList_New(Py_ssize_t(t.came.size()))));
    for (size_t i = 0; i < t.came.size(); ++i) {
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), check(PyLong_FromSsize_t(t.came[i])));
      t.came[i] = 0;
    }
    return list.release();
  });
}

// _make_here(own): (batch,), or None where it failed, or another thread has to make it.
PyObject* make_here(PyObject* self, PyObject* own) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(own) != own_type) type_error("expected _OwnBatches, got ", type_name(own));
    if (!own_of(own)->ready()) return Py_NewRef(Py_None);
    Ref batch(turns_of(self).make_here(*own_of(own)));
    return batch ? check(PyTuple_Pack(1, batch.get())) : Py_NewRef(Py_None);
  });
}

// _times_here(): seconds of a batch that was made here, and of what the program did before the
// next, each None if there was none since the last call.
PyObject* times_here(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Turns& t = turns_of(self);
    // The mean of those from `first` on, in their order, to before `end`.
    auto mean = [](std::vector<double>& times, auto&& first, auto&& end) {
      std::sort(times.begin(), times.end());
      const size_t a = first(times.size()), b = end(times.size());
      double sum = 0;
      for (size_t i = a; i < b; ++i) sum += times[i];
      times.clear();
      return Ref(a < b ? check(PyFloat_FromDouble(sum / double(b - a))) : Py_NewRef(Py_None));
    };
    // Other programs may have had the processor meanwhile: the longest do not count.
    Ref made = mean(
        t.seconds, [](size_t) { return size_t(0); }, [](size_t n) { return n - (n + 12) / 16; });
    Ref paused =
        mean(t.pauses, [](size_t n) { return n / 2; }, [](size_t n) { return n ? n / 2 + 1 : 0; });
    t.slow = false;
    return check(PyTuple_Pack(2, made.get(), paused.get()));
  });
}

// _slow_here(): whether a batch took long since the last call of _times_here().
PyObject* slow_here(PyObject* self, PyObject*) {
  return PyBool_FromLong(turns_of(self).slow);
}

// _pause_ends(): what the program does next is no pause between batches.
PyObject* pause_ends(PyObject* self, PyObject*) {
  turns_of(self).ended = 0;
  return Py_NewRef(Py_None);
}

PyMethodDef stream_methods[] = {{"_allow", allow, METH_VARARGS, nullptr},
                                {"_plan", plan, METH_VARARGS, nullptr},
                                {"_planned", planned, METH_NOARGS, nullptr},
                                {"_first_planned", first_planned, METH_NOARGS, nullptr},
                                {"_unplan", unplan, METH_VARARGS, nullptr},
                                {"_turns_taken", turns_taken, METH_NOARGS, nullptr},
                                {"_make_here", make_here, METH_O, nullptr},
                                {"_times_here", times_here, METH_NOARGS, nullptr},
                                {"_slow_here", slow_here, METH_NOARGS, nullptr},
                                {"_pause_ends", pause_ends, METH_NOARGS, nullptr},
                                {}};
PyType_Slot stream_slots[] = {
    {Py_tp_new, (void*)new_stream},         {Py_tp_dealloc, (void*)free_stream},
    {Py_tp_iter, (void*)PyObject_SelfIter}, {Py_tp_iternext, (void*)next_in_turn},
    {Py_tp_methods, stream_methods},        {0, nullptr}};
PyType_Spec stream_spec = {"facula._C._BatchStream", sizeof(PyStream), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, stream_slots};

// The module keeps it.
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name) {
  Ref type(check(PyType_FromSpec(&spec)));
  check(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.get());
}

}  // namespace

void init_batch_stream(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_make_batches", make_batches, METH_VARARGS,
       "_make_batches(tasks, fetch, made, hungry, quick, patience): makes batches in a thread."},
      {"_act_as", act_as, METH_O, "_act_as(what): what _acting_as() says in this thread."},
      {"_acting_as", get_acting_as, METH_NOARGS, "_acting_as(): a worker's tuple, or None."},
      {}};
  add_functions(module, functions);
  tasks_type = add_type(module, tasks_spec, "_Tasks");
  add_type(module, writer_spec, "_BatchWriter");
  own_type = add_type(module, own_spec, "_OwnBatches");
  add_type(module, stream_spec, "_BatchStream");
}

}  // namespace facula::python
