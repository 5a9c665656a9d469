// Iterative and single-threaded per call: nodes are run latest first from a heap, so the order,
// and with it every rounding, is the same each time. Several threads may run backward at once;
// each has its own task, and leaves are accumulated one at a time.
#include "autograd/engine.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "autograd/node_streams.h"
#include "core/sparse.h"
#include "op/elementwise.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/profiler.h"
#include "op/tensor_operators.h"

namespace facula {

thread_local constinit bool anomaly_mode = false;
thread_local constinit bool anomaly_check_nan = true;
thread_local constinit Node* current_node = nullptr;
void (*keep_traceback)(Node*) = nullptr;
std::string (*traceback_text)(Node*) = nullptr;

namespace {

struct Pending {
  Node* node;
  uint32_t dependencies = 0;
  bool needed = true;          // an asked-for input is reachable from here
  int32_t first_capture = -1;  // into Task::captures
  uint32_t slot = 0;           // first of its gradients in Task::grads
};

struct Capture {
  uint32_t output, input;
  int32_t next;
};

// Open addressing from node to its Pending; twice the nodes, rounded to a power of two.
class NodeMap {
 public:
  Pending* find(Node* n) {
    if (table_.empty()) return nullptr;
    for (size_t i = hash(n);; i = (i + 1) & mask_) {
      if (table_[i] == 0) return nullptr;
      if (items_[table_[i] - 1].node == n) return &items_[table_[i] - 1];
    }
  }
  Pending& insert(Node* n) {
    if (2 * (items_.size() + 1) > table_.size()) grow();
    size_t i = hash(n);
    while (table_[i]) i = (i + 1) & mask_;
    items_.push_back({n});
    table_[i] = uint32_t(items_.size());
    return items_.back();
  }
  std::vector<Pending>& items() { return items_; }

 private:
  size_t hash(Node* n) const {
    return (reinterpret_cast<uintptr_t>(n) * 0x9E3779B97F4A7C15ull >> 32) & mask_;
  }
  void grow() {
    size_t size = std::max<size_t>(64, table_.size() * 2);
    table_.assign(size, 0);
    mask_ = size - 1;
    for (size_t k = 0; k < items_.size(); ++k) {
      size_t i = hash(items_[k].node);
      while (table_[i]) i = (i + 1) & mask_;
      table_[i] = uint32_t(k + 1);
    }
  }
  std::vector<uint32_t> table_;
  std::vector<Pending> items_;
  size_t mask_ = 0;
};

void add_into(Tensor& slot, Tensor grad, bool create_graph) {
  if (!slot.defined()) {
    slot = std::move(grad);
  } else if (!create_graph && !is_sparse(slot) && slot->refs.load() == 1 &&
             slot->storage->refs.load() == 1 && !slot.needs_grad() &&
             slot.dtype() == grad.dtype() && !has_internal_overlap(slot.sizes(), slot.strides())) {
    op::add_(slot, grad);
  } else {
    slot = slot + grad;
  }
}

bool has_nan(const Tensor& t) {
  return is_differentiable_dtype(t.dtype()) && !t.is_meta() &&
         item_of(op::any(op::isnan(t))).to<bool>();
}

std::recursive_mutex g_leaf_mutex;  // .grad of a leaf shared by several backward passes

std::atomic<int64_t> g_passes{0};

class Task {
 public:
  Task(std::span<const Edge> inputs, const BackwardOptions& options)
      : number(g_passes++),
        options_(options),
        result_(inputs.size()),
        selective_(!inputs.empty()) {}

  const int64_t number;
  std::vector<std::function<void()>> at_end;
  bool selective() const { return selective_; }
  bool will_run(Node* n) {
    Pending* p = map_.find(n);
    return p && (p->needed || p->first_capture >= 0);
  }

