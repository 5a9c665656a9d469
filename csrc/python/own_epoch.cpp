// An epoch that the loader makes by itself: how it begins, its batches, and what is left of it.
#include <optional>

#include "op/kernel_hook.h"
#include "op/profiler.h"
#include "python/batch_slots.h"
#include "python/turns.h"

namespace facula::python {
namespace {

PyObject* worker_info_type = nullptr;

// Whether somebody watches what this thread computes, who would not see what a process does.
bool is_watched() {
  return override_active() || kernel_hook || profiling.load(std::memory_order_relaxed);
}

PyObject* get_is_watched(PyObject*, PyObject*) {
  return PyBool_FromLong(is_watched());
}

// A WorkerInfo is a frozen dataclass, which writes attribute by attribute, too, but in Python.
Ref worker_info(PyObject* const (&values)[5]) {
  static PyObject* const names[] = {
      PyUnicode_InternFromString("id"), PyUnicode_InternFromString("num_workers"),
      PyUnicode_InternFromString("seed"), PyUnicode_InternFromString("dataset"),
      PyUnicode_InternFromString("worker_method")};
  if (!worker_info_type) runtime_error("there is no class of what a worker knows of itself");
  auto* type = reinterpret_cast<PyTypeObject*>(worker_info_type);
  Ref info(check(type->tp_alloc(type, 0)));
  for (size_t i = 0; i < std::size(names); ++i)
    check(PyObject_GenericSetAttr(info.get(), names[i], values[i]));
  return info;
}

// _worker_info(id, num_workers, seed, dataset, method)
PyObject* make_worker_info(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    if (count != 5) type_error("_worker_info() takes 5 values, got ", count);
    return worker_info({args[0], args[1], args[2], args[3], args[4]}).release();
  });
}

// _note_worker_info(type): the class of what that returns, which it returns, too.
PyObject* note_worker_info(PyObject*, PyObject* type) {
  return guarded([&] {
    if (!PyType_Check(type)) type_error("expected a class, got ", type_name(type));
    Py_XSETREF(worker_info_type, Py_NewRef(type));
    return Py_NewRef(type);
  });
}

// What code finds out that runs in the place of a worker.
Ref as_worker(PyObject* stream, uint32_t number) {
  static PyObject *job_name = PyUnicode_InternFromString("job"),
                  *dataset_name = PyUnicode_InternFromString("dataset");
  const OwnEpoch& e = turns_of(stream).own;
  const StreamMembers& m = members_of(stream);
  if (number >= e.workers() || !m.terms || !m.base_seed) return Ref::borrow(Py_None);
  if (e.crew[number].as) return e.crew[number].as;
  Ref dataset;
  if (e.crew[number].copies) {
    dataset = Ref::borrow(PyList_GET_ITEM(e.crew[number].copies.get(), 0));
  } else {
    const Ref job(check(PyObject_GetAttr(m.terms, job_name)));
    dataset = Ref(check(PyObject_GetAttr(job.get(), dataset_name)));
  }
  const Ref which(check(PyLong_FromUnsignedLong(number))),
      of(check(PyLong_FromUnsignedLong(e.workers()))),
      seed(check(PyNumber_Add(m.base_seed, which.get())));
  static PyObject *process = PyUnicode_InternFromString("multiprocessing"),
                  *thread = PyUnicode_InternFromString("thread");
  PyObject* method = e.threads ? thread : process;
  const Ref info = worker_info({which.get(), of.get(), seed.get(), dataset.get(), method});
  const Ref generator =
      e.threads ? new_generator(PyLong_AsUnsignedLongLongMask(seed.get())) : Ref::borrow(Py_None);
  return Ref(check(PyTuple_Pack(2, info.get(), generator.get())));
}

// _acting_as(): the worker that the thread acts as.
PyObject* get_acting_as(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (acting.as || !acting.stream) return Py_NewRef(acting.as ? acting.as : Py_None);
    Ref made = as_worker(acting.stream, acting.number);
    auto& crew = turns_of(acting.stream).own.crew;
    if (acting.number < crew.size()) crew[acting.number].as = made;
    return made.release();
  });
}

}  // namespace

