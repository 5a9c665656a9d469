// What a conclusion rests on: attributes, global names, code, types. As long as all of it is as it
// was, the conclusion need not be drawn again.
#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "python/batch_tasks.h"
#include "python/interop.h"
#include "python/plain_values.h"

namespace facula::python {
namespace {

// The number of a class's state, which changes when something is written to it or to a base; 0
// where it has none.
unsigned int version_of(PyTypeObject* type) {
  // Python numbers a class when something is looked up in it.
  Ref looked_up(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__init__"));
  if (!looked_up) PyErr_Clear();
  return type->tp_version_tag;
}

struct Fact {
  enum Kind { Type, Class, Item, Attribute, Cell, Function, Items, Answer, Kept };
  Kind kind;
  Ref of, key, was;  // `of` is null for what is given each time, `was` for what was not there
  unsigned int version = 0;  // of a class; of items and of what is kept, see there
  Py_ssize_t at = 0;         // of an item of what is given each time: where it stands there
  PyObject *code = nullptr, *defaults = nullptr, *by_name = nullptr;  // kept by `was`
};

PyObject* item_or_null(PyObject* dict, PyObject* key) {
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (!found && PyErr_Occurred()) throw PythonError{};
  return found;
}

// What getattr() gives without code of the program; null where there is no such attribute.
Ref attribute_or_null(PyObject* o, PyObject* name) {
  PyObject* found;
#if PY_VERSION_HEX >= 0x030D0000
  check(PyObject_GetOptionalAttr(o, name, &found));
#else
  check(_PyObject_LookupAttr(o, name, &found));
#endif
  return Ref(found);
}

// Whether `found` is what an object's class has under a name, bound to the object or to the class.
bool is_of_class(PyObject* found, PyObject* of_class, PyObject* o) {
  if (found == of_class) return true;
  PyObject* function = of_class;
  PyObject* owner = PyFunction_Check(of_class) ? o : reinterpret_cast<PyObject*>(Py_TYPE(o));
  Ref inside;
  if (!PyFunction_Check(of_class)) {
    inside = Ref(check(PyObject_GetAttrString(of_class, "__func__")));
    function = inside.get();
    if (Py_TYPE(of_class) == &PyStaticMethod_Type) return found == function;
  }
  return PyMethod_Check(found) && PyMethod_GET_FUNCTION(found) == function &&
         PyMethod_GET_SELF(found) == owner;
}

// An object's own attribute, null where it has none. An object gets a dict when somebody asks for
// it, and some versions of Python find its attributes slower from then on. So they are asked for as
// the program does, where the answer tells the object's from its class's: if the class has nothing
// of that name, a function or a method of its own, or a plain value.
Ref own_attribute(PyObject* o, PyObject* name) {
  PyTypeObject* type = Py_TYPE(o);
  if (type->tp_getattro == PyObject_GenericGetAttr && !PyType_Check(o) && !PyModule_Check(o)) {
    const Ref of_class = Ref::borrow(_PyType_Lookup(type, name));
    if (!of_class) return attribute_or_null(o, name);
    PyTypeObject* kind = Py_TYPE(of_class.get());
    const bool is_method = PyFunction_Check(of_class.get()) || kind == &PyStaticMethod_Type ||
                           kind == &PyClassMethod_Type;
    if (is_method || !kind->tp_descr_get) {
      Ref found = attribute_or_null(o, name);
      if (!is_method) return found.get() == of_class.get() ? Ref() : std::move(found);
      return found && is_of_class(found.get(), of_class.get(), o) ? Ref() : std::move(found);
    }
  }
  const Ref dict(PyObject_GenericGetDict(o, nullptr));
  if (!dict) PyErr_Clear();
  if (!dict || !PyDict_Check(dict.get())) return Ref();
  return Ref::borrow(item_or_null(dict.get(), name));
}

// Whether what is kept in an attribute fits what it was taken for, which needs no second look where
// it is an empty container that nobody else has, or of certain types.
bool fits_surely(PyObject* o, PyObject* name, bool contains, PyObject* types) {
  Ref value = own_attribute(o, name);
  if (!value && !contains) value = Ref::borrow(_PyType_Lookup(Py_TYPE(o), name));
  if (!value) return false;
  PyObject* v = value.get();
  bool found = false;
  for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(types); ++i)
    found = PyTuple_GET_ITEM(types, i) == reinterpret_cast<PyObject*>(Py_TYPE(v));
  if (!found || !contains) return found;
  constexpr Py_ssize_t kOwnersAndOurs = 2;
  const bool alone = Py_REFCNT(v) <= kOwnersAndOurs;
  if (PyList_CheckExact(v)) return alone && !PyList_GET_SIZE(v);
  return alone &&
         (PyDict_CheckExact(v) ? !PyDict_GET_SIZE(v) : PySet_CheckExact(v) && !PySet_GET_SIZE(v));
}

// Whether two answers are the same, as far as that can be said without running code.
bool same_answer(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!PySet_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyLong_CheckExact(a)) return false;
  return check(PyObject_RichCompareBool(a, b, Py_EQ));
}

// The number of a dict's state, which changes when something is written to it; 0 where Python keeps
// none.
uint64_t version_of_dict(PyObject* dict) {
#if PY_VERSION_HEX < 0x030E0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#else
  return 0;
#endif
}

// A dict of which something is watched, and the version at which all of that was there.
struct WatchedDict {
  PyObject* dict;  // which the facts keep
  std::vector<size_t> facts;
  uint64_t version = 0;
};

struct Facts {
  std::vector<Fact> all;
  bool complete = true;
  size_t watched_from = SIZE_MAX;  // what was noted since is watched while an epoch lasts
  Ref watched_too;                 // others, all of which are, or null
  // What is asked of those that are watched, found out when it is first asked.
  std::vector<WatchedDict> dicts;
  std::vector<size_t> others;
  size_t sorted = 0;  // facts

