// gather and scatter along one dimension, one index per element.
#pragma once
#include "core/tensor.h"

namespace facula {

enum class Combine : uint8_t { Assign, Add, Multiply, Maximum, Minimum };

// All tensors have the same rank, at least 1; index is int64 of any strides.
// out[i, j] = self[i, index[i, j]] for dim 1; out has the shape of index. Raises for a bad index.
void cpu_gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index);
// out[i, index[i, j]] = out[i, index[i, j]] . src[i, j], in the order of j. The dtype is no small
// float except for Assign; src may have strides of 0. Raises for a bad index when some may have
// been written already: check before where that matters.
void cpu_scatter(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                 Combine combine);
// Raises for an index outside [0, size).
void cpu_check_scatter_index(const Tensor& index, int64_t size, int64_t dim);

}  // namespace facula
