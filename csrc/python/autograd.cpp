// Autograd switches and the entry to the engine.
#include <set>

#include "autograd/engine.h"
#include "autograd/node_names.h"
#include "core/per_thread.h"
#include "op/elementwise.h"
#include "op/ops/creation.h"
#include "op/tensor_operators.h"
#include "python/allocation_site.h"
#include "python/interop.h"
#include "python/node_type.h"
#include "python/tensor_methods.h"

namespace facula::python {
namespace {

// ---- modes

PyObject* is_grad_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(grad_enabled());
}
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  int v = PyObject_IsTrue(on);
  if (v < 0) return nullptr;
  auto& k = thread_state.enabled_keys;
  k = uint8_t(v ? k | kKeyGrad : k & ~kKeyGrad);
  Py_RETURN_NONE;
}
PyObject* is_inference(PyObject*, PyObject*) {
  return PyBool_FromLong(thread_state.inference);
}
PyObject* set_inference(PyObject*, PyObject* on) {
  thread_state.inference = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}
PyObject* is_anomaly(PyObject*, PyObject*) {
  return PyBool_FromLong(anomaly_mode);
}
PyObject* set_anomaly(PyObject*, PyObject* args) {
  PyObject *on, *nan = Py_True;
  if (!PyArg_ParseTuple(args, "O|O", &on, &nan)) return nullptr;
  const char* names[] = {"enabled", "check_nan"};
  PyObject* given[] = {on, nan};
  for (int i = 0; i < 2; ++i)
    if (!PyBool_Check(given[i]))
      return PyErr_Format(PyExc_TypeError,
                          "set_anomaly_enabled(): argument '%s' (position %d) must be bool, not %s",
                          names[i], i + 1, Py_TYPE(given[i])->tp_name);
  anomaly_mode = on == Py_True;
  anomaly_check_nan = nan == Py_True;
  Py_RETURN_NONE;
}
PyObject* anomaly_nan(PyObject*, PyObject*) {
  return PyBool_FromLong(anomaly_check_nan);
}
PyObject* set_tracking(PyObject*, PyObject* on) {
  track_locations = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}

// ---- saved tensor hooks

struct HookPair {
  PyObject *pack, *unpack;
};
struct ThreadHooks {
  std::vector<HookPair> pairs;
  std::string disabled;  // why there may be none
};

struct PythonPacked : PackedTensor {
  PythonPacked(PyObject* p, PyObject* u) : packed(p), unpack_(Py_NewRef(u)) {}
  ~PythonPacked() override {
    if (!interpreter_alive()) return;
    WithGil gil;
    Py_DECREF(packed);
    Py_DECREF(unpack_);
  }
  Tensor unpack() override {
    WithGil gil;
    Ref r(check(PyObject_CallOneArg(unpack_, packed)));
    if (!is_tensor(r.get()))
      type_error(
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
          Py_TYPE(r.get())->tp_name);
    return unwrap(r.get());
  }
  PyObject *packed, *unpack_;
};

std::unique_ptr<PackedTensor> pack(const Tensor& t) {
  WithGil gil;
  const std::vector<HookPair>& pairs = per_thread<ThreadHooks>().pairs;
  if (pairs.empty()) return nullptr;
  HookPair h = pairs.back();
  Ref argument(wrap(t));
  uint32_t version = t.version();
  // Hooks must not pack what they themselves compute.
  int saved = std::exchange(saved_tensor_hooks_active, 0);
  PyObject* r = PyObject_CallOneArg(h.pack, argument.get());
  saved_tensor_hooks_active = saved;
  if (r && t.version() != version) {
    Py_DECREF(r);
    runtime_error(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
        "pack hook can not be modified by in-place operations as this can lead to unexpected "
        "side-effects. Please open an issue if you need to perform in-place operations on the "
        "input to a pack hook.");
  }
  return std::make_unique<PythonPacked>(check(r), h.unpack);
}

