// Reductions on the host: the drive over the loops of reduce_loop.h.
#pragma once
#include "op/reduce.h"

namespace facula {

// What happens to each value before it is folded: a loop of one operand on the accumulation type.
struct ReduceMap {
  Loop loop = nullptr;
  const void* params = nullptr;
  // The same together with the reduction, of dense elements as they are: like the loops of
  // ReduceDef. May be null.
  ReduceLoop run = nullptr;
  Loop fold = nullptr;
};

void cpu_reduce(const ReduceDef& def, const Tensor& in, uint64_t mask, bool keepdim, DType acc,
                const Tensor& out, ReduceMap map = {});

}  // namespace facula
