// Batching rules of layers: a batch of inputs joins the other leading dimensions, a batch of
// weights is a batch of products.
#include "op/ops/linear.h"
#include "op/ops/products.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

void linear(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &weight = args[1].tensor(), &bias = args[2].tensor();
  const bool of_bias = bias.defined() && is_batched(bias, level);
  if (input.dim() == 0 || weight.dim() == 0 || weight.dim() > 2)
    return loop(op, args, rets, level);  // where the errors are
  const Tensor x = value_of(input, level), w = value_of(weight, level);
  Tensor out;
  if (!is_batched(weight, level)) {
    out = op::linear(x, w, of_bias ? Tensor() : bias);
    if (!is_batched(input, level)) out = in_front(out, level);
  } else {
    Dims shape(input.sizes().first(size_t(input.dim() - 1)));
    const int64_t rows = checked_numel(shape), batch = batch_size(level);
    shape.insert(0, batch);
    if (weight.dim() == 2) shape.push_back(weight.size(0));
    Dims matrix{rows, input.size(-1)};
    if (is_batched(input, level)) matrix.insert(0, batch);
    const Tensor columns = weight.dim() == 2 ? op::transpose(w, 1, 2) : op::unsqueeze(w, 2);
    out = op::reshape(op::matmul(op::reshape(x, matrix), columns), shape);
    if (bias.defined() && !of_bias) out = out + bias;
  }
  if (of_bias) out = out + aligned(bias, level, out.dim() - 1);
  deliver(rets, out, level);
}

}  // namespace facula::batch
