// The two ends of a worker's stream of batches, as far as every batch passes them: making batches
// and writing them down in the worker, reading them in turn in the loader. Small batches are made
// in a microsecond, of which Python would take the most if it stood in between.
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
    Ref object;                    // the task, or bytes with int64 numbers
    Py_ssize_t at = -1, size = 0;  // in those: the next number, and numbers in a batch, 0 for none
  };
  std::deque<Entry> entries;
  Py_ssize_t count = 0;

  // There must be one.
  PyObject* pop() {
    Entry& e = entries.front();
    if (e.at < 0) {
      PyObject* task = e.object.release();
      entries.pop_front();
      --count;
      return task;
    }
    const auto total = PyBytes_GET_SIZE(e.object.get()) / Py_ssize_t(sizeof(int64_t));
    const char* data = PyBytes_AS_STRING(e.object.get());
    auto take = [&] {
      int64_t v;
      std::memcpy(&v, data + e.at++ * Py_ssize_t(sizeof v), sizeof v);
      return check(PyLong_FromLongLong(v));
    };
    Ref task;
    if (e.size == 0) {
      task = Ref(take());
    } else {
      const Py_ssize_t n = std::min(e.size, total - e.at);
      task = Ref(check(PyList_New(n)));
      for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(task.get(), i, take());
    }
    --count;
    if (e.at >= total) entries.pop_front();
    return task.release();
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

// append_packed(data, size): a task for each `size` of the int64 in bytes, the last may have fewer;
// with size 0 each number is one.
PyObject* append_packed(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "Sn:append_packed", &data, &size)) throw PythonError{};
    if (size < 0) value_error("append_packed(): the size is ", size);
    const auto numbers = PyBytes_GET_SIZE(data) / Py_ssize_t(sizeof(int64_t));
    const Py_ssize_t width = size ? size : 1;
    Tasks& t = tasks_of(self);
    if (numbers) t.entries.push_back({Ref::borrow(data), 0, size});
    t.count += numbers / width + (numbers % width != 0);
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

Py_ssize_t count_tasks(PyObject* self) {
  return tasks_of(self).count;
}

PyMethodDef tasks_methods[] = {{"append", append_task, METH_O, nullptr},
                               {"append_packed", append_packed, METH_VARARGS, nullptr},
                               {"popleft", pop_task, METH_NOARGS, nullptr},
                               {"first", first_task, METH_NOARGS, nullptr},
                               {}};
PyType_Slot tasks_slots[] = {{Py_tp_new, (void*)new_tasks},
                             {Py_tp_dealloc, (void*)free_tasks},
                             {Py_tp_methods, tasks_methods},
                             {Py_sq_length, (void*)count_tasks},
                             {0, nullptr}};
PyType_Spec tasks_spec = {"facula._C._Tasks", sizeof(PyTasks), 0, Py_TPFLAGS_DEFAULT, tasks_slots};
PyTypeObject* tasks_type = nullptr;

struct Piece {
  int64_t kind;
  int64_t batches;
  bool inside;  // in the shared memory, from `begin` to `end`; else in `data`
  size_t begin, end;
  std::string data;
};

// What has been made and not sent so far. Another thread may take it at any time, between batches
// or while one of them is being made; the GIL keeps them apart. Short forms are written to memory
// that the loader reads them from, as far as there is some.
struct Writer {
  size_t limit = 0;        // bytes of a batch in its short form
  int64_t small_kind = 0;  // of pieces that are such batches
  Ref marker;              // the type of what stands among the tasks and is none
  Py_buffer memory{};
  size_t used = 0;                // of the memory
  std::unique_ptr<char[]> spare;  // for a batch when there is no memory
  std::vector<Piece> pieces;
  size_t bytes = 0;
  double seconds = 0;  // spent on what is here
  double last = 0;     // spent on the last batch

  // Read without the GIL by whoever watches.
  std::atomic<int64_t> batches{0};
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> unwatched{false};
  std::mutex mutex;
  std::condition_variable wake;

  ~Writer() { PyBuffer_Release(&memory); }

