// Copies of objects that a dataset writes to, one for each worker that the loader stands in for.
#include <vector>

#include "python/batch_codec.h"
#include "python/worker_random.h"

namespace facula::python {
namespace {

// Whether a value stays what it is, whoever has it.
bool stays(PyObject* o) {
  return o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
         PyUnicode_CheckExact(o);
}

class Copier {
 public:
  // plans: by number, of each object that is copied, (steps, computed): of names, None for what is
  // written to or the number of the object that it leads to; and names that its class sets by code
  // of its own. otherwise(value): a copy of what is written to, for what is unusual.
  Copier(PyObject* plans, PyObject* otherwise) : plans_(plans), otherwise_(otherwise) {}

  PyObject* copy_if_planned(PyObject* value, PyObject* number) {
    PyObject* plan = plan_of(number);
    return plan ? object(value, plan) : Py_NewRef(value);
  }

 private:
  PyObject* plan_of(PyObject* number) {
    PyObject* plan = PyDict_GetItemWithError(plans_, number);
    if (!plan && PyErr_Occurred()) throw PythonError{};
    if (plan && (!PyTuple_CheckExact(plan) || PyTuple_GET_SIZE(plan) != 2 ||
                 !PyDict_CheckExact(PyTuple_GET_ITEM(plan, 0)) ||
                 !PyAnySet_CheckExact(PyTuple_GET_ITEM(plan, 1))))
      type_error("_copied_objects(): expected a dict and a set for each object");
    return plan;
  }
  PyObject* known(PyObject* value) const {
    for (const auto& [of, copy] : made_)
      if (of.get() == value) return Py_NewRef(copy.get());
    return nullptr;
  }
  PyObject* noted(PyObject* value, PyObject* copy) {
    made_.emplace_back(Ref::borrow(value), Ref::borrow(copy));
    return copy;
  }

  PyObject* object(PyObject* value, PyObject* plan) {
    if (PyObject* same = known(value)) return same;
    static PyObject* nothing = check(PyTuple_New(0));
    Ref same(check(PyBaseObject_Type.tp_new(Py_TYPE(value), nothing, nullptr)));
    noted(value, same.get());
    PyObject* steps = PyTuple_GET_ITEM(plan, 0);
    PyObject* computed = PyTuple_GET_ITEM(plan, 1);
    const Ref dict(check(PyObject_GenericGetDict(value, nullptr)));
    const Ref own(check(PyDict_Copy(dict.get())));
    bool plain = true;
    PyObject *name, *attribute;
    for (Py_ssize_t at = 0; plain && PyDict_Next(own.get(), &at, &name, &attribute);)
      plain = !check(PySet_Contains(computed, name));
    // Attributes are set one by one: what an object without a dict of its own has is found quicker.
    const Ref all = plain ? Ref() : Ref(check(PyObject_GenericGetDict(same.get(), nullptr)));
    for (Py_ssize_t at = 0; PyDict_Next(own.get(), &at, &name, &attribute);) {
      PyObject* step = PyDict_GetItemWithError(steps, name);
      if (!step && PyErr_Occurred()) throw PythonError{};
      const Ref one(step && !stays(attribute) ? changed(attribute, step) : Py_NewRef(attribute));
      if (plain) check(PyObject_GenericSetAttr(same.get(), name, one.get()));
      else check(PyDict_SetItem(all.get(), name, one.get()));
    }
    return same.release();
  }

  PyObject* changed(PyObject* value, PyObject* step) {
    if (step != Py_None) {
      PyObject* plan = plan_of(step);
      if (!plan) value_error("_copied_objects(): a step leads to an object that is not copied");
      return object(value, plan);
    }
    if (PyObject* same = known(value)) return same;
    PyObject* copy;
    if (PyList_CheckExact(value)) copy = PyList_GetSlice(value, 0, PyList_GET_SIZE(value));
    else if (PyDict_CheckExact(value)) copy = PyDict_Copy(value);
    else if (PySet_CheckExact(value)) copy = PySet_New(value);
    else if (is_twister(value)) copy = copied_twister(value);
    else copy = PyObject_CallOneArg(otherwise_, value);
    return noted(value, check(copy));
  }

  PyObject *plans_, *otherwise_;
  std::vector<std::pair<Ref, Ref>> made_;
};

// _copied_objects(numbers, plans, otherwise, values): a list of values, of which those with a plan
// are copies, made with the same ones of what several lead to.
PyObject* copied_objects(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]))
      type_error("_copied_objects() takes a list, a dict, a function and values");
    const Ref values(check(PySequence_Tuple(args[3])));
    const Py_ssize_t n = PyTuple_GET_SIZE(values.get());
    if (PyList_GET_SIZE(args[0]) != n) value_error("_copied_objects(): each value has a number");
    Copier copier(args[1], args[2]);
    Ref copies(check(PyList_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      const Ref number = Ref::borrow(PyList_GET_ITEM(args[0], i));
      PyObject* value = PyTuple_GET_ITEM(values.get(), i);
      PyList_SET_ITEM(copies.get(), i, copier.copy_if_planned(value, number.get()));
    }
    return copies.release();
  });
}

}  // namespace

void init_object_copies(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_copied_objects", (PyCFunction)(void*)copied_objects, METH_FASTCALL,
       "_copied_objects(numbers, plans, otherwise, values): copies of objects that are written "
       "to."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