  void plan(std::span<const Edge> roots, std::span<const Edge> inputs) {
    // Depth first, children before parents, so that `needed` can be settled in one pass.
    std::vector<std::pair<Node*, uint32_t>> stack;
    std::vector<Node*> postorder;
    auto visit = [&](Node* n) {
      if (!n || map_.find(n)) return;
      map_.insert(n);
      stack.push_back({n, 0});
    };
    for (const Edge& root : roots) {
      visit(root.node);
      while (!stack.empty()) {
        Node* n = stack.back().first;
        uint32_t i = stack.back().second;
        if (i < n->edges.size()) {
          ++stack.back().second;
          Node* child = n->edges[i].node;
          if (!child) continue;
          visit(child);
          ++map_.find(child)->dependencies;
        } else {
          stack.pop_back();
          if (selective_) postorder.push_back(n);
        }
      }
    }
    if (selective_) {
      for (Pending& p : map_.items()) p.needed = false;
      for (uint32_t i = 0; i < inputs.size(); ++i) {
        Pending* p = inputs[i].node ? map_.find(inputs[i].node) : nullptr;
        if (!p) continue;
        captures_.push_back({inputs[i].input_nr, i, p->first_capture});
        p->first_capture = int32_t(captures_.size() - 1);
      }
      for (Node* n : postorder) {
        Pending* p = map_.find(n);
        for (const Edge& e : n->edges)
          if (e.node) {
            Pending* child = map_.find(e.node);
            if (child->needed || child->first_capture >= 0) p->needed = true;
          }
      }
    }
    uint32_t slots = 0;
    for (Pending& p : map_.items()) {
      p.slot = slots;
      slots += p.node->outputs.size();
    }
    grads_.resize(slots);
  }

