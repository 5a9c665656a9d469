// facula.Tensor: one heap type. Identity is kept: while a tensor lives, it has at most one Python
// object, and an object with attributes of its own outlives its last Python reference as long as
// C++ (a graph, another tensor's .grad) still holds the tensor.
#include <cstring>

#include "autograd/node_names.h"
#include "core/sparse.h"
#include "op/elementwise.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "python/method_override.h"
#include "python/tensor_methods.h"
#include "transform/wrapper.h"

namespace facula::python {

PyTypeObject* tensor_base_type = nullptr;
PyTypeObject* tensor_type = nullptr;

namespace {

PyTensor* cast(PyObject* o) {
  return reinterpret_cast<PyTensor*>(o);
}

// What would be missed if the tensor came back to Python as another object.
bool has_own_state(PyObject* o) {
  if (Py_TYPE(o) != tensor_type || cast(o)->weakrefs) return true;
  PyObject* d = cast(o)->dict;
  return d && PyDict_GET_SIZE(d) > 0;
}

void tensor_dealloc(PyObject* o) {
  PyTensor* self = cast(o);
  TensorImpl* impl = self->impl;
  if (impl && impl->refs.load() > 1 && has_own_state(o)) {
    // C++ still holds the tensor: from here on it holds the object too.
    Py_SET_REFCNT(o, 1);
    impl->flags |= kOwnsPython;
    impl->refs.fetch_sub(1);
    return;
  }
  PyTypeObject* type = Py_TYPE(o);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0) return;
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  if (impl) {
    impl->python = nullptr;
    self->impl = nullptr;
    Tensor::adopt(impl);
  }
  type->tp_free(o);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  PyTensor* self = cast(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  TensorImpl* impl = self->impl;
  // Hooks are reachable only through this object when nothing else holds the tensor.
  if (impl && !(impl->flags & kOwnsPython) && impl->refs.load() == 1 && impl->autograd)
    return traverse_autograd(impl->autograd, visit, arg);
  return 0;
}

int tensor_clear(PyObject* o) {
  PyTensor* self = cast(o);
  Py_CLEAR(self->dict);
  TensorImpl* impl = self->impl;
  if (impl && !(impl->flags & kOwnsPython) && impl->refs.load() == 1 && impl->autograd)
    clear_autograd_hooks(impl->autograd);
  return 0;
}

// Tensor(data), Tensor(2, 3): the legacy constructor with the default dtype, on the host.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Device device;
    if (kwargs) {
      PyObject* d = PyDict_GetItemString(kwargs, "device");
      if (type == tensor_type && PyDict_GET_SIZE(kwargs) > (d ? 1 : 0))
        type_error(
            "new() received an invalid combination of arguments: Tensor(...) takes no keyword but "
            "device; facula.tensor(data, dtype=...) chooses a dtype");
      if (d && d != Py_None) device = tensor_device_of(d);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    Tensor t;
    if (n == 0) {
      t = empty_tensor(Dims{0}, default_dtype(), device);
    } else {
      PyObject* first = PyTuple_GET_ITEM(args, 0);
      if (n == 1 && is_tensor(first)) {
        t = op::alias(unwrap(first));
        if (type == tensor_type) return wrap(t);
      } else if (n == 1 && is_size(first)) {
        Dims sizes;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first); ++i)
          sizes.push_back(index_of(PyTuple_GET_ITEM(first, i)));
        t = empty_tensor(sizes, default_dtype(), device);
      } else if (is_index(first) && !PyBool_Check(first) && !PySequence_Check(first)) {
        Dims sizes;
        for (Py_ssize_t i = 0; i < n; ++i) sizes.push_back(index_of(PyTuple_GET_ITEM(args, i)));
        t = empty_tensor(sizes, default_dtype(), device);
      } else if (n == 1 &&
                 (is_storage(first) || PyObject_HasAttrString(first, "_untyped_storage"))) {
        Ref make(import_attribute("facula._legacy_types", "construct"));
        check(make.get());
        Ref dtype(to_python(default_dtype())), where(to_python(device));
        Ref made(
            check(PyObject_CallFunction(make.get(), "OO(O)", dtype.get(), where.get(), first)));
        t = unwrap(made.get());
      } else if (n == 1) {
        if (!PySequence_Check(first))
          type_error("new(): data must be a sequence (got ", Py_TYPE(first)->tp_name, ")");
        t = tensor_from_data(first, default_dtype(), device);
      } else {
        type_error(
            "new() received an invalid combination of arguments; expected sizes, a sequence or a "
            "tensor");
      }
    }
    return wrap_as(t, type);
  });
}

