// How the epochs of a loader begin that makes all batches in the place of its workers: what has
// been found out of the loader, in a form in which nothing is left to be asked but whether it still
// holds. An epoch of one sample is over in some microseconds, so its begin must be, too.
#include "python/turns.h"

namespace facula::python {
namespace {

// ---- indices in order

// 0, 1, 2 and so on below the length of `sized`, by themselves or in batches.
struct PyInOrder {
  PyObject_HEAD PyObject* sized;  // null once its length is known
  PyObject* batches;  // a sampler that says how many make a batch, which may change, or null
  Py_ssize_t next, count;
  Py_ssize_t least;  // that the last batch must have, once the first is asked for
  bool drop_last;
};
PyInOrder& in_order_of(PyObject* o) {
  return *reinterpret_cast<PyInOrder*>(o);
}
PyTypeObject* in_order_type = nullptr;

Ref new_in_order(PyObject* sized, PyObject* batches, bool drop_last) {
  Ref made(check(in_order_type->tp_alloc(in_order_type, 0)));
  PyInOrder& order = in_order_of(made.get());
  order.sized = Py_NewRef(sized);
  if (batches != Py_None) order.batches = Py_NewRef(batches);
  order.drop_last = drop_last;
  return made;
}

PyObject* next_in_order(PyObject* self) {
  return guarded([&]() -> PyObject* {
    static PyObject* batch_size = PyUnicode_InternFromString("batch_size");
    PyInOrder& order = in_order_of(self);
    if (order.sized) {
      const Ref sized(std::exchange(order.sized, nullptr));
      order.count = check(PyObject_Size(sized.get()));
    }
    if (order.next >= order.count) return nullptr;
    if (!order.batches) return PyLong_FromSsize_t(order.next++);
    const Ref sampler = Ref::borrow(order.batches);
    const Ref size(check(PyObject_GetAttr(sampler.get(), batch_size)));
    const Py_ssize_t most = index_of(size.get());
    if (!order.least) order.least = order.drop_last ? most : 1;
    const Py_ssize_t n = std::min(order.count - order.next, most);
    if (n <= 0 || n < order.least) return nullptr;
    Ref batch(check(PyList_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyList_SET_ITEM(batch.get(), i, check(PyLong_FromSsize_t(order.next++)));
    return batch.release();
  });
}

int traverse_in_order(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(in_order_of(self).sized);
  Py_VISIT(in_order_of(self).batches);
  return 0;
}

int clear_in_order(PyObject* self) {
  Py_CLEAR(in_order_of(self).sized);
  Py_CLEAR(in_order_of(self).batches);
  return 0;
}

void free_in_order(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear_in_order(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot in_order_slots[] = {
    {Py_tp_dealloc, (void*)free_in_order},  {Py_tp_traverse, (void*)traverse_in_order},
    {Py_tp_clear, (void*)clear_in_order},   {Py_tp_iter, (void*)PyObject_SelfIter},
    {Py_tp_iternext, (void*)next_in_order}, {0, nullptr}};
PyType_Spec in_order_spec = {
    "facula._C._InOrder", sizeof(PyInOrder), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, in_order_slots};

// ---- plans

constexpr int64_t kThreads = 128;  // among the flags of begin_own()

struct Plan {
  Ref terms, facts, pace;    // as the iterator knows them, and what they rest on
  Ref sampler;               // of indices
  Ref indices;               // what makes an iterator over them; one for all epochs of what is
  Ref task;                  // an iterable dataset, whose task is always the same
  Ref sized, batches;        // where indices are in order: what is counted, or None, and who
                             // says how many make a batch, or None
  Ref fetch;                 // or None, where the terms are asked in each epoch
  Ref copier, roots;         // of what each worker writes to, or None
  Ref generator, draw_seed;  // the default generator, and what draws a seed in Python
  int64_t drop_last = 0, first = 0, workers = 0, flags = 0;
  int64_t draws = 0;         // from which generators, of Draws
  int64_t made_of_seed = 0;  // whether they are begun here
};

template <class T>
struct Part {
  const char* name;
  T Plan::* place;
};
constexpr Part<Ref> kObjects[] = {
    {"terms", &Plan::terms},         {"facts", &Plan::facts},         {"pace", &Plan::pace},
    {"sampler", &Plan::sampler},     {"indices", &Plan::indices},     {"task", &Plan::task},
    {"sized", &Plan::sized},         {"batches", &Plan::batches},     {"fetch", &Plan::fetch},
    {"generator", &Plan::generator}, {"draw_seed", &Plan::draw_seed}, {"copier", &Plan::copier},
    {"roots", &Plan::roots}};
constexpr Part<int64_t> kNumbers[] = {
    {"drop_last", &Plan::drop_last}, {"first", &Plan::first},
    {"workers", &Plan::workers},     {"flags", &Plan::flags},
    {"draws", &Plan::draws},         {"made_of_seed", &Plan::made_of_seed}};

struct PyPlan {
  PyObject_HEAD Plan plan;
};
Plan& plan_of(PyObject* o) {
  return reinterpret_cast<PyPlan*>(o)->plan;
}

PyObject* item(PyObject* dict, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found && PyErr_Occurred()) throw PythonError{};
  return found;
}

// _EpochPlan(**parts): all of them, by name.
PyObject* new_plan(PyTypeObject* type, PyObject* args, PyObject* by_name) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args) || !by_name) type_error("_EpochPlan() takes its parts by name");
    Ref self(check(type->tp_alloc(type, 0)));
    new (&plan_of(self.get())) Plan;
    Plan& p = plan_of(self.get());
    auto given = [&](const char* name) {
      const Ref key(check(PyUnicode_FromString(name)));
      PyObject* found = item(by_name, key.get());
      if (!found) type_error("_EpochPlan(): there is no ", name);
      return found;
    };
    for (const auto& part : kObjects) p.*part.place = Ref::borrow(given(part.name));
    for (const auto& part : kNumbers) p.*part.place = index_of(given(part.name));
    if (!is_facts(p.facts.get())) type_error("_EpochPlan(): expected what it rests on");
    return self.release();
  });
}

