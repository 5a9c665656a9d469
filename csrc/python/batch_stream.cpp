// The loader's end of its workers' streams of batches, as far as every batch passes it: reading
// batches in turn, or making them in the place of workers.
#include <algorithm>
#include <deque>
#include <new>

#include "python/batch_codec.h"
#include "python/batch_tasks.h"
#include "python/worker_random.h"

namespace facula::python {
namespace {

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
  PyObject *generator, *twister, *arrays;  // for DrawingAsWorker, while batches are made
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
    PyObject* before = std::exchange(acting_as, as == Py_None ? acting_as : as);
    PyObject* batch;
    if (generator == Py_None && twister == Py_None && arrays == Py_None) {
      batch = call_in_worker(call.get(), task.get());
    } else {
      DrawingAsWorker drawing(generator, twister, arrays);
      batch = call_in_worker(call.get(), task.get());
      if (!batch && !(iterates && PyErr_ExceptionMatches(PyExc_StopIteration))) drawing.undo();
    }
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
