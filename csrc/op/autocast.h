// Mixed precision: operators run in the dtype that suits them while autocast is on.
#pragma once
#include "op/def.h"

namespace facula {

// The settings of the calling thread. Whether it is on stands in ThreadState::autocast.
struct AutocastSettings {
  DType dtype[2] = {DType::BFloat16, DType::Float16};  // the lower precision: CPU, CUDA
  int nesting = 0;
  bool cache = true;  // casts of parameters are kept until the outermost block ends
};
AutocastSettings& autocast_settings();
void clear_autocast_cache();

// Casts the arguments as the operator's policy says and goes on with `next`, without autocast.
void call_autocast(const OpDef& op, const Value* args, Rets& rets, Kernel next);

}  // namespace facula