// ---- what Python asks for

// _begin_own(tasks, first, fetch, workers, flags, facts=None, copier=None, roots=None): begins an
// epoch with these tasks, of which the first so many are drawn at once. Flags: 1 the dataset is
// iterated over, 2 indices must be ints, 4 a task is drawn for each batch, 8 numbers are drawn, 16
// from generators that all threads share, 32 another epoch may follow, 64 there are no workers in
// whose place batches are made, and errors are the caller's, 128 workers would be threads. When
// `facts` are no longer what they were, the epoch is left. With `copier`, which copies what is
// written to in a list that is like `roots`, each worker has copies of its own: fetch(copies) makes
// what makes their batches, or begins to iterate.
PyObject* begin_own_epoch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5 && count != 6 && count != 8)
      type_error("_begin_own() takes 5, 6 or 8 arguments, got ", count);
    OwnStart start{Ref::borrow(args[0]),
                   Ref::borrow(args[2]),
                   index_of(args[1]),
                   index_of(args[3]),
                   index_of(args[4]),
                   {},
                   {},
                   {}};
    if (count > 5) {
      if (!is_facts(args[5])) type_error("_begin_own(): expected facts, got ", type_name(args[5]));
      start.facts = Ref::borrow(args[5]);
    }
    if (count == 8) {
      start.copier = Ref::borrow(args[6]);
      start.roots = Ref::borrow(args[7]);
    }
    begin_own(turns_of(self), std::move(start));
    return Py_NewRef(Py_None);
  });
}

static PyObject* list_of(const std::vector<Ref>& items) {
  Ref list(check(PyList_New(Py_ssize_t(items.size()))));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), Py_NewRef(items[i] ? items[i].get() : Py_None));
  return list.release();
}

// _own_state(): what has come of such an epoch: (batches, of each worker, whether it has ended, the
// next worker, what each iterates with), and the tasks that are left: (drawn, to be drawn).
PyObject* own_state_of(PyObject* self, PyObject*) {
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
PyObject* forget_own_epoch(PyObject* self, PyObject* over) {
  turns_of(self).own.clear();
  turns_of(self).own.over = over == Py_True;
  return Py_NewRef(Py_None);
}

// _as_worker(number): what _acting_as() says in the place of a worker.
PyObject* as_worker_of(PyObject* self, PyObject* number) {
  return guarded([&] { return as_worker(self, uint32_t(index_of(number))).release(); });
}

// _stay_as(contexts): what workers act as, who have been there in earlier epochs.
PyObject* stay_as(PyObject* self, PyObject* contexts) {
  return guarded([&]() -> PyObject* {
    if (!PyList_CheckExact(contexts)) type_error("_stay_as(): expected a list");
    turns_of(self).own.set_workers(size_t(PyList_GET_SIZE(contexts)));
    auto& crew = turns_of(self).own.crew;
    for (size_t i = 0; i < crew.size(); ++i)
      crew[i].as = Ref::borrow(PyList_GET_ITEM(contexts, Py_ssize_t(i)));
    return Py_NewRef(Py_None);
  });
}

// _own_copies(): what each worker writes to, or began to iterate with, by worker.
PyObject* own_copies_of(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref found(check(PyDict_New()));
    const auto& crew = turns_of(self).own.crew;
    for (size_t i = 0; i < crew.size(); ++i) {
      // Who has come to its end has nothing to make again.
      const bool again = crew[i].copies_before && !crew[i].ended;
      const Ref& copies = again ? crew[i].copies_before : crew[i].copies;
      if (!copies) continue;
      Ref number(check(PyLong_FromSize_t(i)));
      check(PyDict_SetItem(found.get(), number.get(), copies.get()));
    }
    return found.release();
  });
}

// _own_generators(): the generators that the loader has drawn from, by worker.
PyObject* own_generators_of(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref found(check(PyDict_New()));
    const auto& crew = turns_of(self).own.crew;
    for (size_t i = 0; i < crew.size(); ++i) {
      if (!crew[i].generators) continue;
      Ref number(check(PyLong_FromSize_t(i)));
      check(PyDict_SetItem(found.get(), number.get(), crew[i].generators.get()));
    }
    return found.release();
  });
}

