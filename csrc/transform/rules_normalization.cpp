// Batching rules of normalisation over the last dimensions.
#include "op/ops/normalization.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

// native_layer_norm(input, shape, weight, bias, eps) and _fused_rms_norm(input, shape, weight,
// eps): a batch of inputs has more rows; parameters that differ over the batch are applied
// afterwards.
void layer_norm(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &weight = args[2].tensor();
  const Tensor bias = op.arg_count == 5 ? args[3].tensor() : Tensor();
  const bool apart = (weight.defined() && is_batched(weight, level)) ||
                     (bias.defined() && is_batched(bias, level));
  Arguments values(op, args);
  values.set(values[0], in_front(input, level));
  if (apart) {
    values[2] = Value();
    if (op.arg_count == 5) values[3] = Value();
  }
  Rets results;
  call(op, values.data(), results);
  if (apart && weight.defined()) results.t[0] = results.t[0] * aligned(weight, level, input.dim());
  if (apart && bias.defined()) results.t[0] = results.t[0] + aligned(bias, level, input.dim());
  for (int i = 0; i < op.ret_count; ++i) deliver(rets, i, results.t[i], level);
}

}  // namespace facula::batch