int tensor_init(PyObject*, PyObject*, PyObject*) {
  return 0;
}

// What a subclass or a mode makes of len(), float() and other protocols; null when nobody does.
PyObject* overridden_slot(PyObject* o, const char* name, PyObject* other = nullptr) {
  if (!may_be_overridden(o)) return nullptr;
  return overridden_method(o, name, &other, other ? 1 : 0, nullptr);
}
template <class F>
PyObject* slot(PyObject* o, const char* name, F&& f) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = overridden_slot(o, name)) return r;
    return check(f());
  });
}

PyObject* tensor_repr(PyObject* o) {
  return slot(o, "__repr__", [&] {
    static PyObject* text;
    import_once(text, "facula._tensor_str", "_str");
    if (!text) return PyUnicode_FromString("<facula.Tensor>");
    return PyObject_CallOneArg(text, o);
  });
}

Py_hash_t tensor_hash(PyObject* o) {
  return Py_hash_t(reinterpret_cast<uintptr_t>(o));  // id(o), as programs expect
}

Py_ssize_t tensor_length(PyObject* o) {
  return guarded(
      [&]() -> Py_ssize_t {
        if (Ref r(overridden_slot(o, "__len__")); r) {
          Py_ssize_t n = PyNumber_AsSsize_t(r.get(), PyExc_OverflowError);
          if (n == -1 && PyErr_Occurred()) throw PythonError{};
          return n;
        }
        const Tensor& t = unwrap(o);
        if (t.dim() == 0) raise_python(PyExc_TypeError, "len() of a 0-d tensor");
        return Py_ssize_t(t.sizes()[0]);
      },
      Py_ssize_t(-1));
}

PyObject* tensor_item_at(PyObject* o, Py_ssize_t i) {
  return guarded([&] { return wrap(op::select(unwrap(o), 0, i)); });
}

PyObject* tensor_iter(PyObject* o) {
  return guarded([&] {
    const Tensor& t = unwrap(o);
    if (t.dim() == 0) type_error("iteration over a 0-d tensor");
    Ref list(may_be_overridden(o) ? check(PyObject_CallMethod(o, "unbind", nullptr))
                                  : wrap_list(op::unbind(t, 0)));
    return check(PyObject_GetIter(list.get()));
  });
}

int truth(PyObject* o) {
  int value = PyObject_IsTrue(o);
  if (value < 0) throw PythonError{};
  return value;
}

int tensor_bool(PyObject* o) {
  return guarded(
      [&]() -> int {
        if (Ref r(overridden_slot(o, "__bool__")); r) return truth(r.get());
        const Tensor& t = unwrap(o);
        if (t.numel() != 1)
          runtime_error("Boolean value of Tensor with ",
                        t.numel() == 0 ? "no values" : "more than one value",
                        " is ambiguous: the shape is ", t.sizes(), ". Use .any() or .all()");
        if (t.is_wrapped()) refuse_branch(t);
        return read_item(t).to<bool>();
      },
      -1);
}

int tensor_contains(PyObject* o, PyObject* value) {
  return guarded(
      [&]() -> int {
        if (Ref r(overridden_slot(o, "__contains__", value)); r) return truth(r.get());
        if (!is_tensor(value) && !is_number(value))
          runtime_error("Tensor.__contains__ only supports Tensor or scalar, but you passed in a ",
                        Py_TYPE(value)->tp_name, ".");
        Tensor hit = is_tensor(value) ? op::eq(unwrap(o), unwrap(value))
                                      : op::eq(unwrap(o), scalar_of(value));
        return read_item(op::any(hit)).to<bool>();
      },
      -1);
}