int traverse_plan(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const auto& part : kObjects) Py_VISIT((plan_of(self).*part.place).get());
  return 0;
}

int clear_plan(PyObject* self) {
  for (const auto& part : kObjects) const Ref gone = std::move(plan_of(self).*part.place);
  return 0;
}

void free_plan(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  plan_of(self).~Plan();
  type->tp_free(self);
  Py_DECREF(type);
}

// The names of attributes, made once.
struct Names {
  PyObject *generator = name("generator"), *pin_memory = name("pin_memory"),
           *resume_from = name("_resume_from"), *length = name("_iterable_length"),
           *failed = name("failed"), *fetch = name("fetch"), *saved = name("saved"),
           *get_state = name("get_state"), *suits_loader = name("suits_loader");
  PyObject* nothing = PyFloat_FromDouble(0);

  static PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }
};

// Whether an epoch may be begun in this way.
bool suits(const Plan& p, const Names& names, PyObject* loader) {
  if (!facts_hold(p.facts.get(), loader)) return false;
  if (item(loader, names.resume_from) != Py_None || item(loader, names.length) != Py_None)
    return false;
  PyObject* generator = item(loader, names.generator);
  if (item(loader, names.pin_memory) != Py_False || !generator) return false;
  if (generator != Py_None && !is_generator(generator)) return false;
  if (p.flags & kThreads) {
    const Ref suited(check(PyObject_CallMethodNoArgs(p.pace.get(), names.suits_loader)));
    return suited.get() == Py_True;
  }
  const Ref failed(check(PyObject_GetAttr(p.pace.get(), names.failed)));
  if (failed.get() != Py_False) return false;
  return can_still_draw(unsigned(p.draws));
}

// Begins an epoch, of which all is known but its indices.
void begin_epoch(const Plan& p, const Names& names, PyObject* loader, PyObject* stream,
                 bool again) {
  StreamMembers& m = members_of(stream);
  const Ref own = Ref::borrow(item(loader, names.generator));
  const bool iterates = p.flags & 1;
  PyObject* source = own.get() == Py_None ? p.generator.get() : own.get();
  Py_XSETREF(m.generator_state, check(PyObject_CallMethodNoArgs(source, names.get_state)));
  Ref indices;
  if (iterates) indices = p.indices;
  else if (p.sized.get() != Py_None)
    indices = new_in_order(p.sized.get(), p.batches.get(), p.drop_last);
  else indices = Ref(check(PyObject_CallOneArg(p.indices.get(), p.sampler.get())));
  Py_XSETREF(m.indices, Py_NewRef(indices.get()));
  OwnEpoch& e = turns_of(stream).own;
  if (!again) {
    Ref seed(drawn_seed(own.get()));
    if (seed.get() == Py_None) seed = Ref(check(PyObject_CallOneArg(p.draw_seed.get(), own.get())));
    m.base_seed = Py_NewRef(seed.get());
    e.seed = PyLong_AsUnsignedLongLongMask(seed.get());
    e.made_of_seed = p.made_of_seed ? unsigned(p.draws) : 0;
  }
  Ref fetch = p.fetch;
  if (fetch.get() == Py_None)
    fetch = Ref(check(PyObject_CallMethodNoArgs(p.terms.get(), names.fetch)));
  OwnStart start{iterates ? p.task : std::move(indices),
                 std::move(fetch),
                 p.first,
                 p.workers,
                 p.flags,
                 p.facts,
                 {},
                 p.roots};
  if (p.copier.get() != Py_None) start.copier = p.copier;
  begin_own(turns_of(stream), std::move(start));
}

