#include "python/array_interface.h"

#include <bit>
#include <cstring>

#include "cuda/context.h"
#include "op/tensor_operators.h"

namespace facula::python {
namespace {

DType dtype_of_typestr(PyObject* o, const char* name) {
  const char* s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
  if (!s) {
    PyErr_Clear();
    type_error(name, ": typestr must be a string such as '<f4'");
  }
  char* end = nullptr;
  long bytes = std::strlen(s) >= 3 ? std::strtol(s + 2, &end, 10) : 0;
  DType d = end && *end == 0 ? dtype_of_kind(s[1], bytes) : DType::None;
  if (d == DType::None)
    type_error("can't convert an array of type '", s,
               "'. The only supported types are: ", supported_array_dtypes());
  char foreign = std::endian::native == std::endian::little ? '>' : '<';
  if (s[0] == foreign && bytes > 1)
    value_error(
        "the array has byte order different from the native byte order; convert it to native order "
        "first");
  return d;
}

}  // namespace

ArrayInterface::ArrayInterface(PyObject* object, PyObject* dict, const char* name)
    : object_(object), dict_(dict), name_(name) {
  if (!PyDict_Check(dict)) type_error(name, " must be a dict, not ", type_name(dict));
  dtype = dtype_of_typestr(entry("typestr"), name);
  int64_t item = int64_t(item_size(dtype));
  PyObject* shape = entry("shape");
  if (!shape) value_error(name, " has no shape");
  sizes = dims_of(shape, "shape");
  for (int64_t s : sizes)
    if (s < 0) value_error(name, ": negative size in shape ", IntSpan(sizes));
  strides = contiguous_strides(sizes);
  if (PyObject* given = entry("strides")) {
    strides = dims_of(given, "strides");
    if (strides.size() != sizes.size()) value_error(name, ": strides and shape differ in length");
    for (int64_t& s : strides) {
      if (s % item)
        value_error(
            "the array's strides are not a multiple of the element byte size; copy it first");
      s /= item;
    }
  }
  bytes = checked_extent(sizes, strides, dtype);
}

PyObject* ArrayInterface::entry(const char* key) const {
  PyObject* found = PyDict_GetItemString(dict_, key);
  return found == Py_None ? nullptr : found;
}

Dims ArrayInterface::dims_of(PyObject* sequence, const char* what) const {
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
    type_error(name_, ": ", what, " must be a tuple of ints, not ", type_name(sequence));
  Ref items(check(PySequence_Tuple(sequence)));
  Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  if (n > kMaxDims)
    value_error("a tensor has at most ", kMaxDims, " dimensions, this array has ", n);
  Dims dims;
  for (Py_ssize_t i = 0; i < n; ++i) dims.push_back(index_of(PyTuple_GET_ITEM(items.get(), i)));
  return dims;
}

bool ArrayInterface::has_address() const {
  PyObject* data = entry("data");
  return data && PyTuple_Check(data);
}

void* ArrayInterface::address() const {
  PyObject* data = entry("data");
  if (!has_address() || PyTuple_GET_SIZE(data) != 2)
    value_error(name_, ": data must be (address, read-only flag)");
  Ref number(check(PyNumber_Long(PyTuple_GET_ITEM(data, 0))));
  void* address = PyLong_AsVoidPtr(number.get());
  if (PyErr_Occurred()) throw PythonError{};
  if (!address && bytes) value_error(name_, ": the address is null");
  return bytes ? address : nullptr;
}

Tensor ArrayInterface::at_address(Device device) const {
  void* memory = address();
  static bool warned = false;
  if (check(PyObject_IsTrue(PyTuple_GET_ITEM(entry("data"), 1))))
    warn_not_writable("array", warned);
  // The interface may own what the address points to, so it is kept with the object.
  Ref keep(check(PyTuple_Pack(2, object_, dict_)));
  Storage* s = borrow_storage(memory, bytes, device, release_object, nullptr);
  s->context = keep.release();
  return tensor_on_storage(s, sizes, strides, 0, dtype);
}

Tensor tensor_from_cuda_interface(PyObject* object, PyObject* dict) {
  const ArrayInterface array(object, dict, "__cuda_array_interface__");
  if (array.entry("mask"))
    value_error("__cuda_array_interface__: masked arrays cannot become tensors");
  const void* memory = array.address();
  const int device = memory ? cuda::device_of_pointer(memory) : cuda::current_device();
  if (device < 0)
    value_error("__cuda_array_interface__: the address is not one of memory on a CUDA device");
  // 1 and 2 are CUDA's default streams; without a stream there is nothing to wait for.
  if (PyObject* given = array.entry("stream"); given && memory) {
    const int64_t number = index_of(given);
    if (number <= 0)
      value_error("__cuda_array_interface__: stream must be None or a positive handle, got ",
                  number);
    auto producer = number == 1 ? nullptr : reinterpret_cast<cuda::CuStream>(uintptr_t(number));
    WithoutGil released;
    cuda::order_streams(device, producer, cuda::current_stream(device));
  }
  return made_here(array.at_address(Device{DeviceType::CUDA, int8_t(device)}));
}

}  // namespace facula::python
