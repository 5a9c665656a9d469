// The tape: nodes with edges, saved values and hooks, and what a tensor knows of its history.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "op/def.h"

namespace facula {

struct Edge {
  Node* node = nullptr;  // owned by the node that has the edge
  uint32_t input_nr = 0;
};

// What the gradient of an output must look like: gradients are summed, cast and checked against it.
struct OutputMeta {
  Dims sizes;
  DType dtype = DType::Float32;  // None: as it comes
  Device device;
};

// Callables attached from Python (or C++). Each may change the gradients in place in the span.
struct GradHook {
  virtual ~GradHook() = default;
  virtual void run(std::span<Tensor> grads) = 0;
};
struct PostHook {
  virtual ~PostHook() = default;
  virtual void run(std::span<Tensor> grad_inputs, std::span<const Tensor> grad_outputs) = 0;
};

struct NodeHooks {
  struct OfOutput {
    uint32_t output;
    std::shared_ptr<GradHook> hook;
  };
  std::vector<OfOutput> tensor_hooks;                // run first, each on one gradient
  std::vector<std::shared_ptr<GradHook>> pre_hooks;  // run last, where the node is run
  std::vector<OfOutput> retain_hooks;                // after all other hooks of the tensor
  std::vector<std::shared_ptr<PostHook>> post_hooks;
};

// What saved_tensors_hooks put in the place of a tensor.
struct PackedTensor {
  virtual ~PackedTensor();
  virtual Tensor unpack() = 0;
  Edge edge;  // owned: where gradients of the saved tensor go
};
extern std::unique_ptr<PackedTensor> (*pack_saved_tensor)(const Tensor&);
extern thread_local constinit int saved_tensor_hooks_active;  // pack only when positive

// An owned copy of an argument or result that a derivative needs.
class SavedValue {
 public:
  SavedValue() = default;
  SavedValue(SavedValue&& o) noexcept { *this = std::move(o); }
  SavedValue& operator=(SavedValue&& o) noexcept;
  ~SavedValue() {
    if (value_.tag() != Value::Tag::None || packed_) clear();
  }

  void save(const Value& v);                              // an argument
  void save_output(const Tensor& t, uint32_t output_nr);  // without a cycle through its grad_fn
  void clear();
  Value get(Node& owner, Tensor& holder);  // `holder` keeps an unpacked tensor alive
  void pack_again();                       // with the hooks that are active now
  bool holds_number() const { return value_.is_number(); }
  bool holds_tensor() const {
    return packed_ || value_.tag() == Value::Tag::Tensor || value_.tag() == Value::Tag::Tensors;
  }

 private:
  void save_tensor(const Tensor& t);
  Value value_;
  std::unique_ptr<PackedTensor> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool output_ = false;
};

// A fixed-size array with room for N inside the node.
template <class T, int N>
class NodeArray {
 public:
  NodeArray() = default;
  NodeArray(const NodeArray&) = delete;
  NodeArray& operator=(const NodeArray&) = delete;
  ~NodeArray() {
    if (p_ != inline_) delete[] p_;
  }
  void allocate(uint32_t n) {
    if (n > N) p_ = new T[n];
    n_ = n;
  }
  T& operator[](uint32_t i) { return p_[i]; }
  const T& operator[](uint32_t i) const { return p_[i]; }
  uint32_t size() const { return n_; }
  T* begin() { return p_; }
  T* end() { return p_ + n_; }
  const T* begin() const { return p_; }
  const T* end() const { return p_ + n_; }

 private:
  T* p_ = inline_;
  uint32_t n_ = 0;
  T inline_[N];
};

struct Node {
  std::atomic<uint32_t> refs{1};
  static constexpr uint64_t kAccumulator = UINT64_MAX;
  uint64_t sequence;  // later nodes run first, accumulators of leaves before all
  const OpDef* op = nullptr;
  const char* name;
  Vjp apply;
  NodeArray<Edge, 3> edges;
  NodeArray<SavedValue, 3> saved;
  NodeArray<OutputMeta, 1> outputs;
  bool released = false;  // saved values have been freed by a backward pass
  bool was_root = false;  // counted in finished_roots
  std::unique_ptr<NodeHooks> hooks;
  SourceLocation location;
  void* extra = nullptr;  // for nodes that are no operator: their state
  void (*release_extra)(Node*) = nullptr;
  void (*release_saved_extra)(Node*) = nullptr;
  void* python = nullptr;    // borrowed Python object of this node
  void* metadata = nullptr;  // owned Python dict, see release_node_metadata
  Node* next_dead = nullptr;