// ---- batches

void OwnEpoch::make_generators(PyObject* stream, uint32_t number) {
  // As far as is known, so many of the workers from this one on have something to do, and two take
  // hardly longer to make than one.
  const size_t busy = iterates ? workers() : std::min<size_t>(ahead.size() + 1, workers());
  const auto count = std::max(1u, std::min(uint32_t(busy), workers() - number));
  if (!made_of_seed) {
    Ref made(check(PyObject_CallMethod(stream, "_generators_of", "II", number, count)));
    crew[number].generators = std::move(made);
    return;
  }
  std::vector<Ref> made = generators_of_workers(made_of_seed, seed, number, count);
  for (uint32_t i = 0; i < count; ++i)
    if (!crew[number + i].generators) crew[number + i].generators = std::move(made[i]);
}

PyObject* OwnEpoch::make(PyObject* stream, uint32_t number, PyObject* task) {
  const Making making_one(making);
  OwnWorker& worker = crew[number];
  const Ref known = worker.as;  // others may end the epoch meanwhile
  const ActingAs acts({known.get(), stream, number});
  std::optional<InSurroundings> as_begun;
  if (!threads) as_begun.emplace(surroundings);
  if (!draws) return fetch_one(number, task);
  if (!worker.generators) make_generators(stream, number);
  const Ref generators = worker.generators;
  PyObject** found = PySequence_Fast_ITEMS(generators.get());
  DrawingAsWorker drawing(found[0], found[1], found[2], changes ? nullptr : &worker.numbers);
  PyObject* batch = fetch_one(number, task);
  if (!batch && !changes) drawing.undo();
  return batch;
}

PyObject* OwnEpoch::fetch_one(uint32_t number, PyObject* task) {
  if (!iterates && !changes) return call_in_worker(Ref(fetch).get(), task);
  if (!crew[number].fetch) {
    Ref copies;
    if (changes) {
      copies = copied(Ref(crew[number].copies).get());
      crew[number].copies_before = std::exchange(crew[number].copies, copies);
    }
    const Ref begins = fetch;
    Ref begun(wait_for_gil([&] {
      return copies ? PyObject_CallOneArg(begins.get(), copies.get())
                    : PyObject_CallNoArgs(begins.get());
    }));
    if (!begun) return nullptr;
    crew[number].fetch = std::move(begun);
  }
  return call_in_worker(Ref(crew[number].fetch).get(), task);
}

Ref OwnEpoch::copied(PyObject* values) const {
  Ref copies(check(PyObject_CallOneArg(Ref(copier).get(), values)));
  if (!PyList_CheckExact(copies.get()) || !PyList_GET_SIZE(copies.get()))
    type_error("_begin_own(): expected a list of copies");
  return copies;
}

PyObject* next_own(PyObject* self, Turns& t) {
  constexpr double kLookAtPace = 1e-3;
  OwnEpoch& e = t.own;
  while (true) {
    Ref task = e.take_task();
    if (!task) {
      e.clear();
      e.over = true;
      members_of(self).is_finished = true;
      if (!e.persistent) members_of(self).is_shut_down = true;
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
    if (!e.fits(task.get()) || (!e.threads && is_watched())) return leave(Leave::BelongsToWorkers);
    if (e.facts && !facts_stay(e.facts.get())) return leave(Leave::Changed);
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
        e.replace_task();
        Ref raised(check(PyObject_CallMethod(self, "_raise_as_worker", "IO", number, error.get())));
        return nullptr;
      }
      // Threads go on iterating where they are.
      if (!ended && e.threads && e.iterates && e.crew[number].given) {
        ++e.crew[number].given;
        throw PythonError{};
      }
      if (!ended && !e.active)
        throw PythonError{};  // others ended the epoch: nobody is left to ask
      PyErr_Clear();
      if (!e.active) return nullptr;
      if (!ended) return leave(Leave::Failed);
      e.crew[number].ended = true;
      e.crew[number].fetch = Ref();
      continue;
    }
    e.count(number);
    e.replace_task();
    if ((e.seconds > kLookAtPace || t.slow) && e.active) {
      e.seconds = 0;
      Ref looked(check(PyObject_CallMethod(self, "_look_at_pace", "(O)", batch.get())));
    }
    return batch.release();
  }
}

