// One step of an optimiser over the parameters of a group.
#pragma once
#include <span>

#include "core/tensor.h"
#include "cpu/optim_loop.h"

namespace facula {

struct OptimParameter {
  Tensor param, grad;
  Tensor state[kOptimSlots];
  Tensor scalars[3];  // 0-dim: the step and what else the rule keeps
  bool first = false;
};

// A number of a group: an option such as the learning rate, which may be a tensor.
struct OptimOption {
  double value = 0;
  Tensor tensor;     // kept only for differentiable steps
  Tensor on_device;  // where the value lies, if it has not been read
};

struct OptimStep {
  OptimRule rule;
  unsigned flags;
  std::span<OptimOption> options;
  const char* writer;  // "Adam.step", for messages
  bool differentiable;
};

// Checks everything before it writes anything. Adds to the versions of what it writes.
void optimizer_step(const OptimStep& step, std::span<OptimParameter> parameters);

// The same update in terms of operators: on any device, and on the tape.
void optimizer_step_on_tensors(const OptimStep& step, OptimParameter& parameter,
                               OptimScalars& scalars);

}  // namespace facula
