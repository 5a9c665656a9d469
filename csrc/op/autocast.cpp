#include "op/autocast.h"

#include <unordered_map>

#include "autograd/node.h"
#include "core/per_thread.h"
#include "op/arguments.h"
#include "op/ops/copying.h"

namespace facula {
namespace {

struct CachedCast {
  Tensor from, to;  // `from` is kept so that its address stays its own
  uint32_t version;
};

struct ThreadAutocast {
  AutocastSettings settings;
  // By parameter; a cast made under no_grad has no history, so the two are kept apart.
  std::unordered_map<const TensorImpl*, CachedCast> casts[2];
};

ThreadAutocast& local() {
  return per_thread<ThreadAutocast>();
}

bool eligible(const Tensor& t, int device) {
  return t.is_floating() && t.dtype() != DType::Float64 && (device == 0 ? t.is_cpu() : t.is_cuda());
}

Tensor cast(const Tensor& t, DType to, int device) {
  if (!eligible(t, device) || t.dtype() == to) return t;
  ThreadAutocast& l = local();
  const bool keep = l.settings.cache && to == l.settings.dtype[device] &&
                    t.dtype() == DType::Float32 && t.needs_grad() && is_leaf(t) && !t->base &&
                    !t.is_wrapped();
  if (!keep) return op::_to_copy(t, to);
  auto& casts = l.casts[grad_enabled()];
  auto found = casts.find(t.impl());
  if (found != casts.end() && found->second.version == t.version() &&
      found->second.to.dtype() == to)
    return found->second.to;
  Tensor result = op::_to_copy(t, to);
  casts.insert_or_assign(t.impl(), CachedCast{t, result, t.version()});
  return result;
}

// The widest dtype among the arguments; of recurrent operators among the states, hx: the products
// with their weights have the lower precision.
DType widest(const OpDef& op, const Value* args, int device) {
  DType wide = local().settings.dtype[device];
  auto consider = [&](const Tensor& t) {
    if (eligible(t, device) && t.dtype() != wide) wide = DType::Float32;
  };
  for (int i = 0; i < op.arg_count; ++i) {
    if (std::string_view(op.args[i].name) != "hx") continue;
    if (args[i].is_tensor()) consider(args[i].tensor());
    else
      for (const Tensor& t : args[i].tensors()) consider(t);
    return wide;
  }
  for_each_tensor(op, args, consider);
  return wide;
}

}  // namespace

AutocastSettings& autocast_settings() {
  return local().settings;
}

void clear_autocast_cache() {
  for (auto& casts : local().casts) casts.clear();
}

void call_autocast(const OpDef& op, const Value* args, Rets& rets, Kernel next) {
  if (op.autocast[0] == Autocast::None && op.autocast[1] == Autocast::None)
    return next(op, args, rets);
  int device = -1;
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (t.is_cuda()) device = 1;
    else if (device < 0 && t.is_cpu()) device = 0;
  });
  const bool on = device >= 0 && thread_state.autocast & (1 << device);
  const Autocast policy = on ? op.autocast[device] : Autocast::None;
  if (policy == Autocast::None) return next(op, args, rets);
  if (policy == Autocast::Banned)
    runtime_error(op.name,
                  "(): the logarithm of a probability is unsafe in half precision, so this "
                  "operator is refused "
                  "inside autocast. Give the logits to binary_cross_entropy_with_logits or "
                  "BCEWithLogitsLoss instead, or leave autocast for this call.");
  struct Off {  // the operator's own parts run as they are
    uint8_t saved = std::exchange(thread_state.autocast, uint8_t(0));
    ~Off() { thread_state.autocast = saved; }
  } off;
  Arguments given(op, args);
  if (policy == Autocast::Dtype) {
    const Tensor& self = args[0].tensor();
    for (int i = 0; i < op.arg_count; ++i)
      if (op.args[i].type == ArgType::DType && args[i].is_none() && self.defined() &&
          eligible(self, device))
        given[i] = Value(DType::Float32);
  } else {
    const DType to = policy == Autocast::Lower     ? local().settings.dtype[device]
                     : policy == Autocast::Float32 ? DType::Float32
                                                   : widest(op, args, device);
    given.map([&](const Tensor& t) { return cast(t, to, device); });
  }
  next(op, given.data(), rets);
}

}  // namespace facula
