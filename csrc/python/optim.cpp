// facula._C: what optimisers call once for a group of parameters.
#include "kernels/optim.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/leaf_grad.h"
#include "autograd/used_grads.h"
#include "core/sparse.h"
#include "op/elementwise.h"
#include "op/hooks/lists.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/tensor_operators.h"
#include "python/allocation_site.h"
#include "python/py.h"

namespace facula::python {
namespace {

constexpr int64_t kReleaseGilAbove = 1 << 16;  // elements

const Tensor& tensor_of(PyObject* o, const char* what) {
  if (!is_tensor(o)) type_error(what, " must be a Tensor, not ", type_name(o));
  return unwrap(o);
}

OptimOption option_of(PyObject* o, bool differentiable) {
  OptimOption option;
  if (PyFloat_CheckExact(o)) {
    option.value = PyFloat_AS_DOUBLE(o);
  } else if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (t.numel() != 1) value_error("Tensor options must have 1 element, got shape ", t.sizes());
    if (differentiable && t.needs_grad()) option.tensor = t;
    if (t.is_cuda()) option.on_device = detach_tensor(t);
    else option.value = item_of(detach_tensor(t)).to_double();
  } else {
    option.value = scalar_of(o).to_double();
  }
  return option;
}

void warn_of_reuse() {
  watch_used_grads = false;
  warn(
      "optimizer.step() is about to apply gradients that an earlier step() has applied already: "
      "backward() has added to them, because zero_grad() was not called in between. Call "
      "optimizer.zero_grad() once before the backward passes of each step. This warning appears "
      "once; facula.optim.set_gradient_reuse_warning(False) turns it off.");
}

void note_uses(std::span<const OptimParameter> items) {
  bool reused = false;
  for (const OptimParameter& item : items)
    if (item.param->autograd) reused |= note_use(*item.param->autograd, item.grad);
  if (reused && watch_used_grads) warn_of_reuse();
  if (PyErr_Occurred()) throw PythonError{};
}

// Runs f, without the GIL when that is worth it.
template <class F>
void run_for(int64_t elements, F&& f) {
  if (elements < kReleaseGilAbove) return f();
  note_allocation_site();
  WithoutGil released;
  f();
}

void run(const OptimStep& step, std::span<OptimParameter> items) {
  int64_t elements = 0;
  for (const OptimParameter& item : items) elements += item.param.numel();
  run_for(elements, [&] { optimizer_step(step, items); });
}

// What is there under a name in a parameter's state; None counts as nothing.
PyObject* find(PyObject* state, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(state, name);
  if (!found && PyErr_Occurred()) throw PythonError{};
  return found == Py_None ? nullptr : found;
}

void read_state(PyObject* state, PyObject* names, Tensor* to) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (name == Py_None) continue;
    PyObject* value = find(state, name);
    if (!value) {
      PyErr_SetObject(PyExc_KeyError, name);
      throw PythonError{};
    }
    to[i] = tensor_of(value, "the state of a parameter");
  }
}

bool has_state(PyObject* state, PyObject* scalar_names, PyObject* state_names) {
  if (state && !PyDict_Check(state))
    type_error("the state of a parameter must be a dict, not ", type_name(state));
  if (!state || PyDict_GET_SIZE(state) == 0) return false;
  // SGD keeps no step: a buffer that is not there yet is made by the first step with momentum.
  return PyTuple_GET_SIZE(scalar_names) || find(state, PyTuple_GET_ITEM(state_names, 0));
}

OptimStep step_of(PyObject* const* args, std::vector<OptimOption>& options) {
  OptimStep step{};
  step.rule = OptimRule(check(int(PyLong_AsLong(args[0]))));
  step.flags = unsigned(check(int(PyLong_AsLong(args[1]))));
  step.writer = PyUnicode_AsUTF8(args[2]);
  if (step.rule >= OptimRule::Count || step.flags >= kOptimVariants || !step.writer)
    value_error("unknown rule of an optimizer");
  step.differentiable = check(PyObject_IsTrue(args[3]));
  if (!PyTuple_Check(args[4]) || PyTuple_GET_SIZE(args[4]) > 16)
    type_error("the options of an optimizer must be a tuple");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[4]); ++i)
    options.push_back(option_of(PyTuple_GET_ITEM(args[4], i), step.differentiable));
  step.options = options;
  return step;
}

