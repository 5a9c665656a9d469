// An epoch whose batches the loader makes itself from the begin, in the place of worker processes
// that have not been started: what is left of workers is their numbers and random numbers.
#pragma once
#include <vector>

#include "python/batch_tasks.h"
#include "python/worker_random.h"

namespace facula::python {

// What code of this thread finds out about the worker that it runs in.
struct Acting {
  PyObject* as = nullptr;      // a tuple, or null outside of workers
  PyObject* stream = nullptr;  // what makes one of a number when it is asked for, or null
  uint32_t number = 0;
};
inline thread_local Acting acting;

// While it lasts, the thread acts as another worker.
struct ActingAs {
  explicit ActingAs(Acting as) : before(std::exchange(acting, as)) {}
  ~ActingAs() { acting = before; }
  ActingAs(const ActingAs&) = delete;
  Acting before;
};

// Why such an epoch is left for tasks that are handed out to workers.
enum class Leave { KeepsGoing, BelongsToWorkers, Failed, Changed };

// What the program has set that batches depend on. A process would have it as it was when it began.
struct Surroundings {
  DType dtype = default_dtype();
  Device device = default_device();
  ThreadState state = thread_state;
  uint32_t level = current_level;  // of function transforms

  bool operator==(const Surroundings& o) const {
    const ThreadState &a = state, &b = o.state;
    return dtype == o.dtype && device == o.device && level == o.level &&
           a.enabled_keys == b.enabled_keys && a.inference == b.inference &&
           a.forward == b.forward && a.batching == b.batching && a.autocast == b.autocast;
  }
  // What comes from a process has no mark of how it was made there.
  Surroundings of_process() const {
    Surroundings found = *this;
    found.state.inference = false;
    return found;
  }
  void set() const {
    set_default_dtype(dtype);
    set_default_device(device);
    thread_state = state;
    current_level = level;
  }
};

// While it lasts, they are others.
struct InSurroundings {
  explicit InSurroundings(const Surroundings& others) : differ(!(others == before)) {
    if (differ) others.set();
  }
  ~InSurroundings() {
    if (differ) before.set();
  }
  InSurroundings(const InSurroundings&) = delete;
  const Surroundings before;
  const bool differ;
};

// What is left of a worker: null is what has not begun, or nobody has asked for.
struct OwnWorker {
  Ref fetch;     // makes its batches, if it iterates or has a copy
  Ref fetch_by;  // what `fetch` was made by, of a worker that stays
  // What it writes to, where there is such a thing: the copies that it has, a list, and those that
  // it began to iterate with.
  Ref copies, copies_before;
  Ref as;                 // for Acting
  Ref generators;         // that it draws from
  NumbersBefore numbers;  // when it began to make its last batch
  Py_ssize_t given = 0;
  bool ended = false;

  // What an epoch leaves of a worker that stays, or none.
  void clear(bool stays, bool iterates) {
    copies_before = Ref();
    if (!stays) as = generators = copies = Ref();
    if (!stays || iterates || !copies) fetch = fetch_by = Ref();
  }
};

// While it lasts, a batch is made, or an epoch begun.
struct Making {
  explicit Making(bool& is_made) : flag(is_made), before(std::exchange(is_made, true)) {}
  ~Making() { flag = before; }
  Making(const Making&) = delete;
  bool &flag, before;
};

struct OwnEpoch {
  bool active = false, over = false;
  bool iterates = false;   // each worker goes over the dataset, so `tasks` is the one task there is
  bool only_ints = false;  // indices must be ints: others may have code of their own
  bool step_by_step = false;  // a task is drawn for each batch that is given
  bool draws = false;         // random numbers, which are those of the worker
  bool alone = false;         // from generators that all threads share
  bool changes = false;       // what is written to, of which each worker has a copy
  bool persistent = false;    // another epoch may follow, and workers stay who they are
  bool threads = false;       // workers would be some: each has a generator for those who ask
  bool plain = false;         // there are no workers in whose place batches are made
  bool making = false;        // code of the program runs, which may come back here
  Ref tasks;                  // goes over them
  std::vector<Ref> ahead;     // tasks that have been drawn
  // Makes a batch, or begins to iterate and returns what makes batches; of copies, where there are.
  Ref fetch;
  Ref copier;  // makes copies of copies
  Ref facts;   // what the program may change meanwhile, of which workers would not hear; or null
  Surroundings surroundings;  // when the epoch began
  std::vector<OwnWorker> crew;
  uint32_t next = 0;  // worker
  Py_ssize_t yielded = 0;
  // Generators that workers draw from and that are made here, without asking `_generators_of`: of
  // Draws. They follow from the seed of the epoch.
  unsigned made_of_seed = 0;
  uint64_t seed = 0;
  double seconds = 0;  // spent on batches since somebody looked at the pace

  uint32_t workers() const { return uint32_t(crew.size()); }
  uint32_t after(uint32_t number) const { return number + 1 == workers() ? 0 : number + 1; }

  // The next task; null when there are no more.
  Ref take_task() {
    if (iterates) {
      uint32_t tried = 0;
      while (tried < workers() && crew[next].ended) next = after(next), ++tried;
      return tried < workers() ? tasks : Ref();
    }
    if (!ahead.empty()) {
      Ref first = std::move(ahead.front());
      ahead.erase(ahead.begin());
      return first;
    }
    return tasks ? draw(tasks) : Ref();  // step by step, too, after an interrupt
  }
  // Another task for one that is done, or failed.
  void replace_task() {
    if (!step_by_step || !tasks) return;
    Ref drawn = draw(tasks);
    if (drawn) ahead.push_back(std::move(drawn));
    else tasks = Ref();
  }
  static Ref draw(Ref from) {
    Ref drawn_task(PyIter_Next(from.get()));
    if (!drawn_task && PyErr_Occurred()) throw PythonError{};
    return drawn_task;
  }
  // Whether somebody else may make a batch of it.
  bool fits(PyObject* task) const {
    if (!only_ints || PyLong_CheckExact(task)) return true;
    if (!PyList_CheckExact(task)) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(task); ++i)
      if (!PyLong_CheckExact(PyList_GET_ITEM(task, i))) return false;
    return true;
  }
  void count(uint32_t number) {
    ++crew[number].given;
    ++yielded;
  }
  // Workers may only change between batches.
  void set_workers(size_t count) {
    if (making)
      runtime_error("an epoch cannot begin while its iterator begins one or makes a batch");
    crew.resize(count);
  }
  // A batch of a worker; null with an exception set when that failed.
  PyObject* make(PyObject* stream, uint32_t number, PyObject* task);
  // Each worker gets copies, of `roots` if it has none, and what makes its batches; the first tasks
  // are drawn.
  void begin_in_copies(PyObject* roots, int64_t first);
  void draw_ahead(int64_t count);
  void clear() {
    active = false;
    tasks = fetch = copier = facts = Ref();
    ahead.clear();
    for (OwnWorker& worker : crew) worker.clear(persistent, iterates);
  }

 private:
  void make_generators(PyObject* stream, uint32_t number);
  PyObject* fetch_one(uint32_t number, PyObject* task);
  Ref copied(PyObject* values) const;
};

}  // namespace facula::python