PyObject* push_hooks(PyObject*, PyObject* args) {
  PyObject *p, *u;
  if (!PyArg_ParseTuple(args, "OO", &p, &u)) return nullptr;
  ThreadHooks& hooks = per_thread<ThreadHooks>();
  if (!hooks.disabled.empty()) {
    PyErr_SetString(PyExc_RuntimeError, hooks.disabled.c_str());
    return nullptr;
  }
  hooks.pairs.push_back({Py_NewRef(p), Py_NewRef(u)});
  ++saved_tensor_hooks_active;
  Py_RETURN_NONE;
}
PyObject* pop_hooks(PyObject*, PyObject*) {
  std::vector<HookPair>& pairs = per_thread<ThreadHooks>().pairs;
  if (!pairs.empty()) {
    HookPair h = pairs.back();
    pairs.pop_back();
    --saved_tensor_hooks_active;
    Py_DECREF(h.pack);
    Py_DECREF(h.unpack);
  }
  Py_RETURN_NONE;
}
PyObject* disable_hooks(PyObject*, PyObject* message) {
  ThreadHooks& hooks = per_thread<ThreadHooks>();
  if (message != Py_None && !hooks.pairs.empty()) {
    PyErr_SetObject(PyExc_RuntimeError, message);
    return nullptr;
  }
  Ref before(PyUnicode_FromString(hooks.disabled.c_str()));
  hooks.disabled = message == Py_None ? "" : PyUnicode_AsUTF8(message);
  return before.release();
}

// ---- backward

std::vector<Tensor> tensors_in(PyObject* o) {
  std::vector<Tensor> out;
  Ref seq(check(PySequence_Fast(o, "expected a sequence of tensors")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(seq.get(), i);
    if (item == Py_None) out.emplace_back();
    else if (is_tensor(item)) out.push_back(unwrap(item));
    else type_error("gradients can be either Tensors or None, but got ", Py_TYPE(item)->tp_name);
  }
  return out;
}

// A tensor, or a GradientEdge (node, output number) that stands for one.
struct Target {
  Tensor tensor;
  Edge edge;  // owned
};
Target target_of(PyObject* o) {
  if (is_tensor(o)) return {unwrap(o), gradient_edge(unwrap(o))};
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 &&
      PyObject_TypeCheck(PyTuple_GET_ITEM(o, 0), node_type)) {
    Node* n = reinterpret_cast<PyNode*>(PyTuple_GET_ITEM(o, 0))->node;
    int64_t nr = index_of(PyTuple_GET_ITEM(o, 1));
    if (!n || nr < 0 || nr >= int64_t(n->outputs.size())) runtime_error("invalid GradientEdge");
    n->retain();
    return {Tensor(), {n, uint32_t(nr)}};
  }
  type_error("expected a Tensor or a GradientEdge, got ", Py_TYPE(o)->tp_name);
}

struct Edges {
  std::vector<Edge> list;
  ~Edges() {
    for (Edge& e : list)
      if (e.node) e.node->unref();
  }
};

// ---- graphs that a program holds on to

constexpr int64_t kManyGraphs = 500;
bool warn_of_kept_graphs = true;
uint64_t last_pass_ended = 0;  // in sequence numbers of nodes

// Counts graphs that were made after the pass before: a program that makes a list of losses, and
// calls backward() for one after the other, holds on to no more from step to step.
void note_finished_roots(const std::vector<Edge>& roots) {
  const uint64_t before = std::exchange(last_pass_ended, next_node());
  for (const Edge& e : roots) {
    if (!e.node->op || e.node->was_root || e.node->sequence < before) continue;
    e.node->was_root = true;
    const int64_t alive = finished_roots.fetch_add(1, std::memory_order_relaxed) + 1;
    if (alive < kManyGraphs || !warn_of_kept_graphs) continue;
    warn_of_kept_graphs = false;
    const std::string text =
        std::to_string(alive) +
        " results of backward() are alive together with their graphs, and memory grows with each "
        "step. Collect numbers instead: losses.append(loss.item()), total += loss.detach(). "
        "facula.autograd.set_kept_graphs_warning(False) turns this warning off.";
    check(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 3));
  }
}

