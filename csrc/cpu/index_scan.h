// Running products, extrema and log-sums along one dimension that is not empty. Tensors have one
// rank, at least 1, and values the dtype of the input.
#pragma once
#include "core/tensor.h"

namespace facula {

void cpu_cumprod(const Tensor& in, int64_t dim, const Tensor& out);
void cpu_logcumsumexp(const Tensor& in, int64_t dim, const Tensor& out);  // floating or complex
// The last position of the extremum so far; NaN wins and stays.
void cpu_cumulative_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                            const Tensor& indices);

}  // namespace facula
