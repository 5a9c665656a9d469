// The loader's end of its workers' streams of batches, as far as every batch passes it: reading
// batches in turn, or making them in the place of workers.
#include <algorithm>
#include <new>
#include <optional>

#include "python/batch_codec.h"
#include "python/own_epoch.h"

namespace facula::python {
namespace {

// _act_as(what): says who the thread is, or that it is nobody with None, and returns what it was.
PyObject* act_as(PyObject*, PyObject* what) {
  PyObject* before = acting.as;
  acting.as = what == Py_None ? nullptr : Py_NewRef(what);
  return before ? before : Py_NewRef(Py_None);
}

// Batches of a worker that the loader makes itself. What may be made in a thread of the worker
// comes first (`made`, and tasks that are busy). A batch that fails stays a task.
struct PyOwn {
  PyObject_HEAD PyObject *tasks, *made, *as, *fetch, *error;
  PyObject *generator, *twister, *arrays;  // for DrawingAsWorker, while batches are made
  NumbersBefore* numbers;                  // and what it notes, once it has
  char iterates;                           // StopIteration is the end, and no failure

  bool ready() const {
    const Tasks& t = tasks_of(tasks);
    return fetch != Py_None && error == Py_None && !t.busy && t.count && !PyList_GET_SIZE(made) &&
           ((twister == Py_None && arrays == Py_None) || runs_alone());
  }
  // Null when it failed; what is no Exception (an interrupt) goes on its way.
  PyObject* next() {
    Tasks& t = tasks_of(tasks);
    Ref kept = Ref::borrow(reinterpret_cast<PyObject*>(this));
    const Busy busy(t);
    Ref task(t.pop()), call = Ref::borrow(fetch);
    PyObject* batch;
    std::optional<ActingAs> acts;
    if (as != Py_None) acts.emplace(Acting{as});
    if (generator == Py_None && twister == Py_None && arrays == Py_None) {
      batch = call_in_worker(call.get(), task.get());
    } else {
      if (!numbers) numbers = new NumbersBefore;
      DrawingAsWorker drawing(generator, twister, arrays, numbers);
      batch = call_in_worker(call.get(), task.get());
      if (!batch && !(iterates && PyErr_ExceptionMatches(PyExc_StopIteration))) drawing.undo();
    }
    acts.reset();
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
    own.generator = Py_NewRef(Py_None);
    own.twister = Py_NewRef(Py_None);
    own.arrays = Py_NewRef(Py_None);
    return self;
  });
}

int traverse_own(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  PyOwn& own = *own_of(self);
  for (PyObject* o :
       {own.tasks, own.made, own.as, own.fetch, own.error, own.generator, own.twister, own.arrays})
    Py_VISIT(o);
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
  for (PyObject* o :
       {own.tasks, own.made, own.as, own.fetch, own.error, own.generator, own.twister, own.arrays})
    Py_XDECREF(o);
  delete own.numbers;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef own_members[] = {{"tasks", T_OBJECT, offsetof(PyOwn, tasks), READONLY, nullptr},
                             {"fetch", T_OBJECT, offsetof(PyOwn, fetch), 0, nullptr},
                             {"error", T_OBJECT, offsetof(PyOwn, error), 0, nullptr},
                             {"generator", T_OBJECT, offsetof(PyOwn, generator), 0, nullptr},
                             {"twister", T_OBJECT, offsetof(PyOwn, twister), 0, nullptr},
                             {"arrays", T_OBJECT, offsetof(PyOwn, arrays), 0, nullptr},
                             {"iterates", T_BOOL, offsetof(PyOwn, iterates), 0, nullptr},
                             {}};
PyType_Slot own_slots[] = {{Py_tp_new, (void*)new_own},           {Py_tp_dealloc, (void*)free_own},
                           {Py_tp_traverse, (void*)traverse_own}, {Py_tp_clear, (void*)clear_own},
                           {Py_tp_members, own_members},          {0, nullptr}};
PyType_Spec own_spec = {"facula._C._OwnBatches", sizeof(PyOwn), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, own_slots};

// The workers of batches to come. An empty one takes no memory, as it is in most short epochs.
class Order {
 public:
  bool empty() const { return first_ == all_.size(); }
  size_t size() const { return all_.size() - first_; }
  uint32_t front() const { return all_[first_]; }
  auto begin() const { return all_.begin() + ptrdiff_t(first_); }
  auto end() const { return all_.end(); }
  void push_back(uint32_t number) { all_.push_back(number); }
  void pop_front() {
    if (++first_ < kMost && first_ < all_.size()) return;
    all_.erase(all_.begin(), begin());
    first_ = 0;
  }
  // Drops the next batch of a worker, or all of them.
  void drop(uint32_t number, bool all) {
    const auto from = all_.begin() + ptrdiff_t(first_);
    const auto found = std::find(from, all_.end(), number);
    if (all) all_.erase(std::remove(found, all_.end(), number), all_.end());
    else if (found != all_.end()) all_.erase(found);
  }

 private:
  static constexpr size_t kMost = 1 << 12;  // that have come, before the rest moves up
  std::vector<uint32_t> all_;
  size_t first_ = 0;
};

// Whose batches come, in which order. What is not simply the next batch of a reader is left to the
// method `_next_after_turns` of the subclass.
struct Turns {
  Order order;                   // the worker of each batch to come
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

  OwnEpoch own;  // before tasks are handed out, if they are at all

  void note(std::vector<double>& times, double value) const {
    constexpr size_t kMost = 256;
    if (times.size() < kMost) times.push_back(value);
    else times[made_here % kMost] = value;
  }

  // Makes a batch and takes the time, if it is its turn.
  template <class Make>
  PyObject* timed(Make&& make) {
    constexpr uint32_t kEach = 8;
    constexpr double kQuick = 5e-6, kSlow = 2e-3;
    if (ended != 0) {
      note(pauses, now() - std::exchange(ended, 0));
    }
    const bool quick = last < kQuick;
    if (made_here++ % kEach && quick) return make();
    const double began = now();
    PyObject* batch = make();
    ended = now();
    last = ended - began;
    note(seconds, last);
    own.seconds += quick ? kEach * last : last;
    if (last > kSlow) {
      slow = true;
      allowed = 1;  // this one
    }
    return batch;
  }
  PyObject* make_here(PyOwn& from) {
    return timed([&] { return from.next(); });
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

int traverse_stream(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Turns& t = turns_of(self);
  for (const Ref* o : {&t.own.tasks, &t.own.fetch}) Py_VISIT(o->get());
  for (const auto* list : {&t.readers, &t.own.ahead})
    for (const Ref& o : *list) Py_VISIT(o.get());
  for (const OwnWorker& worker : t.own.crew)
    for (const Ref* o : {&worker.fetch, &worker.as, &worker.generators}) Py_VISIT(o->get());
  return 0;
}

int clear_stream(PyObject* self) {
  turns_of(self).own.clear();
  turns_of(self).allowed = 0;
  for (Ref& reader : turns_of(self).readers) reader = Ref();
  return 0;
}

void free_stream(PyObject* self) {
  PyObject_GC_UnTrack(self);
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

// ---- an epoch that the loader makes by itself

// The next batch of such an epoch. Null at its end, and, no longer active, when the rest is handed
// out to workers.
PyObject* next_own(PyObject* self, Turns& t) {
  static PyObject* finished = PyUnicode_InternFromString("is_finished");
  static PyObject* shut_down = PyUnicode_InternFromString("is_shut_down");
  constexpr double kLookAtPace = 1e-3;
  OwnEpoch& e = t.own;
  while (true) {
    Ref task = e.take_task();
    if (!task) {
      e.clear();
      e.over = true;
      check(PyObject_SetAttr(self, finished, Py_True));
      if (!e.persistent) check(PyObject_SetAttr(self, shut_down, Py_True));
      return nullptr;
    }
    const uint32_t number = e.next;
    auto leave = [&](Leave why) -> PyObject* {
      e.next = number;
      Ref left(check(PyObject_CallMethod(self, "_leave_own", "Oi", task.get(), int(why))));
      return nullptr;
    };
    if (e.plain) {
      Ref batch(check(call_in_worker(Ref(e.fetch).get(), task.get())));
      e.count(0);
      return batch.release();
    }
    if (!e.fits(task.get())) return leave(Leave::BelongsToWorkers);
    if (e.alone && !runs_alone()) return leave(Leave::KeepsGoing);
    e.next = e.after(number);
    Ref batch(t.timed([&] { return e.make(self, number, task.get()); }));
    if (!batch) {
      if (!PyErr_ExceptionMatches(PyExc_Exception)) {  // an interrupt: nobody will make it again
        e.count(number);
        throw PythonError{};
      }
      const bool ended = e.iterates && PyErr_ExceptionMatches(PyExc_StopIteration);
      if (!ended && e.changes) {  // made again, it would find what has been written meanwhile
        ++e.crew[number].given;
        Ref error(caught());
        Ref raised(check(PyObject_CallMethod(self, "_raise_as_worker", "IO", number, error.get())));
        return nullptr;
      }
      PyErr_Clear();
      if (!e.active) return nullptr;
      if (!ended) return leave(Leave::Failed);
      e.crew[number].ended = true;
      e.crew[number].fetch = Ref();
      continue;
    }
    e.count(number);
    if (e.step_by_step && e.tasks) {
      Ref drawn = e.draw(e.tasks);
      if (drawn) e.ahead.push_back(std::move(drawn));
      else e.tasks = Ref();
    }
    if ((e.seconds > kLookAtPace || t.slow) && e.active) {
      e.seconds = 0;
      Ref looked(check(PyObject_CallMethod(self, "_look_at_pace", "(O)", batch.get())));
    }
    return batch.release();
  }
}

// _begin_own(tasks, first, fetch, workers, flags): begins an epoch with these tasks, of which the
// first so many are drawn at once, or have been drawn where it is a list. Flags: 1 the dataset is
// iterated over, 2 indices must be ints, 4 a task is drawn for each batch, 8 numbers are drawn, 16
// from generators that all threads share, 32 another epoch may follow, 64 there are no workers in
// whose place batches are made, and errors are the caller's, 128 each worker has a copy of what is
// written to: `fetch` is a list of what makes their batches, or, of those that iterate,
// `_begin_in_copy(number)` returns it.
PyObject* begin_own(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5) type_error("_begin_own() takes 5 arguments, got ", count);
    PyObject *tasks = args[0], *fetch = args[2];
    const bool drawn = PyList_CheckExact(args[1]);
    const int64_t first = drawn ? PyList_GET_SIZE(args[1]) : index_of(args[1]),
                  workers = index_of(args[3]), flags = index_of(args[4]);
    if (workers <= 0) value_error("_begin_own(): there are no workers");
    if (!(flags & 1) && !PyIter_Check(tasks))
      type_error("_begin_own(): expected an iterator, got ", type_name(tasks));
    std::vector<Ref> ahead;
    for (int64_t i = 0; i < first; ++i) {
      Ref task = drawn ? Ref::borrow(PyList_GET_ITEM(args[1], Py_ssize_t(i)))
                       : OwnEpoch::draw(Ref::borrow(tasks));
      if (!task) break;
      ahead.push_back(std::move(task));
    }
    Turns& t = turns_of(self);
    OwnEpoch& e = t.own;
    e.iterates = flags & 1;
    e.only_ints = flags & 2;
    e.step_by_step = flags & 4;
    e.draws = flags & 8;
    e.alone = flags & 16;
    e.persistent = flags & 32;
    e.plain = flags & 64;
    e.changes = flags & 128;
    e.tasks = Ref::borrow(tasks);
    e.fetch = Ref::borrow(fetch);
    e.ahead.swap(ahead);
    const bool copied = e.changes && !e.iterates;
    if (copied && (!PyList_CheckExact(fetch) || PyList_GET_SIZE(fetch) != workers))
      type_error("_begin_own(): expected a list of what makes each worker's batches");
    e.crew.resize(size_t(workers));
    for (int64_t i = 0; i < workers; ++i) {
      OwnWorker& worker = e.crew[size_t(i)];
      worker.fetch = Ref();
      if (copied && PyList_GET_ITEM(fetch, Py_ssize_t(i)) != Py_None)
        worker.fetch = Ref::borrow(PyList_GET_ITEM(fetch, Py_ssize_t(i)));
      worker.generators = Ref();
      worker.given = 0;
      worker.ended = false;
      if (!e.persistent) worker.as = Ref();
    }
    e.next = 0;
    e.yielded = 0;
    e.active = true;
    e.over = false;
    t.ended = 0;
    return Py_NewRef(Py_None);
  });
}

PyObject* list_of(const std::vector<Ref>& items) {
  Ref list(check(PyList_New(Py_ssize_t(items.size()))));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), Py_NewRef(items[i] ? items[i].get() : Py_None));
  return list.release();
}

