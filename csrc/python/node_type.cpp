// grad_fn: the Python object of a tape node. Each node name has a type of its own.
#include <cstring>
#include <map>

#include "autograd/engine.h"
#include "op/tensor_operators.h"
#include "python/hooks.h"
#include "python/interop.h"
#include "python/node_type.h"

namespace facula::python {

PyTypeObject* node_type = nullptr;

namespace {

PyNode* cast(PyObject* o) {
  return reinterpret_cast<PyNode*>(o);
}

Node* node_of(PyObject* o) {
  Node* n = cast(o)->node;
  if (!n) runtime_error("this graph node is gone: keep a tensor that was computed with it alive");
  return n;
}

void node_dealloc(PyObject* o) {
  PyNode* self = cast(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  if (Node* n = std::exchange(self->node, nullptr); n && self->owns) {
    n->python = nullptr;
    n->unref();
  }
  type->tp_free(o);
  Py_DECREF(type);
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(cast(o)->dict);
  return 0;
}
int node_clear(PyObject* o) {
  Py_CLEAR(cast(o)->dict);
  return 0;
}

// As PyTorch calls it, where one operator of ours does what several of PyTorch's do.
const char* shown_name(const Node& n) {
  if (std::strcmp(n.name, "LinearBackward0")) return n.name;
  const size_t dims = n.outputs[0].sizes.size();
  const bool bias = n.edges[2].node;
  if (dims == 2) return bias ? "AddmmBackward0" : "MmBackward0";
  return bias ? "ViewBackward0" : dims == 1 ? "SqueezeBackward4" : "UnsafeViewBackward0";
}

// PyTorch names nodes that are no derivative of one operator with their C++ namespace.
PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&] {
    const char* name = shown_name(*node_of(o));
    for (const char* plain : {"AccumulateGrad", "CopySlices", "CopyBackwards"})
      if (!std::strcmp(name, plain)) return PyUnicode_FromFormat("torch::autograd::%s", name);
    return PyUnicode_FromString(name);
  });
}

