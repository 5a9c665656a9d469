// The dtypes that out= may have where PyTorch allows fewer than the result can be cast to.
#pragma once
#include "op/def.h"

namespace facula {

// Result i of an operator that computes first and copies to out= then is of `dtype`, out= of
// `given`.
void check_out_dtype(const OpDef& op, int i, DType dtype, DType given);

}  // namespace facula
