#include "python/worker_random.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "python/twister_seeds.h"

namespace facula::python {
namespace {

constexpr size_t kWords = 624;  // of a twister, besides the place in them

PyObject* shared_twister = nullptr;  // of the module `random`, once its words have been found

// The words of a random.Random: behind the head of the object, and after the place. To ask for them
// in Python, and to set them, takes longer than to make a small batch.
uint32_t* words_of(PyObject* random) {
  return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(random) + sizeof(PyObject));
}

PyObject* gauss_name() {
  static PyObject* name = PyUnicode_InternFromString("gauss_next");
  return name;
}

// A random.Random whose words are to be written: its class would seed it twice.
Ref new_twister() {
  PyTypeObject* type = Py_TYPE(shared_twister);
  Ref made(check(type->tp_alloc(type, 0)));
  check(PyObject_SetAttr(made.get(), gauss_name(), Py_None));
  return made;
}

// ---- whose numbers the functions of the module `random` draw

// Functions that the module has of its generator, as far as samples call them. While a worker's
// batch is made, they are functions of the worker's: to exchange 624 words takes longer.
struct Bound {
  std::vector<Ref> functions;
  bool keep_numbers = false;  // one of them, as gauss() does, keeps a number for the next call

  static PyObject** owner(PyObject* f) {
    if (PyCFunction_CheckExact(f)) return &reinterpret_cast<PyCFunctionObject*>(f)->m_self;
    if (PyMethod_Check(f)) return &reinterpret_cast<PyMethodObject*>(f)->im_self;
    return nullptr;
  }
};
Bound& bound = *new Bound;  // the interpreter is gone when statics are

// _bind_twister(function): whether the function, one of the module's generator, can draw a worker's
// numbers, which it will from now on while its batches are made.
PyObject* bind_twister(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    for (const Ref& f : bound.functions)
      if (f.get() == function) return Py_NewRef(Py_True);
    PyObject** owner = Bound::owner(function);
    if (!owner || !*owner || *owner != shared_twister) return Py_NewRef(Py_False);
    bound.functions.push_back(Ref::borrow(function));
    bound.keep_numbers |= bool(PyMethod_Check(function));
    return Py_NewRef(Py_True);
  });
}

// _find_twister(random): whether the words of a random.Random, and of others of its type, can be
// exchanged with those of `random`, which is the module's: they are where they are expected.
PyObject* find_twister(PyObject*, PyObject* random) {
  return guarded([&]() -> PyObject* {
    const size_t room = sizeof(PyObject) + (kWords + 1) * sizeof(uint32_t);
    if (size_t(Py_TYPE(random)->tp_basicsize) < room) return Py_NewRef(Py_False);
    Ref state(check(PyObject_CallMethod(random, "getstate", nullptr)));
    if (!PyTuple_CheckExact(state.get()) || PyTuple_GET_SIZE(state.get()) != 3)
      return Py_NewRef(Py_False);
    PyObject* words = PyTuple_GET_ITEM(state.get(), 1);
    if (!PyTuple_CheckExact(words) || size_t(PyTuple_GET_SIZE(words)) != kWords + 1)
      return Py_NewRef(Py_False);
    const uint32_t* here = words_of(random);
    for (size_t i = 0; i <= kWords; ++i) {
      // The place comes first in memory and last in the tuple.
      PyObject* word = PyTuple_GET_ITEM(words, Py_ssize_t(i ? i - 1 : kWords));
      const unsigned long value = PyLong_AsUnsignedLong(word);
      if (value == (unsigned long)(-1) && PyErr_Occurred()) throw PythonError{};
      if (value != here[i]) return Py_NewRef(Py_False);
    }
    Py_XSETREF(shared_twister, Py_NewRef(random));
    return Py_NewRef(Py_True);
  });
}

// _copied_twister(random): another random.Random that goes on with the same numbers; None where its
// words are not where they are expected.
PyObject* get_copied_twister(PyObject*, PyObject* random) {
  return guarded([&] { return is_twister(random) ? copied_twister(random) : Py_NewRef(Py_None); });
}

// random.Random(seed), random.Random(seed + 1) and so on.
std::vector<Ref> twisters_of(uint64_t seed, uint32_t count) {
  std::vector<Ref> made;
  std::vector<TwisterSeed> seeds;
  for (uint32_t i = 0; i < count; ++i) {
    Ref& twister = made.emplace_back(new_twister());
    uint32_t* words = words_of(twister.get());
    words[0] = kWords;
    const uint64_t own = seed + i;
    seeds.push_back({words + 1, {uint32_t(own), uint32_t(own >> 32)}, own >> 32 ? 2u : 1u});
  }
  seed_twisters(seeds.data(), seeds.size());
  return made;
}

PyObject* list_of(std::vector<Ref> items) {
  Ref list(check(PyList_New(Py_ssize_t(items.size()))));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), items[i].release());
  return list.release();
}

// _seeded_twisters(seed, count): [random.Random(seed), random.Random(seed + 1), ...] for seeds of
// 64 bits; None as above.
PyObject* seeded_twisters(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned long long seed;
    unsigned int count;
    if (!PyArg_ParseTuple(args, "KI:_seeded_twisters", &seed, &count)) throw PythonError{};
    return shared_twister ? list_of(twisters_of(seed, count)) : Py_NewRef(Py_None);
  });
}

