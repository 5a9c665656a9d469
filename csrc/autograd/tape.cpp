// The tape step: runs the kernel with the tape off and records one node.
#include "autograd/engine.h"
#include "autograd/node.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula {

namespace {

template <class F>  // f(edge index, argument index, tensor) for every differentiable tensor
uint32_t for_each_edge(const OpDef& op, const Value* args, F&& f) {
  uint32_t edge = 0;
  for (int i = 0; i < op.arg_count; ++i) {
    if (!(op.differentiable >> i & 1)) continue;
    const Value& v = args[i];
    if (v.tag() == Value::Tag::Tensors) {
      for (const Tensor& t : v.tensors()) f(edge++, i, t);
    } else {
      if (v.is_tensor()) f(edge, i, v.tensor());
      ++edge;
    }
  }
  return edge;
}

// Of a list, each tensor's rank and sizes, one after the other.
void save_sizes(SavedValue& to, const Value& v) {
  if (v.tag() != Value::Tag::Tensors) return to.save(Value(v.tensor().sizes()));
  std::vector<int64_t> all;
  for (const Tensor& t : v.tensors()) {
    all.push_back(t.dim());
    all.insert(all.end(), t.sizes().begin(), t.sizes().end());
  }
  to.save(Value(IntSpan(all)));
}

}  // namespace

void save_arguments(Node& node, const OpDef& op, const Value* args, const Rets& rets,
                    uint64_t wanted) {
  const bool in_place = rets.destination == Destination::InPlace;
  node.saved.allocate(uint32_t(op.saved_arg_count + op.saved_ret_count));
  for (int k = 0; k < op.saved_arg_count; ++k) {
    const SaveSpec& spec = op.saved_args[k];
    if (!(spec.used_by & wanted)) continue;
    const Value& v = args[spec.index];
    if (spec.what == SaveSpec::What::Sizes) {
      save_sizes(node.saved[k], v);
    } else if (spec.what == SaveSpec::What::Strides) {
      node.saved[k].save(Value(v.tensor().strides()));
    } else if (spec.what == SaveSpec::What::Offset) {
      node.saved[k].save(Value(v.tensor().offset()));
    } else if (spec.what == SaveSpec::What::DType) {
      node.saved[k].save(Value(v.tensor().dtype()));
    } else if (in_place && v.is_tensor() && v.tensor().is(rets.t[0])) {
      // About to be overwritten; taped, for second derivatives.
      Tensor before = op::clone(v.tensor());
      node.saved[k].save(Value(before));
    } else {
      // Inside of a transform, forward mode reads them at once.
      if (v.is_tensor() && v.tensor()->flags & kInference && !current_level)
        runtime_error(
            "Inference tensors cannot be saved for backward. To work around you can make a "
            "clone to get a normal tensor and use it in autograd.");
      node.saved[k].save(v);
    }
  }
}

void save_results(Node& node, const OpDef& op, const Rets& rets, uint64_t wanted) {
  for (int k = 0; k < op.saved_ret_count; ++k) {
    const SaveSpec& spec = op.saved_rets[k];
    if (spec.used_by & wanted)
      node.saved[op.saved_arg_count + k].save_output(rets.t[spec.index], spec.index);
  }
}

// Tensors of other levels are constants on this tape.
static bool on_tape(const Tensor& t, uint32_t level) {
  if (t.defined() && !t.is_wrapped() && !t->base) [[likely]]
    return level == 0 && t.needs_grad();
  return t.defined() && level_of(t) == level && requires_grad(t);
}

void tape_call(const OpDef& op, const Value* args, Rets& rets, uint32_t level, Kernel run) {
  uint64_t wanted = 0;  // arguments whose gradient somebody asks for
  uint32_t edges = for_each_edge(op, args, [&](uint32_t, int arg, const Tensor& t) {
    if (on_tape(t, level)) wanted |= uint64_t(1) << arg;
  });
  const bool in_place = rets.destination == Destination::InPlace;
  // Integers hold no gradient, also when floats are copied into them.
  if (in_place && !is_differentiable_dtype(rets.t[0].dtype())) wanted = 0;
  else if (in_place && rets.t[0]->flags & kNoGradView) check_inplace(op, rets.t[0]);
  if (!wanted) return run(op, args, rets);
  if (rets.destination == Destination::Out)
    runtime_error(
        "functions with out=... arguments don't support automatic differentiation, but one "
        "of the arguments requires grad. Use the form without out=.");
  if (!op.vjp)
    runtime_error("the derivative for '", op.name,
                  "' is not implemented; call it under "
                  "facula.no_grad() or on detached tensors");
  if (in_place) check_inplace(op, rets.t[0]);

  NodeRef node(Node::make(op.node_name, op.vjp));
  node->op = &op;
  node->edges.allocate(edges);
  for_each_edge(op, args, [&](uint32_t e, int, const Tensor& t) {
    if (on_tape(t, level)) node->edges[e] = gradient_edge(t);
  });
  save_arguments(*node.get(), op, args, rets, wanted);
  if (track_locations && capture_location) node->location = capture_location();
  if (anomaly_mode && keep_traceback) keep_traceback(node.get());
  {
    GradGuard off(false);
    run(op, args, rets);
  }
  if (rets.list) {
    node->outputs.allocate(uint32_t(rets.list->size()));
    for (uint32_t i = 0; i < rets.list->size(); ++i) {
      node->set_output(i, (*rets.list)[i]);
      set_history((*rets.list)[i], node, i);
    }
    return;
  }
  node->outputs.allocate(op.ret_count);
  for (int i = 0; i < op.ret_count; ++i) node->set_output(i, rets.t[i]);
  Node& made = *node.get();
  if (in_place) {
    rebase_history(rets.t[0], node.get());
  } else {
    // The last result takes over the reference: counting it up and down again costs something.
    for (int i = 0; i < op.ret_count; ++i)
      if (!(op.nondifferentiable_rets >> i & 1) && is_differentiable_dtype(rets.t[i].dtype()))
        set_history(rets.t[i], i + 1 == op.ret_count ? std::move(node) : node, i);
  }
  save_results(made, op, rets, wanted);
}

static void no_gradient_vjp(Node&, Tensor* grads, Tensor* out, uint64_t needs) {
  if (needs & 1 && grads[0].defined()) out[0] = op::zeros_like(grads[0]);
}

void overwrite_call(const OpDef& op, const Value* args, Rets& rets, uint32_t level, Kernel run) {
  const Tensor& self = rets.t[0];
  if (!is_differentiable_dtype(self.dtype()) || !on_tape(self, level)) {
    if (self->flags & kNoGradView) check_inplace(op, self);
    return run(op, args, rets);
  }
  check_inplace(op, self);
  NodeRef node(Node::make(op.node_name, no_gradient_vjp));
  node->edges.allocate(1);
  node->edges[0] = gradient_edge(self);
  {
    GradGuard off(false);
    run(op, args, rets);
  }
  node->outputs.allocate(1);
  node->set_output(0, self);
  rebase_history(self, node.get());
}

}  // namespace facula
