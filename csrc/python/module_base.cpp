// The base type of nn.Module: the call without hooks and the attributes kept in _parameters,
// _buffers and _modules, which every layer of every step goes through.
#include "python/py.h"

namespace facula::python {
namespace {

PyTypeObject* base_type;
PyObject* search_attribute;  // Module.__getattr__, which other classes may replace
PyObject* call_impl;         // Module._call_impl, likewise
PyObject* explain_error;     // explain_error(module, args, error)
PyObject* global_hooks[4];   // dictionaries of hooks of all modules
PyObject* kept_in[3];        // "_parameters", "_modules", "_buffers"
PyObject* own_hooks[4];      // names of dictionaries of hooks
PyObject *forward_name, *slow_call_name, *call_impl_name, *compiled_name, *getattr_name,
    *getattribute_name, *from_operator_name;

PyObject* lookup(PyObject* dict, PyObject* name) {  // borrowed, or null without an error set
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found) PyErr_Clear();
  return found;
}

// The instance's dictionary, wherever this version of Python keeps it: a field of our own would
// stand in the way of classes with further bases.
Ref dict_of(PyObject* self) {
  Ref dict(PyObject_GenericGetDict(self, nullptr));
  if (!dict) PyErr_Clear();
  return dict;
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (!_PyType_Lookup(Py_TYPE(self), name)) {
    const Ref dict = dict_of(self);
    if (PyObject* found = dict ? lookup(dict.get(), name) : nullptr) return Py_NewRef(found);
    for (PyObject* kind : kept_in) {
      PyObject* kept = dict ? lookup(dict.get(), kind) : nullptr;
      if (!kept || !PyDict_Check(kept)) continue;
      if (PyObject* found = lookup(kept, name)) return Py_NewRef(found);
    }
  }
  return PyObject_GenericGetAttr(self, name);
}

bool has_hooks(PyObject* dict) {
  for (PyObject* hooks : global_hooks)
    if (PyDict_GET_SIZE(hooks)) return true;
  for (PyObject* name : own_hooks) {
    PyObject* hooks = lookup(dict, name);
    if (!hooks || !PyDict_Check(hooks) || PyDict_GET_SIZE(hooks)) return true;
  }
  return false;
}

PyObject* call_forward(PyObject* self, PyObject* dict, PyObject* args, PyObject* kwargs) {
  PyObject* method = _PyType_Lookup(Py_TYPE(self), forward_name);
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  constexpr Py_ssize_t kMost = 8;
  if (!method || !PyFunction_Check(method) || n > kMost || lookup(dict, forward_name)) {
    Ref bound(PyObject_GetAttr(self, forward_name));
    return bound ? PyObject_Call(bound.get(), args, kwargs) : nullptr;
  }
  PyObject* stack[kMost + 2] = {nullptr, self};
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 2] = PyTuple_GET_ITEM(args, i);
  Ref held = Ref::borrow(method);
  return PyObject_VectorcallDict(method, stack + 1, size_t(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 kwargs);
}

// An error that an operator raised gets the module's name in front.
void explain(PyObject* self, PyObject* args) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && explain_error && PyObject_HasAttr(value, from_operator_name)) {
    if (traceback) PyException_SetTraceback(value, traceback);
    Ref done(PyObject_CallFunctionObjArgs(explain_error, self, args, value, nullptr));
    if (!done) PyErr_Clear();  // the error itself matters more than its wording
  }
  PyErr_Restore(type, value, traceback);
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) {
  const Ref dict = dict_of(self);
  PyObject* result;
  if (!dict || has_hooks(dict.get()) || lookup(dict.get(), compiled_name) ||
      _PyType_Lookup(Py_TYPE(self), call_impl_name) != call_impl) {
    Ref slow(PyObject_GetAttr(self, slow_call_name));
    result = slow ? PyObject_Call(slow.get(), args, kwargs) : nullptr;
  } else {
    result = call_forward(self, dict.get(), args, kwargs);
  }
  if (!result) explain(self, args);
  return result;
}

// A class that has a __getattr__ reads its attributes by a detour through Python. Module has one,
// for subclasses that call it, but its search is done by get_attribute already. The base has no
// such slot, so that a __getattr__ of a subclass sees parameters, buffers and modules first.
PyObject* take_fast_attributes(PyObject*, PyObject* cls) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_Check(cls) || !PyType_IsSubtype(type, base_type)) {
    PyErr_SetString(PyExc_TypeError, "a subclass of ModuleBase is needed");
    return nullptr;
  }
  if (!search_attribute) {  // Module itself is the first
    search_attribute = Py_XNewRef(_PyType_Lookup(type, getattr_name));
    call_impl = Py_XNewRef(_PyType_Lookup(type, call_impl_name));
  }
  if (_PyType_Lookup(type, getattr_name) == search_attribute &&
      _PyType_Lookup(type, getattribute_name) == _PyType_Lookup(base_type, getattribute_name))
    type->tp_getattro = get_attribute;
  Py_RETURN_NONE;
}

PyObject* set_module_state(PyObject*, PyObject* args) {
  PyObject *hooks[4], *explain;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O", &PyDict_Type, &hooks[0], &PyDict_Type, &hooks[1],
                        &PyDict_Type, &hooks[2], &PyDict_Type, &hooks[3], &explain))
    return nullptr;
  for (int i = 0; i < 4; ++i) Py_XSETREF(global_hooks[i], Py_NewRef(hooks[i]));
  Py_XSETREF(explain_error, Py_NewRef(explain));
  Py_RETURN_NONE;
}

}  // namespace

void init_module_base(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(call_module)},
      {Py_tp_doc, const_cast<char*>("The part of nn.Module that is not written in Python.")},
      {0, nullptr}};
  static PyType_Spec spec = {"facula._C.ModuleBase", sizeof(PyObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  auto name = [](const char* text) { return check(PyUnicode_InternFromString(text)); };
  const char* const kinds[] = {"_parameters", "_modules", "_buffers"};
  const char* const hooks[] = {"_forward_pre_hooks", "_forward_hooks", "_backward_hooks",
                               "_backward_pre_hooks"};
  for (int i = 0; i < 3; ++i) kept_in[i] = name(kinds[i]);
  for (int i = 0; i < 4; ++i) own_hooks[i] = name(hooks[i]);
  for (PyObject*& h : global_hooks) h = check(PyDict_New());
  forward_name = name("forward");
  slow_call_name = name("_wrapped_call_impl");
  call_impl_name = name("_call_impl");
  compiled_name = name("_compiled_call_impl");
  getattr_name = name("__getattr__");
  getattribute_name = name("__getattribute__");
  from_operator_name = name("_from_operator");
  base_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  check(PyModule_AddObjectRef(module, "ModuleBase", reinterpret_cast<PyObject*>(base_type)));
  static PyMethodDef functions[] = {
      {"_take_fast_attributes", take_fast_attributes, METH_O, nullptr},
      {"_set_module_state", set_module_state, METH_VARARGS, nullptr},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
