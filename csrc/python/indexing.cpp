// x[...] and x[...] = v: Python's index language in terms of select, slice, index and index_put_.
#include <algorithm>
#include <cstring>

#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "python/tensor_methods.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

struct Plan {
  Tensor view;                  // after ints, slices, None and Ellipsis
  std::vector<Tensor> indices;  // per dimension of `view`; undefined where whole
  bool advanced = false;
  bool reversed = false;  // a slice with a negative step was applied (by copying)
};

bool is_bool_object(PyObject* o) {
  return PyBool_Check(o) || std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0;
}
bool is_array(PyObject* o) {
  return !std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray");
}

// A list that holds more than numbers is read as a tuple, as PyTorch does.
bool list_is_tuple(PyObject* list) {
  Py_ssize_t n = PyList_GET_SIZE(list);
  if (n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyList_GET_ITEM(list, i);
    if (PySlice_Check(o) || o == Py_Ellipsis || o == Py_None || is_tensor(o)) return true;
    if (PyList_Check(o) || PyTuple_Check(o)) return true;
  }
  return false;
}

int64_t dims_consumed(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || is_bool_object(o)) return 0;
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    return t.dtype() == DType::Bool || t.dtype() == DType::UInt8 ? t.dim() : 1;
  }
  if (is_array(o)) {
    Ref kind(PyObject_GetAttrString(o, "dtype"));
    Ref name(PyObject_Str(kind.get()));
    if (name && !std::strcmp(PyUnicode_AsUTF8(name.get()), "bool")) {
      Ref n(PyObject_GetAttrString(o, "ndim"));
      return PyLong_AsLongLong(n.get());
    }
    return 1;
  }
  return 1;
}

Tensor index_tensor(PyObject* o, Device device) {
  if (is_tensor(o)) return unwrap(o);
  if (is_array(o)) {
    Ref t(convert_array(o));
    Tensor r = unwrap(t.get());
    return device.is_cpu() ? r : op::_to_copy(r, DType::None, device);
  }
  Tensor t = tensor_from_data(o, DType::None, Device{});
  if (t.numel() == 0 && t.dtype() != DType::Bool) t = op::_to_copy(t, DType::Int64);
  return t;
}

Tensor apply_slice(const Tensor& t, int64_t dim, PyObject* s, bool& reversed) {
  Py_ssize_t start, stop, step;
  auto* slice = reinterpret_cast<PySliceObject*>(s);
  // Tensors as bounds go through __index__.
  if (PySlice_Unpack(s, &start, &stop, &step) < 0) throw PythonError{};
  (void)slice;
  int64_t n = t.sizes()[dim];
  if (step > 0) {
    if (start == 0 && stop >= n && step == 1) return t;
    return op::slice(t, dim, int64_t(start), int64_t(stop), int64_t(step));
  }
  Py_ssize_t count = PySlice_AdjustIndices(Py_ssize_t(n), &start, &stop, step);
  reversed = true;
  if (count == 0) return op::slice(t, dim, 0, 0, 1);
  int64_t first = start + (count - 1) * step;
  return op::flip(op::slice(t, dim, first, int64_t(start) + 1, -int64_t(step)), Dims{dim});
}

