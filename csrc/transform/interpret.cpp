#include "transform/interpret.h"

#include <algorithm>

#include "autograd/node.h"
#include "transform/batching.h"

namespace facula {

namespace {

// What the tape of a level runs in place of a kernel. It has switched itself off meanwhile.
void run_outside(const OpDef& op, const Value* args, Rets& rets) {
  uint32_t top = 0;
  for_each_tensor(op, args, [&](const Tensor& t) { top = std::max(top, level_of(t)); });
  const Level& level = *find_level(top);
  call_outside(op, args, rets, level, {level.keys_before, thread_state.forward});
}

// All levels of the arguments, those of the tensors behind them included; none without a vmap.
std::vector<uint32_t> levels_behind(const OpDef& op, const Value* args) {
  std::vector<uint32_t> found;
  bool batched = false;
  for_each_tensor(op, args, [&](const Tensor& t) {
    for (const Tensor* p = &t; p->is_wrapped(); p = &(*p)->wrapper->value) {
      if (!find_level((*p)->wrapper->level)) continue;
      batched |= (*p)->wrapper->kind == LevelKind::Vmap;
      found.push_back((*p)->wrapper->level);
    }
  });
  if (!batched) return {};
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// Views of a batched tensor know it as their base, as views of others do.
void link_views(const Tensor& self, Rets& rets, int count) {
  auto link = [&](const Tensor& view) {
    if (view.defined() && !view->base && view->storage == self->storage)
      view->base = Tensor(self->base ? Tensor::share(self->base) : self).release();
  };
  if (rets.list)
    for (const Tensor& t : *rets.list) link(t);
  else
    for (int i = 0; i < count; ++i) link(rets.t[i]);
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
    return call_outside(op, args, rets, level, modes_outside(level));
  }
  tape_call(op, args, rets, level.id, run_outside);
}

}  // namespace

void call_outside(const OpDef& op, const Value* args, Rets& rets, const Level& level, Modes modes) {
  Arguments inner(op, args);
  inner.map([&](const Tensor& t) { return is_wrapped_at(t, level.id) ? t->wrapper->value : t; });
  Rets results;
  std::vector<Tensor> list;
  if (rets.list) results.list = &list;
  results.destination = rets.destination;
  if (rets.destination != Destination::New)
    for (int i = 0; i < op.ret_count; ++i) results.t[i] = rets.t[i]->wrapper->value;
  {
    ModesGuard outside(modes);
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
    for (Tensor& t : list) rets.list->push_back(t.defined() ? wrap(t) : t);
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
  if (op.flags & kOpRandom) top = std::max(top, innermost_vmap());
  const Level& level = *find_level(top);
  if (op.flags & kOpComposite && !op.batch) return run_kernel(op, args, rets);
  if (op.flags & kOpComposite && level.kind != LevelKind::Vmap) {
    // A new tensor in the shape of another has no derivative; but it gets the batch of what is
    // behind that one.
    Arguments outer(op, args);
    outer.map([&](const Tensor& t) { return is_wrapped_at(t, top) ? t->wrapper->value : t; });
    return call(op, outer.data(), rets);
  }
  if (rets.destination != Destination::New && !(op.flags & kOpRandom)) {
    std::vector<uint32_t> levels = levels_behind(op, args);
    for (int i = 0; i < op.ret_count; ++i) {
      if (rets.destination == Destination::InPlace && !levels.empty())
        become_batched(rets.t[i], levels);
      if (!is_wrapped_at(rets.t[i], top)) {
        if (rets.destination == Destination::Out)
          runtime_error(
              "out= is not possible with tensors inside of a function transform. Use the "
              "form without out=.");
        if (level.kind == LevelKind::Vmap) captured_error(op, level);
        if (level.kind == LevelKind::Grad && rets.t[i]->born < top) captured_error(op, level);
        become_wrapped(rets.t[i], level.kind, top);
      }
    }
  }
  ModesGuard ours(modes_at(top));
  switch (level.kind) {
    case LevelKind::Grad: return call_tracked(op, args, rets, level);
    case LevelKind::Jvp: return call_forward(op, args, rets, level);
    case LevelKind::Vmap:
      call_batched(op, args, rets, level);
      if (op.flags & kOpView) link_views(args[0].tensor(), rets, op.ret_count);
  }
}

}  // namespace facula
