// __torch_function__: subclasses and modes that take calls over.
#include <cstring>
#include <utility>

#include "python/py.h"

namespace facula::python {
namespace {

PyObject* g_name;      // "__torch_function__"
PyObject* g_disabled;  // facula._C._disabled_torch_function_impl
thread_local bool t_enabled = true;
thread_local bool t_all_disabled = false;
thread_local bool t_skip_next = false;  // the next question of Python for overrides has a no
thread_local std::vector<PyObject*>* t_modes = nullptr;

std::vector<PyObject*>& modes() {
  if (!t_modes) t_modes = new std::vector<PyObject*>;
  return *t_modes;
}

PyObject* override_of(PyObject* o) {  // borrowed
  PyTypeObject* t = Py_TYPE(o);
  if (t == tensor_type) return nullptr;
  PyObject* f = _PyType_Lookup(t, g_name);
  if (!f || f == g_disabled || is_tensor_of_pytorch(o)) return nullptr;
  if (PyObject_TypeCheck(f, &PyStaticMethod_Type) || PyObject_TypeCheck(f, &PyClassMethod_Type)) {
    Ref inner(PyObject_GetAttrString(f, "__func__"));
    if (inner.get() == g_disabled) return nullptr;
  }
  return f;
}

PyObject* disabled_impl(PyObject*, PyObject* args, PyObject*) {
  // (cls, func, types, args, kwargs) or without cls: runs func with overrides off.
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  Py_ssize_t at = n >= 4 && PyType_Check(PyTuple_GET_ITEM(args, 0)) ? 1 : 0;
  PyObject* func = PyTuple_GET_ITEM(args, at);
  PyObject* call_args = n > at + 2 ? PyTuple_GET_ITEM(args, at + 2) : nullptr;
  PyObject* kwargs = n > at + 3 ? PyTuple_GET_ITEM(args, at + 3) : nullptr;
  bool saved = t_enabled;
  t_enabled = false;
  Ref tuple(call_args ? PySequence_Tuple(call_args) : PyTuple_New(0));
  PyObject* r =
      tuple ? PyObject_Call(func, tuple.get(), kwargs == Py_None ? nullptr : kwargs) : nullptr;
  t_enabled = saved;
  return r;
}

PyObject* set_enabled(PyObject*, PyObject* on) {
  bool before = t_enabled;
  t_enabled = PyObject_IsTrue(on);
  return PyBool_FromLong(before);
}
PyObject* set_all_disabled(PyObject*, PyObject* on) {
  bool before = t_all_disabled;
  t_all_disabled = PyObject_IsTrue(on);
  return PyBool_FromLong(before);
}
PyObject* skip_next(PyObject*, PyObject* on) {
  t_skip_next = PyObject_IsTrue(on);
  Py_RETURN_NONE;
}
PyObject* is_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(t_enabled && !t_all_disabled);
}
PyObject* push_mode(PyObject*, PyObject* mode) {
  modes().push_back(Py_NewRef(mode));
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  if (modes().empty()) Py_RETURN_NONE;
  PyObject* m = modes().back();
  modes().pop_back();
  return m;
}
PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(modes().size());
}

PyObject* has_torch_function(PyObject*, PyObject* args) {
  if (std::exchange(t_skip_next, false)) Py_RETURN_FALSE;
  if (!torch_function_enabled()) Py_RETURN_FALSE;
  if (override_active()) Py_RETURN_TRUE;
  Ref seq(PySequence_Fast(args, "has_torch_function expects a sequence"));
  if (!seq) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i)
    if (has_override(PySequence_Fast_GET_ITEM(seq.get(), i))) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

