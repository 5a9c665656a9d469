// Batching rules of operators that pick positions by their values.
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

// masked_scatter(self, mask, source): the k-th element where the mask is true takes source[k - 1].
void masked_scatter(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &mask = args[1].tensor(), &source = args[2].tensor();
  if (mask.dtype() != DType::Bool)
    runtime_error("masked_scatter only supports boolean masks, but got mask with dtype ",
                  mask.dtype());
  if (self.dtype() != source.dtype())
    runtime_error("expected self and source to have same dtypes but got ",
                  legacy_dtype_name(self.dtype()), " and ", legacy_dtype_name(source.dtype()));
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
  const int64_t rank = int64_t(shape.size()), batch = batch_size(level);
  shape.insert(0, batch);
  const Tensor chosen = op::expand(aligned(mask, level, rank), shape);
  const Tensor count = op::cumsum(flattened(op::_to_copy(chosen, DType::Int64)), 1);
  // One element in front stands for those that are not taken; gather refuses what is not there.
  const Tensor from = flattened(in_front(source, level));
  const std::vector<Tensor> parts{op::new_zeros(from, Dims{batch, 1}), from};
  const Tensor taken =
      op::gather(op::cat(TensorSpan(parts), 1), 1, op::where(flattened(chosen), count, 0));
  deliver(
      rets,
      op::where(chosen, op::reshape(taken, shape), op::expand(aligned(self, level, rank), shape)),
      level);
}

// fill_diagonal_(self, value, wrap): the places are the same for all elements.
void fill_diagonal(const OpDef&, const Value* args, Rets& rets, uint32_t) {
  const Tensor value = rets.t[0]->wrapper->value;
  const Tensor places =
      op::_fill_diagonal(op::zeros(args[0].tensor().sizes(), DType::Bool, Value(), value.device()),
                         Scalar(true), args[2].to_bool());
  op::masked_fill_(value, places, args[1]);
}

// nonzero_static(self, *, size, fill_value): positions in order, those that are true first.
void nonzero_static(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  const int64_t size = args[1].to_int(), fill = args[2].to_int(), batch = batch_size(level);
  if (size < 0) runtime_error("'size' must be an non-negative integer, got ", size);
  const Tensor found = op::ne(flattened(in_front(self, level)), 0);
  const int64_t n = found.size(1);
  // The k-th true element goes to place k - 1, all others and those too many behind the end.
  const Tensor place = op::cumsum(op::_to_copy(found, DType::Int64), 1) - 1;
  const Tensor at = op::where(op::logical_and(found, place < size), place, size);
  const Tensor numbers =
      op::expand(op::arange(Scalar(n), DType::Int64, Value(), found.device()), Dims{batch, n});
  const Tensor flat = op::narrow(
      op::scatter_src(op::new_full(numbers, Dims{batch, size + 1}, Scalar(-1)), 1, at, numbers), 1,
      0, size);
  std::vector<Tensor> columns;
  int64_t stride = n;
  for (int64_t d = 0; d < self.dim(); ++d) {
    stride = self.size(d) ? stride / self.size(d) : 1;
    const Tensor along = op::floor_divide(flat, std::max<int64_t>(1, stride));
    columns.push_back(op::remainder(along, std::max<int64_t>(1, self.size(d))));
  }
  if (columns.empty()) return deliver(rets, op::new_empty(flat, Dims{batch, size, 0}), level);
  const Tensor positions = op::stack(TensorSpan(columns), 2);
  deliver(rets, op::where(op::unsqueeze(flat < 0, -1), fill, positions), level);
}

}  // namespace facula::batch