  // Noted already: of attributes and the like, which are asked for on every way through a function.
  std::set<std::tuple<int, PyObject*, PyObject*>> noted;

  void add(Fact fact) {
    const bool once = fact.kind < Fact::Items && fact.of;
    if (!once || noted.emplace(fact.kind, fact.of.get(), fact.key.get()).second)
      all.push_back(std::move(fact));
  }

  void sort_watched() {
    dicts.clear();
    others.clear();
    for (size_t i = watched_from; i < all.size(); ++i) {
      if (all[i].kind >= Fact::Items) continue;
      if (all[i].kind != Fact::Item || !all[i].of) {
        others.push_back(i);
        continue;
      }
      PyObject* dict = all[i].of.get();
      auto of_dict = [&](const WatchedDict& w) { return w.dict == dict; };
      auto found = std::find_if(dicts.begin(), dicts.end(), of_dict);
      if (found == dicts.end()) found = dicts.insert(found, {dict, {}});
      found->facts.push_back(i);
    }
    sorted = all.size();
  }

  bool stay() {
    if (sorted != all.size()) sort_watched();
    for (size_t i : others)
      if (!holds(all[i], nullptr)) return false;
    for (WatchedDict& w : dicts) {
      const uint64_t now = version_of_dict(w.dict);
      if (now && now == w.version) continue;
      for (size_t i : w.facts)
        if (!holds(all[i], nullptr)) return false;
      w.version = now;
    }
    return true;
  }

