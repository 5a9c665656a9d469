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

// _copy_twister(to, from): whether the words of one random.Random were given to another. A normal
// number that is left over is an attribute.
PyObject* copy_twister(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *to, *from;
    if (!PyArg_ParseTuple(args, "OO:_copy_twister", &to, &from)) throw PythonError{};
    const bool known = shared_twister && Py_TYPE(to) == Py_TYPE(shared_twister) &&
                       Py_TYPE(from) == Py_TYPE(shared_twister);
    if (known) std::memcpy(words_of(to), words_of(from), 625 * sizeof(uint32_t));
    return PyBool_FromLong(known);
  });
}

// ---- numpy.random

// Where the numbers of numpy.random come from, once that has been found: the words of a twister,
// and, in the object itself, whether a normal number is left over and which.
struct ArrayRandom {
  char *words = nullptr, *left_over = nullptr;
  static constexpr size_t kWordBytes = 625 * sizeof(uint32_t), kLeftBytes = 2 * sizeof(double);
  static constexpr size_t kBytes = kWordBytes + kLeftBytes;

  void read(char* to) const {
    std::memcpy(to, words, kWordBytes);
    std::memcpy(to + kWordBytes, left_over, kLeftBytes);
  }
  void write(const char* from) const {
    std::memcpy(words, from, kWordBytes);
    std::memcpy(left_over, from + kWordBytes, kLeftBytes);
  }
  void exchange(char* with) const {
    char now[kBytes];
    read(now);
    write(with);
    std::memcpy(with, now, kBytes);
  }
} shared_arrays;

// The words of a numpy.random.RandomState: what its generator's table of functions begins with.
char* words_of_arrays(PyObject* random) {
  Ref generator(check(PyObject_GetAttrString(random, "_bit_generator")));
  Ref capsule(check(PyObject_GetAttrString(generator.get(), "capsule")));
  auto* table = static_cast<char**>(PyCapsule_GetPointer(capsule.get(), "BitGenerator"));
  if (!table) throw PythonError{};
  return *table;
}

// Puts a RandomState into a state that nobody else comes upon.
void mark(PyObject* random, double left_over) {
  Ref state(check(PyObject_CallMethod(random, "get_state", nullptr)));
  Ref words(check(PySequence_GetItem(state.get(), 1)));
  Ref set(check(PyObject_CallMethod(random, "set_state", "((sOiid))", "MT19937", words.get(), 77,
                                    left_over != 0, left_over)));
}

// _find_array_random(random, other): how many bytes a state of numpy.random takes, 0 where it is
// not where it is expected. `random` is the one of the module, `other` another one of its type,
// which is written to.
PyObject* find_array_random(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *random, *other;
    if (!PyArg_ParseTuple(args, "OO:_find_array_random", &random, &other)) throw PythonError{};
    if (Py_TYPE(random) != Py_TYPE(other)) return PyLong_FromLong(0);
    mark(other, 0.8414709848078965);
    auto* object = reinterpret_cast<char*>(other);
    const auto size = size_t(Py_TYPE(other)->tp_basicsize);
    size_t found = 0, count = 0;
    for (size_t at = sizeof(PyObject); at + ArrayRandom::kLeftBytes <= size; at += sizeof(double)) {
      int has;
      double value;
      std::memcpy(&has, object + at, sizeof has);
      std::memcpy(&value, object + at + sizeof(double), sizeof value);
      if (has != 1 || value != 0.8414709848078965) continue;
      found = at;
      ++count;
    }
    if (count != 1) return PyLong_FromLong(0);
    mark(other, 0);
    int has;
    std::memcpy(&has, object + found, sizeof has);
    int32_t place;
    const char* words = words_of_arrays(other);
    std::memcpy(&place, words + 624 * sizeof(uint32_t), sizeof place);
    Ref state(check(PyObject_CallMethod(other, "get_state", nullptr)));
    Ref key(check(PySequence_GetItem(state.get(), 1)));
    Ref bytes(check(PyObject_CallMethod(key.get(), "tobytes", nullptr)));
    const bool as_expected =
        has == 0 && place == 77 && PyBytes_Check(bytes.get()) &&
        size_t(PyBytes_GET_SIZE(bytes.get())) == 624 * sizeof(uint32_t) &&
        !std::memcmp(words, PyBytes_AS_STRING(bytes.get()), 624 * sizeof(uint32_t));
    if (!as_expected) return PyLong_FromLong(0);
    shared_arrays = {words_of_arrays(random), reinterpret_cast<char*>(Py_NewRef(random)) + found};
    return PyLong_FromSize_t(ArrayRandom::kBytes);
  });
}

