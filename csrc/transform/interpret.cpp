#include "transform/interpret.h"

#include "autograd/node.h"
#include "transform/batching.h"

namespace facula {

namespace {

void run_outside(const OpDef& op, const Value* args, Rets& rets) {
  uint32_t top = 0;
  for_each_tensor(op, args, [&](const Tensor& t) { top = std::max(top, level_of(t)); });
  call_outside(op, args, rets, *find_level(top));
}

[[noreturn]] void captured_error(const OpDef& op, const Level& level) {
  if (level.kind == LevelKind::Vmap)
    runtime_error("vmap: ", op.in_place_name,
                  "(self, *extra_args) is not possible because there exists a Tensor `other` in "
                  "extra_args that has more elements than `self`. This happened due to `other` "
                  "being vmapped over but `self` not being vmapped over in a vmap. Use the "
                  "out-of-place form, or make `self` inside of the function with zeros_like().");
  runtime_error(
      "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
      "call in-place operation (",
      op.in_place_name,
      ") that would mutate a captured Tensor. This is not supported; please rewrite the "
      "function being transformed to explicitly accept the mutated Tensor(s) as inputs.");
}

void call_tracked(const OpDef& op, const Value* args, Rets& rets, const Level& level) {
  if (!grad_enabled() || op.flags & kOpNoGrad) {
    if (grad_enabled() && rets.destination == Destination::InPlace)
      return overwrite_call(op, args, rets, level.id, run_outside);
    return call_outside(op, args, rets, level);
  }
  tape_call(op, args, rets, level.id, run_outside);
}

}  // namespace

void call_outside(const OpDef& op, const Value* args, Rets& rets, const Level& level) {
  Arguments inner(op, args);
  inner.map([&](const Tensor& t) { return is_wrapped_at(t, level.id) ? t->wrapper->value : t; });
  Rets results;
  std::vector<Tensor> list;
  if (rets.list) results.list = &list;
  results.destination = rets.destination;
  if (rets.destination != Destination::New)
    for (int i = 0; i < op.ret_count; ++i) results.t[i] = rets.t[i]->wrapper->value;
  {
    ModesGuard outside({level.keys_before, thread_state.forward});
    call(op, inner.data(), results);
  }
  if (rets.destination != Destination::New) {
    for (int i = 0; i < op.ret_count; ++i) refresh_geometry(rets.t[i]);
    return;
  }
  auto wrap = [&](const Tensor& t) {
    Tensor w = wrap_tracked(t, level.id);
    if (op.flags & kOpView) {  // a view of the wrapper, as its value is one of the wrapper's value
      const Tensor& self = args[0].tensor();
      w->base = Tensor(self->base ? Tensor::share(self->base) : self).release();
    }
    return w;
  };
  if (rets.list)
    for (Tensor& t : list) rets.list->push_back(wrap(t));
  else
    for (int i = 0; i < op.ret_count; ++i)
      if (results.t[i].defined()) rets.t[i] = wrap(results.t[i]);
}

void interpret(const OpDef& op, const Value* args, Rets& rets) {
  bool dead = false;
  uint32_t top = 0;
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (!t.is_wrapped()) return;
    if (find_level(t->wrapper->level)) top = std::max(top, t->wrapper->level);
    else dead = true;
  });
  if (dead) {
    Arguments live(op, args);
    live.map(strip_dead);
    Rets results;
    results.list = rets.list;
    results.destination = rets.destination;
    for (int i = 0; i < op.ret_count; ++i)
      if (rets.t[i].defined()) results.t[i] = strip_dead(rets.t[i]);
    call(op, live.data(), results);
    for (int i = 0; i < op.ret_count; ++i) {
      if (rets.destination == Destination::New) rets.t[i] = results.t[i];
      else if (rets.t[i].is_wrapped()) refresh_geometry(rets.t[i]);
    }
    return;
  }
  // What a random operator draws is for the innermost vmap to say, also on plain tensors.
  if (op.flags & kOpRandom) top = std::max(top, batch::innermost_vmap());
  const Level& level = *find_level(top);
  if (op.flags & kOpComposite && !(level.kind == LevelKind::Vmap && op.batch))
    return run_kernel(op, args, rets);
  if (rets.destination != Destination::New && !(op.flags & kOpRandom))
    for (int i = 0; i < op.ret_count; ++i)
      if (!is_wrapped_at(rets.t[i], top)) {
        if (rets.destination == Destination::Out)
          runtime_error(
              "out= is not possible with tensors inside of a function transform. Use the "
              "form without out=.");
        if (level.kind == LevelKind::Vmap) captured_error(op, level);
        if (level.kind == LevelKind::Grad && rets.t[i]->born < top) captured_error(op, level);
        become_wrapped(rets.t[i], level.kind, top);
      }
  ModesGuard ours(modes_at(top));
  switch (level.kind) {
    case LevelKind::Grad: return call_tracked(op, args, rets, level);
    case LevelKind::Jvp: return call_forward(op, args, rets, level);
    case LevelKind::Vmap: return call_batched(op, args, rets, level);
  }
}

}  // namespace facula