  static bool holds(const Fact& f, PyObject* given) {
    PyObject* of = f.of ? f.of.get() : given;
    switch (f.kind) {
      case Fact::Type:
        return reinterpret_cast<PyObject*>(Py_TYPE(of)) == f.was.get() &&
               Py_TYPE(of)->tp_version_tag == f.version;
      case Fact::Class: return reinterpret_cast<PyTypeObject*>(of)->tp_version_tag == f.version;
      case Fact::Item: {
        // It mostly stands where it stood, which is quicker to see than to look for it.
        PyObject *key, *value;
        Py_ssize_t at = f.at;
        if (!f.of && PyDict_Next(of, &at, &key, &value) && key == f.key.get())
          return value == f.was.get();
        return item_or_null(of, f.key.get()) == f.was.get();
      }
      case Fact::Attribute: return own_attribute(of, f.key.get()).get() == f.was.get();
      case Fact::Cell: return PyCell_GET(of) == f.was.get();
      case Fact::Function:
        return PyFunction_GET_CODE(of) == f.code && PyFunction_GET_DEFAULTS(of) == f.defaults &&
               PyFunction_GET_KW_DEFAULTS(of) == f.by_name;
      case Fact::Items: {
        const auto n = size_t(PyTuple_GET_SIZE(f.was.get()));
        return size_t(PySequence_Fast_GET_SIZE(of)) == n &&
               std::equal(PySequence_Fast_ITEMS(of), PySequence_Fast_ITEMS(of) + n,
                          PySequence_Fast_ITEMS(f.was.get()));
      }
      case Fact::Kept: {
        PyObject** about = PySequence_Fast_ITEMS(f.key.get());
        if (fits_surely(about[0], about[1], f.version, f.was.get())) return true;
        const Ref now(PyObject_Call(of, f.key.get(), nullptr));
        if (now) return now.get() == Py_True;
        if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
        PyErr_Clear();
        return false;
      }
      case Fact::Answer: {
        const Ref now(PyObject_Call(of, f.key.get(), nullptr));
        if (now) return same_answer(now.get(), f.was.get());
        if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
        PyErr_Clear();
        return false;
      }
    }
    return false;
  }
};

// Puts back what stood there.
void put_back(const Fact& f) {
  PyObject *of = f.of.get(), *was = f.was.get();
  int failed = 0;
  switch (f.kind) {
    case Fact::Type:
      if (reinterpret_cast<PyObject*>(Py_TYPE(of)) != was)
        failed = PyObject_SetAttrString(of, "__class__", was);
      break;
    case Fact::Item:
      failed = was ? PyDict_SetItem(of, f.key.get(), was) : PyDict_DelItem(of, f.key.get());
      break;
    case Fact::Attribute: failed = PyObject_GenericSetAttr(of, f.key.get(), was); break;
    case Fact::Cell: failed = PyCell_Set(of, was); break;
    case Fact::Function: {
      static const char* const names[] = {"__code__", "__defaults__", "__kwdefaults__"};
      for (Py_ssize_t i = 0; i < 3; ++i)
        failed |= PyObject_SetAttrString(of, names[i], PyTuple_GET_ITEM(was, i));
      break;
    }
    case Fact::Items:
      if (PyList_Check(of)) failed = PyList_SetSlice(of, 0, PyList_GET_SIZE(of), was);
      break;
    case Fact::Class:
    case Fact::Answer:
    case Fact::Kept: break;  // of which it is not known what it was
  }
  if (failed) PyErr_Clear();
}

struct PyFacts {
  PyObject_HEAD Facts f;
};
Facts& facts_of(PyObject* o) {
  return reinterpret_cast<PyFacts*>(o)->f;
}

PyObject* new_facts(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&facts_of(self)) Facts;
  return self;
}

int traverse_facts(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const Fact& f : facts_of(self).all)
    for (const Ref* o : {&f.of, &f.key, &f.was}) Py_VISIT(o->get());
  Py_VISIT(facts_of(self).watched_too.get());
  return 0;
}

int clear_facts(PyObject* self) {
  Facts& f = facts_of(self);
  f.dicts.clear();
  f.others.clear();
  f.noted.clear();
  std::vector<Fact> gone;
  gone.swap(f.all);
  const Ref others = std::move(f.watched_too);
  f.complete = false;
  return 0;
}

void free_facts(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  facts_of(self).~Facts();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* type_of(PyObject* self, PyObject* o) {
  return guarded([&] {
    PyTypeObject* type = Py_TYPE(o);
    const unsigned int version = version_of(type);
    Facts& f = facts_of(self);
    f.complete &= version != 0;
    f.add({Fact::Type, Ref::borrow(o), Ref(), Ref::borrow(reinterpret_cast<PyObject*>(type)),
           version});
    return Py_NewRef(Py_None);
  });
}

PyObject* of_class(PyObject* self, PyObject* type) {
  return guarded([&] {
    if (!PyType_Check(type)) type_error("expected a class, got ", type_name(type));
    const unsigned int version = version_of(reinterpret_cast<PyTypeObject*>(type));
    Facts& f = facts_of(self);
    f.complete &= version != 0;
    f.add({Fact::Class, Ref::borrow(type), Ref(), Ref(), version});
    return Py_NewRef(Py_None);
  });
}

// What stands in a dict, which is kept, or given again when it is asked.
PyObject* note_item(PyObject* self, PyObject* args, bool kept) {
  return guarded([&]() -> PyObject* {
    PyObject *dict, *key;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &key)) throw PythonError{};
    Fact fact{Fact::Item, kept ? Ref::borrow(dict) : Ref(), Ref::borrow(key), Ref()};
    fact.was = Ref::borrow(item_or_null(dict, key));
    PyObject *other, *value;
    for (Py_ssize_t at = 0; !kept && PyDict_Next(dict, &at, &other, &value) && other != key;)
      fact.at = at;
    facts_of(self).add(std::move(fact));
    return Py_NewRef(Py_None);
  });
}
PyObject* item(PyObject* self, PyObject* args) {
  return note_item(self, args, true);
}
PyObject* given_item(PyObject* self, PyObject* args) {
  return note_item(self, args, false);
}