// _own_state(): what has come of such an epoch: (batches, of each worker, whether it has ended, the
// next worker, what each iterates with), and the tasks that are left: (drawn, to be drawn).
PyObject* own_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const OwnEpoch& e = turns_of(self).own;
    Ref given(check(PyList_New(0))), ended(check(PyList_New(0)));
    std::vector<Ref> making;
    for (uint32_t i = 0; i < e.workers(); ++i) {
      Ref count(check(PyLong_FromSsize_t(e.crew[i].given)));
      check(PyList_Append(given.get(), count.get()));
      check(PyList_Append(ended.get(), e.crew[i].ended ? Py_True : Py_False));
      if (e.iterates || e.changes) making.push_back(e.crew[i].fetch);
    }
    Ref fetches(list_of(making)), ahead(list_of(e.ahead));
    return check(Py_BuildValue("nOOIOOO", e.yielded, given.get(), ended.get(), e.next,
                               fetches.get(), ahead.get(), e.tasks ? e.tasks.get() : Py_None));
  });
}

// _forget_own(over): leaves such an epoch; if it is over, nothing else comes.
PyObject* forget_own(PyObject* self, PyObject* over) {
  turns_of(self).own.clear();
  turns_of(self).own.over = over == Py_True;
  return Py_NewRef(Py_None);
}

