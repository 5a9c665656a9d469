// The order in which batches of workers come, and the loader's iterator over them.
#pragma once
#include <algorithm>

#include "python/own_epoch.h"

namespace facula::python {

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
};

// What the Python side of an iterator keeps. Attributes in a dict would cost a tiny epoch more time
// than its batches.
struct StreamMembers {
  PyObject_HEAD PyObject *terms, *pace, *index_sampler, *indices, *base_seed, *generator_state,
      *fetch;
  Py_ssize_t made_before;
  char iterable, is_own, may_be_here, drew_seed, is_finished, is_shut_down;

  template <class F>
  void for_each_object(F&& f) {
    for (PyObject** o :
         {&terms, &pace, &index_sampler, &indices, &base_seed, &generator_state, &fetch})
      f(*o);
  }
};

struct PyStream {
  StreamMembers members;
  Turns t;
};
bool is_stream(PyObject* o);
bool is_stream_type(PyObject* o);  // whether it is a class of them
inline StreamMembers& members_of(PyObject* o) {
  return reinterpret_cast<PyStream*>(o)->members;
}
inline Turns& turns_of(PyObject* o) {
  return reinterpret_cast<PyStream*>(o)->t;
}

// One of _BatchStream or of a subclass, before anything begins.
PyObject* new_stream(PyTypeObject* type, PyObject*, PyObject*);

// The next batch of an epoch that the loader makes by itself. Null at its end, and, no longer
// active, when the rest is handed out to workers.
PyObject* next_own(PyObject* stream, Turns& t);

// What such an epoch is begun with; see begin_own_epoch().
struct OwnStart {
  Ref tasks, fetch;
  int64_t first = 0, workers = 0, flags = 0;
  Ref facts, copier, roots;
};
void begin_own(Turns& t, OwnStart start);

// Methods of streams.
PyObject* begin_own_epoch(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* own_state_of(PyObject*, PyObject*);
PyObject* as_worker_of(PyObject*, PyObject*);
PyObject* stay_as(PyObject*, PyObject*);
PyObject* own_copies_of(PyObject*, PyObject*);
PyObject* own_generators_of(PyObject*, PyObject*);
PyObject* forget_own_epoch(PyObject*, PyObject*);

void init_own_epoch(PyObject* module);
void init_epoch_plan(PyObject* module);

}  // namespace facula::python