  Node(const char* name, Vjp apply);
  ~Node();
  static Node* make(const char* name, Vjp apply);
  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  bool try_retain();  // false: the last reference is gone, another thread is freeing the node
  bool is_accumulator() const { return sequence == kAccumulator; }
  void unref();  // iterative: a chain of a million nodes does not recurse
  NodeHooks& ensure_hooks();
  void set_edge(uint32_t i, const Tensor& t);
  void set_output(uint32_t i, const Tensor& t);
  void release_saved();
  // For generated derivatives.
  Value value(int i, Tensor& holder) { return saved[i].get(*this, holder); }
};

// Nodes from which a backward pass started that are still alive: as many as grow with the steps of
// a program show that it collects losses with their graphs.
extern std::atomic<int64_t> finished_roots;

class NodeRef {
 public:
  NodeRef() = default;
  explicit NodeRef(Node* adopted) : p_(adopted) {}
  NodeRef(const NodeRef& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  NodeRef(NodeRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  NodeRef& operator=(NodeRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~NodeRef() {
    if (p_) p_->unref();
  }
  static NodeRef share(Node* p) {
    if (p) p->retain();
    return NodeRef(p);
  }
  Node* get() const { return p_; }
  Node* operator->() const { return p_; }
  Node* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  Node* p_ = nullptr;
};

struct AutogradMeta {
  Tensor grad;
  NodeRef grad_fn;
  uint32_t output_nr = 0;
  uint32_t view_version = 0;  // of a view: the version at which grad_fn was right
  bool requires_grad = false;
  // Of a leaf, the dtype that its gradient is to have. None: the leaf's own; `any_grad_dtype`: the
  // one it comes with.
  DType grad_dtype = DType::None;
  bool any_grad_dtype = false;
  Node* accumulator = nullptr;  // weak; guarded by `lock`
  // The accumulator between two graphs: nobody refers to it, and it does not refer to its leaf.
  Node* idle_accumulator = nullptr;  // owned; guarded by `lock`
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  std::vector<std::shared_ptr<GradHook>> hooks;             // of a leaf
  std::vector<std::shared_ptr<GradHook>> accumulate_hooks;  // after .grad was set; given the leaf
  std::shared_ptr<TensorImpl*> retain_cell;  // set by retain_grad; emptied when the tensor dies
  // For the warning about gradients that an optimizer applies twice (see autograd/used_grads.h).
  const TensorImpl* used_grad = nullptr;  // the gradient that the last step read
  uint32_t used_version = 0;              // its version then
  bool grad_reused = false;
  ~AutogradMeta();
};

AutogradMeta& ensure_autograd(const Tensor& t);
// Looks through views at their base, also where a view was made under no_grad: such a view is a
// leaf without an accumulator, so that what is computed from it counts as differentiable, but no
// gradient gets past it.
bool requires_grad(const Tensor& t);
void set_requires_grad(const Tensor& t, bool on);
NodeRef grad_fn_of(const Tensor& t);  // null for leaves; brings views up to date
Edge gradient_edge(const Tensor& t);  // grad_fn or the leaf's accumulator; a new reference
// The next use of a leaf as an input makes an accumulator for the dtype and device that it has
// then; graphs that exist keep theirs.
void forget_accumulator(const Tensor& t);
bool is_leaf(const Tensor& t);
void set_history(const Tensor& t, NodeRef node, uint32_t output_nr);
Tensor detach_tensor(const Tensor& t);
void retain_grad(const Tensor& t);
DType grad_dtype_of(const Tensor& leaf);  // None: any
void set_grad_dtype(const Tensor& leaf, DType dtype);
void attach_retain_hook(const Tensor& t, Node* before);  // after grad_fn was replaced
bool is_differentiable_dtype(DType d);

// ---- in place under autograd (inplace.cpp)
void check_inplace(const OpDef& op, const Tensor& self);
void rebase_history(const Tensor& self, Node* node);  // self is output 0 of node

// The lazy bits that matter to the values of a tensor: real numbers have no conjugate.
uint8_t lazy_keys_of(const Tensor& t);
// The geometry of the base in units of `dtype` (a complex base seen as pairs of reals).
void view_geometry(const Tensor& base, DType dtype, Dims& sizes, Dims& strides, int64_t& offset);

// ---- the tape step of `call` (tape.cpp)
// `level` is the transform level whose tape this is (0: the plain one); `run` computes the results.
void tape_call(const OpDef& op, const Value* args, Rets& rets, uint32_t level, Kernel run);
// Saves what the derivatives of the `wanted` arguments read.
void save_arguments(Node& node, const OpDef& op, const Value* args, const Rets& rets,
                    uint64_t wanted);
void save_results(Node& node, const OpDef& op, const Rets& rets, uint64_t wanted);
// An operator without derivative that writes in place: what was there before gets no gradient.
void overwrite_call(const OpDef& op, const Value* args, Rets& rets, uint32_t level, Kernel run);

extern void (*release_node_metadata)(void* dict);

std::string location_text(const SourceLocation& where);  // "file.py:12" or ""
extern std::string (*describe_location)(const SourceLocation&);

}  // namespace facula
