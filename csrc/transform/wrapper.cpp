#include "transform/wrapper.h"

#include <algorithm>
#include <atomic>

#include "autograd/node.h"
#include "core/per_thread.h"
#include "core/sparse.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"

namespace facula {

namespace {

struct ThreadLevels {
  std::deque<Level> list;  // references survive a push
};
std::deque<Level>& levels() {
  return per_thread<ThreadLevels>().list;
}

}  // namespace

static std::atomic<uint32_t> g_next_level{1};

void retain_wrapper(Wrapper* w) {
  w->refs.fetch_add(1, std::memory_order_relaxed);
}

void release_wrapper(Wrapper* w) {
  if (w->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete w;
}

uint32_t innermost_vmap() {
  const std::deque<Level>& list = levels();
  for (size_t i = list.size(); i-- > 0;)
    if (list[i].kind == LevelKind::Vmap && !list[i].hidden) return list[i].id;
  return 0;
}

static void levels_changed() {
  current_level = levels().empty() ? 0 : levels().back().id;
  thread_state.batching = innermost_vmap() != 0;
}

void hide_levels(uint32_t from, bool hide) {
  for (Level& l : levels())
    if (l.id >= from) l.hidden += hide ? 1 : -1;
  levels_changed();
}

uint32_t push_level(LevelKind kind, int64_t batch_size, Randomness randomness) {
  uint32_t id = g_next_level.fetch_add(1, std::memory_order_relaxed);
  levels().push_back(
      {id, kind, batch_size, randomness, thread_state.enabled_keys, thread_state.forward, 0});
  levels_changed();
  return id;
}

uint32_t pop_level() {
  std::deque<Level>& list = levels();
  if (list.empty()) return 0;
  uint32_t id = list.back().id;
  list.pop_back();
  levels_changed();
  return id;
}

const std::deque<Level>& live_levels() {
  return levels();
}

const Level* find_level(uint32_t id) {
  for (const Level& l : levels())
    if (l.id == id) return &l;
  return nullptr;
}

Modes modes_outside(const Level& level) {
  Modes m{thread_state.enabled_keys, thread_state.forward};
  if (level.kind == LevelKind::Grad) m.keys &= level.keys_before;
  if (level.kind == LevelKind::Jvp) m.forward &= level.forward_before;
  return m;
}

Modes modes_at(uint32_t level) {
  Modes m{thread_state.enabled_keys, thread_state.forward};
  for (const Level& l : levels()) {
    if (l.id <= level) continue;
    if (l.kind == LevelKind::Grad) m.keys &= l.keys_before;
    if (l.kind == LevelKind::Jvp) m.forward &= l.forward_before;
  }
  return m;
}

static Tensor wrap_value(LevelKind kind, const Tensor& value, uint32_t level) {
  if (is_sparse(value))
    fail(ErrorKind::NotImplemented,
         "function transforms (vmap, grad, jvp ...) take no tensors of layout facula.",
         layout_name(layout_of(value)), "; use .to_dense()");
  const size_t hidden = kind == LevelKind::Vmap ? 1 : 0;
  Tensor t = alias_tensor(value, value.sizes().subspan(hidden), value.strides().subspan(hidden),
                          value.offset());
  t->keys |= value->keys & (kKeyCuda | kKeyMeta);
  t->keys |= kKeyWrapped;
  // Tensors of inference mode may be differentiated by transforms, whose tapes end with them.
  if (kind != LevelKind::Vmap) t->flags &= uint8_t(~kInference);
  auto* w = new Wrapper;
  w->level = level;
  w->kind = kind;
  w->value = value;
  t->wrapper = w;
  return t;
}

bool is_wrapped_by(const Tensor& t, LevelKind kind) {
  for (const Tensor* p = &t; p->defined() && p->is_wrapped(); p = &(*p)->wrapper->value)
    if ((*p)->wrapper->kind == kind) return true;
  return false;
}

bool is_followed(const Tensor& t) {
  if (is_wrapped_by(t, LevelKind::Jvp)) return true;
  if (!grad_enabled()) return false;
  for (const Tensor* p = &t; p->defined(); p = &(*p)->wrapper->value) {
    if (p->needs_grad()) return true;
    if (!p->is_wrapped()) break;
  }
  return false;
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

static Tensor wrap_at(const Tensor& value, const Level& level) {
  switch (level.kind) {
    case LevelKind::Vmap: return wrap_batched(value, level.id);
    case LevelKind::Grad: return wrap_tracked(value, level.id);
    case LevelKind::Jvp: return wrap_dual(value, Tensor(), level.id);
  }
  return value;
}

static bool has_level(const Tensor& t, uint32_t level) {
  for (const Tensor* p = &t; p->is_wrapped(); p = &(*p)->wrapper->value)
    if ((*p)->wrapper->level == level) return true;
  return false;
}

// `above`: how many wrappers share the memory of `t` further in.
static bool become_batched(const Tensor& t, const std::vector<uint32_t>& levels, uint32_t above) {
  Tensor root = t->base ? Tensor::share(t->base) : t;
  const uint32_t outer = level_of(t);
  if (level_of(root) != outer) return false;
  std::vector<uint32_t> added, below;
  Dims batch;
  bool lacks = false;
  for (uint32_t id : levels) {
    const Level& level = *find_level(id);
    if (id <= outer) {
      if (id < outer) below.push_back(id);
      lacks |= level.kind == LevelKind::Vmap && !has_level(t, id);
      continue;
    }
    if (level.kind != LevelKind::Jvp && t->born < id) return false;
    if (level.kind == LevelKind::Vmap) batch.push_back(level.batch_size);
    added.push_back(id);
  }
  if (lacks) {
    if (!become_batched(t->wrapper->value, below, above + 1)) return false;
    refresh_geometry(t);
    if (t->base) refresh_geometry(root);
  }
  if (batch.empty()) return lacks;
  uint32_t layers = above + 1;
  for (const Tensor* x : std::initializer_list<const Tensor*>{&t, &root}) {
    layers = above + 1;
    for (; x->is_wrapped(); x = &(*x)->wrapper->value, ++layers)
      if ((*x)->autograd || (*x)->wrapper->tangent.defined()) return false;
    if ((*x)->autograd) return false;
  }
  if (t->storage->refs.load() != layers * (t->base ? 2 : 1) || root.dtype() != t.dtype() ||
      !non_overlapping_and_dense(root.sizes(), root.strides()))
    return false;
  // The copies keep the strides, so that a view of them has the geometry that `t` has in `root`.
  const size_t rank = root.sizes().size(), front = batch.size();
  Dims order(rank), back(front + rank), sizes(batch), strides;
  for (size_t i = 0; i < rank; ++i) order[i] = int64_t(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return root.strides()[size_t(a)] > root.strides()[size_t(b)];
  });
  for (size_t i = 0; i < front; ++i) back[i] = int64_t(i);
  for (size_t i = 0; i < rank; ++i) back[front + size_t(order[i])] = int64_t(front + i);
  for (int64_t d : order) sizes.push_back(root.sizes()[size_t(d)]);
  GradGuard on(true);  // the views made here are as good as others
  Tensor base = op::permute(
      op::clone(op::expand(op::permute(root, order), sizes), MemoryFormat::Contiguous), back);
  Tensor view = base;
  if (t->base) {
    sizes = batch;
    for (int64_t s : t.sizes()) sizes.push_back(s);
    for (size_t i = 0; i < front; ++i) strides.push_back(base.strides()[i]);
    for (int64_t s : t.strides()) strides.push_back(s);
    view = op::as_strided(base, sizes, strides, base.offset() + t.offset() - root.offset());
  }
  for (uint32_t id : added) {
    base = wrap_at(base, *find_level(id));
    view = t->base ? wrap_at(view, *find_level(id)) : base;
    base->born = view->born = t->born;
    if (t->base) view->base = Tensor(base).release();
  }
  auto replace = [](const Tensor& x, const Tensor& by) {
    retain_wrapper(by->wrapper);
    if (x->wrapper) release_wrapper(x->wrapper);
    x->wrapper = by->wrapper;
    x->keys |= kKeyWrapped;
    refresh_geometry(x);
  };
  replace(root, base);
  if (t->base) replace(t, view);
  return true;
}

bool become_batched(const Tensor& t, const std::vector<uint32_t>& levels) {
  return become_batched(t, levels, 0);
}

static bool is_batch(const Tensor& t) {
  return t->wrapper->kind == LevelKind::Vmap && find_level(t->wrapper->level);
}

void refuse_branch(const Tensor& t) {
  if (!t.is_wrapped()) return;
  if (is_batch(t))
    runtime_error(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
        "flow. Inside of vmap it stands for a batch of values, each of which may want another "
        "branch. Please rewrite it with other operations, such as facula.where().");
  refuse_branch(t->wrapper->value);
}

Tensor readable(const Tensor& t, const char* what) {
  if (is_sparse(t))
    type_error(what, ": a tensor of layout facula.", layout_name(layout_of(t)),
               " has no memory of its own; use .to_dense() first");
  if (!t.is_wrapped()) return t.is_lazy() ? op::clone(detach_tensor(t)) : t;
  if (is_batch(t))
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
