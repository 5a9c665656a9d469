// What elementwise rows do in place to a tensor whose elements repeat, where others refuse (their
// option `into_repeated`).
#pragma once
#include "op/value.h"

namespace facula::repeated {

void masked_fill(const Value* args, const Tensor& out);

}  // namespace facula::repeated