PyObject* attribute(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *o, *name, *otherwise = Py_None;
    if (!PyArg_ParseTuple(args, "OU|O:attribute", &o, &name, &otherwise)) throw PythonError{};
    Ref was = own_attribute(o, name);
    PyObject* found = Py_NewRef(was ? was.get() : otherwise);
    facts_of(self).add({Fact::Attribute, Ref::borrow(o), Ref::borrow(name), std::move(was)});
    return found;
  });
}

PyObject* cell(PyObject* self, PyObject* o) {
  return guarded([&] {
    if (!PyCell_Check(o)) type_error("expected a cell, got ", type_name(o));
    facts_of(self).add({Fact::Cell, Ref::borrow(o), Ref(), Ref::borrow(PyCell_GET(o))});
    return Py_NewRef(Py_None);
  });
}

PyObject* function(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyFunction_Check(o)) type_error("expected a function, got ", type_name(o));
    Fact fact{Fact::Function, Ref::borrow(o), Ref(), Ref()};
    fact.code = PyFunction_GET_CODE(o);
    fact.defaults = PyFunction_GET_DEFAULTS(o);
    fact.by_name = PyFunction_GET_KW_DEFAULTS(o);
    auto or_none = [](PyObject* p) { return p ? p : Py_None; };
    fact.was = Ref(
        check(PyTuple_Pack(3, or_none(fact.code), or_none(fact.defaults), or_none(fact.by_name))));
    Facts& f = facts_of(self);
    if (fact.by_name) {  // which may be written to
      PyObject *name, *value;
      for (Py_ssize_t at = 0; PyDict_Next(fact.by_name, &at, &name, &value);)
        f.add({Fact::Item, Ref::borrow(fact.by_name), Ref::borrow(name), Ref::borrow(value)});
    }
    f.add(std::move(fact));
    return Py_NewRef(Py_None);
  });
}

PyObject* items(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o))
      type_error("expected a list or a tuple, got ", type_name(o));
    facts_of(self).add({Fact::Items, Ref::borrow(o), Ref(), Ref(check(PySequence_Tuple(o)))});
    return Py_NewRef(Py_None);
  });
}

PyObject* settle(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return Py_NewRef(Py_False);
    for (const Fact& f : facts_of(self).all)
      if (f.kind == Fact::Items && f.of.get() == o && f.version) return Py_NewRef(Py_True);
    const Ref items(check(PySequence_Tuple(o)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (!stays(PyTuple_GET_ITEM(items.get(), i))) return Py_NewRef(Py_False);
    facts_of(self).add({Fact::Items, Ref::borrow(o), Ref(), items, 1});
    return Py_NewRef(Py_True);
  });
}

PyObject* answer(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *question, *about, *was;
    if (!PyArg_ParseTuple(args, "OO!O:answer", &question, &PyTuple_Type, &about, &was))
      throw PythonError{};
    facts_of(self).add({Fact::Answer, Ref::borrow(question), Ref::borrow(about), Ref::borrow(was)});
    return Py_NewRef(Py_None);
  });
}

PyObject* kept(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *question, *about, *types;
    int contains;
    if (!PyArg_ParseTuple(args, "OO!pO!:kept", &question, &PyTuple_Type, &about, &contains,
                          &PyTuple_Type, &types))
      throw PythonError{};
    if (PyTuple_GET_SIZE(about) < 2 || !PyUnicode_Check(PyTuple_GET_ITEM(about, 1)))
      type_error("kept(): expected an object and the name of an attribute");
    facts_of(self).add({Fact::Kept, Ref::borrow(question), Ref::borrow(about), Ref::borrow(types),
                        unsigned(contains)});
    return Py_NewRef(Py_None);
  });
}

PyObject* give_up(PyObject* self, PyObject*) {
  facts_of(self).complete = false;
  return Py_NewRef(Py_None);
}

PyObject* watch(PyObject* self, PyObject*) {
  Facts& f = facts_of(self);
  f.watched_from = f.all.size();
  f.noted.clear();  // what was noted before is not watched
  return Py_NewRef(Py_None);
}