  bool has_room() const {
    return memory.obj && used + BatchEncoder::room(limit) <= size_t(memory.len);
  }
  char* place() {
    if (has_room()) return static_cast<char*>(memory.buf) + used;
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
    PyObject* marker;
    if (!PyArg_ParseTuple(args, "nLO:_BatchWriter", &limit, &kind, &marker)) throw PythonError{};
    PyObject* self = check(type->tp_alloc(type, 0));
    Writer& w = *new (&writer_of(self)) Writer;
    w.limit = size_t(limit);
    w.small_kind = kind;
    w.marker = Ref::borrow(marker);
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

PyObject* places_of(const std::vector<BatchEncoder::Placed>& placed) {
  Ref list(check(PyList_New(0)));
  for (const auto& p : placed) {
    Ref place(
        check(Py_BuildValue("(Lnn)", (long long)p.slot, Py_ssize_t(p.bytes), Py_ssize_t(p.at))));
    check(PyList_Append(list.get(), place.get()));
  }
  return list.release();
}

// make(tasks, fetch, lent, quick, patience, bytes): does tasks one after the other. None when it is
// time to send, when a marker comes, or when there are no more; else what is left to the caller: an
// exception, a batch without a short form (in a list), or one that lies in slots.
PyObject* make(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tasks_object, *fetch, *lent;
    double quick, patience;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "O!OO!ddn:make", tasks_type, &tasks_object, &fetch, &PyDict_Type,
                          &lent, &quick, &patience, &most))
      throw PythonError{};
    Writer& w = writer_of(self);
    Tasks& tasks = tasks_of(tasks_object);
    double began = now();
    while (w.last <= quick && w.seconds <= patience && w.bytes <= size_t(most) && tasks.count) {
      if (const auto& first = tasks.entries.front();
          first.at < 0 && (PyObject*)Py_TYPE(first.object.get()) == w.marker.get())
        break;
      Ref task(tasks.pop());
      Ref batch(PyObject_CallOneArg(fetch, task.get()));
      if (!batch) return caught();
      // Another thread may have taken the pieces, and the memory, meanwhile.
      char* const form = w.place();
      BatchEncoder encoder(form, w.limit, lent);
      const bool written = encoder.write(batch.get());
      const double ended = now();
      const double spent = ended - began;
      began = ended;
      w.last = spent;
      if (!written || !encoder.placed.empty()) {
        w.seconds += spent;
        if (!written) {
          Ref list(check(PyList_New(1)));
          PyList_SET_ITEM(list.get(), 0, batch.release());
          return list.release();
        }
        Ref bytes(check(PyBytes_FromStringAndSize(form, Py_ssize_t(encoder.size()))));
        Ref places(places_of(encoder.placed));
        return check(PyTuple_Pack(2, bytes.get(), places.get()));
      }
      w.keep(encoder.size());
      w.count(encoder.size(), spent, 1);
    }
    return Py_NewRef(Py_None);
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

// set_memory(buffer): where short forms go from now on.
PyObject* set_memory(PyObject* self, PyObject* buffer) {
  return guarded([&] {
    Writer& w = writer_of(self);
    if (w.used) runtime_error("set_memory(): batches stand in the memory that there is");
    PyBuffer_Release(&w.memory);
    check(PyObject_GetBuffer(buffer, &w.memory, PyBUF_WRITABLE));
    return Py_NewRef(Py_None);
  });
}

// take(copied): ([(kind, batches, data), ...], batches, seconds, whether the memory goes along);
// nothing is left. The memory goes along when more than `copied` bytes stand there, and data then
// is a pair of places in it; else it is used again.
PyObject* take(PyObject* self, PyObject* most_copied) {
  return guarded([&]() -> PyObject* {
    Writer& w = writer_of(self);
    const bool away = w.used > size_t(index_of(most_copied));
    const auto* memory = static_cast<const char*>(w.memory.buf);
    std::vector<Piece> pieces;
    pieces.swap(w.pieces);
    const int64_t batches = w.batches.exchange(0);
    const double seconds = w.seconds;
    ++w.taken;
    w.bytes = w.used = 0;
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
    if (away) PyBuffer_Release(&w.memory);
    return check(Py_BuildValue("(OLdO)", list.get(), (long long)batches, seconds,
                               away ? Py_True : Py_False));
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

PyMethodDef writer_methods[] = {
    {"make", make, METH_VARARGS, nullptr},       {"add", add, METH_VARARGS, nullptr},
    {"set_memory", set_memory, METH_O, nullptr}, {"take", take, METH_O, nullptr},
    {"watch", watch, METH_VARARGS, nullptr},     {}};
PyType_Slot writer_slots[] = {{Py_tp_new, (void*)new_writer},
                              {Py_tp_dealloc, (void*)free_writer},
                              {Py_tp_methods, writer_methods},
                              {Py_nb_bool, (void*)holds_any},
                              {0, nullptr}};
PyType_Spec writer_spec = {"facula._C._BatchWriter", sizeof(PyWriter), 0, Py_TPFLAGS_DEFAULT,
                           writer_slots};

// ---- in the loader

// Whose batches come, in which order. What is not simply the next batch of a reader is left to the
// method `_next_after_turns` of the subclass.
struct Turns {
  std::deque<uint32_t> order;    // the worker of each batch to come
  std::vector<Ref> readers;      // of each worker
  std::vector<Py_ssize_t> came;  // from each worker
  Py_ssize_t allowed = 0;        // batches until the subclass is asked in any case
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

PyObject* next_in_turn(PyObject* self) {
  return guarded([&]() -> PyObject* {
    static PyObject* otherwise = PyUnicode_InternFromString("_next_after_turns");
    Turns& t = turns_of(self);
    if (t.allowed > 0 && !t.order.empty()) {
      const uint32_t number = t.order.front();
      auto* reader = reinterpret_cast<BatchReader*>(t.readers[number].get());
      if (reader && reader->left > 0) {
        PyObject* batch = next_batch(reader);
        t.order.pop_front();
        --t.allowed;
        ++t.came[number];
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
      found.push_back(is_batch_reader(reader) ? Ref::borrow(reader) : Ref());
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

PyMethodDef stream_methods[] = {{"_allow", allow, METH_VARARGS, nullptr},
                                {"_plan", plan, METH_VARARGS, nullptr},
                                {"_planned", planned, METH_NOARGS, nullptr},
                                {"_first_planned", first_planned, METH_NOARGS, nullptr},
                                {"_unplan", unplan, METH_VARARGS, nullptr},
                                {"_turns_taken", turns_taken, METH_NOARGS, nullptr},
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
  tasks_type = add_type(module, tasks_spec, "_Tasks");
  add_type(module, writer_spec, "_BatchWriter");
  add_type(module, stream_spec, "_BatchStream");
}

}  // namespace facula::python
