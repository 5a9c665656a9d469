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
  Py_ssize_t next, count, size;   // `size`: of a batch, 0 for numbers by themselves
  bool drop_last;
};
PyInOrder& in_order_of(PyObject* o) {
  return *reinterpret_cast<PyInOrder*>(o);
}
PyTypeObject* in_order_type = nullptr;

Ref new_in_order(PyObject* sized, Py_ssize_t size, bool drop_last) {
  Ref made(check(in_order_type->tp_alloc(in_order_type, 0)));
  PyInOrder& order = in_order_of(made.get());
  order.sized = Py_NewRef(sized);
  order.size = size;
  order.drop_last = drop_last;
  return made;
}

PyObject* next_in_order(PyObject* self) {
  PyInOrder& order = in_order_of(self);
  if (order.sized) {
    const Ref sized(std::exchange(order.sized, nullptr));
    const Py_ssize_t count = PyObject_Size(sized.get());
    if (count < 0) return nullptr;
    order.count = count;
  }
  const Py_ssize_t left = order.count - order.next;
  if (left <= 0) return nullptr;
  if (!order.size) return PyLong_FromSsize_t(order.next++);
  const Py_ssize_t n = std::min(left, order.size);
  if (n < order.size && order.drop_last) return nullptr;
  PyObject* batch = PyList_New(n);
  for (Py_ssize_t i = 0; batch && i < n; ++i) {
    PyObject* number = PyLong_FromSsize_t(order.next + i);
    if (!number) Py_CLEAR(batch);
    else PyList_SET_ITEM(batch, i, number);
  }
  order.next += n;
  return batch;
}

int traverse_in_order(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(in_order_of(self).sized);
  return 0;
}

int clear_in_order(PyObject* self) {
  Py_CLEAR(in_order_of(self).sized);
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

struct Plan {
  Ref type;   // of iterators
  Ref terms;  // as the iterator knows them, and what they rest on
  Ref facts, pace;
  Ref sampler;  // of indices
  Ref indices;  // what makes an iterator over them, or, of an iterable dataset, is one for all
                // epochs
  Ref task;     // of an iterable dataset
  Ref sized;    // where indices are in order: their number, and of which batches
  Py_ssize_t size = 0;
  bool drop_last = false;
  Ref fetch;
  Ref may_draw;              // asked before each epoch, if there is something to ask
  Ref generator, draw_seed;  // the default generator, and what draws a seed in Python
  Ref dataset, info_type;
  int64_t first = 0, workers = 0, flags = 0;
  unsigned made_of_seed = 0;
};

struct PyPlan {
  PyObject_HEAD Plan plan;
};
Plan& plan_of(PyObject* o) {
  return reinterpret_cast<PyPlan*>(o)->plan;
}

PyObject* new_plan(PyTypeObject* type, PyObject* args, PyObject* by_name) {
  return guarded([&] {
    static const char* names[] = {"type",      "terms",     "facts",        "pace",      "sampler",
                                  "indices",   "task",      "order",        "fetch",     "may_draw",
                                  "generator", "draw_seed", "dataset",      "info_type", "first",
                                  "workers",   "flags",     "made_of_seed", nullptr};
    PyObject* o[14];
    long long first, workers, flags;
    unsigned int made_of_seed;
    if (!PyArg_ParseTupleAndKeywords(args, by_name, "$OOOOOOOOOOOOOOLLLI:_EpochPlan",
                                     const_cast<char**>(names), &o[0], &o[1], &o[2], &o[3], &o[4],
                                     &o[5], &o[6], &o[7], &o[8], &o[9], &o[10], &o[11], &o[12],
                                     &o[13], &first, &workers, &flags, &made_of_seed))
      throw PythonError{};
    if (!PyType_Check(o[0]) || !is_facts(o[2])) type_error("_EpochPlan(): unexpected arguments");
    Ref self(check(type->tp_alloc(type, 0)));
    new (&plan_of(self.get())) Plan;
    Plan& p = plan_of(self.get());
    Ref* const kept[] = {&p.type,      &p.terms,     &p.facts,   &p.pace,     &p.sampler,
                         &p.indices,   &p.task,      nullptr,    &p.fetch,    &p.may_draw,
                         &p.generator, &p.draw_seed, &p.dataset, &p.info_type};
    for (size_t i = 0; i < std::size(kept); ++i)
      if (kept[i] && o[i] != Py_None) *kept[i] = Ref::borrow(o[i]);
    p.task = Ref::borrow(o[6]);  // which may be None
    if (o[7] != Py_None) {
      PyObject* sized;
      int drop_last;
      if (!PyArg_ParseTuple(o[7], "Onp", &sized, &p.size, &drop_last)) throw PythonError{};
      p.sized = Ref::borrow(sized);
      p.drop_last = drop_last;
    }
    p.first = first;
    p.workers = workers;
    p.flags = flags;
    p.made_of_seed = made_of_seed;
    return self.release();
  });
}

template <class F>
void for_each_object(Plan& p, F&& f) {
  for (Ref* o : {&p.type, &p.terms, &p.facts, &p.pace, &p.sampler, &p.indices, &p.task, &p.sized,
                 &p.fetch, &p.may_draw, &p.generator, &p.draw_seed, &p.dataset, &p.info_type})
    f(*o);
}

int traverse_plan(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  int stopped = 0;
  for_each_object(plan_of(self), [&](Ref& o) {
    if (o && !stopped) stopped = visit(o.get(), arg);
  });
  return stopped;
}

int clear_plan(PyObject* self) {
  for_each_object(plan_of(self), [](Ref& o) { const Ref gone = std::move(o); });
  return 0;
}

void free_plan(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  plan_of(self).~Plan();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* item(PyObject* dict, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found && PyErr_Occurred()) throw PythonError{};
  return found;
}

// The names of attributes, made once.
struct Names {
  PyObject *generator = name("generator"), *pin_memory = name("pin_memory"),
           *resume_from = name("_resume_from"), *length = name("_iterable_length"),
           *failed = name("failed"), *saved = name("saved"), *get_state = name("get_state"),
           *begin_by_itself = name("_begin_by_itself");
  PyObject* nothing = PyFloat_FromDouble(0);

  static PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }
};

