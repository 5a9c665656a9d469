#include "transform/wrapper.h"

#include <algorithm>
#include <atomic>

#include "autograd/node.h"
#include "op/ops/copying.h"

namespace facula {

static thread_local std::vector<Level> t_levels;
static std::atomic<uint32_t> g_next_level{1};

void retain_wrapper(Wrapper* w) {
  w->refs.fetch_add(1, std::memory_order_relaxed);
}

void release_wrapper(Wrapper* w) {
  if (w->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete w;
}

static void levels_changed() {
  current_level = t_levels.empty() ? 0 : t_levels.back().id;
  thread_state.batching = std::any_of(t_levels.begin(), t_levels.end(),
                                      [](const Level& l) { return l.kind == LevelKind::Vmap; });
}

uint32_t push_level(LevelKind kind, int64_t batch_size, Randomness randomness) {
  uint32_t id = g_next_level.fetch_add(1, std::memory_order_relaxed);
  t_levels.push_back(
      {id, kind, batch_size, randomness, thread_state.enabled_keys, thread_state.forward});
  levels_changed();
  return id;
}

uint32_t pop_level() {
  if (t_levels.empty()) return 0;
  uint32_t id = t_levels.back().id;
  t_levels.pop_back();
  levels_changed();
  return id;
}

const std::vector<Level>& live_levels() {
  return t_levels;
}

const Level* find_level(uint32_t id) {
  for (const Level& l : t_levels)
    if (l.id == id) return &l;
  return nullptr;
}

Modes modes_at(uint32_t level) {
  // The first level further inside that has modes of its own remembers ours.
  Modes m{thread_state.enabled_keys, thread_state.forward};
  bool keys = false, forward = false;
  for (const Level& l : t_levels) {
    if (l.id <= level) continue;
    if (l.kind == LevelKind::Grad && !keys) m.keys = l.keys_before, keys = true;
    if (l.kind == LevelKind::Jvp && !forward) m.forward = l.forward_before, forward = true;
  }
  return m;
}

static Tensor wrap_value(LevelKind kind, const Tensor& value, uint32_t level) {
  const size_t hidden = kind == LevelKind::Vmap ? 1 : 0;
  Tensor t = alias_tensor(value, value.sizes().subspan(hidden), value.strides().subspan(hidden),
                          value.offset());
  t->keys |= value->keys & (kKeyCuda | kKeyMeta);
  t->keys |= kKeyWrapped;
  auto* w = new Wrapper;
  w->level = level;
  w->kind = kind;
  w->value = value;
  t->wrapper = w;
  return t;
}

Tensor wrap_batched(const Tensor& value, uint32_t level) {
  return wrap_value(LevelKind::Vmap, value, level);
}

Tensor wrap_tracked(const Tensor& value, uint32_t level) {
  return wrap_value(LevelKind::Grad, value, level);
}

Tensor wrap_dual(const Tensor& value, const Tensor& tangent, uint32_t level) {
  Tensor t = wrap_value(LevelKind::Jvp, value, level);
  t->wrapper->tangent = tangent;
  return t;
}

Tensor strip_dead(const Tensor& t) {
  Tensor s = t;
  while (s.is_wrapped() && !find_level(s->wrapper->level)) s = s->wrapper->value;
  return s;
}

void become_wrapped(const Tensor& t, LevelKind kind, uint32_t level) {
  if (is_wrapped_at(t, level)) return;
  Tensor value = alias_tensor(t);
  value->flags = t->flags & uint8_t(~kOwnsPython);
  value->born = t->born;
  value->made_at = t->made_at;
  value->keys |= t->keys & kKeyGrad;
  value->autograd = std::exchange(t->autograd, nullptr);
  if (t->base) {
    Tensor base = Tensor::share(t->base);
    become_wrapped(base, kind, level);
    value->base = Tensor(base->wrapper->value).release();
  }
  if (t->wrapper) release_wrapper(t->wrapper);
  t->keys = uint8_t((t->keys | kKeyWrapped) & ~kKeyGrad);
  t->wrapper = new Wrapper;
  t->wrapper->level = level;
  t->wrapper->kind = kind;
  t->wrapper->value = value;
}

Tensor readable(const Tensor& t, const char* what) {
  if (!t.is_wrapped()) return t.is_lazy() ? op::clone(detach_tensor(t)) : t;
  if (t->wrapper->kind == LevelKind::Vmap && find_level(t->wrapper->level))
    runtime_error("vmap: It looks like you're calling ", what,
                  " on a Tensor. Inside of vmap it stands for a batch of values, so control flow "
                  "and Python numbers cannot depend on it. Please rewrite it with other "
                  "operations, such as facula.where().");
  return readable(t->wrapper->value, what);
}

void refresh_geometry(const Tensor& t) {
  const Wrapper& w = *t->wrapper;
  const size_t hidden = w.kind == LevelKind::Vmap ? 1 : 0;
  if (w.value->storage != t->storage) {
    w.value->storage->retain();
    t->storage->unref();
    t->storage = w.value->storage;
  }
  t->offset = w.value.offset();
  t->set_geometry(w.value.sizes().subspan(hidden), w.value.strides().subspan(hidden));
}

}  // namespace facula
