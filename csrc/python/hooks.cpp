#include "python/hooks.h"

#include "python/interop.h"
#include "python/tensor_methods.h"

namespace facula::python {
namespace {

PyObject* tuple_of(std::span<const facula::Tensor> tensors) {
  PyObject* t = check(PyTuple_New(Py_ssize_t(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(t, Py_ssize_t(i), wrap_or_none(tensors[i]));
  return t;
}

// One gradient that a hook returned in place of `grad`.
facula::Tensor replacement(const facula::Tensor& grad, PyObject* o) {
  if (!is_tensor(o)) type_error("hook must return None or a Tensor, not ", Py_TYPE(o)->tp_name);
  const facula::Tensor& g = unwrap(o);
  if (grad.defined() && !same(g.sizes(), grad.sizes()))
    runtime_error("hook has changed the size of value: ", grad.sizes(), " became ", g.sizes());
  if (grad.defined() && g.dtype() != grad.dtype())
    runtime_error("hook has changed the type of value (was ", grad.dtype(), " got ", g.dtype(),
                  ")");
  return g;
}

// What a hook returned in place of `grads`: None keeps them.
void replace(std::span<facula::Tensor> grads, PyObject* result, bool tuple) {
  if (result == Py_None) return;
  if (!tuple) {
    grads[0] = replacement(grads[0], result);
    return;
  }
  Ref list(is_tensor(result) ? PyTuple_Pack(1, result) : PySequence_Tuple(result));
  check(list.get());
  if (size_t(PyTuple_GET_SIZE(list.get())) != grads.size())
    runtime_error("hook has returned an incorrect number of values (got ",
                  PyTuple_GET_SIZE(list.get()), ", but expected ", grads.size(), ")");
  for (size_t i = 0; i < grads.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(list.get(), Py_ssize_t(i));
    grads[i] = o == Py_None ? facula::Tensor() : replacement(grads[i], o);
  }
}

void drop(PyObject* dict) {
  if (!interpreter_alive()) return;
  WithGil gil;
  Py_DECREF(dict);
}

// ---- registration: the dict for a place where hooks can be

PyObject* dict_found(const std::vector<std::shared_ptr<GradHook>>& hooks, HookKind kind) {
  for (auto& h : hooks)
    if (auto* d = dynamic_cast<DictHook*>(h.get()); d && d->kind == kind) return Py_NewRef(d->dict);
  return nullptr;
}
PyObject* dict_in(std::vector<std::shared_ptr<GradHook>>& hooks, HookKind kind) {
  if (PyObject* found = dict_found(hooks, kind)) return found;
  Ref dict(check(PyDict_New()));
  hooks.push_back(std::make_shared<DictHook>(dict.get(), kind));
  return dict.release();
}

PyObject* dict_of_output(const std::vector<NodeHooks::OfOutput>& hooks, uint32_t output) {
  for (auto& h : hooks)
    if (auto* d = dynamic_cast<DictHook*>(h.hook.get()); d && h.output == output)
      return Py_NewRef(d->dict);
  return nullptr;
}

// The hooks of a tensor, or None where none has ever been registered.
PyObject* found_tensor_hooks(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const facula::Tensor& t = unwrap(o);
    if (!t->autograd) Py_RETURN_NONE;
    NodeRef fn = grad_fn_of(t);
    PyObject* found = !fn         ? dict_found(t->autograd->hooks, HookKind::Tensor)
                      : fn->hooks ? dict_of_output(fn->hooks->tensor_hooks, t->autograd->output_nr)
                                  : nullptr;
    return found ? found : Py_NewRef(Py_None);
  });
}
PyObject* found_accumulate_hooks(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const facula::Tensor& t = unwrap(o);
    if (!t->autograd) Py_RETURN_NONE;
    PyObject* found = dict_found(t->autograd->accumulate_hooks, HookKind::Accumulate);
    return found ? found : Py_NewRef(Py_None);
  });
}

PyObject* tensor_hooks(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) type_error("expected a Tensor, got ", Py_TYPE(o)->tp_name);
    const facula::Tensor& t = unwrap(o);
    NodeRef fn = grad_fn_of(t);
    if (!fn) return dict_in(ensure_autograd(t).hooks, HookKind::Tensor);
    uint32_t nr = t->autograd->output_nr;
    auto& list = fn->ensure_hooks().tensor_hooks;
    if (PyObject* found = dict_of_output(list, nr)) return found;
    Ref dict(check(PyDict_New()));
    list.push_back({nr, std::make_shared<DictHook>(dict.get(), HookKind::Tensor)});
    return dict.release();
  });
}