PyObject* watch_all_of(PyObject* self, PyObject* others) {
  return guarded([&] {
    if (!is_facts(others) || others == self) type_error("watch_all_of(): expected other facts");
    facts_of(others).watched_from = 0;
    facts_of(self).watched_too = Ref::borrow(others);
    return Py_NewRef(Py_None);
  });
}

PyObject* put_back_all(PyObject* self, PyObject*) {
  return guarded([&] {
    const Ref others = facts_of(self).watched_too;
    const std::vector<Fact> all = facts_of(self).all;  // code of the program may end them
    for (size_t i = facts_of(self).watched_from; i < all.size(); ++i)
      if (all[i].kind < Fact::Answer && !Facts::holds(all[i], nullptr)) put_back(all[i]);
    if (others) Ref(check(put_back_all(others.get(), nullptr)));
    return Py_NewRef(Py_None);
  });
}

PyObject* hold(PyObject* self, PyObject* given) {
  return guarded([&]() -> PyObject* {
    if (!PyDict_CheckExact(given)) type_error("expected a dict, got ", type_name(given));
    return PyBool_FromLong(facts_hold(self, given));
  });
}

Py_ssize_t count(PyObject* self) {
  return Py_ssize_t(facts_of(self).all.size());
}

PyMethodDef methods[] = {
    {"type_of", type_of, METH_O, "type_of(object): its type, and what that has."},
    {"of_class", of_class, METH_O, "of_class(type): what it has."},
    {"item", item, METH_VARARGS, "item(dict, key): what stands there, if anything."},
    {"given_item", given_item, METH_VARARGS,
     "given_item(dict, key): what stands in a dict that is not kept, but given again."},
    {"attribute", attribute, METH_VARARGS,
     "attribute(object, name, otherwise=None): its own, not its class's, which is returned."},
    {"cell", cell, METH_O, "cell(cell): what is in it."},
    {"function", function, METH_O, "function(function): its code and default values."},
    {"items", items, METH_O, "items(list): which objects they are."},
    {"settle", settle, METH_O,
     "settle(list): notes which objects its items are, if they stay what they are; whether so."},
    {"answer", answer, METH_VARARGS, "answer(question, arguments, was): what a call returns."},
    {"kept", kept, METH_VARARGS,
     "kept(question, arguments, contains, types): that a call, about an object and an attribute, "
     "returns True; it does for values of these types, or, of containers, for empty ones."},
    {"give_up", give_up, METH_NOARGS, "give_up(): there is more to it than can be noted."},
    {"watch", watch, METH_NOARGS, "watch(): what is noted from now on is watched during an epoch."},
    {"watch_all_of", watch_all_of, METH_O, "watch_all_of(facts): these are watched, too."},
    {"put_back", put_back_all, METH_NOARGS, "put_back(): makes what is watched as it was."},
    {"hold", hold, METH_O, "hold(given): whether all of it is as it was, and in this dict."},
    {}};
PyType_Slot slots[] = {{Py_tp_new, (void*)new_facts},
                       {Py_tp_dealloc, (void*)free_facts},
                       {Py_tp_traverse, (void*)traverse_facts},
                       {Py_tp_clear, (void*)clear_facts},
                       {Py_tp_methods, methods},
                       {Py_sq_length, (void*)count},
                       {0, nullptr}};
PyType_Spec spec = {"facula._C._Facts", sizeof(PyFacts), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

PyTypeObject* facts_type = nullptr;

}  // namespace

bool is_facts(PyObject* o) {
  return Py_TYPE(o) == facts_type;
}

bool facts_hold(PyObject* facts, PyObject* given) {
  const Ref kept = Ref::borrow(facts);
  Facts& f = facts_of(facts);
  // A question may run code that ends everything, so the place is looked up each time.
  for (size_t i = 0; f.complete && i < f.all.size(); ++i) {
    const Fact& fact = f.all[i];
    const bool asks = fact.kind == Fact::Answer || fact.kind == Fact::Kept;
    if (!(asks ? Facts::holds(Fact(fact), given) : Facts::holds(fact, given))) return false;
  }
  return f.complete;
}

bool facts_stay(PyObject* facts) {
  Facts& f = facts_of(facts);
  return f.stay() && (!f.watched_too || facts_stay(f.watched_too.get()));
}

void init_facts(PyObject* module) {
  facts_type = add_type(module, spec, "_Facts");
}

}  // namespace facula::python