// Whether an epoch may be begun in this way. Everything that it asks is the loader's own.
bool suits(const Plan& p, const Names& names, PyObject* loader) {
  if (!facts_hold(p.facts.get(), loader)) return false;
  if (item(loader, names.resume_from) != Py_None || item(loader, names.length) != Py_None)
    return false;
  PyObject* generator = item(loader, names.generator);
  if (item(loader, names.pin_memory) != Py_False || !generator) return false;
  if (generator != Py_None && !is_generator(generator)) return false;
  const Ref failed(check(PyObject_GetAttr(p.pace.get(), names.failed)));
  if (failed.get() != Py_False) return false;
  if (!p.may_draw) return true;
  const Ref may(check(PyObject_CallNoArgs(p.may_draw.get())));
  return may.get() == Py_True;
}

// begin(loader): the iterator of a new epoch of the loader with these attributes; None where that
// takes more than is planned.
PyObject* begin(PyObject* self, PyObject* loader) {
  return guarded([&]() -> PyObject* {
    static const Names names;
    if (!PyDict_CheckExact(loader)) type_error("expected a dict, got ", type_name(loader));
    const Ref kept = Ref::borrow(self);  // code of the program may end the loader
    const Plan& p = plan_of(self);
    if (!p.facts || !suits(p, names, loader)) return Py_NewRef(Py_None);
    check(PyObject_SetAttr(p.pace.get(), names.saved, names.nothing));
    Ref stream(check(new_stream(reinterpret_cast<PyTypeObject*>(p.type.get()), nullptr, nullptr)));
    StreamMembers& m = members_of(stream.get());
    const Ref own = Ref::borrow(item(loader, names.generator));
    const bool iterates = p.flags & 1;
    m.terms = Py_NewRef(p.terms.get());
    m.pace = Py_NewRef(p.pace.get());
    m.index_sampler = Py_NewRef(p.sampler.get());
    m.iterable = iterates;
    m.is_own = true;
    PyObject* source = own.get() == Py_None ? p.generator.get() : own.get();
    m.generator_state = check(PyObject_CallMethodNoArgs(source, names.get_state));
    Ref indices;
    if (iterates) indices = p.indices;
    else if (p.sized) indices = new_in_order(p.sized.get(), p.size, p.drop_last);
    else indices = Ref(check(PyObject_CallOneArg(p.indices.get(), p.sampler.get())));
    m.indices = Py_NewRef(indices.get());
    Ref seed(drawn_seed(own.get()));
    if (seed.get() == Py_None) seed = Ref(check(PyObject_CallOneArg(p.draw_seed.get(), own.get())));
    m.base_seed = Py_NewRef(seed.get());
    OwnEpoch& e = turns_of(stream.get()).own;
    e.seed = PyLong_AsUnsignedLongLongMask(seed.get());
    e.made_of_seed = p.made_of_seed;
    if (!p.fetch) {  // it writes to copies, which are made now
      const Ref begun(
          check(PyObject_CallMethodOneArg(stream.get(), names.begin_by_itself, p.terms.get())));
      return stream.release();
    }
    e.info_type = p.info_type;
    e.dataset = p.dataset;
    begin_own(turns_of(stream.get()), {iterates ? p.task : std::move(indices),
                                       p.fetch,
                                       {},
                                       iterates ? 0 : p.first,
                                       p.workers,
                                       p.flags});
    return stream.release();
  });
}

PyMethodDef plan_methods[] = {
    {"begin", begin, METH_O,
     "begin(attributes): an iterator over a loader, None where that takes more than is planned."},
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