char* array_state(PyObject* state) {
  if (!shared_arrays.words || !PyByteArray_CheckExact(state) ||
      size_t(PyByteArray_GET_SIZE(state)) != ArrayRandom::kBytes)
    type_error("expected the state of numpy.random in a bytearray, got ", type_name(state));
  return PyByteArray_AS_STRING(state);
}

PyObject* exchange_array_random(PyObject*, PyObject* state) {
  return guarded([&]() -> PyObject* {
    shared_arrays.exchange(array_state(state));
    return Py_NewRef(Py_None);
  });
}

// The words that numpy.random.SeedSequence makes of four, and a twister of those.
class SeededTwister {
 public:
  explicit SeededTwister(const uint32_t (&entropy)[4]) {
    uint32_t pool[4], hash = 0x43b0d7e5u;
    auto hashed = [&](uint32_t v) {
      v ^= hash;
      hash *= 0x931e8875u;
      v *= hash;
      return v ^ v >> 16;
    };
    for (int i = 0; i < 4; ++i) pool[i] = hashed(entropy[i]);
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to)
        if (from != to) {
          const uint32_t v = 0xca01f9ddu * pool[to] - 0x4973f715u * hashed(pool[from]);
          pool[to] = v ^ v >> 16;
        }
    hash = 0x8b51f9ddu;
    uint32_t key[4];
    for (int i = 0; i < 4; ++i) {
      uint32_t v = pool[i] ^ hash;
      hash *= 0x58f38dedu;
      v *= hash;
      key[i] = v ^ v >> 16;
    }
    fill(key);
  }
  uint32_t words[625];  // and the place in them

 private:
  // Matsumoto and Nishimura's init_by_array().
  void fill(const uint32_t (&key)[4]) {
    constexpr int n = 624;
    words[0] = 19650218u;
    for (int i = 1; i < n; ++i)
      words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + uint32_t(i);
    auto mixed = [&](int i, uint32_t by) { return (words[i - 1] ^ words[i - 1] >> 30) * by; };
    int i = 1, j = 0;
    auto step = [&] {
      if (++i == n) words[0] = words[n - 1], i = 1;
    };
    for (int k = 0; k < n; ++k, j = (j + 1) % 4) {
      words[i] = (words[i] ^ mixed(i, 1664525u)) + key[j] + uint32_t(j);
      step();
    }
    for (int k = 1; k < n; ++k) {
      words[i] = (words[i] ^ mixed(i, 1566083941u)) - uint32_t(i);
      step();
    }
    words[0] = 0x80000000u;
    words[n] = n;
  }
};

// _seeded_array_random(a, b, c, d): the state of numpy.random when it is seeded with what
// SeedSequence makes of these words.
PyObject* seeded_array_random(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    uint32_t entropy[4];
    if (!PyArg_ParseTuple(args, "IIII:_seeded_array_random", &entropy[0], &entropy[1], &entropy[2],
                          &entropy[3]))
      throw PythonError{};
    const SeededTwister twister(entropy);
    char state[ArrayRandom::kBytes] = {};
    std::memcpy(state, twister.words, sizeof twister.words);
    return check(PyByteArray_FromStringAndSize(state, sizeof state));
  });
}

// ---- what gauss() of the module `random` keeps