void check_names(PyObject* names, Py_ssize_t most) {
  if (!PyTuple_Check(names) || PyTuple_GET_SIZE(names) > most)
    type_error("the names of state must be a tuple of at most ", most);
}

void refuse_sparse(const OptimStep& step) {
  if (step.rule != OptimRule::Sgd && step.rule != OptimRule::Adagrad)
    runtime_error(std::string_view(step.writer).substr(0, std::string_view(step.writer).find('.')),
                  " does not support sparse gradients, please consider SparseAdam, SGD or Adagrad "
                  "instead");
}

// (rule, flags, writer, differentiable, options, scalar names, state names, params, state, make):
// steps all parameters that have a gradient; make(param) gives one its first state. Returns the
// parameters whose gradients are sparse, which are left alone, or None.
PyObject* optimizer_step_of_group(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 10) type_error("_optimizer_step expects 10 arguments, got ", count);
    std::vector<OptimOption> options;
    const OptimStep step = step_of(args, options);
    PyObject *scalar_names = args[5], *state_names = args[6], *params = args[7], *states = args[8];
    check_names(scalar_names, 3);
    check_names(state_names, kOptimSlots);
    if (!PyList_Check(params) || !PyDict_Check(states))
      type_error("_optimizer_step expects a list of parameters and a dict of state");
    const bool stateful = PyTuple_GET_SIZE(scalar_names) + PyTuple_GET_SIZE(state_names) > 0;
    std::vector<OptimParameter> items;
    items.reserve(size_t(PyList_GET_SIZE(params)));
    Ref sparse;  // parameters with sparse gradients, for the caller
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
      Ref param = Ref::borrow(PyList_GET_ITEM(params, i));  // `make` may change the list
      const Tensor& p = tensor_of(param.get(), "a parameter");
      Tensor grad = p->autograd ? load_grad(*p->autograd) : Tensor();
      if (!grad.defined()) continue;
      if (is_sparse(grad)) {
        refuse_sparse(step);
        if (!sparse.get()) sparse = Ref(check(PyList_New(0)));
        check(PyList_Append(sparse.get(), param.get()));
        continue;
      }
      OptimParameter& item = items.emplace_back();
      item.param = p;
      item.grad = std::move(grad);
      if (!stateful) continue;
      PyObject* state = PyDict_GetItemWithError(states, param.get());
      if (!state && PyErr_Occurred()) throw PythonError{};
      Ref made;
      if (!has_state(state, scalar_names, state_names)) {
        made = Ref(check(PyObject_CallOneArg(args[9], param.get())));
        state = made.get();
        item.first = true;
      }
      if (!PyDict_Check(state)) type_error("a new state must be a dict, not ", type_name(state));
      read_state(state, scalar_names, item.scalars);
      read_state(state, state_names, item.state);
    }
    note_uses(items);
    run(step, items);
    return sparse.get() ? sparse.release() : Py_NewRef(Py_None);
  });
}

// (rule, flags, writer, differentiable, options, params, grads, scalar lists, state lists, first):
// the same with the tensors given as lists.
PyObject* optimizer_update(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 10) type_error("_optimizer_update expects 10 arguments, got ", count);
    std::vector<OptimOption> options;
    const OptimStep step = step_of(args, options);
    Ref params(check(PySequence_Tuple(args[5]))), grads(check(PySequence_Tuple(args[6])));
    const Py_ssize_t n = PyTuple_GET_SIZE(params.get());
    if (PyTuple_GET_SIZE(grads.get()) != n)
      value_error("there are ", n, " parameters but ", PyTuple_GET_SIZE(grads.get()), " gradients");
    check_names(args[7], 3);
    check_names(args[8], kOptimSlots);
    const bool first = check(PyObject_IsTrue(args[9]));
    std::vector<OptimParameter> items{size_t(n)};
    for (Py_ssize_t i = 0; i < n; ++i) {
      items[size_t(i)].param = tensor_of(PyTuple_GET_ITEM(params.get(), i), "a parameter");
      items[size_t(i)].grad = tensor_of(PyTuple_GET_ITEM(grads.get(), i), "a gradient");
      if (is_sparse(items[size_t(i)].grad))
        runtime_error(step.writer, ": sparse gradients are not supported here; use .to_dense()");
      items[size_t(i)].first = first;
    }
    auto read_lists = [&](PyObject* lists, auto member) {
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(lists); ++k) {
        if (PyTuple_GET_ITEM(lists, k) == Py_None) continue;
        Ref list(check(PySequence_Tuple(PyTuple_GET_ITEM(lists, k))));
        if (PyTuple_GET_SIZE(list.get()) != n)
          value_error("there are ", n, " parameters but ", PyTuple_GET_SIZE(list.get()),
                      " tensors of state");
        for (Py_ssize_t i = 0; i < n; ++i)
          (items[size_t(i)].*member)[k] =
              tensor_of(PyTuple_GET_ITEM(list.get(), i), "the state of a parameter");
      }
    };
    read_lists(args[7], &OptimParameter::scalars);
    read_lists(args[8], &OptimParameter::state);
    run(step, items);
    Py_RETURN_NONE;
  });
}