// ---- numpy.random

// Where the numbers of numpy.random come from, once that has been found: the words of a twister,
// and, in the object itself, whether a normal number is left over and which, and where it finds the
// words.
struct ArrayRandom {
  char *words = nullptr, *left_over = nullptr, **where = nullptr;
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
  void exchange_left_over(char* state) const {
    std::swap_ranges(left_over, left_over + kLeftBytes, state + kWordBytes);
  }
} shared_arrays;

// What a numpy.random.RandomState has a copy of: where its words are, and functions that draw.
constexpr size_t kTable = 5;
char** table_of_arrays(PyObject* random) {
  Ref generator(check(PyObject_GetAttrString(random, "_bit_generator")));
  Ref capsule(check(PyObject_GetAttrString(generator.get(), "capsule")));
  auto* table = static_cast<char**>(PyCapsule_GetPointer(capsule.get(), "BitGenerator"));
  if (!table) throw PythonError{};
  return table;
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
    char** table = table_of_arrays(other);
    size_t found = 0, count = 0, table_at = 0, tables = 0;
    for (size_t at = sizeof(PyObject); at + kTable * sizeof(char*) <= size; at += sizeof(char*))
      if (!std::memcmp(object + at, table, kTable * sizeof(char*))) table_at = at, ++tables;
    for (size_t at = sizeof(PyObject); at + ArrayRandom::kLeftBytes <= size; at += sizeof(double)) {
      int has;
      double value;
      std::memcpy(&has, object + at, sizeof has);
      std::memcpy(&value, object + at + sizeof(double), sizeof value);
      if (has != 1 || value != 0.8414709848078965) continue;
      found = at;
      ++count;
    }
    if (count != 1 || tables != 1) return PyLong_FromLong(0);
    mark(other, 0);
    int has;
    std::memcpy(&has, object + found, sizeof has);
    int32_t place;
    const char* words = table[0];
    std::memcpy(&place, words + 624 * sizeof(uint32_t), sizeof place);
    Ref state(check(PyObject_CallMethod(other, "get_state", nullptr)));
    Ref key(check(PySequence_GetItem(state.get(), 1)));
    Ref bytes(check(PyObject_CallMethod(key.get(), "tobytes", nullptr)));
    const bool as_expected =
        has == 0 && place == 77 && PyBytes_Check(bytes.get()) &&
        size_t(PyBytes_GET_SIZE(bytes.get())) == 624 * sizeof(uint32_t) &&
        !std::memcmp(words, PyBytes_AS_STRING(bytes.get()), 624 * sizeof(uint32_t));
    if (!as_expected) return PyLong_FromLong(0);
    auto* shared = reinterpret_cast<char*>(random);
    auto** where = reinterpret_cast<char**>(shared + table_at);
    if (*where != *table_of_arrays(random)) return PyLong_FromLong(0);
    Py_INCREF(random);
    shared_arrays = {*where, shared + found, where};
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

// The states of numpy.random in the workers from `first` on, which is seeded with what SeedSequence
// makes of their numbers and the loader's seed.
std::vector<Ref> arrays_of(uint64_t seed, uint32_t first, uint32_t count) {
  std::vector<Ref> made;
  std::vector<TwisterSeed> seeds;
  for (uint32_t i = 0; i < count; ++i) {
    const auto size = Py_ssize_t(ArrayRandom::kBytes);
    PyObject* state = made.emplace_back(check(PyByteArray_FromStringAndSize(nullptr, size))).get();
    char* bytes = PyByteArray_AS_STRING(state);
    std::memset(bytes, 0, ArrayRandom::kBytes);
    auto* words = reinterpret_cast<uint32_t*>(bytes);
    words[kWords] = kWords;
    const SeedWords key = sequence_of({first + i, uint32_t(seed), uint32_t(seed >> 32), 0});
    TwisterSeed& own = seeds.emplace_back(TwisterSeed{words, {}, std::size(key.words)});
    std::copy(std::begin(key.words), std::end(key.words), own.key);
  }
  seed_twisters(seeds.data(), seeds.size());
  return made;
}

// _seeded_array_random(seed, first, count): these states in a list.
PyObject* seeded_array_random(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned long long seed;
    unsigned int first, count;
    if (!PyArg_ParseTuple(args, "KII:_seeded_array_random", &seed, &first, &count))
      throw PythonError{};
    return list_of(arrays_of(seed, first, count));
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

void WordsBefore::note(const uint32_t* now, uint32_t at) {
  // A twister makes all of its words anew at once, so what it begins with tells.
  constexpr size_t kTelling = 16;
  place = at;
  if (!words) words = std::make_unique_for_overwrite<uint32_t[]>(kWords);
  else if (std::equal(now, now + kTelling, words.get())) return;
  std::copy_n(now, kWords, words.get());
}

void WordsBefore::put_back(uint32_t* to) const {
  std::copy_n(words.get(), kWords, to);
}

bool can_still_draw(unsigned draws) {
  if (draws & (kDrawsTwister | kDrawsArrays) && !runs_alone()) return false;
  if (draws & kDrawsTwister && !shared_twister) return false;
  // A program may give numpy.random another source of numbers.
  return !(draws & kDrawsArrays) ||
         (shared_arrays.where && *shared_arrays.where == shared_arrays.words);
}

std::vector<Ref> generators_of_workers(unsigned draws, uint64_t base_seed, uint32_t first,
                                       uint32_t count) {
  std::vector<Ref> twisters, arrays, made;
  if (draws & kDrawsTwister) twisters = twisters_of(base_seed + first, count);
  if (draws & kDrawsArrays) arrays = arrays_of(base_seed, first, count);
  for (uint32_t i = 0; i < count; ++i) {
    Ref own = draws & kDrawsOwn ? new_generator(base_seed + first + i) : Ref::borrow(Py_None);
    made.emplace_back(
        check(PyTuple_Pack(3, own.get(), twisters.empty() ? Py_None : twisters[i].get(),
                           arrays.empty() ? Py_None : arrays[i].get())));
  }
  return made;
}

bool is_twister(PyObject* o) {
  return shared_twister && Py_TYPE(o) == Py_TYPE(shared_twister);
}

PyObject* copied_twister(PyObject* twister) {
  Ref copy = new_twister();
  std::copy_n(words_of(twister), kWords + 1, words_of(copy.get()));
  Ref kept(check(PyObject_GetAttr(twister, gauss_name())));
  if (kept.get() != Py_None) check(PyObject_SetAttr(copy.get(), gauss_name(), kept.get()));
  return copy.release();
}

DrawingAsWorker::DrawingAsWorker(PyObject* generator, PyObject* twister, PyObject* arrays,
                                 NumbersBefore* before)
    : before_(before) {
  if (generator != Py_None && !is_generator(generator))
    type_error("expected a Generator, got ", type_name(generator));
  if (twister != Py_None && !is_twister(twister))
    type_error("expected a random.Random, got ", type_name(twister));
  char* state = arrays != Py_None ? array_state(arrays) : nullptr;
  if (generator != Py_None) generator_ = generator_of(generator);
  if (before && generator_) generator_->mark();
  if (before && twister != Py_None) {
    before->twister.note(words_of(twister) + 1, *words_of(twister));
    if (bound.keep_numbers) before->gauss = Ref(check(PyObject_GetAttr(twister, gauss_name())));
  }
  if (before && state) {
    auto* words = reinterpret_cast<uint32_t*>(state);
    before->arrays.note(words, words[kWords]);
    std::copy_n(state + ArrayRandom::kWordBytes, sizeof before->left_over, before->left_over);
  }
  if (twister != Py_None) {
    twister_ = Ref::borrow(twister);
    bound_ = bound.functions.size();
    for (size_t i = 0; i < bound_; ++i)
      others_ = std::exchange(*Bound::owner(bound.functions[i].get()), Py_NewRef(twister));
  }
  if (state) {
    arrays_ = Ref::borrow(arrays);
    words_ = std::exchange(*shared_arrays.where, state);
    shared_arrays.exchange_left_over(state);
  }
  thread_ = std::exchange(thread_generator, generator_ ? generator_ : thread_generator);
}

DrawingAsWorker::~DrawingAsWorker() {
  thread_generator = thread_;
  for (size_t i = 0; i < bound_; ++i)
    Py_DECREF(std::exchange(*Bound::owner(bound.functions[i].get()), others_));
  if (arrays_) {
    *shared_arrays.where = words_;
    shared_arrays.exchange_left_over(PyByteArray_AS_STRING(arrays_.get()));
  }
}

void DrawingAsWorker::undo() {
  if (generator_) generator_->rewind();
  if (arrays_) {
    auto* words = reinterpret_cast<uint32_t*>(PyByteArray_AS_STRING(arrays_.get()));
    before_->arrays.put_back(words);
    words[kWords] = before_->arrays.place;
    std::copy_n(before_->left_over, sizeof before_->left_over, shared_arrays.left_over);
  }
  if (!twister_) return;
  before_->twister.put_back(words_of(twister_.get()) + 1);
  *words_of(twister_.get()) = before_->twister.place;
  if (!bound.keep_numbers) return;
  // An exception is on its way, which the attribute has nothing to do with.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject_SetAttr(twister_.get(), gauss_name(), before_->gauss.get())) PyErr_Clear();
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
       "_seeded_array_random(seed, first, count): states of numpy.random in workers."},
      {"_copied_twister", get_copied_twister, METH_O,
       "_copied_twister(random): another random.Random that goes on with the same numbers."},
      {"_seeded_twisters", seeded_twisters, METH_VARARGS,
       "_seeded_twisters(seed, count): a random.Random of each of so many seeds."},
      {"_bind_twister", bind_twister, METH_O,
       "_bind_twister(function): whether a function of `random` can draw a worker's numbers."},
      {"_runs_alone", get_runs_alone, METH_NOARGS,
       "_runs_alone(): whether the program has one thread that runs Python."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
