// Forward mode: the tangents of the results from those of the arguments.
#include "autograd/engine.h"
#include "autograd/node.h"
#include "core/sparse.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/interpret.h"

namespace facula {

Tensor tangent_like(const Tensor& primal, const Tensor& tangent) {
  if (is_sparse(primal) || is_sparse(tangent) || same(primal.strides(), tangent.strides()) ||
      !same(primal.sizes(), tangent.sizes()) ||
      !non_overlapping_and_dense(primal.sizes(), primal.strides()))
    return tangent;
  return op::zeros_like(primal) + tangent;  // laid out like the first operand
}

namespace {

struct Slot {  // one differentiable tensor among the arguments, in the order of the node's edges
  int arg;
  int item;  // within a list, else -1
  Tensor primal, tangent;
};

std::vector<Slot> slots_of(const OpDef& op, const Value* args, uint32_t level) {
  std::vector<Slot> slots;
  auto add = [&](int arg, int item, const Tensor& t) {
    Slot s{arg, item, {}, {}};
    if (t.defined()) {
      const bool dual = is_wrapped_at(t, level);
      s.primal = dual ? t->wrapper->value : t;
      if (dual && is_differentiable_dtype(t.dtype())) s.tangent = t->wrapper->tangent;
    }
    slots.push_back(std::move(s));
  };
  for (int i = 0; i < op.arg_count; ++i) {
    if (!(op.differentiable >> i & 1)) continue;
    if (args[i].tag() == Value::Tag::Tensors)
      for (size_t k = 0; k < args[i].tensors().size(); ++k) add(i, int(k), args[i].tensors()[k]);
    else add(i, -1, args[i].is_tensor() ? args[i].tensor() : Tensor());
  }
  return slots;
}

Tensor zeros_for(const Tensor& primal) {
  return op::zeros_like(primal);
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : a + b;
}

// The arguments with the differentiable tensors replaced by f(slot).
template <class F>
Arguments replaced(const OpDef& op, const Value* primals, const std::vector<Slot>& slots, F&& f) {
  Arguments out(op, primals);
  for (size_t k = 0; k < slots.size();) {
    const int arg = slots[k].arg;
    if (slots[k].item < 0) {
      if (slots[k].primal.defined()) out.set(out[arg], f(slots[k]));
      else if (op.args[arg].operand && primals[arg].is_number()) out[arg] = Value(int64_t(0));
      ++k;
      continue;
    }
    std::vector<Tensor> list;
    for (; k < slots.size() && slots[k].arg == arg; ++k)
      list.push_back(slots[k].primal.defined() ? f(slots[k]) : Tensor());
    out.set(out[arg], std::move(list));
  }
  return out;
}

struct Tangents {  // of the results; undefined where there is none
  Tensor t[Rets::kMax];
  std::vector<Tensor> list;
};

void run_on(const OpDef& op, const Value* args, Tangents& out) {
  Rets rets;
  if (op.flags & kOpListResult) rets.list = &out.list;
  call(op, args, rets);
  for (int i = 0; i < op.ret_count; ++i) out.t[i] = rets.t[i];
}

Tangents linear(const OpDef& op, const Value* primals, const std::vector<Slot>& slots) {
  Tangents out;
  Arguments args = replaced(op, primals, slots, [&](const Slot& s) {
    return s.tangent.defined() ? s.tangent : zeros_for(s.primal);
  });
  run_on(op, args.data(), out);
  return out;
}

Tangents each(const OpDef& op, const Value* primals, const std::vector<Slot>& slots) {
  Tangents sum;
  for (const Slot& one : slots) {
    if (!one.tangent.defined()) continue;
    Tangents out;
    Arguments args = replaced(op, primals, slots,
                              [&](const Slot& s) { return &s == &one ? s.tangent : s.primal; });
    run_on(op, args.data(), out);
    for (int i = 0; i < op.ret_count; ++i) sum.t[i] = sum_of(sum.t[i], out.t[i]);
  }
  return sum;
}

// A node that holds what the derivatives read, but is on no tape.
NodeRef derivative_node(const OpDef& op, const Value* primals, const Rets& results) {
  NodeRef node(Node::make(op.node_name, op.vjp));
  node->op = &op;
  Rets fresh;
  save_arguments(*node.get(), op, primals, fresh, ~uint64_t(0));
  for (int k = 0; k < op.saved_ret_count; ++k)
    node->saved[uint32_t(op.saved_arg_count + k)].save(Value(results.t[op.saved_rets[k].index]));
  if (results.list) {
    node->outputs.allocate(uint32_t(results.list->size()));
    for (uint32_t i = 0; i < results.list->size(); ++i) node->set_output(i, (*results.list)[i]);
  } else {
    node->outputs.allocate(op.ret_count);
    for (int i = 0; i < op.ret_count; ++i) node->set_output(uint32_t(i), results.t[i]);
  }
  return node;
}

// Elementwise: the derivative of each result element depends on its own input only, so the formula
// that multiplies a gradient by it multiplies a tangent as well (by its conjugate, hence the conj).
Tangents formula(const OpDef& op, const Value* primals, const std::vector<Slot>& slots,
                 const Rets& results) {
  Tangents sum;
  const Tensor& result = results.t[0];
  NodeRef node = derivative_node(op, primals, results);
  for (uint32_t e = 0; e < slots.size(); ++e) {
    if (!slots[e].tangent.defined()) continue;
    Tensor t = slots[e].tangent;
    if (t.dtype() != result.dtype() && !(t.is_complex() && !result.is_complex()))
      t = op::_to_copy(t, result.dtype());
    Tensor grad = op::expand(t.is_complex() ? op::conj(t) : t, result.sizes());
    std::vector<Tensor> out(slots.size());
    op.vjp(*node.get(), &grad, out.data(), uint64_t(1) << e);
    Tensor term = out[e];
    if (!term.defined()) continue;
    if (term.is_complex()) term = result.is_complex() ? op::conj(term) : op::real(term);
    if (term.dtype() != result.dtype()) term = op::_to_copy(term, result.dtype());
    sum.t[0] = sum_of(sum.t[0], term);
  }
  if (sum.t[0].defined() && !same(sum.t[0].sizes(), result.sizes()))
    sum.t[0] = op::expand(sum.t[0], result.sizes());
  return sum;
}

// The derivative is linear in the gradient that it is given; its derivative by that gradient, in
// the direction of the tangents, is the forward derivative.
Tangents by_vjp(const OpDef& op, const Value* primals, const std::vector<Slot>& slots,
                const Rets& results) {
  if (!op.vjp)
    runtime_error("the derivative for '", op.name,
                  "' is not implemented, so there is no forward-mode derivative either");
  Tangents tangents;
  NodeRef node = derivative_node(op, primals, results);
  const uint32_t count = node->outputs.size();
  auto result_at = [&](uint32_t i) -> const Tensor& {
    return results.list ? (*results.list)[i] : results.t[i];
  };
  std::vector<Tensor> found(count);
  const bool recorded = grad_enabled();  // by the tapes outside
  const uint32_t level = push_level(LevelKind::Grad);
  try {
    GradGuard on(true);
    std::vector<Tensor> u(count), out(slots.size());
    std::vector<Edge> inputs;
    std::vector<uint32_t> which;
    for (uint32_t i = 0; i < count; ++i) {
      const Tensor& r = result_at(i);
      if (op.nondifferentiable_rets >> i & 1 || !is_differentiable_dtype(r.dtype())) continue;
      // Any point would do where the formula accepts it: logarithms of the gradient need it
      // positive, phases must not occur in it.
      const Tensor at = op.jvp == Jvp::ByVjpAtZero ? op::zeros_like(r) : op::ones_like(r);
      u[i] = wrap_tracked(at, level);
      set_requires_grad(u[i], true);
      inputs.push_back(gradient_edge(u[i]));
      which.push_back(i);
    }
    uint64_t needs = 0;
    for (uint32_t e = 0; e < slots.size(); ++e)
      if (slots[e].tangent.defined()) needs |= uint64_t(1) << std::min(e, 63u);
    std::vector<Tensor> grads = u;
    op.vjp(*node.get(), grads.data(), out.data(), needs);
    std::vector<Edge> roots;
    std::vector<Tensor> seeds;
    for (uint32_t e = 0; e < slots.size(); ++e) {
      if (!slots[e].tangent.defined() || !out[e].defined()) continue;
      OutputMeta meta{Dims(slots[e].primal.sizes()), slots[e].primal.dtype(),
                      slots[e].primal.device()};
      out[e] = validate_gradient(meta, out[e], op.node_name, e);
      Edge root = gradient_edge(out[e]);
      if (!root.node) continue;
      roots.push_back(root);
      seeds.push_back(slots[e].tangent);
    }
    if (!roots.empty()) {
      BackwardOptions options;
      options.accumulate = false;
      options.create_graph = recorded;
      std::vector<Tensor> got = run_backward(roots, seeds, inputs, options);
      for (size_t k = 0; k < which.size(); ++k) found[which[k]] = got[k];
    }
    for (Edge& e : roots) e.node->unref();
    for (Edge& e : inputs) e.node->unref();
  } catch (...) {
    pop_level();
    throw;
  }
  pop_level();
  for (Tensor& t : found)
    if (t.defined()) t = strip_dead(t);
  if (results.list) tangents.list = std::move(found);
  else std::move(found.begin(), found.end(), tangents.t);
  return tangents;
}

Tangents tangents_of(const OpDef& op, const Value* primals, const std::vector<Slot>& slots,
                     const Rets& results) {
  switch (op.jvp) {
    case Jvp::Linear: return linear(op, primals, slots);
    case Jvp::Each: return each(op, primals, slots);
    case Jvp::Formula: return formula(op, primals, slots, results);
    case Jvp::FormulaIfReal:
      return results.t[0].is_complex() ? by_vjp(op, primals, slots, results)
                                       : formula(op, primals, slots, results);
    case Jvp::ByVjp:
    case Jvp::ByVjpAtZero: return by_vjp(op, primals, slots, results);
  }
  return {};
}

// The memory under all levels.
const Storage* memory_of(Tensor t) {
  while (t.is_wrapped()) t = t->wrapper->value;
  return t->storage;
}

// The tangent of a result that is no view. A program may write to the result and to views of it,
// so it lies like the result, in memory that is not that of an argument's tangent.
Tensor own_tangent(const Tensor& value, const Tensor& tangent, const std::vector<Slot>& slots) {
  const Tensor laid = tangent_like(value, tangent);
  if (!laid.is(tangent)) return laid;
  for (const Slot& s : slots)
    if (s.tangent.defined() && memory_of(s.tangent) == memory_of(laid)) return op::clone(laid);
  return laid;
}

// The tangent of a tensor that is about to be written to: its own, or a part of that of its base,
// so that views and base go on sharing.
Tensor writable_tangent(const Tensor& t) {
  Wrapper& w = *t->wrapper;
  if (w.tangent.defined()) return w.tangent;
  if (t->base && t->base->wrapper && t->base->wrapper->level == w.level &&
      t->base->dtype == t.dtype()) {
    Tensor base = Tensor::share(t->base);
    Wrapper& b = *base->wrapper;
    if (!b.tangent.defined()) {
      b.tangent = op::empty_strided(base.sizes(), base.strides(), base.dtype(), base.device());
      op::zero_(b.tangent);
    }
    w.tangent = op::as_strided(b.tangent, t.sizes(), t.strides(),
                               t.offset() - base.offset() + b.tangent.offset());
  } else {
    w.tangent = zeros_for(w.value);
  }
  return w.tangent;
}

void write_tangent(const Tensor& self, const Tensor& tangent, const std::vector<Slot>& slots) {
  Wrapper& w = *self->wrapper;
  if (!tangent.defined()) {
    if (w.tangent.defined()) op::zero_(w.tangent);
    return;
  }
  if (w.tangent.defined() || self->base) {
    op::copy_(writable_tangent(self), tangent);
    return;
  }
  Tensor t = tangent.dtype() == self.dtype() ? tangent : op::_to_copy(tangent, self.dtype());
  if (!same(t.sizes(), self.sizes())) t = op::expand(t, self.sizes());
  w.tangent = own_tangent(w.value, t, slots);
}

}  // namespace

void call_forward(const OpDef& op, const Value* args, Rets& rets, const Level& level) {
  const bool on = thread_state.forward;
  ModesGuard outside(modes_outside(level));
  Arguments primals(op, args);
  primals.map([&](const Tensor& t) { return is_wrapped_at(t, level.id) ? t->wrapper->value : t; });
  std::vector<Slot> slots = slots_of(op, args, level.id);
  bool any = false;
  for (const Slot& s : slots) any |= s.tangent.defined();
  any = any && on;

  if (rets.destination == Destination::InPlace) {
    const Tensor self = rets.t[0];
    // The derivative reads value and tangent as they were, also when it is differentiated again.
    if (any && !(op.flags & (kOpMutates | kOpNoGrad))) {
      const Tensor before = op::clone(self->wrapper->value);
      for (int i = 0; i < op.arg_count; ++i)
        if (primals[i].is_tensor() && primals[i].tensor().is(self->wrapper->value))
          primals.set(primals[i], before);
      for (Slot& s : slots) {
        if (s.primal.defined() && s.primal.is(self->wrapper->value)) s.primal = before;
        if (s.tangent.defined() && s.tangent.is(self->wrapper->tangent))
          s.tangent = op::clone(s.tangent);
      }
    }
    Rets results;
    if (op.flags & kOpMutates || !any || op.flags & kOpNoGrad) {
      results.destination = Destination::InPlace;
      results.t[0] = self->wrapper->value;
      call(op, primals.data(), results);
      refresh_geometry(self);
      if (!any || !is_differentiable_dtype(self.dtype())) return;
      if (op.jvp == Jvp::Linear) {
        writable_tangent(self);
        slots[0].tangent = self->wrapper->tangent;
        Arguments tangents = replaced(op, primals.data(), slots, [](const Slot& s) {
          return s.tangent.defined() ? s.tangent : zeros_for(s.primal);
        });
        Rets written;
        written.destination = Destination::InPlace;
        written.t[0] = self->wrapper->tangent;
        call(op, tangents.data(), written);
      } else {
        write_tangent(self, Tensor(), slots);
      }
      return;
    }
    call(op, primals.data(), results);
    Tangents tangents = tangents_of(op, primals.data(), slots, results);
    op::copy_(self->wrapper->value, results.t[0]);
    if (is_differentiable_dtype(self.dtype())) write_tangent(self, tangents.t[0], slots);
    return;
  }

  Rets results;
  std::vector<Tensor> list;
  if (rets.list) results.list = &list;
  call(op, primals.data(), results);
  Tangents tangents;
  if (any && !(op.flags & kOpNoGrad)) tangents = tangents_of(op, primals.data(), slots, results);
  auto wrap = [&](const Tensor& value, const Tensor& tangent) {
    const bool view = op.flags & kOpView;
    if (!value.defined()) return value;
    // Integers do not move with what they were made from.
    const bool moves = tangent.defined() && is_differentiable_dtype(value.dtype());
    if (!moves && !view) return value;
    Tensor w = wrap_dual(value, view ? tangent : own_tangent(value, tangent, slots), level.id);
    if (view && is_wrapped_at(args[0].tensor(), level.id)) {
      const Tensor& self = args[0].tensor();
      w->base = Tensor(self->base ? Tensor::share(self->base) : self).release();
    }
    return w;
  };
  if (rets.list) {
    tangents.list.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) rets.list->push_back(wrap(list[i], tangents.list[i]));
    return;
  }
  for (int i = 0; i < op.ret_count; ++i)
    rets.t[i] = wrap(results.t[i], op.nondifferentiable_rets >> i & 1 ? Tensor() : tangents.t[i]);
}

}  // namespace facula
