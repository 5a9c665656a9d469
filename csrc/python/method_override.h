// Methods of Tensor as Python sees them: exceptions become Python's, and a subclass with its own
// __torch_function__ (or a mode) is asked before they run.
#pragma once
#include <algorithm>

#include "python/tensor_methods.h"

namespace facula::python {

// Null when nobody wants the call.
PyObject* overridden_method(PyObject* o, const char* name, PyObject* const* args, Py_ssize_t n,
                            PyObject* names);

inline bool may_be_overridden(PyObject* o) {
  return (Py_TYPE(o) != tensor_type || override_active()) && torch_function_enabled();
}

// A method's name as a template argument.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&s)[n]) { std::copy(s, s + n, text); }
};

template <Name name, auto f>
PyObject* no_arguments(PyObject* o, PyObject* unused) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o))
      if (PyObject* r = overridden_method(o, name.text, nullptr, 0, nullptr)) return r;
    return check(f(o, unused));
  });
}
template <Name name, auto f>
PyObject* fast_arguments(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o))
      if (PyObject* r = overridden_method(o, name.text, args, n, names)) return r;
    return check(f(o, args, n, names));
  });
}
template <Name name, auto f>
PyObject* keyword_arguments(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (may_be_overridden(o)) {
      std::vector<PyObject*> flat(&PyTuple_GET_ITEM(args, 0),
                                  &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args));
      Ref names;
      if (kwargs) {
        names = Ref(check(PySequence_Tuple(kwargs)));
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) flat.push_back(value);
      }
      if (PyObject* r =
              overridden_method(o, name.text, flat.data(), PyTuple_GET_SIZE(args), names.get()))
        return r;
    }
    return check(f(o, args, kwargs));
  });
}

// Entries of a table of methods.
#define FACULA_PLAIN(name, f, doc) {name, no_arguments<name, f>, METH_NOARGS, doc}
#define FACULA_FAST(name, f, doc) \
  {name, (PyCFunction)(void*)fast_arguments<name, f>, METH_FASTCALL | METH_KEYWORDS, doc}
#define FACULA_KEYWORDS(name, f, doc) \
  {name, (PyCFunction)(void*)keyword_arguments<name, f>, METH_VARARGS | METH_KEYWORDS, doc}

}  // namespace facula::python
