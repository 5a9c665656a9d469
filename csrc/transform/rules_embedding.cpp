// Batching rules of lookups: tables that differ over the batch become one table, in which element e
// has the rows from e * rows on.
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/embedding.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

// Row numbers of the joined table; those outside of an element's own table are refused by gather.
Tensor joined_rows(const Tensor& indices, int64_t rows, uint32_t level) {
  const int64_t batch = batch_size(level);
  const Tensor at = op::_to_copy(in_front(indices, level), DType::Int64);
  const Tensor numbers = op::view(
      op::arange(Scalar(batch * rows), DType::Int64, Value(), indices.device()), Dims{batch, rows});
  return op::reshape(op::gather(numbers, 1, flattened(at)), at.sizes());
}

Tensor numbers_of_elements(const Tensor& like, uint32_t level) {
  return op::view(op::arange(Scalar(batch_size(level)), DType::Int64, Value(), like.device()),
                  Dims{batch_size(level), 1});
}

}  // namespace

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
void embedding(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &weight = args[0].tensor(), &indices = args[1].tensor();
  Arguments values(op, args);
  if (!is_batched(weight, level)) {
    values.set(values[1], value_of(indices, level));
    return run(op, values.data(), rets, level);
  }
  if (weight.dim() != 2) runtime_error("'weight' must be 2-D, got shape ", weight.sizes());
  values.set(values[0], join(value_of(weight, level), 0));
  values.set(values[1], joined_rows(indices, weight.size(0), level));
  values[2] = Value(int64_t(-1));
  Rets results;
  call(op, values.data(), results);
  Tensor out = results.t[0];
  if (const int64_t padding = args[2].to_int(); padding >= 0) {  // a row that gets no gradient
    const Tensor pads = op::unsqueeze(op::eq(in_front(indices, level), padding), -1);
    out = op::where(pads, op::detach(out), out);
  }
  deliver(rets, out, level);
}

// _embedding_gradient(grad_output, indices, weight_size, padding_idx, scale_grad_by_freq)
void embedding_gradient(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& indices = args[1].tensor();
  const IntSpan size = args[2].ints();
  const int64_t batch = batch_size(level), padding = args[3].to_int();
  Tensor grad = in_front(args[0].tensor(), level);
  if (padding >= 0)
    grad = op::masked_fill(grad, op::unsqueeze(op::eq(in_front(indices, level), padding), -1), 0);
  const Dims joined{batch * size[0], size[1]};
  deliver(rets,
          split(op::_embedding_gradient(grad, joined_rows(indices, size[0], level), joined, -1,
                                        args[4].to_bool()),
                0, batch, size[0]),
          level);
}

// embedding_renorm_(self, indices, max_norm, norm_type)
void embedding_renorm(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &indices = args[1].tensor();
  if (self.dim() != 2) runtime_error("'weight' must be 2-D, got shape ", self.sizes());
  const Tensor value = rets.t[0]->wrapper->value;
  const double most = args[2].to_double();
  const Dims last{-1};
  const Tensor norms = op::linalg_vector_norm(value, args[3].scalar(), IntSpan(last), true);
  const Tensor flat = op::_to_copy(flattened(in_front(indices, level)), DType::Int64);
  const Tensor named = op::unsqueeze(
      op::scatter_value(op::new_zeros(value, Dims{value.size(0), value.size(1)}, DType::Bool), 1,
                        flat, Scalar(true)),
      -1);
  const Tensor scale = op::where(op::logical_and(named, norms > most), most / (norms + 1e-7), 1.0);
  op::mul_(value, op::_to_copy(scale, value.dtype()));
}

// _embedding_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset,
// padding_idx, scale_grad_by_freq, sparse): the bags of all elements, one after the other.
void embedding_bag(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &weight = args[0].tensor(), &indices = args[1].tensor(), &offsets = args[2].tensor(),
               &factors = args[4].tensor();
  if (indices.dim() != 1 || offsets.dim() != 1 || weight.dim() != 2)
    runtime_error("expected a table and vectors of lookups and offsets, but got shapes ",
                  weight.sizes(), ", ", indices.sizes(), " and ", offsets.sizes());
  const int64_t batch = batch_size(level), rows = weight.size(0), count = indices.size(0),
                padding = args[6].to_int();
  const bool last = args[5].to_bool(), several = is_batched(weight, level);
  const int64_t bags = offsets.size(0) - last;
  if (bags < 0) runtime_error("include_last_offset: number of offsets should be at least 1");
  Tensor lookups = in_front(indices, level), table = value_of(weight, level);
  const Tensor element = numbers_of_elements(indices, level);
  if (several) {
    table = join(table, 0);
    // All that is padding is the padding row of the first table, which nothing else names.
    const Tensor shifted = joined_rows(indices, rows, level);
    lookups = padding >= 0 ? op::where(op::eq(lookups, padding), padding, shifted) : shifted;
  }
  Tensor starts = op::_to_copy(in_front(offsets, level), DType::Int64);
  if (last) starts = op::narrow(starts, 1, 0, bags);
  auto [out, bag_of, sizes, chosen] = op::_embedding_bag(
      table, join(lookups, 0), join(starts + element * count, 0), args[3].to_int(),
      factors.defined() ? join(in_front(factors, level), 0) : factors, false, padding,
      args[7].to_bool(), args[8].to_bool());
  deliver(rets, 0, split(out, 0, batch, bags), level);
  deliver(rets, 1, split(bag_of, 0, batch, count) - element * bags, level);
  deliver(rets, 2, split(sizes, 0, batch, bags), level);
  if (chosen.dim() == 2) {
    Tensor own = split(chosen, 0, batch, bags);
    if (several) own = op::where(own < 0, own, own - op::unsqueeze(element, -1) * rows);
    deliver(rets, 3, own, level);
  } else {
    deliver(rets, 3, op::new_empty(chosen, Dims{batch, 0}), level);
  }
}

}  // namespace facula::batch