PyObject* handle_torch_function(PyObject*, PyObject* args) {
  // (public_api, relevant_args, args, kwargs)
  return guarded([&]() -> PyObject* {
    PyObject *function, *relevant, *call_args, *kwargs;
    if (!PyArg_ParseTuple(args, "OOOO", &function, &relevant, &call_args, &kwargs))
      throw PythonError{};
    std::vector<PyObject*> found;
    Ref seq(check(PySequence_Fast(relevant, "relevant_args must be a sequence")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i)
      collect_overloaded(PySequence_Fast_GET_ITEM(seq.get(), i), found);
    Ref tuple(check(PySequence_Tuple(call_args)));
    std::vector<PyObject*> flat(&PyTuple_GET_ITEM(tuple.get(), 0),
                                &PyTuple_GET_ITEM(tuple.get(), 0) + PyTuple_GET_SIZE(tuple.get()));
    size_t count = flat.size();
    Ref names(PyTuple_New(0));
    if (kwargs && kwargs != Py_None) {
      names = Ref(check(PyTuple_New(PyDict_GET_SIZE(kwargs))));
      PyObject *k, *v;
      Py_ssize_t at = 0, i = 0;
      while (PyDict_Next(kwargs, &at, &k, &v)) {
        PyTuple_SET_ITEM(names.get(), i++, Py_NewRef(k));
        flat.push_back(v);
      }
    }
    return call_override(function, flat.data(), count, names.get(), found);
  });
}

PyMethodDef functions[] = {{"_disabled_torch_function_impl", (PyCFunction)(void*)disabled_impl,
                            METH_VARARGS | METH_KEYWORDS, "Runs the function without overrides."},
                           {"_set_torch_function_enabled", set_enabled, METH_O, nullptr},
                           {"_set_torch_function_all_disabled", set_all_disabled, METH_O, nullptr},
                           {"_skip_next_torch_function", skip_next, METH_O, nullptr},
                           {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
                           {"_push_torch_function_mode", push_mode, METH_O, nullptr},
                           {"_pop_torch_function_mode", pop_mode, METH_NOARGS, nullptr},
                           {"_torch_function_mode_count", mode_count, METH_NOARGS, nullptr},
                           {"_has_torch_function", has_torch_function, METH_O, nullptr},
                           {"_handle_torch_function", handle_torch_function, METH_VARARGS, nullptr},
                           {}};

}  // namespace

bool torch_function_enabled() {
  return !t_all_disabled && (t_enabled || override_active());
}
bool override_active() {
  return t_modes && !t_modes->empty() && !t_all_disabled;
}

bool is_tensor_of_pytorch(PyObject* o) {
  PyObject* bases = Py_TYPE(o)->tp_mro;
  for (Py_ssize_t i = 0; bases && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
    if (!std::strcmp(base->tp_name, "torch._C.TensorBase")) return true;
  }
  return false;
}

bool has_override(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == tensor_type || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type ||
      t == &PyUnicode_Type || t == &PyTuple_Type || t == &PyList_Type || o == Py_None)
    return false;
  return t_enabled && override_of(o) != nullptr;
}

void collect_overloaded(PyObject* o, std::vector<PyObject*>& found) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      collect_overloaded(PySequence_Fast_GET_ITEM(o, i), found);
    return;
  }
  if (!has_override(o)) return;
  for (PyObject* f : found)
    if (Py_TYPE(f) == Py_TYPE(o)) return;
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i)
    if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found[i]))) {
      at = i;
      break;
    }
  found.insert(found.begin() + long(at), o);
}

PyObject* call_override(PyObject* function, PyObject* const* args, size_t count, PyObject* names,
                        const std::vector<PyObject*>& overloaded) {
  Ref tuple(check(PyTuple_New(Py_ssize_t(count))));
  for (size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), Py_NewRef(args[i]));
  Ref kwargs(check(PyDict_New()));
  if (names)
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k)
      check(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, k), args[count + size_t(k)]));
  Ref types(check(PyTuple_New(Py_ssize_t(overloaded.size()))));
  for (size_t i = 0; i < overloaded.size(); ++i)
    PyTuple_SET_ITEM(types.get(), Py_ssize_t(i), Py_NewRef((PyObject*)Py_TYPE(overloaded[i])));

  if (override_active()) {
    PyObject* mode = modes().back();
    modes().pop_back();
    Ref handler(PyObject_GetAttr(mode, g_name));
    PyObject* r = handler ? PyObject_CallFunctionObjArgs(handler.get(), function, types.get(),
                                                         tuple.get(), kwargs.get(), nullptr)
                          : nullptr;
    modes().push_back(mode);
    if (!r) throw PythonError{};
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
  }
  for (PyObject* o : overloaded) {
    Ref handler(PyObject_GetAttr(o, g_name));  // a plain method, which is deprecated, needs o
    if (!handler) throw PythonError{};
    if (PyMethod_Check(handler.get()) && PyMethod_GET_SELF(handler.get()) == o)
      check(PyErr_WarnEx(PyExc_UserWarning,
                         "Defining your `__torch_function__` as a plain method is deprecated and "
                         "will be an error in future, please define it as a classmethod.",
                         1));
    Ref r(PyObject_CallFunctionObjArgs(handler.get(), function, types.get(), tuple.get(),
                                       kwargs.get(), nullptr));
    if (!r) throw PythonError{};
    if (r.get() != Py_NotImplemented) return r.release();
  }
  Ref name(PyObject_GetAttrString(function, "__name__"));
  PyErr_Clear();
  std::string kinds;
  for (PyObject* o : overloaded)
    kinds += (kinds.empty() ? "" : ", ") + std::string(Py_TYPE(o)->tp_name);
  raise_python(PyExc_TypeError,
               std::string("no implementation found for '") +
                   (name ? PyUnicode_AsUTF8(name.get()) : "operator") +
                   "': __torch_function__ of every overriding type returned NotImplemented: [" +
                   kinds + "]");
}

void init_overrides(PyObject* module) {
  g_name = check(PyUnicode_InternFromString("__torch_function__"));
  add_functions(module, functions);
  g_disabled = check(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
}

}  // namespace facula::python
