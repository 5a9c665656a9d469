// What the files of the Python layer share: object types, wrapping, conversion, errors.
#pragma once
#include <Python.h>
#include <structmember.h>

#include <unistd.h>

#include <string>
#include <vector>

#include "autograd/node.h"
#include "core/generator.h"
#include "core/tensor.h"
#include "op/def.h"

namespace facula::python {

// ---- references
class Ref {  // owns one reference
 public:
  Ref() = default;
  explicit Ref(PyObject* p) : p_(p) {}
  Ref(Ref&& o) noexcept : p_(o.release()) {}
  Ref(const Ref& o) : p_(Py_XNewRef(o.p_)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  static Ref borrow(PyObject* p) { return Ref(Py_XNewRef(p)); }
  PyObject* get() const { return p_; }
  PyObject* release() {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// A Python exception is set; unwinds C++ to the boundary.
struct PythonError {};
inline PyObject* check(PyObject* p) {
  if (!p) throw PythonError{};
  return p;
}
inline int check(int status) {
  if (status < 0) throw PythonError{};
  return status;
}
// Turns the C++ exception in flight into a Python one. Use in catch (...).
void set_python_error() noexcept;
template <class F>
auto guarded(F&& f, decltype(f()) failed) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return failed;
  }
}
template <class F>
PyObject* guarded(F&& f) noexcept {
  return guarded(std::forward<F>(f), static_cast<PyObject*>(nullptr));
}

// At interpreter exit Python ends threads that wait for the GIL by unwinding them, which must not
// reach our destructors: such a thread sleeps until the process is gone.
template <class F>
auto wait_for_gil(F&& take) noexcept {
#ifdef __GLIBC__
  try {
    return take();
  } catch (...) {  // functions of C throw nothing else
    for (;;) pause();
  }
#else
  return take();
#endif
}
struct WithGil {
  PyGILState_STATE state = wait_for_gil([] { return PyGILState_Ensure(); });
  ~WithGil() { PyGILState_Release(state); }
};
struct WithoutGil {
  PyThreadState* state = PyEval_SaveThread();
  ~WithoutGil() {
    wait_for_gil([this] { PyEval_RestoreThread(state); });
  }
};

// ---- tensors
struct PyTensor {
  PyObject_HEAD TensorImpl* impl;  // owned, unless kOwnsPython
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* tensor_base_type;  // facula._C.TensorBase
extern PyTypeObject* tensor_type;       // facula.Tensor, set by Python; results are of this type
void init_tensor_type(PyObject* module);
void swap_tensors(PyObject* a, PyObject* b);  // both are tensors
inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_base_type);
}
inline const Tensor& unwrap(PyObject* o) {
  return *reinterpret_cast<const Tensor*>(&reinterpret_cast<PyTensor*>(o)->impl);
}
PyObject* wrap(Tensor t);  // the tensor's Python object, made if there is none
PyObject* wrap_as(Tensor t, PyTypeObject* type);
inline PyObject* wrap_or_none(const Tensor& t) {
  return t.defined() ? wrap(t) : Py_NewRef(Py_None);
}
PyObject* wrap_list(const std::vector<Tensor>& list);  // a tuple

// ---- dtype, device, memory_format, layout, Size
void init_value_types(PyObject* module);
PyObject* to_python(DType d);
PyObject* to_python(Device d);
PyObject* to_python(MemoryFormat f);
PyObject* make_size(IntSpan sizes);
PyObject* make_tuple(IntSpan values);
bool is_dtype(PyObject* o);
DType dtype_of(PyObject* o);  // also Python's bool, int, float, complex types
bool accepts_dtype(PyObject* o);
bool is_device(PyObject* o);
Device device_of(PyObject* o);  // also strings and integers
bool is_memory_format(PyObject* o);
MemoryFormat memory_format_of(PyObject* o);
bool is_layout(PyObject* o);
int64_t layout_number(PyObject* o);  // as SparseLayout counts them
bool is_size(PyObject* o);
Device current_cuda_device();

// ---- numbers
bool is_number(PyObject* o);  // Python and NumPy scalars, no tensors
Scalar scalar_of(PyObject* o);
PyObject* to_python(const Scalar& s);
// Through __index__; 0-dim integer tensors too. too_large: the error when 64 bits are not enough.
int64_t index_of(PyObject* o, ErrorKind too_large = ErrorKind::Value);
bool is_index(PyObject* o);

// ---- generators
void init_generator_type(PyObject* module);
bool is_generator(PyObject* o);
Generator* generator_of(PyObject* o);
Ref new_generator(uint64_t seed);
// What random_() draws for one int64 from a generator, the host's default one for None. None where
// a tensor is more than its memory, or lies elsewhere.
PyObject* drawn_seed(PyObject* generator);

// ---- operators
void init_operators(PyObject* module);
PyObject* call_operator(const OpDef& op, const Value* args, Destination destination,
                        const Tensor* out);
PyObject* results_to_python(const OpDef& op, Rets& rets);
// Names under which operators are methods are put on the tensor type.
void add_operator_methods(PyTypeObject* type);

// ---- overrides
// Nonzero when an argument's type has its own __torch_function__.
bool has_override(PyObject* o);
// A tensor of PyTorch itself. Its __torch_function__ would call ours again, and so on.
bool is_tensor_of_pytorch(PyObject* o);
// Adds the arguments (also inside tuples and lists) that bring a __torch_function__, one of each
// type, subclasses before their bases.
void collect_overloaded(PyObject* o, std::vector<PyObject*>& found);
bool override_active();  // a TorchFunctionMode is on the stack
PyObject* call_override(PyObject* function, PyObject* const* args, size_t count, PyObject* names,
                        const std::vector<PyObject*>& overloaded);
bool torch_function_enabled();
void init_overrides(PyObject* module);

// ---- the rest
void init_autograd(PyObject* module);
void init_hooks(PyObject* module);
PyObject* function_context(Node* node);  // the ctx of a custom Function (borrowed), or null
void init_function_type(PyObject* module);
void init_node_type(PyObject* module);
PyObject* wrap_node(const NodeRef& node);
void init_indexing(PyObject* module);
PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* value);
void init_construction(PyObject* module);
Tensor tensor_from_data(PyObject* data, DType dtype, Device device);
void init_interop(PyObject* module);
void init_source_locations();
void init_storage_type(PyObject* module);
void init_module_base(PyObject* module);  // of nn.Module
PyObject* wrap_storage(Storage* s);
PyObject* import_attribute(const char* module, const char* name);  // null where that fails
// Imports what `kept`, a static of the caller, is to hold, unless it does. An import lets other
// threads run, so it must not happen in the initializer of a static: they would wait there with
// the GIL that the import needs.
PyObject* import_once(PyObject*& kept, const char* module, const char* name);

void add_methods(PyTypeObject* type, PyMethodDef* methods);
void add_functions(PyObject* module, PyMethodDef* methods);
std::string type_name(PyObject* o);  // of its type, for messages: "int", "Tensor"
[[noreturn]] void raise_python(PyObject* type, const std::string& text);

}  // namespace facula::python
