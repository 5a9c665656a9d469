#include "op/lazy.h"

#include "op/arguments.h"
#include "op/ops/copying.h"
#include "op/ops/lazy.h"
#include "op/ops/mathematics.h"
#include "op/tensor_operators.h"

namespace facula {

Tensor with_lazy_keys(const Tensor& t, uint8_t keys) {
  Tensor alias = alias_tensor(t);
  alias->keys = uint8_t((alias->keys & ~kLazyKeys) | keys);
  return alias;
}

Tensor toggle_lazy(const Tensor& t, uint8_t keys) {
  Tensor out = t;
  if (keys & kKeyConj) out = op::_conj(out);
  if (keys & kKeyNeg) out = op::_neg_view(out);
  return out;
}

// What the memory stands for, in memory of its own; also the way back.
static Tensor computed(const Tensor& memory, uint8_t keys) {
  Tensor out = memory;
  if (keys & kKeyConj && out.is_complex()) out = op::conj_physical(out);
  return keys & kKeyNeg ? op::neg(out) : out;
}

void run_resolved(const OpDef& op, const Value* args, Rets& rets) {
  Rets results;
  results.list = rets.list;
  results.destination = rets.destination;
  auto resolved = [](const Tensor& t) {
    return t.is_lazy() ? computed(with_lazy_keys(t, 0), t->keys & kLazyKeys) : t;
  };
  if (rets.destination != Destination::New)
    for (int i = 0; i < op.ret_count; ++i) results.t[i] = resolved(rets.t[i]);
  Arguments plain(op, args);
  plain.map([&](const Tensor& t) {
    for (int i = 0; i < op.ret_count; ++i)
      if (t.is(rets.t[i])) return results.t[i];  // a destination stays the argument that it is
    return resolved(t);
  });
  run_kernel(op, plain.data(), results);
  for (int i = 0; i < op.ret_count; ++i) {
    if (rets.destination == Destination::New) {
      rets.t[i] = results.t[i];
    } else if (rets.t[i].is_lazy()) {
      if (!same(rets.t[i].sizes(), results.t[i].sizes()))
        resize_tensor(rets.t[i], results.t[i].sizes());
      op::copy_(with_lazy_keys(rets.t[i], 0), computed(results.t[i], rets.t[i]->keys & kLazyKeys));
    }
  }
}

}  // namespace facula
