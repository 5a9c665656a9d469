// Pieces of the tensor type that live in other files.
#pragma once
#include "python/py.h"

namespace facula::python {

extern PyGetSetDef tensor_properties[];
extern PyMethodDef tensor_methods[];
extern PyMethodDef tensor_conversions[];

Device tensor_device_of(PyObject* o);  // as tensors carry it, see resolve_device
Scalar read_item(const Tensor& t);     // one element, from any device
// What float() of a tensor and tensor([x]) say: gradients end at the number that is read.
void warn_of_lost_gradient(const Tensor& t);
PyObject* convert_array(PyObject* array);  // an ndarray as a tensor object

int traverse_autograd(AutogradMeta* meta, visitproc visit, void* arg);
void clear_autograd_hooks(AutogradMeta* meta);

}  // namespace facula::python
