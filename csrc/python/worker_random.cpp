#include "python/worker_random.h"

#include <algorithm>
#include <cstring>

namespace facula::python {
namespace {

PyObject* shared_twister = nullptr;  // of the module `random`, once its words have been found

// The words of a random.Random: behind the head of the object. To ask for them in Python, and to
// set them, takes longer than to make a small batch.
uint32_t* words_of(PyObject* random) {
  return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(random) + sizeof(PyObject));
}

// _find_twister(random): whether the words of a random.Random, and of others of its type, can be
// exchanged with those of `random`, which is the module's: they are where they are expected.
PyObject* find_twister(PyObject*, PyObject* random) {
  return guarded([&]() -> PyObject* {
    constexpr size_t kWords = 625;
    const size_t room = sizeof(PyObject) + kWords * sizeof(uint32_t);
    if (size_t(Py_TYPE(random)->tp_basicsize) < room) return Py_NewRef(Py_False);
    Ref state(check(PyObject_CallMethod(random, "getstate", nullptr)));
    if (!PyTuple_CheckExact(state.get()) || PyTuple_GET_SIZE(state.get()) != 3)
      return Py_NewRef(Py_False);
    PyObject* words = PyTuple_GET_ITEM(state.get(), 1);
    if (!PyTuple_CheckExact(words) || size_t(PyTuple_GET_SIZE(words)) != kWords)
      return Py_NewRef(Py_False);
    const uint32_t* here = words_of(random);
    for (size_t i = 0; i < kWords; ++i) {
      // The place comes first in memory and last in the tuple.
      PyObject* word = PyTuple_GET_ITEM(words, Py_ssize_t(i ? i - 1 : kWords - 1));
      const unsigned long value = PyLong_AsUnsignedLong(word);
      if (value == (unsigned long)(-1) && PyErr_Occurred()) throw PythonError{};
      if (value != here[i]) return Py_NewRef(Py_False);
    }
    Py_XSETREF(shared_twister, Py_NewRef(random));
    return Py_NewRef(Py_True);
  });
}

PyObject* get_runs_alone(PyObject*, PyObject*) {
  return PyBool_FromLong(runs_alone());
}

}  // namespace

bool runs_alone() {
  PyThreadState* first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first && !PyThreadState_Next(first);
}

DrawingAsWorker::DrawingAsWorker(PyObject* generator, PyObject* twister) {
  if (generator != Py_None) {
    if (!is_generator(generator)) type_error("expected a Generator, got ", type_name(generator));
    generator_ = generator_of(generator);
    generator_->get_state(generator_state_);
  }
  if (twister != Py_None) {
    if (!shared_twister || Py_TYPE(twister) != Py_TYPE(shared_twister))
      type_error("expected a random.Random, got ", type_name(twister));
    twister_ = Ref::borrow(twister);
    std::copy_n(words_of(shared_twister), kTwisterWords, shared_state_);
    std::copy_n(words_of(twister), kTwisterWords, words_of(shared_twister));
  }
  before_ = thread_generator;
  if (generator_) thread_generator = generator_;
}

DrawingAsWorker::~DrawingAsWorker() {
  thread_generator = before_;
  if (!twister_) return;
  std::copy_n(words_of(shared_twister), kTwisterWords, words_of(twister_.get()));
  std::copy_n(shared_state_, kTwisterWords, words_of(shared_twister));
}

void DrawingAsWorker::undo() {
  if (generator_) generator_->set_state(generator_state_, sizeof generator_state_);
  if (twister_) std::copy_n(words_of(twister_.get()), kTwisterWords, words_of(shared_twister));
}

void init_worker_random(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_find_twister", find_twister, METH_O,
       "_find_twister(random): whether a worker's random.Random can stand in for this one."},
      {"_runs_alone", get_runs_alone, METH_NOARGS,
       "_runs_alone(): whether the program has one thread that runs Python."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