// (params, set_to_none)
PyObject* zero_grads(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) type_error("_zero_grads expects 2 arguments, got ", count);
    const bool drop = check(PyObject_IsTrue(args[1]));
    Ref params(check(PySequence_Fast(args[0], "parameters must be a sequence")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(params.get()); ++i) {
      const Tensor& p = tensor_of(PySequence_Fast_GET_ITEM(params.get(), i), "a parameter");
      if (!p->autograd) continue;
      AutogradMeta& m = *p->autograd;
      Tensor grad = load_grad(m);
      if (!grad.defined()) continue;
      note_zero(m);
      if (drop) {
        store_grad(m, Tensor());
        continue;
      }
      if (grad.needs_grad()) {
        grad = detach_tensor(grad);
        store_grad(m, grad);
      }
      GradGuard off(false);
      op::zero_(grad);
    }
    Py_RETURN_NONE;
  });
}

std::vector<Tensor> tensors_in(PyObject* o) {
  Ref list(check(PySequence_Tuple(o)));
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i)
    out.push_back(tensor_of(PyTuple_GET_ITEM(list.get(), i), "a gradient"));
  return out;
}

int64_t elements_of(const std::vector<Tensor>& tensors) {
  int64_t n = 0;
  for (const Tensor& t : tensors) n += t.numel();
  return n;
}

// Dense tensors of one CUDA device, of which a launch can take many.
bool form_a_list(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) {
    if (!t.is_cuda() || t.is_wrapped() || t.is_lazy() || is_sparse(t) ||
        (t.needs_grad() && grad_enabled()) || t.device() != tensors[0].device() ||
        !(t.is_floating() || t.is_complex()) || item_size(t.dtype()) == 1 ||
        !non_overlapping_and_dense(t.sizes(), t.strides()))
      return false;
  }
  return !tensors.empty();
}

bool has_norm_of_list(const std::vector<Tensor>& tensors, double p) {
  if (!(p > 0) || !form_a_list(tensors)) return false;
  // An empty tensor has no largest element: the operator says so.
  for (const Tensor& t : tensors)
    if (std::isinf(p) && t.numel() == 0) return false;
  return true;
}

// The norm of all elements of a list, by one pass over them.
Tensor norm_of_list(const std::vector<Tensor>& tensors, double p) {
  DType dtype = to_real(tensors[0].dtype());
  for (const Tensor& t : tensors) dtype = promote_types(dtype, to_real(t.dtype()));
  const Tensor parts = device_lists.norm_parts(tensors, p);
  Tensor norm;
  if (std::isinf(p)) {
    norm = op::amax(parts);
  } else {
    norm = op::sum(parts);
    if (p != 1) norm = p == 2 ? op::sqrt(norm) : op::pow(norm, 1 / p);
  }
  return norm.dtype() == dtype ? norm : op::_to_copy(norm, dtype, norm.device());
}

// (tensors, p): the p-norm of the p-norms of the tensors, in a 0-dim tensor.
PyObject* total_norm(PyObject*, PyObject* args) {
  PyObject* list;
  double p;
  if (!PyArg_ParseTuple(args, "Od", &list, &p)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::vector<Tensor> tensors = tensors_in(list);
    Tensor result;
    run_for(elements_of(tensors), [&] {
      if (has_norm_of_list(tensors, p)) {
        GradGuard off(false);
        result = norm_of_list(tensors, p);
        return;
      }
      std::vector<Tensor> norms;
      norms.reserve(tensors.size());
      for (const Tensor& t : tensors) {
        Tensor n = op::linalg_vector_norm(t, p);
        norms.push_back(norms.empty() || n.device() == norms[0].device()
                            ? n
                            : op::_to_copy(n, DType::None, norms[0].device()));
      }
      result = op::linalg_vector_norm(op::stack(norms), p);
    });
    return wrap(result);
  });
}

