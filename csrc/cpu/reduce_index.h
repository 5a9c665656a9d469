// Host kernels along one dimension: positions of extrema, running sums, softmax.
#pragma once
#include "core/tensor.h"

namespace facula {

void cpu_reduce_index(const Tensor& in, int64_t dim, bool keepdim, bool largest,
                      const Tensor& values, const Tensor& indices);
void cpu_cumsum(const Tensor& in, int64_t dim, const Tensor& out);
void cpu_softmax(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out);  // contiguous
void cpu_softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim, bool logarithm,
                      const Tensor& out);  // contiguous, of one floating dtype

}  // namespace facula
