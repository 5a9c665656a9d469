#include "autograd/node.h"

#include <new>

#include "autograd/leaf_grad.h"
#include "autograd/node_names.h"
#include "autograd/node_streams.h"
#include "autograd/used_grads.h"
#include "core/host_allocator.h"
#include "core/sparse.h"
#include "op/lazy.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula {

std::unique_ptr<PackedTensor> (*pack_saved_tensor)(const Tensor&) = nullptr;
thread_local constinit int saved_tensor_hooks_active = 0;
std::string (*describe_location)(const SourceLocation&) = nullptr;
void (*release_node_metadata)(void*) = nullptr;

static std::atomic<uint64_t> g_sequence{0};

std::string location_text(const SourceLocation& where) {
  return where.code && describe_location ? describe_location(where) : std::string();
}

// ---- saved values

PackedTensor::~PackedTensor() {
  if (edge.node) edge.node->unref();
}

SavedValue& SavedValue::operator=(SavedValue&& o) noexcept {
  clear();
  value_ = o.value_;
  packed_ = std::move(o.packed_);
  version_ = o.version_;
  output_nr_ = o.output_nr_;
  output_ = o.output_;
  o.value_ = Value();
  return *this;
}

void SavedValue::clear() {
  switch (value_.tag()) {
    case Value::Tag::Tensor: Tensor::adopt(value_.tensor().impl()); break;
    case Value::Tag::Complex: delete value_.complex_pointer(); break;
    case Value::Tag::Ints: delete[] value_.ints().data(); break;
    case Value::Tag::Floats: delete[] value_.floats().data(); break;
    case Value::Tag::Tensors: delete[] value_.tensors().data(); break;
    case Value::Tag::String: delete[] value_.text().data(); break;
    default: break;
  }
  value_ = Value();
  packed_.reset();
}

void SavedValue::save_tensor(const Tensor& t) {
  version_ = t.version();
  if (saved_tensor_hooks_active > 0 && pack_saved_tensor) {
    packed_ = pack_saved_tensor(t);
    if (packed_) {
      // Unpacking gives data only; the way back into the graph is kept here.
      if (!output_ && requires_grad(t)) packed_->edge = gradient_edge(t);
      return;
    }
  }
  t->storage->saved_for_backward = true;
  // Of an argument, whether it had a history, which detach_() may take from it.
  if (!output_) output_nr_ = t->autograd && t->autograd->grad_fn;
  Tensor kept = t;
  value_ = Value(kept);
  kept.release();
}

template <class T>
static T* copy_array(std::span<const T> s) {
  T* p = new T[s.size() ? s.size() : 1];
  for (size_t i = 0; i < s.size(); ++i) p[i] = s[i];
  return p;
}

void SavedValue::save(const Value& v) {
  switch (v.tag()) {
    case Value::Tag::Tensor: save_tensor(v.tensor()); break;
    case Value::Tag::Ints: value_ = Value(IntSpan(copy_array(v.ints()), v.ints().size())); break;
    case Value::Tag::Floats:
      value_ = Value(std::span<const double>(copy_array(v.floats()), v.floats().size()));
      break;
    case Value::Tag::Tensors:
      value_ = Value(TensorSpan(copy_array(v.tensors()), v.tensors().size()));
      break;
    case Value::Tag::String: {
      auto s = v.text();
      value_ =
          Value(std::string_view(copy_array(std::span<const char>(s.data(), s.size())), s.size()));
      break;
    }
    case Value::Tag::Complex: value_ = Value::owned_complex(v.scalar().to_complex()); break;
    default: value_ = v;
  }
}

void SavedValue::save_output(const Tensor& t, uint32_t output_nr) {
  output_ = true;
  output_nr_ = output_nr;
  // Holding the output itself would be a cycle (output -> grad_fn -> output).
  save_tensor(alias_tensor(t));
}