// node(grad, ...): the gradients of its inputs, without hooks and without going further.
PyObject* node_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    NodeRef n = NodeRef::share(node_of(o));
    const Py_ssize_t given = PyTuple_GET_SIZE(args);
    if (kwargs && PyDict_GET_SIZE(kwargs)) type_error(n->name, "() takes no keyword arguments");
    const uint32_t wanted = shown_outputs(*n.get());
    if (given != wanted)
      type_error(n->name, "() takes ", wanted,
                 " gradients, one for each output of the operator, got ", given);
    std::vector<Tensor> grads(n->outputs.size()), out(n->edges.size());
    for (Py_ssize_t i = 0; i < given; ++i) {
      PyObject* g = PyTuple_GET_ITEM(args, i);
      if (g != Py_None && !is_tensor(g))
        type_error(n->name, "(): expected a Tensor or None at position ", i, ", got ",
                   Py_TYPE(g)->tp_name);
      if (g != Py_None) grads[size_t(i)] = unwrap(g);
    }
    uint64_t needs = 0;
    for (uint32_t i = 0; i < n->edges.size(); ++i)
      if (n->edges[i].node) needs |= uint64_t(1) << std::min(i, 63u);
    n->apply(*n.get(), grads.data(), out.data(), needs);
    Ref results(check(PyTuple_New(Py_ssize_t(out.size()))));
    for (uint32_t i = 0; i < out.size(); ++i) {
      if (out[i].defined() && n->edges[i].node)
        out[i] = validate_gradient(n->edges[i].node->outputs[n->edges[i].input_nr],
                                   std::move(out[i]), n->name, i);
      PyTuple_SET_ITEM(results.get(), i, wrap_or_none(out[i]));
    }
    return out.size() == 1 ? Py_NewRef(PyTuple_GET_ITEM(results.get(), 0)) : results.release();
  });
}
PyObject* node_sequence(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(o)->sequence); });
}
PyObject* node_repr(PyObject* o) {
  return PyUnicode_FromFormat(
      "<%s object at %p>",
      Py_TYPE(o)->tp_name + (std::strrchr(Py_TYPE(o)->tp_name, '.')
                                 ? std::strrchr(Py_TYPE(o)->tp_name, '.') - Py_TYPE(o)->tp_name + 1
                                 : 0),
      (void*)o);
}

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&] {
    Node* n = node_of(o);
    if (PyObject* ctx = function_context(n)) {  // arguments of a Function that are no tensors
      Ref all(check(PyList_New(0))), tensors(check(PyObject_GetAttrString(ctx, "_tensor_inputs")));
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(tensors.get()); ++k) {
        const Edge& e = n->edges[uint32_t(PyLong_AsLong(PyList_GET_ITEM(tensors.get(), k)))];
        Ref child(e.node ? wrap_node(NodeRef::share(e.node)) : Py_NewRef(Py_None));
        Ref pair(check(Py_BuildValue("(OI)", child.get(), e.input_nr)));
        check(PyList_Append(all.get(), pair.get()));
      }
      return check(PySequence_Tuple(all.get()));
    }
    Ref t(check(PyTuple_New(n->edges.size())));
    for (uint32_t i = 0; i < n->edges.size(); ++i) {
      Ref child(n->edges[i].node ? wrap_node(NodeRef::share(n->edges[i].node))
                                 : Py_NewRef(Py_None));
      PyTuple_SET_ITEM(t.get(), i, check(Py_BuildValue("(OI)", child.get(), n->edges[i].input_nr)));
    }
    return t.release();
  });
}
// What the gradients that come in look like.
PyObject* input_metadata(PyObject* o, void*) {
  return guarded([&] {
    static PyObject* type;
    import_once(type, "facula.autograd.graph", "InputMetadata");
    check(type);
    Node* n = node_of(o);
    Ref all(check(PyList_New(0)));
    for (uint32_t i = 0; i < shown_outputs(*n); ++i) {
      const OutputMeta& m = n->outputs[i];
      Ref sizes(make_size(m.sizes)), dtype(to_python(m.dtype)), device(to_python(m.device));
      Ref one(check(
          PyObject_CallFunctionObjArgs(type, dtype.get(), device.get(), sizes.get(), nullptr)));
      check(PyList_Append(all.get(), one.get()));
    }
    return all.release();
  });
}
PyObject* metadata(PyObject* o, void*) {
  return guarded([&] {
    Node* n = node_of(o);
    if (!n->metadata) n->metadata = check(PyDict_New());
    return Py_NewRef(static_cast<PyObject*>(n->metadata));
  });
}
PyObject* variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    Node* n = node_of(o);
    if (std::strcmp(n->name, "AccumulateGrad"))
      raise_python(PyExc_AttributeError, "only AccumulateGrad nodes have a variable");
    return wrap(Tensor::share(static_cast<TensorImpl*>(n->extra)));
  });
}

PyObject* pack_again(PyObject* o, PyObject* k) {
  return guarded([&]() -> PyObject* {
    Node* n = node_of(o);
    if (n->released)
      runtime_error(
          "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
          "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
          "retain_graph=True if you need to backward through the graph a second time or if you "
          "need to access saved tensors after calling backward.");
    const auto at = size_t(PyLong_AsLong(k));
    if (at >= n->saved.size()) index_error("a node has no saved value ", at);
    n->saved[uint32_t(at)].pack_again();
    Py_RETURN_NONE;
  });
}

// The k-th of what a node keeps for its derivative, by the name that follows _saved_.
std::string saved_name(const OpDef& op, int k, SaveSpec& spec) {
  const bool ret = k >= op.saved_arg_count;
  spec = ret ? op.saved_rets[k - op.saved_arg_count] : op.saved_args[k];
  const std::string what =
      ret ? (op.ret_names ? op.ret_names[spec.index] : "result") : op.args[spec.index].name;
  return what + (spec.what == SaveSpec::What::Sizes ? "_sym_sizes" : "");
}

// True where what is kept is one tensor, for which hooks can be registered.
bool keeps_tensor(const OpDef& op, int k, const SaveSpec& spec) {
  return spec.what == SaveSpec::What::Whole &&
         (k >= op.saved_arg_count || op.args[spec.index].type == ArgType::Tensor);
}

PyObject* node_dir(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref plain(check(
        PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", o)));
    Ref names(check(PySequence_List(plain.get())));
    const OpDef* op = node_of(o)->op;
    SaveSpec spec;
    for (int k = 0; op && k < op->saved_arg_count + op->saved_ret_count; ++k) {
      const std::string what = saved_name(*op, k, spec);
      for (const char* prefix : {"_saved_", "_raw_saved_"}) {
        if (prefix[1] == 'r' && !keeps_tensor(*op, k, spec)) continue;
        Ref name(check(PyUnicode_FromString((prefix + what).c_str())));
        if (PyList_Append(names.get(), name.get()) < 0) throw PythonError{};
      }
    }
    return names.release();
  });
}