Tensor one_element(PyObject* o, const char* what) {
  const Tensor& t = unwrap(o);
  if (t.numel() != 1)
    value_error("only one element tensors can be converted to Python scalars (", what,
                " of a tensor of shape ", t.sizes(), ")");
  return t;
}
// A complex number is real only when nothing is lost.
PyObject* real_item(PyObject* o, const char* what, DType d) {
  Scalar s = read_item(one_element(o, what));
  if (!s.is_complex()) return to_python(s);
  s.check_fits(d);
  return PyFloat_FromDouble(s.to_complex().re);
}
PyObject* tensor_int(PyObject* o) {
  return slot(o, "__int__", [&] {
    Ref number(real_item(o, "int()", DType::Int64));
    return PyNumber_Long(number.get());
  });
}
PyObject* tensor_float(PyObject* o) {
  return slot(o, "__float__", [&] {
    warn_of_lost_gradient(unwrap(o));
    Ref number(real_item(o, "float()", DType::Float64));
    return PyNumber_Float(number.get());
  });
}
PyObject* tensor_index(PyObject* o) {
  return slot(o, "__index__", [&] {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1 || !is_integral(t.dtype(), true))
      type_error(
          "only integer tensors of a single element can be converted to an index, got dtype ",
          t.dtype(), " and shape ", t.sizes());
    Ref number(to_python(read_item(t)));
    return PyNumber_Long(number.get());
  });
}

// ---- operators with symbols

// What an operand may be without asking the other side: else NotImplemented.
bool operand_value(PyObject* o, Value& v, Scalar& number) {
  if (is_tensor(o)) {
    v = Value(unwrap(o));
    return true;
  }
  if (!is_number(o)) return false;
  number = scalar_of(o);
  v = Value(number);
  return true;
}

PyObject* method_named(const char* name) {
  return PyDict_GetItemString(tensor_base_type->tp_dict, name);
}

// What __torch_function__ makes of `method` on these operands, null where nobody takes it over.
PyObject* overridden(const char* method, std::initializer_list<PyObject*> operands) {
  if (!torch_function_enabled()) return nullptr;
  std::vector<PyObject*> overloaded;
  for (PyObject* o : operands) collect_overloaded(o, overloaded);
  if (overloaded.empty() && !override_active()) return nullptr;
  PyObject* function = method_named(method);
  return function ? call_override(function, operands.begin(), operands.size(), nullptr, overloaded)
                  : nullptr;
}

// What NumPy computes in for a tensor and an array: a float that holds the integers, too, and
// float64 for quotients of integers. It does not know bfloat16.
DType dtype_beside_array(DType tensor, DType array, bool quotient) {
  const DType both = promote_types(tensor, array);
  if (tensor == DType::BFloat16) return both;
  const bool integers[] = {is_integral(tensor, true), is_integral(array, true)};
  if (integers[0] && integers[1]) return quotient ? DType::Float64 : both;
  if (integers[0] == integers[1]) return both;
  const DType integer = integers[0] ? tensor : array;
  return promote_types(both, item_size(integer) == 1   ? DType::Float16
                             : item_size(integer) == 2 ? DType::Float32
                                                       : DType::Float64);
}

PyObject* binary(const OpDef& op, const char* method, const char* reflected, PyObject* a,
                 PyObject* b) {
  return guarded([&]() -> PyObject* {
    bool plain = (Py_TYPE(a) == tensor_type || PyFloat_CheckExact(a) || PyLong_CheckExact(a)) &&
                 (Py_TYPE(b) == tensor_type || PyFloat_CheckExact(b) || PyLong_CheckExact(b));
    if (!plain || override_active()) {
      const bool forward = is_tensor(a);
      if (PyObject* r = forward ? overridden(method, {a, b}) : overridden(reflected, {b, a}))
        return r;
    }
    Value args[3];
    Scalar na, nb;
    if (!operand_value(a, args[0], na) || !operand_value(b, args[1], nb)) {
      // PyTorch leaves a tensor and an array to NumPy. Here both are taken as tensors of the dtype
      // that it would choose, so that arrays may come first and gradients flow.
      const bool array_first = !is_tensor(a);
      PyObject *tensor = array_first ? b : a, *array = array_first ? a : b;
      if (std::strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") != 0)
        return Py_NewRef(Py_NotImplemented);
      Ref converted(convert_array(array));
      const Tensor &t = unwrap(tensor), &from = unwrap(converted.get());
      const DType d = dtype_beside_array(t.dtype(), from.dtype(), &op == &defs::div);
      const auto cast = [&](const Tensor& x) { return x.dtype() == d ? x : op::_to_copy(x, d); };
      const Tensor own = cast(t), other = cast(from);
      args[0] = Value(array_first ? other : own);
      args[1] = Value(array_first ? own : other);
      for (int i = 2; i < op.arg_count; ++i) args[i] = op.args[i].value;
      Ref result(call_operator(op, args, Destination::New, nullptr));
      // __array_wrap__ makes uint8 of truth values.
      const Tensor& r = unwrap(result.get());
      if (r.dtype() != DType::Bool || array_first) return result.release();
      return wrap(op::view_dtype(r, DType::UInt8));
    }
    for (int i = 2; i < op.arg_count; ++i) args[i] = op.args[i].value;
    return call_operator(op, args, Destination::New, nullptr);
  });
}

PyObject* in_place(const OpDef& op, const char* method, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(a) != tensor_type || has_override(b) || override_active())
      if (PyObject* r = overridden(method, {a, b})) return r;
    Value args[3];
    Scalar na, nb;
    if (!operand_value(a, args[0], na) || !operand_value(b, args[1], nb))
      return Py_NewRef(Py_NotImplemented);
    for (int i = 2; i < op.arg_count; ++i) args[i] = op.args[i].value;
    Ref result(call_operator(op, args, Destination::InPlace, &unwrap(a)));
    return Py_NewRef(a);
  });
}