void SavedValue::pack_again() {
  if (packed_)
    runtime_error(
        "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only "
        "one pair of hooks is allowed at a time.");
  if (value_.tag() != Value::Tag::Tensor)
    runtime_error("Calling register_hooks on a saved tensor with value None is forbidden");
  const Tensor t = value_.tensor();
  std::unique_ptr<PackedTensor> packed = pack_saved_tensor(t);
  if (!output_ && requires_grad(t)) packed->edge = gradient_edge(t);
  clear();
  packed_ = std::move(packed);
}

Value SavedValue::get(Node& owner, Tensor& holder) {
  if (owner.released)
    runtime_error(
        "Trying to backward through the graph a second time (or directly access saved "
        "tensors after they have already been freed). Saved intermediate values of the "
        "graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward. (node ",
        owner.name, ")");
  if (packed_) {
    holder = packed_->unpack();
    if (output_ || packed_->edge.node) {
      holder = alias_tensor(holder);
      if (output_) set_history(holder, NodeRef::share(&owner), output_nr_);
      else set_history(holder, NodeRef::share(packed_->edge.node), packed_->edge.input_nr);
    }
    return Value(holder);
  }
  if (value_.tag() != Value::Tag::Tensor) return value_;
  const Tensor& t = value_.tensor();
  if (t.version() != version_) {
    std::string where = location_text(owner.location),
                wrote = location_text(t->storage->last_write);
    runtime_error(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [",
        legacy_dtype_name(t.dtype()), "Tensor ", t.sizes(), "]",
        output_ ? text(", which is output ", output_nr_, " of ", owner.name)
                : text(", saved by ", owner.name),
        ", is at version ", t.version(), "; expected version ", version_, " instead.",
        where.empty() ? "" : text(" It was saved at ", where, "."),
        wrote.empty() ? "" : text(" It was overwritten at ", wrote, "."),
        t->storage->last_writer
            ? text(" The overwriting operation is ", t->storage->last_writer, "().")
            : "",
        " Write to a clone() there, or use the out-of-place form of the operation.");
  }
  if (output_) {
    holder = alias_tensor(t);
    set_history(holder, NodeRef::share(&owner), output_nr_);
    return Value(holder);
  }
  if (output_nr_ && grad_enabled() && !t->autograd->grad_fn)
    runtime_error(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(), for a "
        "derivative that is to be differentiated again. Use out-of-place .detach() instead.");
  return value_;
}

// ---- nodes

Node::Node(const char* n, Vjp f)
    : sequence(g_sequence.fetch_add(1, std::memory_order_relaxed)), name(n), apply(f) {
  if (streams_in_use.load(std::memory_order_relaxed)) [[unlikely]]
    note_streams(this);
}

Node* Node::make(const char* name, Vjp apply) {
  return new (host_allocate(sizeof(Node))) Node(name, apply);
}

uint64_t next_node() {
  return g_sequence.load(std::memory_order_relaxed);
}

void name_node(const Tensor& result, uint64_t since, const char* name) {
  if (!result.defined() || !result->autograd) return;
  Node* n = result->autograd->grad_fn.get();
  if (n && n->sequence >= since && !n->is_accumulator()) n->name = name;
}

Tensor unsafe_view(const Tensor& temporary, IntSpan size) {
  const uint64_t earlier = next_node();
  Tensor out = op::view(temporary, size);
  name_node(out, earlier, "UnsafeViewBackward0");
  if (!out.is_wrapped() && out->base) Tensor::adopt(std::exchange(out->base, nullptr));
  return out;
}

std::atomic<int64_t> finished_roots{0};

Node::~Node() {
  if (streams_in_use.load(std::memory_order_relaxed)) [[unlikely]]
    forget_streams(this);
  if (was_root) finished_roots.fetch_sub(1, std::memory_order_relaxed);
  if (release_extra) release_extra(this);
  if (metadata) release_node_metadata(metadata);
}

// Destroying a node frees saved tensors, which free nodes, and so on; the dead are queued
// instead of destroyed inside each other.
struct DeadNodes {
  Node* first = nullptr;
  bool draining = false;
};
static thread_local constinit DeadNodes t_dead;

static bool set_aside(Node* node);

static void destroy(Node* node) {
  node->~Node();
  host_free(node, sizeof(Node));
}

bool Node::try_retain() {
  uint32_t count = refs.load(std::memory_order_relaxed);
  while (count && !refs.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) {}
  return count != 0;
}

void Node::unref() {
  // Whoever holds the only reference need not count it down, unless a leaf may hand out more of
  // them meanwhile.
  const bool last = refs.load(std::memory_order_acquire) == 1 && !is_accumulator();
  if (!last && refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  DeadNodes& dead = t_dead;
  next_dead = dead.first;
  dead.first = this;
  if (dead.draining) return;
  dead.draining = true;
  while (Node* n = dead.first) {
    dead.first = n->next_dead;
    if (set_aside(n)) continue;
    for (Edge& e : n->edges)
      if (e.node) std::exchange(e.node, nullptr)->unref();
    destroy(n);
  }
  dead.draining = false;
}

NodeHooks& Node::ensure_hooks() {
  if (!hooks) hooks = std::make_unique<NodeHooks>();
  return *hooks;
}

void Node::set_edge(uint32_t i, const Tensor& t) {
  edges[i] = gradient_edge(t);
}

void Node::set_output(uint32_t i, const Tensor& t) {
  OutputMeta& m = outputs[i];
  m.sizes.assign(t.sizes());
  m.dtype = t.dtype();
  m.device = t.device();
}

void Node::release_saved() {
  // Shapes and options stay: a node that saved nothing else can be run again. A number that is the
  // other operand counts as a tensor: whether x * y can be run again does not depend on what y is.
  for (uint32_t k = 0; k < saved.size(); ++k) {
    SavedValue& s = saved[k];
    if (s.holds_tensor()) {
      released = true;
      s.clear();
    } else if (op && k < uint32_t(op->saved_arg_count) && s.holds_number() &&
               op->saved_args[k].index <= 1 && op->args[op->saved_args[k].index].operand) {
      released = true;
    }
  }
  if (release_saved_extra) {
    released = true;
    release_saved_extra(this);
  }
}

// ---- what a tensor knows

AutogradMeta& ensure_autograd(const Tensor& t) {
  if (!t->autograd) t->autograd = new (host_allocate(sizeof(AutogradMeta))) AutogradMeta;
  return *t->autograd;
}

AutogradMeta::~AutogradMeta() {
  if (retain_cell) *retain_cell = nullptr;
  if (idle_accumulator) destroy(idle_accumulator);
}

void release_autograd(AutogradMeta* meta) {
  meta->~AutogradMeta();
  host_free(meta, sizeof(AutogradMeta));
}

bool is_differentiable_dtype(DType d) {
  return category(d) >= Category::Floating;
}

// The tensor whose history counts: a tape level keeps its own, others have that of their value.
static const Tensor& tracked(const Tensor& t) {
  const Tensor* p = &t;
  while (p->is_wrapped() && (*p)->wrapper->kind != LevelKind::Grad) p = &(*p)->wrapper->value;
  return *p;
}

// Views whose history can be read off the base: of the same dtype, or the parts of complex numbers.
static bool follows_base(const Tensor& t, const TensorImpl* base) {
  return base->dtype == t.dtype() || (is_complex(base->dtype) && t.dtype() == to_real(base->dtype));
}

bool requires_grad(const Tensor& given) {
  const Tensor& t = tracked(given);
  if (t.needs_grad()) return true;
  TensorImpl* base = t->base;
  return base && base->keys & kKeyGrad && is_differentiable_dtype(t.dtype()) &&
         follows_base(t, base);
}

bool is_leaf(const Tensor& t) {
  return !grad_fn_of(t);
}

void set_requires_grad(const Tensor& given, bool on) {
  const Tensor& t = tracked(given);
  if (on && !t.is(given) && given->wrapper->kind == LevelKind::Vmap)
    runtime_error(
        "vmap: requires_grad_() inside of the function is not supported. Differentiate "
        "with facula.func.grad, or set it on the tensor outside.");
  if (on && !is_differentiable_dtype(t.dtype()))
    runtime_error(
        "Only Tensors of floating point and complex dtype can require gradients, but this "
        "one is ",
        t.dtype());
  if (!is_leaf(t)) {
    if (on) return;
    runtime_error(
        "you can only change requires_grad flags of leaf variables. If you want to use a "
        "computed variable in a subgraph that doesn't require differentiation use "
        "var_no_grad = var.detach().");
  }
  if (on && t->flags & kInference && !thread_state.inference)
    runtime_error(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!on && !t->autograd) return;
  ensure_autograd(t).requires_grad = on;
  t->keys = uint8_t(on ? t->keys | kKeyGrad : t->keys & ~kKeyGrad);
}

void set_history(const Tensor& t, NodeRef node, uint32_t output_nr) {
  AutogradMeta& m = ensure_autograd(t);
  m.grad_fn = std::move(node);
  m.output_nr = output_nr;
  m.view_version = t.version();
  t->keys |= kKeyGrad;
}

static void as_strided_vjp(Node& node, Tensor* grads, Tensor* out, uint64_t needs) {
  if (!(needs & 1) || !grads[0].defined()) return;
  Tensor h;
  auto ints = [&](int i) { return node.value(i, h).ints(); };
  Tensor grad = toggle_lazy(grads[0], uint8_t(node.value(6, h).to_int()));
  out[0] =
      op::as_strided_backward(grad, ints(0), ints(1), ints(2), ints(3), node.value(4, h).to_int());
  if (node.value(5, h).to_bool()) out[0] = op::view_as_complex(op::contiguous(out[0]));
}

void view_geometry(const Tensor& base, DType dtype, Dims& sizes, Dims& strides, int64_t& offset) {
  sizes.assign(base.sizes());
  strides.assign(base.strides());
  offset = base.offset();
  if (base.dtype() == dtype) return;
  for (int64_t& s : strides) s *= 2;
  offset *= 2;
  sizes.push_back(2);
  strides.push_back(1);
}

uint8_t lazy_keys_of(const Tensor& t) {
  return t.is_complex() ? uint8_t(kLazyKeys) : uint8_t(kKeyNeg);
}

NodeRef grad_fn_of(const Tensor& given) {
  const Tensor& t = tracked(given);
  AutogradMeta* m = t->autograd;
  TensorImpl* base = t->base;
  if (base && base->keys & kKeyGrad && is_differentiable_dtype(t.dtype()) &&
      follows_base(t, base)) {
    if (t->flags & kNoGradView) {
      if (m && m->grad_fn && m->view_version != t.version())
        runtime_error(
            "Output ", m->output_nr, " of ", m->grad_fn->name,
            " is a view and its base or another view of its base has been modified inplace. This "
            "view was made inside of a custom Function (because an input was returned as it is), "
            "or from a view that was made under no_grad, so its history is not known any more. "
            "Clone it before the write.");
    } else if (!m || !m->grad_fn || m->view_version != t.version()) {
      // The base was written to since: this view's history is now that of the new base.
      Tensor b = Tensor::share(base);
      NodeRef node(Node::make("AsStridedBackward0", as_strided_vjp));
      node->edges.allocate(1);
      node->set_edge(0, b);
      Dims sizes, strides;
      int64_t offset;
      view_geometry(b, t.dtype(), sizes, strides, offset);
      node->saved.allocate(7);
      node->saved[0].save(Value(sizes));
      node->saved[1].save(Value(strides));
      node->saved[2].save(Value(t.sizes()));
      node->saved[3].save(Value(t.strides()));
      node->saved[4].save(Value(t.offset() - offset));
      node->saved[5].save(Value(b.dtype() != t.dtype()));
      node->saved[6].save(Value(int64_t((b->keys ^ t->keys) & lazy_keys_of(t))));
      node->outputs.allocate(1);
      node->set_output(0, t);
      const NodeRef before = m ? m->grad_fn : NodeRef();
      set_history(t, std::move(node), 0);
      m = t->autograd;
      if (m->retain_cell) attach_retain_hook(t, before.get());
    }
  }
  return m ? m->grad_fn : NodeRef();
}

Tensor detach_tensor(const Tensor& t) {
  if (!t.is_wrapped()) return alias_tensor(t);
  // From all tapes, and without a tangent.
  const Wrapper& w = *t->wrapper;
  Tensor value = detach_tensor(w.value);
  switch (w.kind) {
    case LevelKind::Vmap: return wrap_batched(value, w.level);
    case LevelKind::Grad: return wrap_tracked(value, w.level);
    case LevelKind::Jvp: return wrap_dual(value, Tensor(), w.level);
  }
  return value;
}

// ---- leaves

// A gradient has the layout of its leaf where that fills its memory, otherwise it is contiguous.
static Tensor laid_out_like(const Tensor& variable, const Tensor& grad) {
  if (is_sparse(grad) || grad.is_wrapped() || same(grad.strides(), variable.strides()))
    return op::clone(grad);
  if (variable.is_contiguous() || !non_overlapping_and_dense(variable.sizes(), variable.strides()))
    return op::clone(grad, MemoryFormat::Contiguous);
  return op::copy_(empty_tensor(grad.sizes(), variable.strides(), grad.dtype(), grad.device()),
                   grad);
}

static void accumulate(const Tensor& variable, AutogradMeta& m, Tensor grad) {
  const Tensor before = load_grad(m);
  if (m.used_grad) note_accumulation(m, before);
  if (!before.defined()) {
    bool steal = !grad_enabled() && !grad.is_lazy() && grad->refs.load() == 1 &&
                 grad->storage->refs.load() == 1 &&
                 (same(grad.strides(), variable.strides()) ||
                  (grad.is_contiguous() && variable.is_contiguous()));
    store_grad(m, steal ? std::move(grad)
                        : laid_out_like(variable, grad_enabled() ? grad : detach_tensor(grad)));
  } else if (grad_enabled() || is_sparse(before)) {
    store_grad(m, before + (grad_enabled() ? grad : detach_tensor(grad)));
  } else {
    op::add_(before, detach_tensor(grad));
  }
}

static void accumulate_vjp(Node& node, Tensor* grads, Tensor*, uint64_t) {
  Tensor variable = Tensor::share(static_cast<TensorImpl*>(node.extra));
  if (!grads[0].defined()) return;
  AutogradMeta& m = ensure_autograd(variable);
  Tensor grad = std::move(grads[0]);
  // A leaf that was frozen after the graph was made keeps the gradient that it has.
  if (requires_grad(variable)) accumulate(variable, m, std::move(grad));
  for (auto& hook : std::vector<std::shared_ptr<GradHook>>(m.accumulate_hooks))
    hook->run({&variable, 1});
}

static void release_accumulator(Node* node) {
  if (!node->extra) return;  // it was idle
  Tensor variable = Tensor::adopt(static_cast<TensorImpl*>(node->extra));
  AutogradMeta& m = *variable->autograd;
  MetaLock guard(m);
  if (m.accumulator == node) m.accumulator = nullptr;
}

// Programs build a graph over the same leaves again and again: a leaf keeps its accumulator, unless
// somebody attached something to it, which goes when nothing refers to the node.
static bool set_aside(Node* node) {
  if (node->release_extra != release_accumulator || node->hooks || node->metadata || node->python)
    return false;
  Tensor variable = Tensor::adopt(static_cast<TensorImpl*>(node->extra));
  AutogradMeta& m = *variable->autograd;
  bool kept;
  {
    MetaLock guard(m);
    kept = m.accumulator == node && !m.idle_accumulator;
    if (kept) {
      m.accumulator = nullptr;
      m.idle_accumulator = node;
      node->extra = nullptr;
    }
  }
  if (!kept) variable.release();  // still the node's
  return kept;
}

static Node* accumulator_of(const Tensor& t) {
  AutogradMeta& m = ensure_autograd(t);
  MetaLock guard(m);
  Node* n = m.accumulator;
  if (!n || !n->try_retain()) {
    n = std::exchange(m.idle_accumulator, nullptr);
    if (n) {
      n->refs.store(1, std::memory_order_relaxed);
    } else {
      n = Node::make("AccumulateGrad", accumulate_vjp);
      n->sequence = Node::kAccumulator;
      n->outputs.allocate(1);
      n->release_extra = release_accumulator;
    }
    n->set_output(0, t);
    n->outputs[0].dtype = grad_dtype_of(t);
    Tensor kept = t;
    n->extra = kept.release();
    m.accumulator = n;
  }
  return n;
}

DType grad_dtype_of(const Tensor& leaf) {
  const AutogradMeta* m = leaf->autograd;
  if (!m || (m->grad_dtype == DType::None && !m->any_grad_dtype)) return leaf.dtype();
  return m->grad_dtype;
}

void set_grad_dtype(const Tensor& leaf, DType dtype) {
  AutogradMeta& m = ensure_autograd(leaf);
  MetaLock guard(m);
  m.grad_dtype = dtype;
  m.any_grad_dtype = dtype == DType::None;
  if (m.accumulator) m.accumulator->outputs[0].dtype = dtype;  // of graphs that exist
}

void forget_accumulator(const Tensor& t) {
  if (!t->autograd) return;
  MetaLock guard(*t->autograd);
  t->autograd->accumulator = nullptr;
}

Edge gradient_edge(const Tensor& given) {
  if (!given.defined()) return {};
  const Tensor& t = tracked(given);
  if (NodeRef fn = grad_fn_of(t)) return {fn.release(), t->autograd->output_nr};
  if (!t.needs_grad()) return {};
  return {accumulator_of(t), 0};
}

namespace {
struct RetainHook : GradHook {
  explicit RetainHook(std::shared_ptr<TensorImpl*> c) : cell(std::move(c)) {}
  void run(std::span<Tensor> grads) override {
    // The tensor may be gone while its grad_fn lives on in the graph; the cell is empty then.
    if (!*cell || !grads[0].defined()) return;
    AutogradMeta& m = *(*cell)->autograd;
    const Tensor before = load_grad(m);
    store_grad(m, before.defined() ? before + grads[0] : op::clone(grads[0]));
  }
  std::shared_ptr<TensorImpl*> cell;
};
}  // namespace

void attach_retain_hook(const Tensor& t, Node* before) {
  AutogradMeta& m = *t->autograd;
  if (before && before->hooks)
    std::erase_if(before->hooks->retain_hooks, [&](NodeHooks::OfOutput& h) {
      return static_cast<RetainHook*>(h.hook.get())->cell == m.retain_cell;
    });
  m.grad_fn->ensure_hooks().retain_hooks.push_back(
      {m.output_nr, std::make_shared<RetainHook>(m.retain_cell)});
}

void retain_grad(const Tensor& t) {
  if (!requires_grad(t)) runtime_error("can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf(t)) return;
  AutogradMeta& m = *t->autograd;
  if (m.retain_cell) return;
  m.retain_cell = std::make_shared<TensorImpl*>(t.impl());
  attach_retain_hook(t, nullptr);
}

}  // namespace facula