// Multiplies each in place by a 0-dim tensor.
void scale_each(const std::vector<Tensor>& tensors, const Tensor& by) {
  Tensor local = by;
  for (const Tensor& t : tensors) {
    if (t.device() != local.device()) local = op::_to_copy(by, DType::None, t.device());
    op::mul_(t, local);
  }
}

bool scales_a_list(const std::vector<Tensor>& tensors, const Tensor& by) {
  return form_a_list(tensors) && by.device() == tensors[0].device() && by.numel() == 1 &&
         !by.is_complex() && !by.needs_grad() && !by.is_wrapped();
}

// (tensors, factor)
PyObject* scale_all(PyObject*, PyObject* args) {
  PyObject *list, *factor;
  if (!PyArg_ParseTuple(args, "OO", &list, &factor)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::vector<Tensor> tensors = tensors_in(list);
    const Tensor by = tensor_of(factor, "the factor");
    run_for(elements_of(tensors), [&] {
      if (!scales_a_list(tensors, by)) return scale_each(tensors, by);
      device_lists.scale(tensors, by, Tensor());
      for (const Tensor& t : tensors) t.bump_version("mul_");
    });
    Py_RETURN_NONE;
  });
}

// (tensors, factor, found): the same, and found, a float32, becomes 1 if an element is not finite.
PyObject* unscale_all(PyObject*, PyObject* args) {
  PyObject *list, *factor, *found_object;
  if (!PyArg_ParseTuple(args, "OOO", &list, &factor, &found_object)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::vector<Tensor> tensors = tensors_in(list);
    const Tensor by = tensor_of(factor, "the factor"), found = tensor_of(found_object, "found");
    run_for(elements_of(tensors), [&] {
      GradGuard off(false);
      if (scales_a_list(tensors, by) && found.dtype() == DType::Float32 &&
          found.device() == by.device() && found.numel() == 1) {
        device_lists.scale(tensors, by, found);
        for (const Tensor& t : tensors) t.bump_version("unscale_");
        found.bump_version("unscale_");
        return;
      }
      for (const Tensor& t : tensors) {
        if (t.numel() == 0) continue;
        // The largest element is infinite or NaN as soon as one element is.
        const Tensor largest = op::linalg_vector_norm(t, std::numeric_limits<double>::infinity());
        op::logical_or_(found, op::logical_not(op::isfinite(largest)));
      }
      scale_each(tensors, by);
    });
    Py_RETURN_NONE;
  });
}

// Formulas over lists by the names of operators; p is a number.
struct ListFormula {
  const char* name;
  size_t lists;
  bool number;
  const char* body;
};
constexpr ListFormula kListFormulas[] = {
    {"add", 2, true, "a + p * b"},
    {"sub", 2, true, "a - p * b"},
    {"mul", 2, false, "a * b"},
    {"div", 2, false, "a / b"},
    {"add_number", 1, true, "a + p"},
    {"sub_number", 1, true, "a - p"},
    {"mul_number", 1, true, "a * p"},
    {"div_number", 1, true, "a / p"},
    {"clamp_min", 2, false, "a != a ? a : b != b ? b : a > b ? a : b"},
    {"clamp_max", 2, false, "a != a ? a : b != b ? b : a < b ? a : b"},
    {"addcmul", 3, true, "a + p * b * c"},
    {"addcdiv", 3, true, "a + p * b / c"},
    {"lerp_number", 2, true, "abs(p) < T(0.5) ? a + p * (b - a) : b - (b - a) * (T(1) - p)"},
    {"neg", 1, false, "-a"},
    {"abs", 1, false, "abs(a)"},
    {"sqrt", 1, false, "sqrt(a)"},
    {"reciprocal", 1, false, "T(1) / a"},
};

struct Range {
  const char *begin, *end;
};
Range range_of(const Tensor& t) {
  return {t.data(), t.data() + t.numel() * int64_t(t.item_size())};
}

