// The loader's end of its workers' streams of batches, as far as every batch passes it: reading
// batches in turn, or making them in the place of workers.
#include <algorithm>
#include <new>
#include <optional>

#include "python/batch_codec.h"
#include "python/turns.h"

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

int traverse_stream(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  int stopped = 0;
  members_of(self).for_each_object([&](PyObject* o) {
    if (o && !stopped) stopped = visit(o, arg);
  });
  if (stopped) return stopped;
  Turns& t = turns_of(self);
  for (const Ref* o : {&t.own.tasks, &t.own.fetch, &t.own.copier, &t.own.facts}) Py_VISIT(o->get());
  for (const auto* list : {&t.readers, &t.own.ahead})
    for (const Ref& o : *list) Py_VISIT(o.get());
  for (const OwnWorker& worker : t.own.crew)
    for (const Ref* o : {&worker.fetch, &worker.fetch_by, &worker.as, &worker.generators,
                         &worker.copies, &worker.copies_before})
      Py_VISIT(o->get());
  return 0;
}

void clear_members(StreamMembers& m) {
  m.for_each_object([](PyObject*& o) { Py_CLEAR(o); });
}

int clear_stream(PyObject* self) {
  clear_members(members_of(self));
  turns_of(self).own.clear();
  turns_of(self).allowed = 0;
  for (Ref& reader : turns_of(self).readers) reader = Ref();
  return 0;
}

void free_stream(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  clear_members(members_of(self));
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
    return own->ready() ? turns.timed([own] { return own->next(); }) : nullptr;
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
    Ref batch(turns_of(self).timed([own] { return own_of(own)->next(); }));
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
    {"_begin_own", (PyCFunction)(void*)begin_own_epoch, METH_FASTCALL, nullptr},
    {"_own_state", own_state_of, METH_NOARGS, nullptr},
    {"_as_worker", as_worker_of, METH_O, nullptr},
    {"_stay_as", stay_as, METH_O, nullptr},
    {"_own_copies", own_copies_of, METH_NOARGS, nullptr},
    {"_own_generators", own_generators_of, METH_NOARGS, nullptr},
    {"_forget_own", forget_own_epoch, METH_O, nullptr},
    {}};
PyMemberDef stream_members[] = {
    {"_terms", T_OBJECT_EX, offsetof(StreamMembers, terms), 0, nullptr},
    {"_pace", T_OBJECT_EX, offsetof(StreamMembers, pace), 0, nullptr},
    {"_index_sampler", T_OBJECT_EX, offsetof(StreamMembers, index_sampler), 0, nullptr},
    {"_indices", T_OBJECT_EX, offsetof(StreamMembers, indices), 0, nullptr},
    {"_base_seed", T_OBJECT_EX, offsetof(StreamMembers, base_seed), 0, nullptr},
    {"_generator_state", T_OBJECT_EX, offsetof(StreamMembers, generator_state), 0, nullptr},
    {"_fetch", T_OBJECT_EX, offsetof(StreamMembers, fetch), 0, nullptr},
    {"_made_before", T_PYSSIZET, offsetof(StreamMembers, made_before), 0, nullptr},
    {"_iterable", T_BOOL, offsetof(StreamMembers, iterable), 0, nullptr},
    {"_is_own", T_BOOL, offsetof(StreamMembers, is_own), 0, nullptr},
    {"_may_be_here", T_BOOL, offsetof(StreamMembers, may_be_here), 0, nullptr},
    {"_drew_seed", T_BOOL, offsetof(StreamMembers, drew_seed), 0, nullptr},
    {"is_finished", T_BOOL, offsetof(StreamMembers, is_finished), 0, nullptr},
    {"is_shut_down", T_BOOL, offsetof(StreamMembers, is_shut_down), 0, nullptr},
    {}};
PyType_Slot stream_slots[] = {{Py_tp_new, (void*)new_stream},
                              {Py_tp_dealloc, (void*)free_stream},
                              {Py_tp_iter, (void*)PyObject_SelfIter},
                              {Py_tp_iternext, (void*)next_in_turn},
                              {Py_tp_methods, stream_methods},
                              {Py_tp_members, stream_members},
                              {Py_tp_traverse, (void*)traverse_stream},
                              {Py_tp_clear, (void*)clear_stream},
                              {0, nullptr}};
PyType_Spec stream_spec = {"facula._C._BatchStream", sizeof(PyStream), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           stream_slots};

PyTypeObject* stream_type = nullptr;

}  // namespace

bool is_stream(PyObject* o) {
  return PyObject_TypeCheck(o, stream_type);
}

bool is_stream_type(PyObject* o) {
  return PyType_Check(o) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(o), stream_type);
}

PyObject* new_stream(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  new (&turns_of(self)) Turns;
  members_of(self).may_be_here = members_of(self).drew_seed = true;
  return self;
}

void init_batch_stream(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_act_as", act_as, METH_O, "_act_as(what): what _acting_as() says in this thread."}, {}};
  add_functions(module, functions);
  own_type = add_type(module, own_spec, "_OwnBatches");
  stream_type = add_type(module, stream_spec, "_BatchStream");
  init_own_epoch(module);
  init_epoch_plan(module);
}

}  // namespace facula::python
