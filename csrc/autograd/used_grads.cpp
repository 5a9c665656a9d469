#include "autograd/used_grads.h"

#include "op/ops/reductions.h"

namespace facula {

std::atomic<bool> watch_used_grads{true};

// Programs may clear gradients by hand, also through `.data`, which leaves no trace but the zeros.
static bool is_zero(const Tensor& t) {
  if (!t.is_cpu() || t.is_wrapped()) return true;  // not looked at: no warning
  GradGuard off(false);
  return !item_of(op::any(detach_tensor(t))).to<bool>();
}

void note_accumulation(AutogradMeta& m, const Tensor& grad) {
  if (m.used_grad != grad.impl()) return note_zero(m);
  if (!watch_used_grads.load(std::memory_order_relaxed)) return;
  // What the program itself has written to it since the step is meant: zeros, or a decay.
  if ((!m.grad_reused && grad.version() != m.used_version) || is_zero(grad)) return note_zero(m);
  m.grad_reused = true;
}

bool note_use(AutogradMeta& m, const Tensor& grad) {
  const bool reused = m.grad_reused && m.used_grad == grad.impl() && !is_zero(grad);
  m.used_grad = grad.impl();
  m.used_version = grad.version();
  m.grad_reused = false;
  return reused;
}

}  // namespace facula