PyObject* gauss_name() {
  static PyObject* name = PyUnicode_InternFromString("gauss_next");
  return name;
}

// Most generators have none, which is None.
void set_gauss(PyObject* random, const Ref& before, const Ref& value) {
  if (before.get() != value.get() && PyObject_SetAttr(random, gauss_name(), value.get()))
    PyErr_Clear();
}

PyObject* get_runs_alone(PyObject*, PyObject*) {
  return PyBool_FromLong(runs_alone());
}

}  // namespace

bool runs_alone() {
  PyThreadState* first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first && !PyThreadState_Next(first);
}

DrawingAsWorker::DrawingAsWorker(PyObject* generator, PyObject* twister, PyObject* arrays) {
  static_assert(kArrayBytes == ArrayRandom::kBytes);
  if (generator != Py_None) {
    if (!is_generator(generator)) type_error("expected a Generator, got ", type_name(generator));
    generator_ = generator_of(generator);
    generator_->get_state(generator_state_);
  }
  if (arrays != Py_None) std::memcpy(array_before_, array_state(arrays), kArrayBytes);
  if (twister != Py_None) {
    if (!shared_twister || Py_TYPE(twister) != Py_TYPE(shared_twister))
      type_error("expected a random.Random, got ", type_name(twister));
    shared_gauss_ = Ref(check(PyObject_GetAttr(shared_twister, gauss_name())));
    own_gauss_ = Ref(check(PyObject_GetAttr(twister, gauss_name())));
    twister_ = Ref::borrow(twister);
    std::copy_n(words_of(shared_twister), kWords, shared_words_);
    std::copy_n(words_of(twister), kWords, words_of(shared_twister));
    set_gauss(shared_twister, shared_gauss_, own_gauss_);
  }
  if (arrays != Py_None) {
    array_state_ = Ref::borrow(arrays);
    shared_arrays.exchange(PyByteArray_AS_STRING(arrays));
  }
  before_ = thread_generator;
  if (generator_) thread_generator = generator_;
}

DrawingAsWorker::~DrawingAsWorker() {
  thread_generator = before_;
  if (array_state_) shared_arrays.exchange(PyByteArray_AS_STRING(array_state_.get()));
  if (!twister_) return;
  std::copy_n(words_of(shared_twister), kWords, words_of(twister_.get()));
  std::copy_n(shared_words_, kWords, words_of(shared_twister));
  // An exception may be on its way, which the attributes have nothing to do with.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Ref left(PyObject_GetAttr(shared_twister, gauss_name()));
  if (!left) PyErr_Clear();
  else set_gauss(twister_.get(), own_gauss_, left);
  set_gauss(shared_twister, left, shared_gauss_);
  PyErr_Restore(type, value, trace);
}

void DrawingAsWorker::undo() {
  if (generator_) generator_->set_state(generator_state_, sizeof generator_state_);
  if (array_state_) shared_arrays.write(array_before_);
  if (!twister_) return;
  std::copy_n(words_of(twister_.get()), kWords, words_of(shared_twister));
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  set_gauss(shared_twister, Ref(), own_gauss_);
  PyErr_Restore(type, value, trace);
}

void init_worker_random(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_find_twister", find_twister, METH_O,
       "_find_twister(random): whether a worker's random.Random can stand in for this one."},
      {"_find_array_random", find_array_random, METH_VARARGS,
       "_find_array_random(random, other): bytes of a state of numpy.random, or 0."},
      {"_exchange_array_random", exchange_array_random, METH_O,
       "_exchange_array_random(state): exchanges the state of numpy.random with a bytearray's."},
      {"_seeded_array_random", seeded_array_random, METH_VARARGS,
       "_seeded_array_random(a, b, c, d): the state of numpy.random seeded by four words."},
      {"_copy_twister", copy_twister, METH_VARARGS,
       "_copy_twister(to, from): whether a random.Random was put into the state of another."},
      {"_runs_alone", get_runs_alone, METH_NOARGS,
       "_runs_alone(): whether the program has one thread that runs Python."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