PyObject* set_kept_graphs_warning(PyObject*, PyObject* on) {
  const int enabled = PyObject_IsTrue(on);
  if (enabled < 0) return nullptr;
  return PyBool_FromLong(std::exchange(warn_of_kept_graphs, enabled != 0));
}

// (outputs, grads, keep_graph, create_graph, inputs, accumulate, allow_unreachable)
PyObject* backward(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *outputs, *grads, *inputs;
    int keep, create, accumulate, allow_unused;
    if (!PyArg_ParseTuple(args, "OOppOpp", &outputs, &grads, &keep, &create, &inputs, &accumulate,
                          &allow_unused))
      throw PythonError{};
    std::vector<Tensor> out, g = tensors_in(grads);
    Edges roots, targets;
    Ref output_list(check(PySequence_Fast(outputs, "expected a sequence of tensors")));
    Ref input_list(check(PySequence_Fast(inputs, "expected a sequence of tensors")));
    for (size_t i = 0; i < size_t(PySequence_Fast_GET_SIZE(output_list.get())); ++i) {
      Target target = target_of(PySequence_Fast_GET_ITEM(output_list.get(), Py_ssize_t(i)));
      Edge e = target.edge;
      out.push_back(target.tensor);
      if (!e.node)
        runtime_error("element ", i,
                      " of tensors does not require grad and does not have a grad_fn. Was it "
                      "computed under no_grad(), from detached tensors, or from integers?");
      roots.list.push_back(e);
      if (!out[i].defined()) {  // an edge: only its node knows the shape
        const OutputMeta& m = e.node->outputs[e.input_nr];
        GradGuard off(false);
        if (!g[i].defined()) {
          if (checked_numel(m.sizes) != 1)
            runtime_error("grad can be implicitly created only for scalar outputs");
          g[i] = op::ones(m.sizes, m.dtype, std::nullopt, m.device);
        }
      } else if (!g[i].defined()) {
        if (out[i].numel() != 1)
          runtime_error("grad can be implicitly created only for scalar outputs, but output ", i,
                        " has shape ", out[i].sizes(),
                        ". Pass gradient=..., or reduce it with .sum() or .mean()");
        if (!is_floating(out[i].dtype()))
          runtime_error("grad can be implicitly created only for real scalar outputs but got ",
                        out[i].dtype());
        GradGuard off(false);
        g[i] = op::ones_like(out[i]);
      } else {
        if (!same(g[i].sizes(), out[i].sizes()))
          runtime_error("Mismatch in shape: grad_output[", i, "] has a shape of ", g[i].sizes(),
                        " and output[", i, "] has a shape of ", out[i].sizes(), ".");
        if (g[i].is_complex() != out[i].is_complex())
          runtime_error(
              "For complex Tensors, both grad_output and output are required to have the same "
              "dtype. Mismatch in dtype: grad_output[",
              i, "] has a dtype of ", g[i].dtype(), " and output[", i, "] has a dtype of ",
              out[i].dtype(), ".");
      }
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(input_list.get()); ++i) {
      const Target target = target_of(PySequence_Fast_GET_ITEM(input_list.get(), i));
      const Edge e = target.edge;
      // A view made under no_grad requires grad, but has no place in any graph: it is unused.
      if (!e.node && !(target.tensor.defined() && requires_grad(target.tensor)))
        runtime_error("One of the differentiated Tensors does not require grad (input ", i, ")");
      targets.list.push_back(e);
    }
    BackwardOptions options;
    options.keep_graph = keep;
    options.create_graph = create;
    options.accumulate = accumulate;
    std::vector<Tensor> result;
    {
      note_allocation_site();
      WithoutGil released;
      result = run_backward(roots.list, g, targets.list, options);
      out.clear();
    }
    if (accumulate && !keep) note_finished_roots(roots.list);
    if (!accumulate && !allow_unused)
      for (size_t i = 0; i < result.size(); ++i)
        if (!result[i].defined())
          runtime_error(
              "One of the differentiated Tensors appears to not have been used in the graph. The "
              "differentiated Tensor at index ",
              i,
              " appears to not have been used in the graph. Set allow_unused=True if this is the "
              "desired behavior.");
    return wrap_list(result);
  });
}

