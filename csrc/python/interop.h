// Memory that tensors share with others: NumPy, DLPack and buffers, in both directions.
#pragma once
#include "python/py.h"

namespace facula::python {

// ---- memory of others under a tensor

// True when the calling thread may take the GIL: not any more once the interpreter shuts down.
bool interpreter_alive();

// Runs `f` with the GIL from whatever thread lets go of the memory last.
template <class F>
void run_with_gil(F&& f) {
  if (!interpreter_alive()) return;
  WithGil gil;
  f();
}

void release_object(Storage* s);  // for borrow_storage: the context is an owned PyObject*
void release_buffer(Storage* s);  // for borrow_storage: the context is a Py_buffer made by new

// Bytes from the first to past the last element. Refuses negative sizes and strides, and what
// overflows. Strides of dimensions that are never stepped along are put right instead.
size_t checked_extent(IntSpan sizes, Dims& strides, DType dtype);

// Makes sure that the storage's memory stays where it is, now that others point into it.
void fix_memory(Storage* s);

// A UserWarning, once in a process for each flag, or always after set_warn_always(True).
void warn_once(const char* message, bool& shown);
// Of memory that was not meant to be written to.
void warn_not_writable(const char* what, bool& shown);

// A tensor over the memory of a buffer. Bytes are copied, since nobody else needs them and the
// tensor shall be like any other; the memory of other buffers is used as it is.
// Marks a tensor that no operator made as one of inference mode, where that is on.
inline const Tensor& made_here(const Tensor& t) {
  if (thread_state.inference) t->flags |= kInference;
  return t;
}
Tensor tensor_over_buffer(PyObject* o, DType dtype, const Dims& sizes, Dims strides);

// ---- storages
bool is_storage(PyObject* o);
Storage* storage_of(PyObject* o);
void init_set_storage();  // the methods of Tensor that deal with storages

// ---- dtypes in the words of the protocols
// Kinds are NumPy's: b(ool), i(nt), u(int), f(loat), c(omplex). DType::None when there is no such.
DType dtype_of_kind(char kind, int64_t bytes);
char kind_of(DType d);            // 0 for dtypes that only DLPack knows
std::string typestr_of(DType d);  // "<f4"
const char* supported_array_dtypes();

// ---- arrays into tensors
bool is_ndarray(PyObject* o);
Tensor tensor_from_ndarray(PyObject* array);
bool is_dlpack_capsule(PyObject* o);
Tensor tensor_from_dlpack(PyObject* exporter_or_capsule, bool refuse_copy = false);
// A tensor over the memory of an array, a DLPack exporter or an object with an array interface, and
// a copy of what __array__ gives; undefined for anything else, also for plain buffers.
Tensor share_array(PyObject* o);

// ---- pieces
Ref optional_attribute(PyObject* o, const char* name);  // empty when there is none
Device resolve_device(Device d);                        // with the index that tensors carry
// Like Tensor.to, without the GIL when there is much to copy.
Tensor convert_tensor(const Tensor& t, DType dtype, Device device, bool copy);
// What a __torch_function__ override makes of a method call, or null when there is none.
PyObject* call_method_override(PyObject* self, const char* name, PyObject* const* args,
                               Py_ssize_t count, PyObject* names);
void add_properties(PyTypeObject* type, PyGetSetDef* properties);

void init_numpy(PyObject* module);
void init_dlpack(PyObject* module);
void init_shared_memory(PyObject* module);
void init_batch_codec(PyObject* module);
void init_collate(PyObject* module);
void init_facts(PyObject* module);
// Whether all that is noted in a _Facts is as it was, and in this dict.
bool facts_hold(PyObject* facts, PyObject* given);
// Whether all that is watched is as it was, but for what takes long to find out.
bool facts_stay(PyObject* facts);
bool is_facts(PyObject* o);
void init_item_types(PyObject* module);
void init_kernel_hook(PyObject* module);

}  // namespace facula::python