// ---- the begin

void OwnEpoch::draw_ahead(int64_t count) {
  for (; count > 0 && tasks; --count) {  // a sampler's code may end the epoch
    Ref task = draw(tasks);
    if (!task) break;
    ahead.push_back(std::move(task));
  }
}

// Processes would be started now, and not see what the program writes from now on.
void OwnEpoch::begin_in_copies(PyObject* roots, int64_t first) {
  const bool has_copies = bool(crew[0].copies);
  if (iterates) {  // each worker makes its own when it begins
    const Ref all = has_copies ? Ref() : copied(roots);
    for (OwnWorker& worker : crew)
      if (!has_copies) worker.copies = all;
    return;
  }
  if (has_copies || persistent || step_by_step) {
    for (OwnWorker& worker : crew)
      if (!has_copies) worker.copies = copied(roots);
    draw_ahead(first);
  } else {
    // Who has no task in an epoch that is over before needs no copy.
    const Ref own = copied(roots);
    draw_ahead(first);
    const size_t needed = std::min(ahead.size(), crew.size());
    // What is copied finds its attributes slower, so it is not one of them.
    for (size_t i = 0; i < needed; ++i) crew[i].copies = needed > 1 ? copied(own.get()) : own;
  }
  for (OwnWorker& worker : crew) {
    if (!fetch) return;  // code of the program has ended the epoch
    if (!worker.copies || (worker.fetch && worker.fetch_by.get() == fetch.get())) continue;
    worker.fetch = Ref(check(PyObject_CallOneArg(fetch.get(), worker.copies.get())));
    worker.fetch_by = fetch;
  }
}

void begin_own(Turns& t, OwnStart start) {
  const int64_t flags = start.flags;
  if (start.workers <= 0) value_error("_begin_own(): there are no workers");
  if (!(flags & 1) && !PyIter_Check(start.tasks.get()))
    type_error("_begin_own(): expected an iterator, got ", type_name(start.tasks.get()));
  OwnEpoch& e = t.own;
  e.set_workers(size_t(start.workers));
  const Making begins(e.making);
  e.iterates = flags & 1;
  e.only_ints = flags & 2;
  e.step_by_step = flags & 4;
  e.draws = flags & 8;
  e.alone = flags & 16;
  e.persistent = flags & 32;
  e.plain = flags & 64;
  e.threads = flags & 128;
  e.changes = bool(start.copier);
  e.tasks = std::move(start.tasks);
  e.fetch = std::move(start.fetch);
  e.copier = std::move(start.copier);
  e.facts = std::move(start.facts);
  e.surroundings = Surroundings().of_process();
  e.ahead.clear();
  for (OwnWorker& worker : e.crew) {
    worker.clear(e.persistent, e.iterates);
    if (e.changes) worker.as = Ref();
    worker.given = 0;
    worker.ended = false;
  }
  if (e.changes) e.begin_in_copies(start.roots.get(), start.first);
  else if (!e.iterates) e.draw_ahead(start.first);
  e.next = 0;
  e.yielded = 0;
  e.active = true;
  e.over = false;
  t.ended = 0;
}

void init_own_epoch(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_acting_as", get_acting_as, METH_NOARGS, "_acting_as(): a worker's tuple, or None."},
      {"_is_watched", get_is_watched, METH_NOARGS,
       "_is_watched(): whether somebody sees what this thread computes."},
      {"_worker_info", (PyCFunction)(void*)make_worker_info, METH_FASTCALL,
       "_worker_info(id, num_workers, seed, dataset, method): what a worker knows of itself."},
      {"_note_worker_info", note_worker_info, METH_O,
       "_note_worker_info(type): the class of that, which is returned."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