PyObject* accumulate_hooks(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) type_error("expected a Tensor, got ", Py_TYPE(o)->tp_name);
    return dict_in(ensure_autograd(unwrap(o)).accumulate_hooks, HookKind::Accumulate);
  });
}

PyMethodDef functions[] = {{"_tensor_hooks", tensor_hooks, METH_O, nullptr},
                           {"_found_tensor_hooks", found_tensor_hooks, METH_O, nullptr},
                           {"_found_accumulate_hooks", found_accumulate_hooks, METH_O, nullptr},
                           {"_accumulate_hooks", accumulate_hooks, METH_O, nullptr},
                           {}};

}  // namespace

DictHook::~DictHook() {
  drop(dict);
}
DictPostHook::~DictPostHook() {
  drop(dict);
}

void DictHook::run(std::span<facula::Tensor> grads) {
  WithGil gil;
  if (PyDict_GET_SIZE(dict) == 0) return;
  Ref values(check(PyDict_Values(dict)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    PyObject* f = PyList_GET_ITEM(values.get(), i);
    Ref argument(kind == HookKind::Node ? tuple_of(grads) : wrap_or_none(grads[0]));
    Ref result(check(PyObject_CallOneArg(f, argument.get())));
    if (kind == HookKind::Accumulate) {
      // In-place methods return the tensor; what it is has no meaning here.
      if (result.get() != Py_None && !is_tensor(result.get()))
        type_error("a post accumulate grad hook should return None, but it returned '",
                   Py_TYPE(result.get())->tp_name, "'");
    } else {
      replace(grads, result.get(), kind == HookKind::Node);
    }
  }
}

void DictPostHook::run(std::span<facula::Tensor> grad_inputs,
                       std::span<const facula::Tensor> grad_outputs) {
  WithGil gil;
  Ref values(check(PyDict_Values(dict)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    Ref in(tuple_of(grad_inputs)), out(tuple_of(grad_outputs));
    Ref result(check(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values.get(), i), in.get(),
                                                  out.get(), nullptr)));
    replace(grad_inputs, result.get(), true);
  }
}

int traverse_autograd(AutogradMeta* meta, visitproc visit, void* arg) {
  auto visit_list = [&](std::vector<std::shared_ptr<GradHook>>& list) {
    for (auto& h : list)
      if (auto* d = dynamic_cast<DictHook*>(h.get()); d && h.use_count() == 1) {
        if (int r = visit(d->dict, arg)) return r;
      }
    return 0;
  };
  if (int r = visit_list(meta->hooks)) return r;
  if (int r = visit_list(meta->accumulate_hooks)) return r;
  Node* fn = meta->grad_fn.get();
  if (fn && fn->refs.load() == 1) {  // reachable only from this tensor
    if (fn->hooks) {
      for (auto& h : fn->hooks->tensor_hooks)
        if (auto* d = dynamic_cast<DictHook*>(h.hook.get())) {
          if (int r = visit(d->dict, arg)) return r;
        }
      if (int r = visit_list(fn->hooks->pre_hooks)) return r;
      for (auto& h : fn->hooks->post_hooks)
        if (auto* d = dynamic_cast<DictPostHook*>(h.get())) {
          if (int r = visit(d->dict, arg)) return r;
        }
    }
    if (fn->metadata) {
      if (int r = visit(static_cast<PyObject*>(fn->metadata), arg)) return r;
    }
    if (PyObject* ctx = function_context(fn)) {
      if (int r = visit(ctx, arg)) return r;
    }
  }
  return 0;
}

void clear_autograd_hooks(AutogradMeta* meta) {
  auto hooks = std::move(meta->hooks);
  auto after = std::move(meta->accumulate_hooks);
  if (meta->grad_fn && meta->grad_fn->refs.load() == 1) meta->grad_fn = NodeRef();
}

void init_hooks(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
