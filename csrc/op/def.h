// The record of an operator: what a row of the table becomes at run time.
#pragma once
#include <vector>

#include "op/value.h"

namespace facula {

struct OpDef;
struct Node;

enum class ArgType : uint8_t {
  Tensor,
  TensorList,
  Scalar,
  Int,
  Float,
  Bool,
  IntList,
  FloatList,
  String,
  DType,
  Device,
  Format,
  Generator,
  Layout
};

// What a list of integers or an integer says about the dimensions of the tensors, for vmap.
enum class ArgRole : uint8_t {
  None,
  Dim,     // a dimension, or a list of them
  NewDim,  // a dimension of the result, which has one more
  Size,    // the sizes of the result
};

struct ArgDef {
  const char* name;
  ArgType type;
  bool optional;  // None is accepted
  bool operand;   // a number may stand in for the tensor
  bool keyword_only;
  bool has_default;
  uint8_t list_size;  // int[1]: a single int is accepted as a list
  ArgRole role;
  int8_t core;  // of a tensor, for the rule "core": how many dimensions one of a batch has
  Value value;  // the default
};

// Where results go. In place and out= are the same kernels with destinations given.
enum class Destination : uint8_t { New, InPlace, Out };

struct Rets {
  static constexpr int kMax = 4;
  Tensor t[kMax];                       // on entry the destinations, on return the results
  std::vector<Tensor>* list = nullptr;  // where an operator that returns Tensor[] puts them
  Destination destination = Destination::New;
};

using Kernel = void (*)(const OpDef&, const Value* args, Rets& rets);
// The gradients of the inputs from those of the outputs; `needs` has a bit for each edge.
using Vjp = void (*)(Node& node, Tensor* grads, Tensor* out, uint64_t needs);

// Runs an operator on tensors that are batched at `level`, as one call on the values behind them.
using BatchRule = void (*)(const OpDef&, const Value* args, Rets& rets, uint32_t level);

// Where the forward-mode derivative comes from.
enum class Jvp : uint8_t {
  ByVjp,          // differentiates the derivative: right for all, slower
  ByVjpAtZero,    // likewise, at a gradient of 0: formulas that refuse some gradients take that
  Formula,        // elementwise: the derivative's formula, applied to the tangents
  FormulaIfReal,  // likewise, but differentiates the derivative of complex results
  Linear,         // the operator itself, applied to the tangents
  Each,           // linear in each argument: the operator with one tangent at a time, summed
};

// What autocast does with the floating tensors among the arguments.
enum class Autocast : uint8_t {
  None,     // nothing
  Lower,    // casts them to the lower precision
  Float32,  // casts them to float32
  Promote,  // casts them to the widest among them
  Dtype,    // asks for a float32 result, where the caller asked for no dtype
  Banned,   // refuses: the result would overflow
};

struct ElementwiseDef;  // op/elementwise.h
struct ReduceDef;       // op/reduce.h

// An argument or result that derivatives read, and the arguments whose derivatives read it: it is
// saved only when one of those is wanted.
struct SaveSpec {
  uint8_t index;
  enum class What : uint8_t {
    Whole,
    Sizes,
    Strides,
    Offset,
    DType
  } what;  // often the shape is all that is read
  uint64_t used_by;
};

enum OpFlag : uint32_t {
  kOpComposite = 1,  // made of other operators, which record the tape
  kOpView = 2,       // the result aliases the first argument
  kOpListResult = 4,
  kOpMutates = 8,     // writes its first argument (fill_, copy_): always in place
  kOpOwnOut = 16,     // the kernel writes into a given destination itself
  kOpNoGrad = 32,     // results never require grad (comparisons, argmax)
  kOpMultiView = 64,  // several views of one base
  kOpRandom = 128,    // draws from a generator
  kOpNumbers = 256,   // Python may call it with numbers alone: add(1, 2)
};

struct OpDef {
  const char* name;           // "add"
  const char* in_place_name;  // "add_"
  const char* overload;       // "dim" of max.dim, or ""
  const ArgDef* args;
  uint8_t arg_count;
  uint8_t ret_count;
  uint32_t flags;
  Kernel kernel;
  const ElementwiseDef* elementwise;
  const ReduceDef* reduce;
  // autograd
  Vjp vjp;
  const char* node_name;       // "AddBackward0"
  const SaveSpec* saved_args;  // what the derivatives read
  const SaveSpec* saved_rets;
  uint8_t saved_arg_count, saved_ret_count;
  uint64_t differentiable;         // bit i: argument i has a derivative
  uint8_t nondifferentiable_rets;  // bit i: result i (indices) carries no gradient
  const char* const* ret_names;    // for named tuples, or null
  // transforms
  Jvp jvp;
  BatchRule batch;       // null: none needed (composites) or none known
  const OpDef* along;    // of a reduction over everything: the overload with a dim
  Autocast autocast[2];  // on the CPU, on CUDA devices
};

// Runs an operator: the only way from anywhere to a kernel.
void call(const OpDef& op, const Value* args, Rets& rets);
// The same for one result, new or written to `self`.
Tensor call_for_tensor(const OpDef& op, const Value* args);
Tensor call_in_place(const OpDef& op, const Value* args, const Tensor& self);
std::vector<Tensor> call_for_list(const OpDef& op, const Value* args);
// The last step of it: the kernel, with results copied to their destinations where it cannot write
// there itself.
void run_kernel(const OpDef& op, const Value* args, Rets& rets);

// What the calling thread has switched on or off.
struct ThreadState {
  uint8_t enabled_keys = kKeyGrad | kKeyCuda | kKeyMeta;  // kKeyGrad is cleared by no_grad
  bool inference = false;
  bool forward = true;    // forward-mode derivatives are computed
  bool batching = false;  // a vmap level is live: random operators ask it what to do
  uint8_t autocast = 0;   // bit 0: on for the CPU, bit 1: for CUDA devices
};
extern thread_local constinit ThreadState thread_state;

inline bool grad_enabled() {
  return thread_state.enabled_keys & kKeyGrad;
}
struct GradGuard {  // sets grad mode for a scope
  uint8_t saved = thread_state.enabled_keys;
  explicit GradGuard(bool on) {
    thread_state.enabled_keys = uint8_t(on ? saved | kKeyGrad : saved & ~kKeyGrad);
  }
  ~GradGuard() { thread_state.enabled_keys = saved; }
};

DType default_dtype();
void set_default_dtype(DType d);
DType default_complex_dtype();
Device default_device();
void set_default_device(Device d);

}  // namespace facula
