// Batching rules of views and copies that name no dims, or in a way of their own.
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

void expand(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  const IntSpan size = args[1].ints();
  if (int64_t(size.size()) < args[0].tensor().dim())
    runtime_error("the number of sizes provided (", size.size(),
                  ") must be greater or equal to the number of dimensions in the tensor (",
                  args[0].tensor().dim(), ")");
  values.set(values[0], aligned(args[0].tensor(), level, int64_t(size.size())));
  Dims sizes(size);
  sizes.insert(0, batch_size(level));
  values.set(values[1], std::move(sizes));
  run(op, values.data(), rets, level);
}

void squeeze(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  Tensor value = in_front(args[0].tensor(), level);
  Dims ones;
  for (int64_t d = 1; d < value.dim(); ++d)
    if (value.size(d) == 1) ones.push_back(d);
  deliver(rets, ones.empty() ? op::alias(value) : op::squeeze_dim(value, ones), level);
}

void permute(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  Dims dims{0};
  for (int64_t d : args[1].ints()) dims.push_back(wrap_dim(d, args[0].tensor().dim()) + 1);
  values.set(values[0], in_front(args[0].tensor(), level));
  values.set(values[1], std::move(dims));
  run(op, values.data(), rets, level);
}

void t(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  Tensor value = in_front(args[0].tensor(), level);
  if (value.dim() > 3)
    runtime_error("expects a tensor with at most 2 dimensions, but self is ", value.dim() - 1, "D");
  deliver(rets, value.dim() < 3 ? op::alias(value) : op::transpose(value, 1, 2), level);
}

void as_strided(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  const Tensor value = in_front(args[0].tensor(), level);
  Dims size(args[1].ints()), stride(args[2].ints());
  size.insert(0, value.size(0));
  stride.insert(0, value.stride(0));
  values.set(values[0], value);
  values.set(values[1], std::move(size));
  values.set(values[2], std::move(stride));
  run(op, values.data(), rets, level);
}

void as_strided_scatter(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  Tensor self = in_front(args[0].tensor(), level);
  if (!is_batched(args[0].tensor(), level)) self = op::clone(self);  // a place for each element
  Dims size(args[2].ints()), stride(args[3].ints());
  size.insert(0, self.size(0));
  stride.insert(0, self.stride(0));
  values.set(values[0], self);
  values.set(values[1], in_front(args[1].tensor(), level));
  values.set(values[2], std::move(size));
  values.set(values[3], std::move(stride));
  run(op, values.data(), rets, level);
}

void unfold(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  Tensor value = in_front(self, level);
  if (self.dim() == 0) value = op::unsqueeze(value, 1);
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim()) + 1;
  Tensor windows = op::unfold(value, dim, args[2].to_int(), args[3].to_int());
  deliver(rets, self.dim() ? windows : op::select(windows, 1, 0), level);
}

void clone(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  values.set(values[0], in_front(args[0].tensor(), level));
  // channels_last is a matter of four dimensions, which the value does not have.
  for (int i = 1; i < op.arg_count; ++i)
    if (op.args[i].type == ArgType::Format && values[i].format() != MemoryFormat::Contiguous)
      values[i] = Value();
  run(op, values.data(), rets, level);
}

void copy(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  values.set(values[0], args[0].tensor()->wrapper->value);
  if (args[1].is_tensor())
    values.set(values[1], aligned(args[1].tensor(), level, args[0].tensor().dim()));
  run(op, values.data(), rets, level);
}

void fill(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  const Tensor value = args[0].tensor()->wrapper->value;
  values.set(values[0], value);
  if (!is_batched(args[1], level)) return run(op, values.data(), rets, level);
  op::copy_(value, aligned(args[1].tensor(), level, args[0].tensor().dim()));
}

void fill_value(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  if (!is_batched(args[1], level)) return elementwise(op, args, rets, level);
  const Tensor value = aligned(args[1].tensor(), level, self.dim());
  const Tensor target = in_front(self, level);
  deliver(rets, op::clone(op::expand(op::_to_copy(value, self.dtype()), target.sizes())), level);
}

void new_empty_strided(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  Dims size(args[1].ints()), stride(args[2].ints());
  int64_t span = 1;  // of one element's memory
  for (size_t d = 0; d < size.size() && d < stride.size(); ++d)
    span += std::max<int64_t>(size[d] - 1, 0) * stride[d];
  size.insert(0, batch_size(level));
  stride.insert(0, span);
  values.set(values[0], value_of(args[0].tensor(), level));
  values.set(values[1], std::move(size));
  values.set(values[2], std::move(stride));
  run(op, values.data(), rets, level);
}

void trace(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  deliver(rets, op::sum_dim(op::diagonal(in_front(args[0].tensor(), level), 0, 1, 2), Dims{-1}),
          level);
}

}  // namespace facula::batch
