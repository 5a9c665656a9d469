// From tensors and checked indices to the work of cpu/index_points.
#pragma once
#include "core/tensor.h"
#include "cpu/index_points.h"

namespace facula {

// Raises for an index value outside the dimension. `index` is contiguous int64 on the host.
void check_index(const Tensor& index, int64_t size, int64_t dim, bool negative_wraps);

// The slices of `tensor` along `dim` that `index` (a checked contiguous int64 vector) names,
// against those of `values`, whose size along `dim` is that of the index, or whose stride is 0.
PointWork slice_work(const Tensor& tensor, int64_t dim, const Tensor& index, const Tensor& values);

}  // namespace facula
