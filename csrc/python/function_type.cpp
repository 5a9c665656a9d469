// autograd.Function: apply() runs a Python forward and records a node whose derivative is Python.
#include <cstring>

#include "autograd/engine.h"
#include "op/ops/creation.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "python/node_type.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

Node* node_of(PyObject* ctx) {
  return reinterpret_cast<PyNode*>(ctx)->node;
}

PyObject* attribute(PyObject* o, const char* name) {  // new reference or null, no error
  PyObject* a = PyObject_GetAttrString(o, name);
  if (!a) PyErr_Clear();
  return a;
}

void release_context(Node* n) {
  auto* ctx = static_cast<PyObject*>(n->extra);
  n->extra = nullptr;
  if (!interpreter_alive()) return;
  WithGil gil;
  reinterpret_cast<PyNode*>(ctx)->node = nullptr;
  Py_DECREF(ctx);
}

void function_vjp(Node& n, Tensor* grads, Tensor* out, uint64_t needs) {
  WithGil gil;
  auto* ctx = static_cast<PyObject*>(n.extra);
  Ref keep = Ref::borrow(ctx);
  Ref materialize(attribute(ctx, "materialize_grads"));
  bool fill = !materialize || PyObject_IsTrue(materialize.get());
  uint32_t count = n.outputs.size();
  Ref args(check(PyTuple_New(count)));
  for (uint32_t i = 0; i < count; ++i) {
    Tensor g = grads[i];
    if (!g.defined() && fill && n.outputs[i].dtype != DType::None)
      g = op::zeros(n.outputs[i].sizes, n.outputs[i].dtype, std::nullopt, n.outputs[i].device);
    PyTuple_SET_ITEM(args.get(), i, wrap_or_none(g));
  }
  Ref run(check(PyObject_GetAttrString(ctx, "_run_backward")));
  Ref result(check(PyObject_CallObject(run.get(), args.get())));
  Ref tuple(PyTuple_Check(result.get()) ? Ref(result) : Ref(check(PyTuple_Pack(1, result.get()))));
  Py_ssize_t given = PyTuple_GET_SIZE(tuple.get()), wanted = n.edges.size();
  bool extra_none = given > wanted;
  for (Py_ssize_t i = wanted; i < given; ++i)
    extra_none = extra_none && PyTuple_GET_ITEM(tuple.get(), i) == Py_None;
  if (given != wanted && !extra_none)
    runtime_error("function ", n.name, " returned an incorrect number of gradients (expected ",
                  wanted, ", got ", given, ")");
  for (Py_ssize_t i = 0; i < wanted; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple.get(), i);
    if (o == Py_None) continue;
    if (!is_tensor(o))
      runtime_error("function ", n.name, " returned a gradient at position ", i,
                    " that is no Tensor but ", Py_TYPE(o)->tp_name);
    if (!n.edges[uint32_t(i)].node) {
      Ref flags(attribute(ctx, "needs_input_grad"));
      Ref tensor_inputs(attribute(ctx, "_tensor_inputs"));
      bool was_tensor = tensor_inputs && PySequence_Contains(tensor_inputs.get(),
                                                             Ref(PyLong_FromSsize_t(i)).get()) == 1;
      if (!was_tensor)
        runtime_error("function ", n.name, " returned a gradient different from None at position ",
                      i + 1, ", but the corresponding forward input was not a Variable");
      continue;
    }
    if (needs >> (i < 63 ? i : 63) & 1) out[i] = unwrap(o);
  }
}

bool contains(PyObject* sequence, PyObject* o) {
  if (!sequence || sequence == Py_None) return false;
  Ref fast(check(PySequence_Fast(sequence, "expected a sequence of tensors")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    if (PySequence_Fast_GET_ITEM(fast.get(), i) == o) return true;
  return false;
}

// Tensors that stand for others inside of a transform, or containers that may hold some.
bool concerns_transforms(PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, i);
    if (is_tensor(o) ? unwrap(o).is_wrapped()
                     : current_level && (PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o)))
      return true;
  }
  return false;
}

