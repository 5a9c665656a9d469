// The tasks of a worker, whoever does them: the worker, or the loader in its place.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "python/interop.h"

namespace facula::python {

// Seconds of a clock that never goes back.
inline double now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

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
inline Tasks& tasks_of(PyObject* o) {
  return reinterpret_cast<PyTasks*>(o)->t;
}
extern PyTypeObject* tasks_type;

// While it lasts, tasks are done by the thread that made it.
struct Busy {
  explicit Busy(Tasks& t) : tasks(t) { tasks.busy = true; }
  ~Busy() { tasks.busy = false; }
  Busy(const Busy&) = delete;
  Tasks& tasks;
};

// The exception that is set, as an object; others than Exception (an interrupt) go on their way.
PyObject* caught();

// The module keeps it.
inline PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name) {
  Ref type(check(PyType_FromSpec(&spec)));
  check(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.get());
}

}  // namespace facula::python