  void run(std::span<const Edge> roots, std::span<const Tensor> root_grads) {
    for (size_t i = 0; i < roots.size(); ++i) {
      Pending* p = map_.find(roots[i].node);
      give(root_grads[i], roots[i].node, grads_[p->slot + roots[i].input_nr]);
    }
    for (const Edge& root : roots) {
      Pending* p = map_.find(root.node);
      if (p->dependencies == 0) {
        p->dependencies = UINT32_MAX;  // queued: a node that is a root twice runs once
        push(root.node);
      }
    }
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), earlier);
      Node* n = ready_.back();
      ready_.pop_back();
      step(n);
    }
  }

  std::vector<Tensor> take_result() { return std::move(result_); }
  void return_to_caller() { streams_.restore(); }

 private:
  static bool earlier(Node* a, Node* b) { return a->sequence < b->sequence; }
  void push(Node* n) {
    ready_.push_back(n);
    std::push_heap(ready_.begin(), ready_.end(), earlier);
  }

  // Adds a gradient to those that wait for a node, on the node's stream.
  void give(Tensor grad, Node* to, Tensor& slot) {
    if (!streams_.on()) return add_into(slot, std::move(grad), options_.create_graph);
    streams_.pass(grad, to);
    add_into(slot, std::move(grad), options_.create_graph);
    streams_.leave();
  }

  // Of the tensors that the node made: they see and change the gradients that are asked for.
  void run_tensor_hooks(Node* n, Tensor* grads) {
    NodeHooks* hooks = n->hooks.get();
    if (!hooks) return;
    // Copies: a hook may add or remove hooks.
    for (auto h : std::vector<NodeHooks::OfOutput>(hooks->tensor_hooks))
      if (grads[h.output].defined()) h.hook->run({grads + h.output, 1});
    for (auto h : std::vector<NodeHooks::OfOutput>(hooks->retain_hooks))
      h.hook->run({grads + h.output, 1});
  }

  // Of the node itself: what it is about to work with.
  void run_pre_hooks(Node* n, Tensor* grads) {
    if (!n->hooks) return;
    for (auto h : std::vector<std::shared_ptr<GradHook>>(n->hooks->pre_hooks))
      h->run({grads, shown_outputs(*n)});
  }

  // Operators read a mean's gradient as one element that is repeated; a program may write to it.
  static void write_out(Tensor& grad) {
    if (!grad.defined() || !grad->base || !(grad->base->flags & kSpreadGrad)) return;
    if (has_internal_overlap(grad.sizes(), grad.strides())) grad = op::contiguous(grad);
  }

  void step(Node* n) {
    Pending* p = map_.find(n);
    const uint32_t outputs = n->outputs.size(), edges = n->edges.size();
    // Taken out of the buffer: what the node does not keep is freed when it has run.
    Tensor in_small[4], out_small[8];
    std::vector<Tensor> in_large, out_large;
    Tensor* in = in_small;
    Tensor* out = out_small;
    if (outputs > 4) {
      in_large.resize(outputs);
      in = in_large.data();
    }
    if (edges > 8) {
      out_large.resize(edges);
      out = out_large.data();
    }
    bool any = false;
    for (uint32_t i = 0; i < outputs; ++i) {
      in[i] = std::move(grads_[p->slot + i]);
      any |= in[i].defined();
    }
    current_node = n;
    if (streams_.on()) streams_.enter(n);
    GradGuard mode(options_.create_graph);
    const bool leaf = n->is_accumulator();
    const bool hooked = n->hooks || (leaf && n->extra && !leaf_hooks(n).empty());
    if (hooked || p->first_capture >= 0 || (!leaf && !n->op))
      for (uint32_t i = 0; i < outputs; ++i) write_out(in[i]);
    if (leaf && any && n->extra)
      for (auto h : std::vector<std::shared_ptr<GradHook>>(leaf_hooks(n))) h->run({in, 1});
    if (any) run_tensor_hooks(n, in);
    for (int32_t c = p->first_capture; c >= 0; c = captures_[c].next) {
      result_[captures_[c].input] = in[captures_[c].output];
      if (streams_.on()) streams_.give_to_caller(in[captures_[c].output]);
    }

    bool runs = !selective_ || p->needed || (leaf && options_.accumulate && p->first_capture >= 0);
    std::optional<ProfiledRange> range;
    if (profiling.load(std::memory_order_relaxed))
      range.emplace(std::string("autograd::engine::evaluate_function: ") + n->name);
    if (runs && any) run_pre_hooks(n, in);
    if (runs && (any || !n->op)) {  // a custom Function may make something of missing gradients
      uint64_t needs = 0;
      for (uint32_t i = 0; i < edges; ++i) {
        Node* next = n->edges[i].node;
        if (!next) continue;
        Pending* q = map_.find(next);
        if (!selective_ || q->needed || q->first_capture >= 0)
          needs |= uint64_t(1) << std::min(i, 63u);
      }
      std::vector<Tensor> seen;
      if (n->hooks && !n->hooks->post_hooks.empty()) seen.assign(in, in + shown_outputs(*n));
      if (leaf) {
        std::lock_guard<std::recursive_mutex> guard(g_leaf_mutex);
        n->apply(*n, in, out, needs);
      } else {
        try {
          n->apply(*n, in, out, needs);
        } catch (Error& e) {
          if (anomaly_mode) report_anomaly(n);
          e.name_operator(n->name);
          throw;
        } catch (...) {
          if (anomaly_mode) report_anomaly(n);
          throw;
        }
      }
      if (n->hooks && !n->hooks->post_hooks.empty()) {
        for (uint32_t i = 0; i < edges; ++i) write_out(out[i]);
        for (auto h : std::vector<std::shared_ptr<PostHook>>(n->hooks->post_hooks))
          h->run({out, edges}, seen);
      }
      if (anomaly_mode && anomaly_check_nan)
        for (uint32_t i = 0; i < edges; ++i)
          if (out[i].defined() && has_nan(out[i])) {
            report_anomaly(n);
            runtime_error("Function '", n->name, "' returned nan values in its ", i, "th output.");
          }
    }
    if (!options_.keep_graph && runs && !leaf) n->release_saved();
    for (uint32_t i = 0; i < outputs; ++i) in[i].reset();

    for (uint32_t i = 0; i < edges; ++i) {
      const Edge e = n->edges[i];
      if (!e.node) continue;
      Pending* q = map_.find(e.node);
      if (out[i].defined() && (!selective_ || q->needed || q->first_capture >= 0)) {
        Tensor g = validate_gradient(e.node->outputs[e.input_nr], std::move(out[i]), n->name, i);
        give(std::move(g), e.node, grads_[q->slot + e.input_nr]);
      }
      if (--q->dependencies == 0) push(e.node);
    }
  }

  static std::vector<std::shared_ptr<GradHook>>& leaf_hooks(Node* n) {
    return static_cast<TensorImpl*>(n->extra)->autograd->hooks;
  }

  static void report_anomaly(Node* n) {
    std::string trace = traceback_text ? traceback_text(n) : "";
    if (!warn) return;
    if (trace.empty())
      warn(text("Error detected in ", n->name,
                ". No forward pass information available. Enable detect anomaly "
                "during forward pass for more information.")
               .c_str());
    else
      warn(text("Error detected in ", n->name,
                ". Traceback of forward call that caused the error:\n", trace)
               .c_str());
  }

  const BackwardOptions& options_;
  std::vector<Tensor> result_;
  bool selective_;
  NodeMap map_;
  std::vector<Tensor> grads_;
  std::vector<Capture> captures_;
  std::vector<Node*> ready_;
  PassStreams streams_;
};

}  // namespace