PyObject* current_graph_node(PyObject*, PyObject*) {
  return guarded(
      [&] { return current_node ? wrap_node(NodeRef::share(current_node)) : Py_NewRef(Py_None); });
}

PyObject* graph_task_id(PyObject*, PyObject*) {
  return PyLong_FromLongLong(current_pass());
}
PyObject* will_execute(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyObject_TypeCheck(o, node_type))
      type_error("expected a node of the graph, got ", Py_TYPE(o)->tp_name);
    return PyBool_FromLong(pass_will_run(reinterpret_cast<PyNode*>(o)->node));
  });
}
PyObject* checkpoint_valid(PyObject*, PyObject*) {
  return PyBool_FromLong(pass_accumulates_everywhere());
}
PyObject* queue_callback(PyObject*, PyObject* f) {
  return guarded([&] {
    std::shared_ptr<PyObject> held(Py_NewRef(f), [](PyObject* o) {
      WithGil gil;
      Py_DECREF(o);
    });
    when_pass_ends([held] {
      WithGil gil;
      Ref r(check(PyObject_CallNoArgs(held.get())));
    });
    return Py_NewRef(Py_None);
  });
}

// ---- anomaly mode: the forward traceback is kept with the node

void keep_stack(Node* n) {
  if (!PyGILState_Check()) return;
  static PyObject* format;
  import_once(format, "traceback", "format_stack");
  Ref stack(format ? PyObject_CallNoArgs(format) : nullptr);
  if (!stack) {
    PyErr_Clear();
    return;
  }
  if (!n->metadata) n->metadata = check(PyDict_New());
  check(PyDict_SetItemString(static_cast<PyObject*>(n->metadata), "traceback_", stack.get()));
}
std::string stack_text(Node* n) {
  WithGil gil;
  PyObject* stack = n->metadata
                        ? PyDict_GetItemString(static_cast<PyObject*>(n->metadata), "traceback_")
                        : nullptr;
  if (!stack) return {};
  Ref empty(PyUnicode_FromString(""));
  Ref joined(PyUnicode_Join(empty.get(), stack));
  if (!joined) {
    PyErr_Clear();
    return {};
  }
  return PyUnicode_AsUTF8(joined.get());
}

PyObject* accumulate_node(PyObject*, PyObject* o) {
  return guarded([&] {
    Edge e = gradient_edge(unwrap(o));
    NodeRef n(e.node);
    Ref w(wrap_node(n));
    return check(Py_BuildValue("(OI)", w.get(), e.input_nr));
  });
}

// ---- promotion and defaults

// Named `tensor` and `other`, `scalar` and `tensor`, or `scalar1` and `scalar2`.
PyObject* result_type(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Promotion p;
    const auto add = [&](PyObject* o) {
      if (is_tensor(o)) p.add(unwrap(o));
      else if (is_number(o)) p.add(scalar_of(o).category());
      else type_error("result_type(): expected Tensor or number, got ", Py_TYPE(o)->tp_name);
    };
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) add(PyTuple_GET_ITEM(args, i));
    PyObject *name, *o;
    for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &name, &o);) {
      const std::string_view given = PyUnicode_AsUTF8(name);
      if (given != "tensor" && given != "other" && !given.starts_with("scalar"))
        type_error("result_type() got an unexpected keyword argument '", std::string(given), "'");
      add(o);
    }
    return to_python(p.result());
  });
}
PyObject* promote(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO", &a, &b)) throw PythonError{};
    return to_python(promote_types(dtype_of(a), dtype_of(b)));
  });
}
PyObject* can_cast_(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"from_", "to", nullptr};
    PyObject *a, *b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &a, &b))
      throw PythonError{};
    return PyBool_FromLong(can_cast(dtype_of(a), dtype_of(b)));
  });
}
PyObject* get_default_dtype(PyObject*, PyObject*) {
  return to_python(default_dtype());
}
PyObject* set_default_dtype_(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_dtype(o))
      type_error(
          "invalid dtype object: only floating-point types are supported as the default type, got ",
          Py_TYPE(o)->tp_name);
    DType d = dtype_of(o);
    if (!is_floating(d))
      type_error("only floating-point types are supported as the default type, got ", d);
    set_default_dtype(d);
    return Py_NewRef(Py_None);
  });
}
PyObject* get_default_device_(PyObject*, PyObject*) {
  return to_python(default_device());
}
PyObject* set_default_device_(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    set_default_device(o == Py_None ? Device{} : device_of(o));
    return Py_NewRef(Py_None);
  });
}

