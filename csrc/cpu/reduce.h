// Reductions on the host: the drive over the loops of reduce_loop.h.
#pragma once
#include "op/reduce.h"

namespace facula {

void cpu_reduce(const ReduceDef& def, const Tensor& in, uint64_t mask, bool keepdim, DType acc,
                const Tensor& out);

}  // namespace facula