// One launch works on all tensors at the same time: what it writes must lie apart from whatever
// else it reads or writes.
bool lie_apart(const std::vector<Tensor>& written, const std::vector<std::vector<Tensor>>& read) {
  std::vector<Range> ranges;
  for (const Tensor& t : written)
    if (t.numel()) ranges.push_back(range_of(t));
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) return false;
  for (const std::vector<Tensor>& list : read) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Range r = range_of(list[i]), own = range_of(written[i]);
      if (r.begin == own.begin && r.end == own.end) continue;
      auto at = std::upper_bound(ranges.begin(), ranges.end(), r.begin,
                                 [](const char* p, const Range& x) { return p < x.end; });
      if (at != ranges.end() && at->begin < r.end) return false;
    }
  }
  return true;
}

// (formula, inplace, lists, numbers or None): a tuple, or None where it takes a call for each
// tensor.
PyObject* list_formula(PyObject*, PyObject* args) {
  const char* name;
  int inplace;
  PyObject *given, *given_numbers;
  if (!PyArg_ParseTuple(args, "spOO", &name, &inplace, &given, &given_numbers)) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto* found = std::find_if(std::begin(kListFormulas), std::end(kListFormulas),
                                     [&](const ListFormula& f) { return !strcmp(f.name, name); });
    if (found == std::end(kListFormulas) || found->number != (given_numbers != Py_None))
      Py_RETURN_NONE;
    Ref lists_object(check(PySequence_Tuple(given)));
    std::vector<std::vector<Tensor>> lists;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(lists_object.get()); ++k)
      lists.push_back(tensors_in(PyTuple_GET_ITEM(lists_object.get(), k)));
    if (lists.size() != found->lists) Py_RETURN_NONE;
    const size_t n = lists[0].size();
    const DType dtype = lists[0][0].dtype();
    if (!is_floating(dtype)) Py_RETURN_NONE;
    for (const std::vector<Tensor>& list : lists) {
      if (list.size() != n || !form_a_list(list) || list[0].device() != lists[0][0].device())
        Py_RETURN_NONE;
      for (size_t i = 0; i < n; ++i)
        if (list[i].dtype() != dtype || !same(list[i].sizes(), lists[0][i].sizes()) ||
            !same(list[i].strides(), lists[0][i].strides()))
          Py_RETURN_NONE;
    }
    std::vector<double> numbers;
    if (given_numbers != Py_None) {
      Ref values(check(PySequence_Tuple(given_numbers)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values.get()); ++i) {
        numbers.push_back(PyFloat_AsDouble(PyTuple_GET_ITEM(values.get(), i)));
        if (numbers.back() == -1 && PyErr_Occurred()) throw PythonError{};
      }
      if (numbers.size() != n) Py_RETURN_NONE;
    }
    if (inplace && !lie_apart(lists[0], lists)) Py_RETURN_NONE;
    std::vector<Tensor> results;
    for (const Tensor& t : lists[0]) {
      if (inplace && t->flags & kInference && !thread_state.inference) Py_RETURN_NONE;
      results.push_back(inplace ? t : empty_tensor(t.sizes(), t.strides(), dtype, t.device()));
    }
    std::vector<TensorSpan> inputs(lists.begin(), lists.end());
    run_for(elements_of(results),
            [&] { device_lists.formula(found->body, results, inputs, numbers); });
    if (inplace)
      for (const Tensor& t : results) t.bump_version(name);
    return wrap_list(results);
  });
}

PyObject* set_reuse_warning(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  return PyBool_FromLong(watch_used_grads.exchange(value));
}

PyMethodDef functions[] = {
    {"_optimizer_step", (PyCFunction)(void*)optimizer_step_of_group, METH_FASTCALL, nullptr},
    {"_optimizer_update", (PyCFunction)(void*)optimizer_update, METH_FASTCALL, nullptr},
    {"_zero_grads", (PyCFunction)(void*)zero_grads, METH_FASTCALL, nullptr},
    {"_total_norm", total_norm, METH_VARARGS, nullptr},
    {"_scale_all", scale_all, METH_VARARGS, nullptr},
    {"_unscale_all", unscale_all, METH_VARARGS, nullptr},
    {"_list_formula", list_formula, METH_VARARGS, nullptr},
    {"_set_gradient_reuse_warning", set_reuse_warning, METH_O, nullptr},
    {}};

}  // namespace

void init_optim(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