// Which of the numbers for each spatial dimension a name asks for, counted from the last: 2 for
// "scales_h" beside "scales", 0 when it is not that.
size_t spatial_place(std::string_view asked, std::string_view name) {
  if (asked.size() != name.size() + 2 || !asked.starts_with(name) || asked[name.size()] != '_')
    return 0;
  return (std::string_view("whd").find(asked.back()) + 1) % 4;
}

// Numbers for each spatial dimension: alone as a number, missing where the caller gave none.
PyObject* floats_to_python(std::span<const double> numbers, size_t place) {
  if (place)
    numbers = place <= numbers.size() ? numbers.subspan(numbers.size() - place, 1)
                                      : std::span<const double>();
  if (numbers.empty()) return Py_NewRef(Py_None);
  if (numbers.size() == 1) return check(PyFloat_FromDouble(numbers[0]));
  Ref all(check(PyTuple_New(Py_ssize_t(numbers.size()))));
  for (size_t i = 0; i < numbers.size(); ++i)
    PyTuple_SET_ITEM(all.get(), Py_ssize_t(i), check(PyFloat_FromDouble(numbers[i])));
  return all.release();
}

// _saved_self, _saved_dim ..., and _raw_saved_self to register hooks for what is saved.
PyObject* node_getattro(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text_ = PyUnicode_AsUTF8(name);
  Node* n = cast(o)->node;
  if (!text_ || !n || !n->op) return nullptr;
  const bool raw = !std::strncmp(text_, "_raw_saved_", 11);
  if (!raw && std::strncmp(text_, "_saved_", 7)) return nullptr;
  const OpDef& op = *n->op;
  for (int k = 0; k < op.saved_arg_count + op.saved_ret_count; ++k) {
    SaveSpec spec;
    const std::string_view asked = text_ + (raw ? 11 : 7);
    const std::string found_name = saved_name(op, k, spec);
    const bool floats = k < op.saved_arg_count && op.args[spec.index].type == ArgType::FloatList;
    const size_t place = floats ? spatial_place(asked, found_name) : 0;
    if (found_name != asked && !place) continue;
    if (raw && !keeps_tensor(op, k, spec)) continue;
    PyErr_Clear();
    return guarded([&]() -> PyObject* {
      if (raw) {
        static PyObject* type;
        import_once(type, "facula.autograd.graph", "SavedTensor");
        return check(PyObject_CallFunction(check(type), "Oi", o, k));
      }
      Tensor holder;
      Value v = n->value(k, holder);
      switch (v.tag()) {
        case Value::Tag::Tensor: return wrap(v.tensor());
        case Value::Tag::Ints: return make_tuple(v.ints());
        case Value::Tag::Floats: return floats_to_python(v.floats(), place);
        case Value::Tag::Tensors:
          return wrap_list(std::vector<Tensor>(v.tensors().begin(), v.tensors().end()));
        case Value::Tag::String:
          return PyUnicode_FromStringAndSize(v.text().data(), Py_ssize_t(v.text().size()));
        case Value::Tag::DType: return to_python(v.dtype());
        case Value::Tag::Device: return to_python(v.device());
        case Value::Tag::Format: return to_python(v.format());
        case Value::Tag::Generator:
        case Value::Tag::None: return Py_NewRef(Py_None);
        default: return to_python(v.scalar());
      }
    });
  }
  return nullptr;
}

