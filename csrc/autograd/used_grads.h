// Finds training loops without zero_grad: a gradient that a step has used and that grows on.
#pragma once
#include "autograd/node.h"

namespace facula {

extern std::atomic<bool> watch_used_grads;  // off after the first warning, or by the user

// A backward pass is about to add to the gradient of a leaf that a step has used before.
void note_accumulation(AutogradMeta& meta, const Tensor& grad);
// A step reads the gradient. True when it still holds what an earlier step used.
bool note_use(AutogradMeta& meta, const Tensor& grad);
// The gradient was set to zero, or to something that no backward pass made.
inline void note_zero(AutogradMeta& meta) {
  meta.used_grad = nullptr;
  meta.grad_reused = false;
}

}  // namespace facula
