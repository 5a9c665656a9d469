// Runs the updates of many parameters as one piece of work, split over the pool.
#pragma once
#include <span>

#include "core/tensor.h"
#include "cpu/optim_loop.h"

namespace facula {

struct OptimWork {
  OptimLoop loop;
  unsigned flags;  // of the update; what `loop` was chosen by
  DType compute;   // Float32 or Float64
  double k[kOptimCoefficients];
  TensorImpl* operands[2 + kOptimSlots];  // borrowed: parameter, gradient, state; null where unused
};

// All operands lie in memory in the same order, without gaps.
bool is_flat(const OptimWork& work);

// Tensors are on the host, real, of one shape for each work.
void cpu_optimizer_step(std::span<const OptimWork> works);

}  // namespace facula
