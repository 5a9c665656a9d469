// What carries tensors from one process to another: descriptors of shared memory, and buffers.
#include <unistd.h>

#include <cstring>
#include <memory>

#include "core/shared_memory.h"
#include "python/batch_slots.h"

namespace facula::python {
namespace {

PyObject* shared_descriptor_of(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_storage(o)) type_error("expected UntypedStorage, got ", type_name(o));
    return check(PyLong_FromLong(shared_descriptor(*storage_of(o))));
  });
}

PyObject* map_descriptor(PyObject*, PyObject* args) {
  return guarded([&] {
    int descriptor;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTuple(args, "in:_map_shared", &descriptor, &nbytes)) throw PythonError{};
    if (nbytes <= 0) value_error("_map_shared(): expected a positive size, got ", nbytes);
    Storage* s = map_shared(descriptor, size_t(nbytes));
    PyObject* o = wrap_storage(s);
    s->unref();
    return o;
  });
}

PyObject* make_file(PyObject*, PyObject* size) {
  return guarded([&] {
    const int64_t n = index_of(size);
    if (n <= 0) value_error("_make_shared_file(): expected a positive size, got ", n);
    const int descriptor = make_shared_file(size_t(n));
    PyObject* o = PyLong_FromLong(descriptor);
    if (!o) close(descriptor);
    return check(o);
  });
}

Dims ints_of(PyObject* o) {
  if (!PyTuple_Check(o)) type_error("expected a tuple of ints, got ", type_name(o));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    dims.push_back(index_of(PyTuple_GET_ITEM(o, i)));
  return dims;
}

// (buffer, dtype, sizes, strides or None)
PyObject* tensor_in_buffer(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4) type_error("_tensor_in_buffer() takes 4 arguments, got ", count);
    if (!is_dtype(args[1])) type_error("expected facula.dtype, got ", type_name(args[1]));
    const Dims sizes = ints_of(args[2]);
    Dims strides = args[3] == Py_None ? contiguous_strides(sizes) : ints_of(args[3]);
    if (strides.size() != sizes.size()) value_error("as many strides as sizes are needed");
    Tensor t = tensor_over_buffer(args[0], dtype_of(args[1]), sizes, std::move(strides));
    if (t->storage->release == release_buffer) t->storage->release = release_slot_buffer;
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"_shared_descriptor", shared_descriptor_of, METH_O,
     "The descriptor of a storage's shared memory, or -1."},
    {"_map_shared", map_descriptor, METH_VARARGS,
     "_map_shared(descriptor, nbytes): a storage over shared memory, which owns the descriptor."},
    {"_make_shared_file", make_file, METH_O, "The descriptor of a new file without a name."},
    {"_tensor_in_buffer", (PyCFunction)(void*)tensor_in_buffer, METH_FASTCALL,
     "_tensor_in_buffer(buffer, dtype, sizes, strides): what tensors from workers call."},
    {}};

}  // namespace

Tensor tensor_over_buffer(PyObject* o, DType dtype, const Dims& sizes, Dims strides) {
  const size_t extent = checked_extent(sizes, strides, dtype);
  const bool copied = PyByteArray_CheckExact(o) || PyBytes_CheckExact(o);
  auto buffer = std::make_unique<Py_buffer>();
  check(PyObject_GetBuffer(o, buffer.get(), copied ? PyBUF_SIMPLE : PyBUF_WRITABLE));
  if (extent > size_t(buffer->len)) {
    const Py_ssize_t length = buffer->len;
    PyBuffer_Release(buffer.get());
    value_error("a tensor of ", extent, " bytes does not fit into a buffer of ", length);
  }
  Storage* s;
  if (copied) {
    try {
      s = allocate_storage(extent, Device{});
    } catch (...) {
      PyBuffer_Release(buffer.get());
      throw;
    }
    if (extent) std::memcpy(s->data, buffer->buf, extent);
    PyBuffer_Release(buffer.get());
  } else {
    void* data = buffer->buf;
    s = borrow_storage(data, extent, Device{}, release_buffer, buffer.release());
  }
  return tensor_on_storage(s, sizes, strides, 0, dtype);
}

void init_shared_memory(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