template <class Make>
PyObject* hook_dict(PyObject* o, Make make) {
  return guarded([&] { return make(node_of(o)->ensure_hooks()); });
}
PyObject* pre_hooks(PyObject* o, PyObject*) {
  return hook_dict(o, [](NodeHooks& h) -> PyObject* {
    for (auto& p : h.pre_hooks)
      if (auto* d = dynamic_cast<DictHook*>(p.get())) return Py_NewRef(d->dict);
    Ref dict(check(PyDict_New()));
    h.pre_hooks.push_back(std::make_shared<DictHook>(dict.get(), HookKind::Node));
    return dict.release();
  });
}
PyObject* post_hooks(PyObject* o, PyObject*) {
  return hook_dict(o, [](NodeHooks& h) -> PyObject* {
    for (auto& p : h.post_hooks)
      if (auto* d = dynamic_cast<DictPostHook*>(p.get())) return Py_NewRef(d->dict);
    Ref dict(check(PyDict_New()));
    h.post_hooks.push_back(std::make_shared<DictPostHook>(dict.get()));
    return dict.release();
  });
}
PyObject* register_in(PyObject* o, PyObject* hook, PyObject* (*dict_of)(PyObject*, PyObject*)) {
  return guarded([&] {
    static PyObject* handle_type;
    import_once(handle_type, "facula.utils.hooks", "RemovableHandle");
    if (!handle_type) throw PythonError{};
    Ref dict(check(dict_of(o, nullptr)));
    Ref handle(check(PyObject_CallOneArg(handle_type, dict.get())));
    Ref id(check(PyObject_GetAttrString(handle.get(), "id")));
    check(PyDict_SetItem(dict.get(), id.get(), hook));
    return handle.release();
  });
}
PyObject* register_hook(PyObject* o, PyObject* hook) {
  return register_in(o, hook, post_hooks);
}
PyObject* register_prehook(PyObject* o, PyObject* hook) {
  return register_in(o, hook, pre_hooks);
}

PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) {
  return type->tp_alloc(type, 0);
}

PyMethodDef methods[] = {{"name", node_name, METH_NOARGS, "The name of the derivative."},
                         {"__dir__", node_dir, METH_NOARGS, nullptr},
                         {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                         {"_pack_again", pack_again, METH_O, nullptr},
                         {"register_hook", register_hook, METH_O,
                          "Calls hook(grad_inputs, grad_outputs) after this node has run."},
                         {"register_prehook", register_prehook, METH_O,
                          "Calls hook(grad_outputs) before this node runs."},
                         {}};
PyGetSetDef getset[] = {
    {"next_functions", next_functions, nullptr,
     "The nodes that gradients go to, with their input numbers.", nullptr},
    {"_input_metadata", input_metadata, nullptr, "Dtype, device and shape of each output.",
     nullptr},
    {"metadata", metadata, nullptr, "A dict for notes that live as long as the node.", nullptr},
    {"variable", variable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weakrefs), READONLY, nullptr},
    {}};
PyType_Slot slots[] = {{Py_tp_new, (void*)node_new},
                       {Py_tp_dealloc, (void*)node_dealloc},
                       {Py_tp_traverse, (void*)node_traverse},
                       {Py_tp_clear, (void*)node_clear},
                       {Py_tp_repr, (void*)node_repr},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_members, members},
                       {Py_tp_getattro, (void*)node_getattro},
                       {Py_tp_call, (void*)node_call},
                       {Py_tp_doc, (void*)"A node of the autograd graph."},
                       {}};
PyType_Spec spec = {"facula.autograd.graph.Node", sizeof(PyNode), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

PyTypeObject* type_named(const char* name) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& t = types[name];
  if (!t) {
    auto* full = new std::string(std::string("facula.autograd.graph.") + name);
    PyType_Slot none[] = {{Py_tp_dealloc, (void*)node_dealloc},
                          {Py_tp_traverse, (void*)node_traverse},
                          {Py_tp_clear, (void*)node_clear},
                          {}};
    PyType_Spec s = {full->c_str(), sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                     none};
    t = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpecWithBases(&s, (PyObject*)node_type)));
  }
  return t;
}

void drop_metadata(void* dict) {
  if (!interpreter_alive()) return;
  WithGil gil;
  Py_DECREF(static_cast<PyObject*>(dict));
}

}  // namespace

PyObject* wrap_node(const NodeRef& node) {
  Node* n = node.get();
  if (!n) return Py_NewRef(Py_None);
  if (PyObject* ctx = function_context(n)) return Py_NewRef(ctx);
  if (n->python) return Py_NewRef(static_cast<PyObject*>(n->python));
  PyTypeObject* t = type_named(shown_name(*n));
  PyObject* o = check(t->tp_alloc(t, 0));
  n->retain();
  cast(o)->node = n;
  cast(o)->owns = true;
  n->python = o;
  return o;
}

void init_node_type(PyObject* module) {
  node_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  release_node_metadata = drop_metadata;
  check(PyModule_AddObjectRef(module, "Node", (PyObject*)node_type));
}

}  // namespace facula::python
