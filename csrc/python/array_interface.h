// The array interfaces, version 3: dicts that describe the memory of an array, on the host
// (__array_interface__, NumPy's) or on a device (__cuda_array_interface__, Numba's).
#pragma once
#include "python/interop.h"

namespace facula::python {

class ArrayInterface {
 public:
  DType dtype;
  Dims sizes, strides;  // in elements
  size_t bytes;         // from the first to past the last element

  ArrayInterface(PyObject* object, PyObject* dict, const char* name);

  PyObject* entry(const char* key) const;  // borrowed; null for None too
  // Whether the memory is given by its address, and a tensor over it there, which keeps the object.
  bool has_address() const;
  Tensor at_address(Device device) const;
  void* address() const;

 private:
  Dims dims_of(PyObject* sequence, const char* what) const;

  PyObject *object_, *dict_;
  const char* name_;  // for errors
};

// A tensor over the memory of an object on a device; work of the current stream waits for the
// stream that the interface names.
Tensor tensor_from_cuda_interface(PyObject* object, PyObject* dict);

}  // namespace facula::python