static thread_local constinit Task* t_task = nullptr;

int64_t current_pass() {
  return t_task ? t_task->number : -1;
}
bool pass_will_run(Node* node) {
  if (!t_task)
    runtime_error("_will_engine_execute_node: this can only be called during a backward pass");
  return t_task->will_run(node);
}
bool pass_accumulates_everywhere() {
  return !t_task || !t_task->selective();
}
void when_pass_ends(std::function<void()> f) {
  if (!t_task) runtime_error("Final callbacks can only be installed during backward pass.");
  t_task->at_end.push_back(std::move(f));
}

uint32_t shown_outputs(const Node& node) {
  uint32_t count = node.outputs.size();
  if (!node.op) return count;
  const uint32_t marks = node.op->flags & kOpListResult ? 0u : node.op->nondifferentiable_rets;
  while (count > 1 &&
         (marks >> (count - 1) & 1 || !is_differentiable_dtype(node.outputs[count - 1].dtype)))
    --count;
  return count;
}

Tensor validate_gradient(const OutputMeta& meta, Tensor grad, const char* producer,
                         uint32_t index) {
  if (!same(grad.sizes(), meta.sizes)) {
    if (!is_expandable(meta.sizes, grad.sizes()))
      runtime_error("Function ", producer, " returned an invalid gradient at index ", index,
                    " - got ", grad.sizes(), " but expected shape compatible with ",
                    IntSpan(meta.sizes));
    grad = op::sum_to_size(grad, meta.sizes);
  }
  if (grad.dtype() != meta.dtype && meta.dtype != DType::None) {
    if (grad.is_complex() && !is_complex(meta.dtype)) grad = op::real(grad);
    if (grad.dtype() != meta.dtype) grad = op::_to_copy(grad, meta.dtype);
  }
  if (grad.device() != meta.device) {
    // Only copies between devices, and numbers, cross them.
    constexpr std::string_view kCopies[] = {"ToCopyBackward0", "CopyBackwards", "CopySlices"};
    if (grad.dim() != 0 && std::ranges::find(kCopies, producer) == std::end(kCopies))
      runtime_error("Function ", producer, " returned a gradient on device ", grad.device(),
                    " but expected ", meta.device);
    grad = op::_to_copy(grad, grad.dtype(), meta.device);
  }
  return grad;
}

std::vector<Tensor> run_backward(std::span<const Edge> roots, std::span<const Tensor> grads,
                                 std::span<const Edge> inputs, const BackwardOptions& options) {
  Task task(inputs, options);
  struct Restore {  // backward may run inside backward
    Node* node = current_node;
    Task* outer = t_task;
    ~Restore() {
      current_node = node;
      t_task = outer;
    }
  } restore;
  t_task = &task;
  task.plan(roots, inputs);
  task.run(roots, grads);
  task.return_to_caller();
  for (size_t i = 0; i < task.at_end.size(); ++i) task.at_end[i]();  // may add more
  return task.take_result();
}

}  // namespace facula
