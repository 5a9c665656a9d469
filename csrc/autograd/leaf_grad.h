// The gradient of a leaf. Backward passes set it without the GIL, while Python code of another
// thread reads it or sets it to None, so the handle is copied and exchanged under a lock. What the
// gradient holds is for the program to keep apart.
#pragma once
#include "autograd/node.h"

namespace facula {

class MetaLock {
 public:
  explicit MetaLock(AutogradMeta& m) : m_(m) {
    while (m_.lock.test_and_set(std::memory_order_acquire)) {}
  }
  ~MetaLock() { m_.lock.clear(std::memory_order_release); }
  MetaLock(const MetaLock&) = delete;
  MetaLock& operator=(const MetaLock&) = delete;

 private:
  AutogradMeta& m_;
};

inline Tensor load_grad(AutogradMeta& m) {
  MetaLock guard(m);
  return m.grad;
}
// The former gradient goes when the lock is free again: its end may be that of other tensors.
inline void store_grad(AutogradMeta& m, Tensor grad) {
  MetaLock guard(m);
  std::swap(m.grad, grad);
}

}  // namespace facula