// (cls, ctx, has_setup_context, args); in place of cls any object with a forward and a
// setup_context may stand, for tensors of a level.
PyObject* function_apply(PyObject*, PyObject* call) {
  return guarded([&]() -> PyObject* {
    PyObject *cls, *ctx, *args;
    int setup;
    if (!PyArg_ParseTuple(call, "OOpO!", &cls, &ctx, &setup, &PyTuple_Type, &args))
      throw PythonError{};
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (PyType_Check(cls) && concerns_transforms(args)) {
      static PyObject* apply;
      import_once(apply, "facula.autograd.function_transforms", "apply_wrapped");
      return check(PyObject_CallFunctionObjArgs(apply, cls, args, nullptr));
    }
    bool executable = false;
    uint32_t level = 0;  // tensors of other levels are constants on this tape
    for (Py_ssize_t i = 0; i < n; ++i)
      if (PyObject* o = PyTuple_GET_ITEM(args, i); is_tensor(o))
        level = std::max(level, level_of(unwrap(o)));
    auto on_tape = [&](PyObject* o) {
      return is_tensor(o) && level_of(unwrap(o)) == level && requires_grad(unwrap(o));
    };
    Ref needs(check(PyTuple_New(n)));
    Ref tensor_inputs(check(PyList_New(0)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      bool wants = on_tape(o);
      executable |= wants;
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wants));
      if (is_tensor(o)) check(PyList_Append(tensor_inputs.get(), Ref(PyLong_FromSsize_t(i)).get()));
    }
    executable = executable && grad_enabled();
    check(PyObject_SetAttrString(ctx, "needs_input_grad", needs.get()));
    check(PyObject_SetAttrString(ctx, "_tensor_inputs", tensor_inputs.get()));

    NodeRef node(Node::make(strdup(Py_TYPE(ctx)->tp_name), function_vjp));
    node->extra = Py_NewRef(ctx);
    node->release_extra = [](Node* m) {
      std::free(const_cast<char*>(m->name));
      release_context(m);
    };
    reinterpret_cast<PyNode*>(ctx)->node = node.get();
    node->edges.allocate(uint32_t(n));
    if (executable)
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* o = PyTuple_GET_ITEM(args, i);
        if (on_tape(o)) node->edges[uint32_t(i)] = gradient_edge(unwrap(o));
      }
    if (track_locations && capture_location) node->location = capture_location();
    if (anomaly_mode && keep_traceback) keep_traceback(node.get());

    Ref output;
    {
      GradGuard off(false);
      Ref forward(check(PyObject_GetAttrString(cls, "forward")));
      if (setup) {
        output = Ref(check(PyObject_CallObject(forward.get(), args)));
        Ref prepare(check(PyObject_GetAttrString(cls, "setup_context")));
        Ref done(
            check(PyObject_CallFunctionObjArgs(prepare.get(), ctx, args, output.get(), nullptr)));
      } else {
        Ref all(check(PyTuple_New(n + 1)));
        PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(ctx));
        for (Py_ssize_t i = 0; i < n; ++i)
          PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        output = Ref(check(PyObject_CallObject(forward.get(), all.get())));
      }
    }
    bool tuple = PyTuple_Check(output.get()) || PyList_Check(output.get());
    Ref outputs(tuple ? check(PySequence_Tuple(output.get()))
                      : check(PyTuple_Pack(1, output.get())));
    Py_ssize_t count = PyTuple_GET_SIZE(outputs.get());
    node->outputs.allocate(uint32_t(count));
    Ref dirty(attribute(ctx, "dirty_tensors")), fixed(attribute(ctx, "non_differentiable")),
        to_save(attribute(ctx, "to_save"));
    Ref wrapped(check(PyTuple_New(count)));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* o = PyTuple_GET_ITEM(outputs.get(), i);
      if (!is_tensor(o)) {
        node->outputs[uint32_t(i)].dtype = DType::None;  // no tensor: its gradient is always None
        PyTuple_SET_ITEM(wrapped.get(), i, Py_NewRef(o));
        continue;
      }
      bool is_input = contains(args, o), is_dirty = contains(dirty.get(), o),
           is_fixed = contains(fixed.get(), o);
      Tensor t = unwrap(o);
      Ref result = Ref::borrow(o);
      node->set_output(uint32_t(i), t);
      if (is_dirty && !is_input) {
        check(PyErr_WarnEx(PyExc_UserWarning,
                           "ctx.mark_dirty() received a tensor that was not an input; only inputs "
                           "that are changed in place are to be marked.",
                           1));
        is_dirty = false;
      }
      if (is_dirty) {
        if (executable) {
          check_inplace(defs::alias, t);
          rebase_history(t, node.get());
          if (!t->base) t->autograd->output_nr = uint32_t(i);
        }
      } else {
        if (executable && is_fixed && requires_grad(t)) {
          t = detach_tensor(t);
          result = Ref(wrap(t));
        } else if (is_input || (executable && t.needs_grad())) {
          // Returned as it came: a new tensor over the same memory carries this node's history. As
          // a view made without grad it cannot be written to, which would go round this node.
          GradGuard off(false);
          t = is_input ? op::alias(t) : detach_tensor(t);
          result = Ref(wrap(t));
        }
        if (executable && !is_fixed && is_differentiable_dtype(t.dtype()))
          set_history(t, node, uint32_t(i));
      }
      PyTuple_SET_ITEM(wrapped.get(), i, result.release());
    }
    if (dirty && dirty.get() != Py_None) {
      Ref list(check(PySequence_Tuple(dirty.get())));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) {
        PyObject* o = PyTuple_GET_ITEM(list.get(), i);
        if (!contains(outputs.get(), o))
          runtime_error(
              "Some elements marked as dirty during the forward method were not returned as "
              "output. The inputs that are modified inplace must all be outputs of the Function.");
        // Who wrote may have been NumPy, or anybody else that nobody has seen.
        if (is_tensor(o)) unwrap(o).bump_version();
      }
    }
    if (to_save && to_save.get() != Py_None && executable) {
      Py_ssize_t m = PyTuple_GET_SIZE(to_save.get());
      node->saved.allocate(uint32_t(m));
      for (Py_ssize_t k = 0; k < m; ++k) {
        PyObject* o = PyTuple_GET_ITEM(to_save.get(), k);
        if (o == Py_None) continue;
        if (!is_tensor(o))
          type_error("save_for_backward can only save variables, but argument ", k, " is of type ",
                     Py_TYPE(o)->tp_name);
        Py_ssize_t at = -1;
        for (Py_ssize_t i = 0; i < count; ++i)
          if (PyTuple_GET_ITEM(outputs.get(), i) == o) at = i;
        bool is_input = contains(args, o) && !contains(dirty.get(), o);
        if (at >= 0 && !is_input)
          node->saved[uint32_t(k)].save_output(unwrap(PyTuple_GET_ITEM(wrapped.get(), at)),
                                               uint32_t(at));
        else node->saved[uint32_t(k)].save(Value(unwrap(o)));
      }
    }
    if (to_save) check(PyObject_SetAttrString(ctx, "to_save", Py_None));
    if (!tuple) return Py_NewRef(PyTuple_GET_ITEM(wrapped.get(), 0));
    return PyList_Check(output.get()) ? check(PySequence_List(wrapped.get())) : wrapped.release();
  });
}

PyObject* saved_tensors(PyObject*, PyObject* ctx) {
  return guarded([&]() -> PyObject* {
    Node* n = node_of(ctx);
    if (!n) return check(PyTuple_New(0));
    if (n->released) {
      Tensor h;
      SavedValue().get(*n, h);
    }
    Ref t(check(PyTuple_New(n->saved.size())));
    for (uint32_t i = 0; i < n->saved.size(); ++i) {
      Tensor holder;
      Value v = n->value(int(i), holder);
      PyTuple_SET_ITEM(t.get(), i, v.is_none() ? Py_NewRef(Py_None) : wrap(v.tensor()));
    }
    return t.release();
  });
}

PyMethodDef functions[] = {{"_function_apply", function_apply, METH_VARARGS, nullptr},
                           {"_saved_tensors", saved_tensors, METH_O, nullptr},
                           {}};

}  // namespace

PyObject* function_context(Node* node) {
  return node->apply == function_vjp ? static_cast<PyObject*>(node->extra) : nullptr;
}

void init_function_type(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
