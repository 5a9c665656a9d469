// For operators whose kernels exist for host memory only.
#pragma once
#include "core/tensor.h"

namespace facula {

inline void require_host(const Tensor& t, const char* what) {
  if (t.is_cuda())
    fail(ErrorKind::NotImplemented, "'", what, "' has no kernel for tensors on ", t.device(),
         "; move the input with .cpu() to compute it on the host");
}

}  // namespace facula