// _acting_as(): the worker that the thread acts as.
PyObject* get_acting_as(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (acting.as || !acting.stream) return Py_NewRef(acting.as ? acting.as : Py_None);
    Ref made(check(PyObject_CallMethod(acting.stream, "_as_worker", "I", acting.number)));
    auto& crew = turns_of(acting.stream).own.crew;
    if (acting.number < crew.size()) crew[acting.number].as = made;
    return made.release();
  });
}

PyObject* next_in_turn(PyObject* self) {
  return guarded([&]() -> PyObject* {
    static PyObject* otherwise = PyUnicode_InternFromString("_next_after_turns");
    Turns& t = turns_of(self);
    if (t.own.active) {
      if (PyObject* batch = next_own(self, t)) return batch;
    }
    if (t.own.over) return nullptr;
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
    turns_of(self).order.drop(number, all);
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

PyMethodDef stream_methods[] = {
    {"_allow", allow, METH_VARARGS, nullptr},
    {"_plan", plan, METH_VARARGS, nullptr},
    {"_planned", planned, METH_NOARGS, nullptr},
    {"_first_planned", first_planned, METH_NOARGS, nullptr},
    {"_unplan", unplan, METH_VARARGS, nullptr},
    {"_turns_taken", turns_taken, METH_NOARGS, nullptr},
    {"_make_here", make_here, METH_O, nullptr},
    {"_times_here", times_here, METH_NOARGS, nullptr},
    {"_slow_here", slow_here, METH_NOARGS, nullptr},
    {"_pause_ends", pause_ends, METH_NOARGS, nullptr},
    {"_begin_own", (PyCFunction)(void*)begin_own, METH_FASTCALL, nullptr},
    {"_own_state", own_state, METH_NOARGS, nullptr},
    {"_forget_own", forget_own, METH_O, nullptr},
    {}};
PyType_Slot stream_slots[] = {
    {Py_tp_new, (void*)new_stream},         {Py_tp_dealloc, (void*)free_stream},
    {Py_tp_iter, (void*)PyObject_SelfIter}, {Py_tp_iternext, (void*)next_in_turn},
    {Py_tp_methods, stream_methods},        {Py_tp_traverse, (void*)traverse_stream},
    {Py_tp_clear, (void*)clear_stream},     {0, nullptr}};
PyType_Spec stream_spec = {"facula._C._BatchStream", sizeof(PyStream), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           stream_slots};

}  // namespace

void init_batch_stream(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_act_as", act_as, METH_O, "_act_as(what): what _acting_as() says in this thread."},
      {"_acting_as", get_acting_as, METH_NOARGS, "_acting_as(): a worker's tuple, or None."},
      {}};
  add_functions(module, functions);
  own_type = add_type(module, own_spec, "_OwnBatches");
  add_type(module, stream_spec, "_BatchStream");
}

}  // namespace facula::python