Plan make_plan(const Tensor& self, PyObject* index) {
  Plan plan;
  plan.view = self;
  Ref tuple;
  if (PyTuple_Check(index)) tuple = Ref::borrow(index);
  else if (PyList_Check(index) && list_is_tuple(index)) tuple = Ref(check(PyList_AsTuple(index)));
  else tuple = Ref(check(PyTuple_Pack(1, index)));
  Py_ssize_t n = PyTuple_GET_SIZE(tuple.get());
  int64_t consumed = 0;
  bool ellipsis = false;  // the first one stands for the missing dimensions, further ones for none
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple.get(), i);
    consumed += dims_consumed(o);
  }
  if (consumed > self.dim())
    index_error("too many indices for tensor of dimension ", self.dim(), ": ", consumed,
                " were given for shape ", self.sizes());

  int64_t dim = 0, covered = 0;  // of the view so far
  int64_t axis = 0;              // of the tensor that was given, for messages
  auto pick = [&](int64_t at) {
    int64_t size = plan.view.sizes()[dim];
    if (at < -size || at >= size) index_range_error(at, axis, size);
    plan.view = op::select(plan.view, dim, at);
  };
  auto advanced = [&](Tensor t) {
    // One entry for each dimension, but a mask of several dimensions is one entry.
    for (; covered < dim; ++covered) plan.indices.emplace_back();
    int64_t width = t.dtype() == DType::Bool || t.dtype() == DType::UInt8 ? t.dim() : 1;
    plan.indices.push_back(std::move(t));
    plan.advanced = true;
    dim += width;
    covered = dim;
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple.get(), i);
    if (PySlice_Check(o)) {
      plan.view = apply_slice(plan.view, dim, o, plan.reversed);
      ++dim;
    } else if (is_bool_object(o)) {
      plan.view = op::unsqueeze(plan.view, dim);
      Tensor mask = empty_tensor(Dims{1}, DType::Bool, Device{});
      *mask.data_as<bool>() = PyObject_IsTrue(o) == 1;
      advanced(self.is_cpu() ? mask : op::_to_copy(mask, DType::None, self.device()));
    } else if (PyLong_Check(o) || (!is_tensor(o) && !is_array(o) && PyIndex_Check(o))) {
      Py_ssize_t at = PyNumber_AsSsize_t(o, PyExc_IndexError);
      if (at == -1 && PyErr_Occurred()) throw PythonError{};
      pick(at);
    } else if (o == Py_None) {
      plan.view = op::unsqueeze(plan.view, dim);
      ++dim;
    } else if (o == Py_Ellipsis) {
      int64_t missing = ellipsis ? 0 : self.dim() - consumed;
      dim += missing;
      axis += missing;
      ellipsis = true;
    } else if (is_tensor(o) && unwrap(o).dim() == 0 && is_integral(unwrap(o).dtype()) &&
               unwrap(o).dtype() != DType::UInt8 && !unwrap(o).is_meta() &&
               !unwrap(o).is_wrapped()) {
      pick(read_item(unwrap(o)).to_int());
    } else if (is_tensor(o) && unwrap(o).dim() == 0 && unwrap(o).dtype() == DType::Bool) {
      plan.view = op::unsqueeze(plan.view, dim);
      advanced(op::unsqueeze(unwrap(o), 0));
    } else if (is_tensor(o) || is_array(o) || PyList_Check(o) || PyTuple_Check(o) ||
               PySequence_Check(o)) {
      if (PyUnicode_Check(o))
        type_error(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices (got str)");
      Tensor t = index_tensor(o, self.device());
      if (is_array(o) && t.dim() == 0 && is_integral(t.dtype()) && t.dtype() != DType::UInt8) {
        pick(read_item(t).to_int());
        axis += 1;
        continue;
      }
      if (!is_integral(t.dtype(), true))
        index_error("tensors used as indices must be long, int, byte or bool tensors, got ",
                    t.dtype());
      advanced(t);
    } else {
      index_error(
          "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
          "valid indices (got ",
          type_name(o), ")");
    }
    axis += dims_consumed(o);
  }
  return plan;
}

// Coordinates of the elements that an index with negative steps selects.
std::vector<Tensor> coordinates(const Tensor& self, PyObject* index) {
  Tensor positions = op::reshape(op::arange(Scalar(self.numel()), DType::Int64), self.sizes());
  Plan plan = make_plan(positions, index);
  Tensor at = plan.advanced ? op::index(plan.view, plan.indices) : plan.view;
  std::vector<Tensor> out(size_t(self.dim()));
  for (int64_t d = self.dim(); d-- > 0;) {
    const int64_t size =
        std::max<int64_t>(self.sizes()[d], 1);  // nothing is selected where it is 0
    out[size_t(d)] = op::remainder(at, size);
    at = op::floor_divide(at, size);
  }
  return out;
}

