// The Python object of a tape node.
#pragma once
#include "python/py.h"

namespace facula::python {

struct PyNode {
  PyObject_HEAD Node*
      node;  // owned when `owns`; a custom Function's ctx is owned by its node instead
  bool owns;
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* node_type;

}  // namespace facula::python
