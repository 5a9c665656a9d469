// Elementwise functions of half precision that are looked up instead of computed.
#pragma once
#include "op/elementwise.h"

namespace facula {

// For a costly definition and dense operands of `dtype`, all of them tensors: a loop that gives the
// results of the definition's own. What it reads is written to `params`. Null where there is none,
// and where computing is as good.
Loop half_table_loop(const ElementwiseDef& d, DType dtype, int64_t numel, void* params);

}  // namespace facula