PyObject* increment_version(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) type_error("expected a Tensor, got ", type_name(o));
    if (unwrap(o)->flags & kInference)
      runtime_error("Inference tensors do not track version counter.");
    unwrap(o).bump_version();
    return Py_NewRef(Py_None);
  });
}

// The node of a result that Python knows a better name for.
PyObject* name_result(PyObject*, PyObject* args) {
  return guarded([&] {
    static std::set<std::string> names;  // nodes keep the pointer
    PyObject* result;
    const char* name;
    if (!PyArg_ParseTuple(args, "Os", &result, &name)) throw PythonError{};
    if (is_tensor(result)) name_node(unwrap(result), 0, names.insert(name).first->c_str());
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_increment_version", increment_version, METH_O, "Counts a write that autograd did not see."},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "True when operations are recorded."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference, METH_NOARGS, "True in inference mode."},
    {"_set_inference_mode", set_inference, METH_O, nullptr},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, "True in anomaly mode."},
    {"is_anomaly_check_nan_enabled", anomaly_nan, METH_NOARGS,
     "True when anomaly mode looks for NaN."},
    {"_set_anomaly", set_anomaly, METH_VARARGS, nullptr},
    {"_set_location_tracking", set_tracking, METH_O, nullptr},
    {"_push_saved_tensors_hooks", push_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_hooks, METH_O, nullptr},
    {"_backward", backward, METH_VARARGS, nullptr},
    {"_set_kept_graphs_warning", set_kept_graphs_warning, METH_O, nullptr},
    {"_current_graph_task_id", graph_task_id, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", will_execute, METH_O, nullptr},
    {"_is_checkpoint_valid", checkpoint_valid, METH_NOARGS, nullptr},
    {"_queue_callback", queue_callback, METH_O, nullptr},
    {"_current_graph_node", current_graph_node, METH_NOARGS, nullptr},
    {"_gradient_edge", accumulate_node, METH_O, nullptr},
    {"_name_result", name_result, METH_VARARGS, nullptr},
    {"result_type", (PyCFunction)(void*)result_type, METH_VARARGS | METH_KEYWORDS,
     "The dtype that arithmetic on the arguments gives."},
    {"promote_types", promote, METH_VARARGS, "The smallest dtype that both fit into."},
    {"can_cast", (PyCFunction)(void*)can_cast_, METH_VARARGS | METH_KEYWORDS,
     "True when the first dtype may be written into the second."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "The dtype of new floating-point tensors."},
    {"_set_default_dtype", set_default_dtype_, METH_O, nullptr},
    {"get_default_device", get_default_device_, METH_NOARGS, "The device of new tensors."},
    {"_set_default_device", set_default_device_, METH_O, nullptr},
    {}};

void warn_from_core(const char* message) {
  WithGil gil;
  // A warning may come while an exception is on its way (anomaly mode): that one is kept.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  int status = PyErr_WarnEx(PyExc_UserWarning, message, 1);
  if (type) PyErr_Restore(type, value, trace);
  else if (status < 0) throw PythonError{};
}

}  // namespace

void init_autograd(PyObject* module) {
  pack_saved_tensor = pack;
  keep_traceback = keep_stack;
  traceback_text = stack_text;
  warn = warn_from_core;
  add_functions(module, functions);
}

}  // namespace facula::python
