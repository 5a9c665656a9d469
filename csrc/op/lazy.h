// Conjugates and negatives that are computed when their memory is read.
#pragma once
#include "op/def.h"

namespace facula {

// The last step of a call with lazy tensors: the kernel sees memory as it is.
void run_resolved(const OpDef& op, const Value* args, Rets& rets);
// The same memory with other lazy bits than `t` has.
Tensor with_lazy_keys(const Tensor& t, uint8_t keys);
// A view of `t` with the bits of `keys` switched, on the tape.
Tensor toggle_lazy(const Tensor& t, uint8_t keys);

}  // namespace facula
