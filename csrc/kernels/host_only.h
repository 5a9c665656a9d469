// For operators whose kernels exist for host memory only.
#pragma once
#include <initializer_list>

#include "core/tensor.h"

namespace facula {

inline void require_host(const Tensor& t, const char* what) {
  if (t.is_cuda())
    fail(ErrorKind::NotImplemented, "'", what, "' has no kernel for tensors on ", t.device(),
         "; move the input with .cpu() to compute it on the host");
}

// Refuses tensors of different devices; those that are not given do not count.
inline void require_one_device(std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    if (!first) first = t;
    else if (t->device() != first->device()) device_error(first->device(), t->device());
  }
}

}  // namespace facula
