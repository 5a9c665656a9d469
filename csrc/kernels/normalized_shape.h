// What norms over the last dimensions ask of the shape they are given.
#pragma once

#include "core/tensor.h"

namespace facula::kernels {

// The first of the last dimensions of `input` that are normalized together.
inline int64_t first_normalized(const Tensor& input, IntSpan normalized) {
  if (normalized.empty())
    runtime_error(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
        "element, but got normalized_shape = []");
  const int64_t first = input.dim() - int64_t(normalized.size());
  if (first < 0 || !same(input.sizes().subspan(size_t(first)), normalized))
    runtime_error("Given normalized_shape=", normalized, ", expected input with shape [*, ",
                  text(normalized).substr(1), ", but got input of size", input.sizes());
  return first;
}

}  // namespace facula::kernels