// As PyTorch calls the nodes of operators whose left operand is a number, or both are tensors.
PyObject* binary_named(const OpDef& op, const char* method, const char* reflected, PyObject* a,
                       PyObject* b, const char* number_first, const char* both_tensors) {
  const char* name =
      is_tensor(a) ? (both_tensors && is_tensor(b) ? both_tensors : nullptr) : number_first;
  const uint64_t earlier = name ? next_node() : 0;
  PyObject* result = binary(op, method, reflected, a, b);
  if (name && result && is_tensor(result)) name_node(unwrap(result), earlier, name);
  return result;
}

#define BINARY(slot, op, method, reflected)           \
  PyObject* slot(PyObject* a, PyObject* b) {          \
    return binary(defs::op, method, reflected, a, b); \
  }
#define IN_PLACE(slot, op, method)           \
  PyObject* slot(PyObject* a, PyObject* b) { \
    return in_place(defs::op, method, a, b); \
  }
BINARY(nb_add, add, "add", "add")
PyObject* nb_subtract(PyObject* a, PyObject* b) {
  return binary_named(defs::sub, "sub", "__rsub__", a, b, "RsubBackward1", nullptr);
}
BINARY(nb_multiply, mul, "mul", "mul")
PyObject* nb_true_divide(PyObject* a, PyObject* b) {
  return binary_named(defs::div, "div", "__rtruediv__", a, b, "MulBackward0", nullptr);
}
BINARY(nb_floor_divide, floor_divide, "__floordiv__", "__rfloordiv__")
BINARY(nb_remainder, remainder, "remainder", "__rmod__")
BINARY(nb_and, bitwise_and, "__and__", "bitwise_and")
BINARY(nb_or, bitwise_or, "__or__", "bitwise_or")
BINARY(nb_xor, bitwise_xor, "__xor__", "bitwise_xor")
BINARY(nb_lshift, bitwise_left_shift, "__lshift__", "__rlshift__")
BINARY(nb_rshift, bitwise_right_shift, "__rshift__", "__rrshift__")
IN_PLACE(nb_inplace_add, add, "add_")
IN_PLACE(nb_inplace_subtract, sub, "sub_")
IN_PLACE(nb_inplace_multiply, mul, "mul_")
IN_PLACE(nb_inplace_true_divide, div, "div_")
IN_PLACE(nb_inplace_floor_divide, floor_divide, "floor_divide_")
IN_PLACE(nb_inplace_remainder, remainder, "remainder_")
IN_PLACE(nb_inplace_and, bitwise_and, "__iand__")
IN_PLACE(nb_inplace_or, bitwise_or, "__ior__")
IN_PLACE(nb_inplace_xor, bitwise_xor, "__ixor__")
IN_PLACE(nb_inplace_lshift, bitwise_left_shift, "__ilshift__")
IN_PLACE(nb_inplace_rshift, bitwise_right_shift, "__irshift__")