Tensor value_tensor(PyObject* value, const Tensor& self) {
  if (is_tensor(value)) return unwrap(value);
  if (is_number(value)) {
    Scalar number = scalar_of(value);
    number.check_fits(self.dtype());
    return number_tensor(number, self.dtype());
  }
  type_error("can't assign a ", type_name(value), " to a ", self.dtype(),
             " tensor: a number or a tensor is expected");
}

// Leading dimensions of size 1 do not count in an assignment.
Tensor strip_ones(Tensor v, int64_t rank) {
  while (v.dim() > rank && v.sizes()[0] == 1) v = op::squeeze_dim(v, Dims{0});
  return v;
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    const bool plain =
        Py_TYPE(self) == tensor_type && (PyLong_CheckExact(index) || PySlice_Check(index));
    if ((!plain || override_active()) && torch_function_enabled()) {
      std::vector<PyObject*> found;
      collect_overloaded(self, found);
      collect_overloaded(index, found);
      PyObject* args[] = {self, index};
      if (!found.empty() || override_active())
        return call_override(PyDict_GetItemString(tensor_base_type->tp_dict, "__getitem__"), args,
                             2, nullptr, found);
    }
    if (PyLong_CheckExact(index)) {  // the common cases first
      if (t.dim() == 0)
        index_error(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim "
            "tensor to a number");
      int64_t at = PyLong_AsSsize_t(index), n = t.sizes()[0];
      if (at == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        at = index_of(index);  // says that it is too large
      }
      if (at < -n || at >= n) index_range_error(at, 0, n);
      return wrap(op::select(t, 0, at));
    }
    if (t.dim() == 0 && (PySlice_Check(index)))
      index_error("slice() cannot be applied to a 0-dim tensor.");
    Plan plan = make_plan(t, index);
    if (plan.advanced) return wrap(op::index(plan.view, plan.indices));
    if (!plan.view.is(t)) return wrap(plan.view);
    // x[:] is a slice to PyTorch, x[:, :] and x[...] are not.
    return wrap(PySlice_Check(index) ? op::slice(t, 0, 0, INT64_MAX, 1) : op::alias(t));
  });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded(
      [&]() -> int {
        if (!value) type_error("Tensor does not support deleting items");
        const Tensor& t = unwrap(self);
        if (torch_function_enabled()) {
          std::vector<PyObject*> found;
          for (PyObject* o : {self, index, value}) collect_overloaded(o, found);
          PyObject* args[] = {self, index, value};
          if (!found.empty() || override_active()) {
            Ref r(call_override(PyDict_GetItemString(tensor_base_type->tp_dict, "__setitem__"),
                                args, 3, nullptr, found));
            return 0;
          }
        }
        Plan plan;
        if (PyBool_Check(index)) {  // True stands for everything, False for nothing of any shape
          if (index == Py_False) return value_tensor(value, t), 0;
          plan.view = op::unsqueeze(t, 0);
        } else {
          plan = make_plan(t, index);
        }
        if (plan.reversed) {
          Tensor v = value_tensor(value, t);
          if (v.device() != t.device() || v.dtype() != t.dtype())
            v = op::_to_copy(v, t.dtype(), t.device());
          op::index_put_(t, coordinates(t, index), v, false);
          return 0;
        }
        if (!plan.advanced) {
          if (is_number(value)) op::fill_(plan.view, scalar_of(value));
          else {
            Tensor v = strip_ones(value_tensor(value, t), plan.view.dim());
            if (!is_expandable(v.sizes(), plan.view.sizes()))
              expand_error(v.sizes(), plan.view.sizes());
            op::copy_(plan.view, v);
          }
          return 0;
        }
        Tensor v = strip_ones(value_tensor(value, t), 0);
        if (v.device() != t.device()) v = op::_to_copy(v, DType::None, t.device());
        op::index_put_(plan.view, plan.indices, v, false);
        return 0;
      },
      -1);
}

}  // namespace facula::python
