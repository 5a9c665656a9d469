// The one function between a caller and a kernel.
#include "sparse/call.h"

#include <algorithm>

#include "autograd/node.h"
#include "op/autocast.h"
#include "op/elementwise.h"
#include "op/kernel_hook.h"
#include "op/lazy.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/out_dtype.h"
#include "op/profiler.h"
#include "op/tensor_operators.h"
#include "transform/interpret.h"

namespace facula {

thread_local constinit ThreadState thread_state;
thread_local constinit KernelHook kernel_hook = nullptr;

static DType g_default_dtype = DType::Float32;
DType default_dtype() {
  return g_default_dtype;
}
void set_default_dtype(DType d) {
  g_default_dtype = d;
}
DType default_complex_dtype() {
  return to_complex(g_default_dtype);
}

namespace {

bool reads_tensors(const OpDef& op, const Value* args) {
  return std::any_of(args, args + op.arg_count, [](const Value& v) {
    return v.tag() == Value::Tag::Tensor || v.tag() == Value::Tag::Tensors;
  });
}

// What is created has any shape: PyTorch gives its memory another one and does not warn, except
// where the number of elements is computed.
void take_shape(const OpDef& op, const Value* args, const Tensor& result, Tensor& out) {
  if (!reads_tensors(op, args) && std::string_view(op.name) != "arange" &&
      out.device() == result.device() && can_cast(result.dtype(), out.dtype()) &&
      !same(out.sizes(), result.sizes()))
    resize_tensor(out, result.sizes());
}

}  // namespace

// Runs the kernel; when it cannot write to the given destinations itself, computes first and
// copies then, so that a failure leaves the destinations as they were.
void run_kernel(const OpDef& op, const Value* args, Rets& rets) {
  if (rets.destination == Destination::New) {
    op.kernel(op, args, rets);
    // A result that was filled in place (zeros, cat) starts its life at version 0.
    if (!rets.list)
      for (int i = 0; i < op.ret_count; ++i) {
        TensorImpl* t = rets.t[i].impl();
        if (t && t->storage->version.load(std::memory_order_relaxed) && !(t->keys & kKeyGrad) &&
            !t->base && t->refs.load() == 1 && t->storage->refs.load() == 1)
          t->storage->version.store(0);
      }
    return;
  }
  if (rets.t[0]->flags & kInference && !thread_state.inference)
    runtime_error(
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can "
        "make a clone to get a normal tensor before doing inplace update.");
  uint32_t versions[Rets::kMax];
  for (int i = 0; i < op.ret_count; ++i) versions[i] = rets.t[i].version();
  if (op.flags & (kOpOwnOut | kOpMutates)) {
    op.kernel(op, args, rets);
  } else {
    Rets fresh;
    std::vector<Value> copied;
    Tensor before;
    if (rets.destination == Destination::InPlace && op.flags & kOpComposite && grad_enabled() &&
        std::any_of(args, args + op.arg_count, [](const Value& v) {
          return v.tag() == Value::Tag::Tensor && requires_grad(v.tensor());
        })) {
      // What the parts save of self must survive the write at the end.
      before = op::clone(rets.t[0]);
      copied.assign(args, args + op.arg_count);
      copied[0] = Value(before);
      args = copied.data();
    }
    op.kernel(op, args, fresh);
    for (int i = 0; i < op.ret_count; ++i) {
      const Tensor& from = fresh.t[i];
      if (rets.t[i].is(from)) continue;
      if (rets.destination == Destination::Out) {
        check_out_dtype(op, i, from.dtype(), rets.t[i].dtype());
        take_shape(op, args, from, rets.t[i]);
      }
      prepare_result(rets, i, from.sizes(), from.dtype(), from.device());
      op::copy_(rets.t[i], from);
    }
  }
  if (&op == &defs::detach_) return;  // changes what is known of the tensor, not its elements
  // A composite has counted already if one of its parts wrote to the destination.
  for (int i = 0; i < op.ret_count; ++i) {
    if (rets.t[i].version() == versions[i]) rets.t[i].bump_version(op.in_place_name);
    else rets.t[i]->storage->last_writer = op.in_place_name;
  }
}

static void run_hooked(const OpDef& op, const Value* args, Rets& rets) {
  kernel_hook(op, args, rets, run_kernel);
}
static void run_resolved_hooked(const OpDef& op, const Value* args, Rets& rets) {
  kernel_hook(op, args, rets, run_resolved);
}

static void mark_views(const OpDef& op, const Value* args, Rets& rets) {
  // A view made while the tape is off must not be written to later as if it had been on.
  const Tensor& self = args[0].tensor();
  uint8_t flags = op.flags & kOpMultiView ? kMultiOutputView : 0;
  if (!grad_enabled() && requires_grad(self)) flags |= kNoGradView;
  if (!flags) return;
  auto mark = [flags](const Tensor& t) {
    t->flags |= flags;
    t->made_at = t.version();
  };
  if (rets.list)
    for (Tensor& t : *rets.list) mark(t);
  else mark(rets.t[0]);
}

// Only what has memory of its own: a view is what the tensor is that it views (alias_tensor()).
static void mark_inference(const OpDef& op, const Value* args, Rets& rets) {
  const bool one = op.arg_count && args[0].tag() == Value::Tag::Tensor;
  const Storage* viewed = one ? args[0].tensor()->storage : nullptr;
  auto mark = [viewed](const Tensor& t) {
    if (!t->base && t->storage != viewed) t->flags |= kInference;
  };
  if (rets.list)
    for (Tensor& t : *rets.list) mark(t);
  else if (rets.destination == Destination::New && !(op.flags & kOpMutates))
    for (int i = 0; i < op.ret_count; ++i)
      if (rets.t[i].defined() && rets.t[i]->refs.load() == 1) mark(rets.t[i]);
}

static void call_uncast(const OpDef& op, const Value* args, Rets& rets) {
  try {
    uint8_t keys = 0;
    for (int i = 0; i < op.arg_count; ++i) {
      const Value& v = args[i];
      auto add = [&](TensorImpl* p) {
        keys |= p->keys;
        if (p->base) keys |= p->base->keys & kKeyGrad;
      };
      if (v.tag() == Value::Tag::Tensor) add(v.tensor().impl());
      else if (v.tag() == Value::Tag::Tensors)
        for (const Tensor& t : v.tensors())
          if (t.defined()) add(t.impl());
    }
    if (rets.destination == Destination::Out)
      for (int i = 0; i < op.ret_count; ++i)
        keys |= rets.t[i]->keys & (kLazyKeys | kKeyWrapped | kKeySparse);
    bool taped = keys & thread_state.enabled_keys & kKeyGrad;
    if (taped && current_level) taped = modes_at(0).keys & kKeyGrad;
    Kernel run =
        keys & kLazyKeys && !(op.flags & (kOpView | kOpComposite)) ? run_resolved : run_kernel;
    if (kernel_hook && !(op.flags & kOpComposite)) [[unlikely]]
      run = run == run_kernel ? run_hooked : run_resolved_hooked;
    if (keys & (kKeyWrapped | kKeySparse) || (thread_state.batching && op.flags & kOpRandom)) {
      if (keys & kKeySparse) return call_sparse(op, args, rets, taped);
      interpret(op, args, rets);
    } else if (taped && !(op.flags & (kOpComposite | kOpNoGrad))) {
      tape_call(op, args, rets, 0, run);
    } else if (taped && op.flags & kOpNoGrad && rets.destination == Destination::InPlace) {
      overwrite_call(op, args, rets, 0, run);
    } else {
      if (rets.destination == Destination::Out && taped && !(op.flags & kOpNoGrad))
        runtime_error(
            "functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad. Use the form without out=.");
      run(op, args, rets);
    }
    if (op.flags & kOpView) mark_views(op, args, rets);
    if (thread_state.inference) mark_inference(op, args, rets);
  } catch (Error& e) {
    // Hidden operators are part of something that has a name, or speak for themselves.
    if (op.name[0] != '_')
      e.name_operator(rets.destination == Destination::InPlace ? op.in_place_name : op.name);
    throw;
  }
}

static void call_unrecorded(const OpDef& op, const Value* args, Rets& rets) {
  if (!thread_state.autocast || rets.destination != Destination::New) [[likely]]
    return call_uncast(op, args, rets);
  call_autocast(op, args, rets, call_uncast);
}

void call(const OpDef& op, const Value* args, Rets& rets) {
  if (!profiling.load(std::memory_order_relaxed)) [[likely]]
    return call_unrecorded(op, args, rets);
  ProfiledRange range(op, args, rets.destination == Destination::InPlace);
  call_unrecorded(op, args, rets);
  range.note_result(rets);
}

Tensor call_for_tensor(const OpDef& op, const Value* args) {
  Rets rets;
  call(op, args, rets);
  return std::move(rets.t[0]);
}

Tensor call_in_place(const OpDef& op, const Value* args, const Tensor& self) {
  Rets rets;
  rets.t[0] = self;
  rets.destination = Destination::InPlace;
  call(op, args, rets);
  return std::move(rets.t[0]);
}

std::vector<Tensor> call_for_list(const OpDef& op, const Value* args) {
  std::vector<Tensor> list;
  Rets rets;
  rets.list = &list;
  call(op, args, rets);
  return list;
}

}  // namespace facula