PyObject* nb_power(PyObject* a, PyObject* b, PyObject*) {
  return binary_named(defs::pow, "pow", "__rpow__", a, b, "PowBackward2", "PowBackward1");
}
PyObject* nb_inplace_power(PyObject* a, PyObject* b, PyObject*) {
  return in_place(defs::pow, "pow_", a, b);
}
PyObject* nb_matrix_multiply(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) {
    if (!has_override(a) && !has_override(b)) Py_RETURN_NOTIMPLEMENTED;
  }
  return binary(defs::matmul, "matmul", "__rmatmul__", a, b);
}

PyObject* unary(const OpDef& op, const char* method, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(o) != tensor_type || override_active())
      if (PyObject* r = overridden(method, {o})) return r;
    Value args[] = {Value(unwrap(o))};
    return call_operator(op, args, Destination::New, nullptr);
  });
}
PyObject* nb_negative(PyObject* o) {
  return unary(defs::neg, "neg", o);
}
PyObject* nb_absolute(PyObject* o) {
  return unary(defs::abs, "abs", o);
}
PyObject* nb_invert(PyObject* o) {
  if (Py_TYPE(o) == tensor_type && !is_integral(unwrap(o).dtype(), true))
    return PyErr_Format(PyExc_TypeError,
                        "~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors, not facula.%s",
                        dtype_name(unwrap(o).dtype()));
  return unary(defs::bitwise_not, "__invert__", o);
}
PyObject* nb_positive(PyObject* o) {
  if (!may_be_overridden(o)) return Py_NewRef(o);
  return PyObject_CallMethod(o, "positive", nullptr);
}

PyObject* tensor_compare(PyObject* a, PyObject* b, int op) {
  static const OpDef* const table[] = {&defs::lt, &defs::le, &defs::eq,
                                       &defs::ne, &defs::gt, &defs::ge};
  static const char* const names[] = {"lt", "le", "__eq__", "ne", "gt", "ge"};
  static const char* const mirrored[] = {"gt", "ge", "__eq__", "ne", "lt", "le"};
  return binary(*table[op], names[op], mirrored[op], a, b);
}

PyObject* init_subclass(PyObject* cls, PyObject*, PyObject*) {
  // Python gives subclasses its own dealloc, which could not keep the object alive for C++.
  reinterpret_cast<PyTypeObject*>(cls)->tp_dealloc = tensor_dealloc;
  Py_RETURN_NONE;
}

PyMethodDef type_methods[] = {{"__init_subclass__", (PyCFunction)(void*)init_subclass,
                               METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
                              {}};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {}};

PyType_Slot slots[] = {
    {Py_tp_new, (void*)tensor_new},
    {Py_tp_init, (void*)tensor_init},
    {Py_tp_dealloc, (void*)tensor_dealloc},
    {Py_tp_traverse, (void*)tensor_traverse},
    {Py_tp_clear, (void*)tensor_clear},
    {Py_tp_repr, (void*)tensor_repr},
    {Py_tp_hash, (void*)tensor_hash},
    {Py_tp_richcompare, (void*)tensor_compare},
    {Py_tp_iter, (void*)tensor_iter},
    {Py_tp_methods, type_methods},
    {Py_tp_members, members},
    {Py_tp_getset, tensor_properties},
    {Py_sq_length, (void*)tensor_length},
    {Py_sq_item, (void*)tensor_item_at},
    {Py_sq_contains, (void*)tensor_contains},
    {Py_mp_length, (void*)tensor_length},
    {Py_mp_subscript, (void*)tensor_getitem},
    {Py_mp_ass_subscript, (void*)tensor_setitem},
    {Py_nb_bool, (void*)tensor_bool},
    {Py_nb_int, (void*)tensor_int},
    {Py_nb_float, (void*)tensor_float},
    {Py_nb_index, (void*)tensor_index},
    {Py_nb_add, (void*)nb_add},
    {Py_nb_subtract, (void*)nb_subtract},
    {Py_nb_multiply, (void*)nb_multiply},
    {Py_nb_true_divide, (void*)nb_true_divide},
    {Py_nb_floor_divide, (void*)nb_floor_divide},
    {Py_nb_remainder, (void*)nb_remainder},
    {Py_nb_power, (void*)nb_power},
    {Py_nb_matrix_multiply, (void*)nb_matrix_multiply},
    {Py_nb_and, (void*)nb_and},
    {Py_nb_or, (void*)nb_or},
    {Py_nb_xor, (void*)nb_xor},
    {Py_nb_lshift, (void*)nb_lshift},
    {Py_nb_rshift, (void*)nb_rshift},
    {Py_nb_inplace_add, (void*)nb_inplace_add},
    {Py_nb_inplace_subtract, (void*)nb_inplace_subtract},
    {Py_nb_inplace_multiply, (void*)nb_inplace_multiply},
    {Py_nb_inplace_true_divide, (void*)nb_inplace_true_divide},
    {Py_nb_inplace_floor_divide, (void*)nb_inplace_floor_divide},
    {Py_nb_inplace_remainder, (void*)nb_inplace_remainder},
    {Py_nb_inplace_and, (void*)nb_inplace_and},
    {Py_nb_inplace_or, (void*)nb_inplace_or},
    {Py_nb_inplace_xor, (void*)nb_inplace_xor},
    {Py_nb_inplace_lshift, (void*)nb_inplace_lshift},
    {Py_nb_inplace_rshift, (void*)nb_inplace_rshift},
    {Py_nb_inplace_power, (void*)nb_inplace_power},
    {Py_nb_negative, (void*)nb_negative},
    {Py_nb_positive, (void*)nb_positive},
    {Py_nb_absolute, (void*)nb_absolute},
    {Py_nb_invert, (void*)nb_invert},
    {Py_tp_doc,
     (void*)"A multi-dimensional array of one dtype on one device; see ``facula.tensor``."},
    {}};
