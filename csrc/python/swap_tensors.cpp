// Two Python objects exchange the tensors that they stand for, with everything that hangs on them.
#include <utility>

#include "python/py.h"

namespace facula::python {

// Both objects are held by the caller, so that each owns its tensor and not the other way round.
void swap_tensors(PyObject* a, PyObject* b) {
  auto* x = reinterpret_cast<PyTensor*>(a);
  auto* y = reinterpret_cast<PyTensor*>(b);
  std::swap(x->impl, y->impl);
  std::swap(x->dict, y->dict);
  x->impl->python = a;
  y->impl->python = b;
}

}  // namespace facula::python
