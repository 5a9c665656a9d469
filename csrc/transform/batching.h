// What the batching rules are made of. A tensor batched at a level has the batch as the first
// dimension of its value; "logical" is what the function under vmap sees, without it.
#pragma once
#include "transform/interpret.h"

namespace facula::batch {

int64_t batch_size(uint32_t level);
inline bool is_batched(const Tensor& t, uint32_t level) {
  return is_wrapped_at(t, level);
}
bool is_batched(const Value& v, uint32_t level);  // a tensor or a list with one
// The value behind a batched tensor; others as they are.
inline Tensor value_of(const Tensor& t, uint32_t level) {
  return is_batched(t, level) ? t->wrapper->value : t;
}
// The value with the batch in front, expanded where the tensor is not batched.
Tensor in_front(const Tensor& t, uint32_t level);
// The value with dimensions of size 1 behind the batch, so that it broadcasts like a logical tensor
// of `rank`; tensors that are not batched need nothing.
Tensor aligned(const Tensor& t, uint32_t level, int64_t rank);
// A value with its logical dimensions merged into one: [batch, everything].
Tensor flattened(const Tensor& value);
// Splits dimension `dim` into (first, rest).
Tensor split(const Tensor& t, int64_t dim, int64_t first, int64_t rest);
// Joins dimension `dim` with the one behind it.
Tensor join(const Tensor& t, int64_t dim);

// Calls `op` on values with the batch in front; its results are the batched ones.
void run(const OpDef& op, const Value* values, Rets& rets, uint32_t level);
// Gives a value with the batch in front as the only result, also in place.
void deliver(Rets& rets, const Tensor& value, uint32_t level);
void deliver(Rets& rets, int i, const Tensor& value, uint32_t level);

// Random operators hand on to the vmap levels outside of this one only.
class Below {
 public:
  explicit Below(uint32_t level) : level_(level) { hide_levels(level_, true); }
  ~Below() { hide_levels(level_, false); }

 private:
  uint32_t level_;
};

}  // namespace facula::batch
