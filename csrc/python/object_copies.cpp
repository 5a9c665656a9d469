// Copies of objects that a dataset writes to, one for each worker that the loader stands in for.
#include "python/batch_codec.h"

namespace facula::python {
namespace {

// Whether a value stays what it is, whoever has it.
bool stays(PyObject* o) {
  return o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
         PyUnicode_CheckExact(o);
}

// _copy_attributes(same, value, steps, change, made): gives an object the attributes of another. Of
// those whose names are in the dict `steps`, `change(steps[name], attribute, made)`. They are set
// one by one: what an object without a dict of its own has is found quicker.
PyObject* copy_attributes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5 || !PyDict_CheckExact(args[2]))
      type_error("_copy_attributes() takes two objects, a dict, a function and what that is given");
    const Ref dict(check(PyObject_GenericGetDict(args[1], nullptr)));
    const Ref own(check(PyDict_Copy(dict.get())));
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(own.get(), &at, &name, &value);) {
      Ref one = Ref::borrow(value);
      PyObject* step = PyDict_GetItemWithError(args[2], name);
      if (!step && PyErr_Occurred()) throw PythonError{};
      if (step && !stays(value)) {
        PyObject* given[] = {step, value, args[4]};
        one = Ref(check(PyObject_Vectorcall(args[3], given, 3, nullptr)));
      }
      check(PyObject_GenericSetAttr(args[0], name, one.get()));
    }
    return Py_NewRef(Py_None);
  });
}

}  // namespace

void init_object_copies(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_copy_attributes", (PyCFunction)(void*)copy_attributes, METH_FASTCALL,
       "_copy_attributes(same, value, steps, change, made): gives an object those of another."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
