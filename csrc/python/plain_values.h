// Values without code of the program's.
#pragma once
#include "python/interop.h"

namespace facula::python {

inline bool is_number_or_text(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

// Whether an object stays what it is: a number, a text, or a tuple of such. To look for one in a
// dict or to compare two runs no code.
inline bool stays(PyObject* o, int depth = 0) {
  if (is_number_or_text(o)) return true;
  if (!PyTuple_CheckExact(o) || depth == 4) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (!stays(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
  return true;
}

// Whether it is a numpy.ndarray itself, of numbers.
bool is_array_of_numbers(PyObject* o);

}  // namespace facula::python
