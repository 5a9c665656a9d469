#include "op/hooks/indexing.h"

namespace facula {

PointSet points_along(const char* name, const Tensor& tensor, int64_t dim, const Tensor& index) {
  PointSet points{name, tensor, Dims(index.sizes()), Dims(tensor.strides()), {}, false};
  points.strides[size_t(dim)] = 0;
  points.along.push_back({index, Dims(index.strides()), tensor.stride(dim), tensor.size(dim), dim});
  return points;
}

PointSet slices_along(const char* name, const Tensor& tensor, int64_t dim, const Tensor& index,
                      bool negative) {
  PointSet points{name, tensor, Dims(tensor.sizes()), Dims(tensor.strides()), {}, negative};
  points.shape[size_t(dim)] = index.numel();
  points.strides[size_t(dim)] = 0;
  Dims spread(size_t(tensor.dim()), 0);
  spread[size_t(dim)] = index.dim() ? index.stride(0) : 0;
  points.along.push_back({index, spread, tensor.stride(dim), tensor.size(dim), dim});
  return points;
}

}  // namespace facula