PyType_Spec spec = {"facula.Tensor", sizeof(PyTensor), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

void drop_python_object(void* object) {
  if (!interpreter_alive()) return;  // it is while modules are cleared and garbage is collected
  WithGil gil;
  PyObject* o = static_cast<PyObject*>(object);
  cast(o)->impl = nullptr;
  Py_DECREF(o);
}

}  // namespace

Device tensor_device_of(PyObject* o) {
  return resolve_device(device_of(o));
}

void warn_of_lost_gradient(const Tensor& t) {
  static bool shown;
  if (!grad_enabled() || !requires_grad(t)) return;
  warn_once(
      "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
      "Consider using tensor.detach() first.",
      shown);
}

Scalar read_item(const Tensor& given) {
  if (given.numel() != 1)
    value_error("only one element tensors can be converted to Python scalars, got shape ",
                given.sizes());
  Tensor t = given.is_wrapped() || given.is_lazy() ? readable(given, ".item()") : given;
  if (is_sparse(t)) t = op::_sparse_to_dense(detach_tensor(t));
  if (t.is_cpu()) return item_of(t);
  if (t.is_meta()) fail(ErrorKind::Runtime, "Tensor.item() cannot be called on meta tensors");
  return item_of(op::_to_copy(t, DType::None, Device{}));
}

PyObject* wrap_as(Tensor t, PyTypeObject* type) {
  PyObject* o = check(type->tp_alloc(type, 0));
  if (t->python) t = alias_tensor(t);  // an object of another type exists: this one is a new tensor
  cast(o)->impl = t.release();
  cast(o)->impl->python = o;
  return o;
}

PyObject* wrap(Tensor t) {
  TensorImpl* p = t.impl();
  if (!p) return Py_NewRef(Py_None);
  if (p->python) {
    PyObject* o = static_cast<PyObject*>(p->python);
    if (p->flags & kOwnsPython) {  // back in Python: the object owns the tensor again
      p->flags &= uint8_t(~kOwnsPython);
      cast(o)->impl = t.release();
      return o;
    }
    return Py_NewRef(o);
  }
  PyObject* o = check(tensor_type->tp_alloc(tensor_type, 0));
  cast(o)->impl = t.release();
  p->python = o;
  return o;
}

PyObject* wrap_list(const std::vector<Tensor>& list) {
  PyObject* t = check(PyTuple_New(Py_ssize_t(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(t, Py_ssize_t(i), wrap_or_none(list[i]));
  return t;
}

void init_tensor_type(PyObject* module) {
  tensor_base_type = tensor_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  tensor_type->tp_name =
      "Tensor";  // what error messages call it; repr() of the type goes by __module__
  release_python_object = drop_python_object;
  add_operator_methods(tensor_type);
  add_methods(tensor_type, tensor_methods);
  add_methods(tensor_type, tensor_conversions);
  check(PyModule_AddObjectRef(module, "Tensor", (PyObject*)tensor_type));
}

}  // namespace facula::python