// begin(type, loader): an iterator of a type over the loader with these attributes; None where that
// takes more than is planned.
PyObject* begin(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    static const Names names;
    if (count != 2 || !is_stream_type(args[0]) || !PyDict_CheckExact(args[1]))
      type_error("begin(): expected a class of iterators and a dict");
    PyObject* loader = args[1];
    const Ref kept = Ref::borrow(self);  // code of the program may end the loader
    const Plan& p = plan_of(self);
    if (!p.facts || !suits(p, names, loader)) return Py_NewRef(Py_None);
    check(PyObject_SetAttr(p.pace.get(), names.saved, names.nothing));
    Ref stream(check(new_stream(reinterpret_cast<PyTypeObject*>(args[0]), nullptr, nullptr)));
    StreamMembers& m = members_of(stream.get());
    m.terms = Py_NewRef(p.terms.get());
    m.pace = Py_NewRef(p.pace.get());
    m.index_sampler = Py_NewRef(p.sampler.get());
    m.iterable = p.flags & 1;
    m.is_own = true;
    begin_epoch(p, names, loader, stream.get(), false);
    return stream.release();
  });
}

// begin_again(iterator, loader): begins another epoch with an iterator whose last one is over;
// whether that is planned.
PyObject* begin_again(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    static const Names names;
    if (count != 2 || !PyDict_CheckExact(args[1]))
      type_error("begin_again(): expected an iterator and a dict");
    if (!is_stream(args[0])) return Py_NewRef(Py_False);  // a loader's subclass has its own
    const Ref kept = Ref::borrow(self), stream = Ref::borrow(args[0]);
    const Plan& p = plan_of(self);
    StreamMembers& m = members_of(stream.get());
    const bool is_over = m.is_own && m.may_be_here && m.is_finished && !m.is_shut_down &&
                         turns_of(stream.get()).own.over;
    if (!p.facts || !is_over || m.terms != p.terms.get() || m.pace != p.pace.get() ||
        !suits(p, names, args[1]))
      return Py_NewRef(Py_False);
    const Ref suited(check(PyObject_CallMethodNoArgs(m.pace, names.suits_loader)));
    if (suited.get() != Py_True) return Py_NewRef(Py_False);
    m.is_finished = m.drew_seed = false;
    m.made_before = 0;
    begin_epoch(p, names, args[1], stream.get(), true);
    return Py_NewRef(Py_True);
  });
}

PyMethodDef plan_methods[] = {
    {"begin", (PyCFunction)(void*)begin, METH_FASTCALL,
     "begin(type, attributes): an iterator over a loader, None where that takes more."},
    {"begin_again", (PyCFunction)(void*)begin_again, METH_FASTCALL,
     "begin_again(iterator, attributes): begins another epoch; False where that takes more."},
    {}};
PyType_Slot plan_slots[] = {
    {Py_tp_new, (void*)new_plan},           {Py_tp_dealloc, (void*)free_plan},
    {Py_tp_traverse, (void*)traverse_plan}, {Py_tp_clear, (void*)clear_plan},
    {Py_tp_methods, plan_methods},          {0, nullptr}};
PyType_Spec plan_spec = {"facula._C._EpochPlan", sizeof(PyPlan), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, plan_slots};

}  // namespace

void init_epoch_plan(PyObject* module) {
  in_order_type = add_type(module, in_order_spec, "_InOrder");
  add_type(module, plan_spec, "_EpochPlan");
}

}  // namespace facula::python
