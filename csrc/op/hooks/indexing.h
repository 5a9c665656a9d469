// What a device backend does for reading and writing by indices (kernels/scatter.cpp and others).
#pragma once
#include <vector>

#include "cpu/index_scatter.h"
#include "op/device_hook.h"
#include "op/value.h"

namespace facula {

// A tensor at points: places whose positions along some of its dimensions come from index tensors.
// The values there have a shape of their own, over which tensor and indices have strides.
struct PointSet {
  struct Along {
    Tensor index;  // int64 on the tensor's device
    Dims strides;  // over the shape of the values, in elements
    int64_t step;  // elements of the tensor between neighbouring positions
    int64_t size;  // positions below it are good
    int64_t dim;   // for error texts
  };
  const char* name;  // of the operator
  Tensor tensor;
  Dims shape;                // of the values
  Dims strides;              // of the tensor, 0 where its position comes from the indices
  std::vector<Along> along;  // at most 6
  bool negative = false;     // negative positions count from the end
};

// index gives the position along dim for every value: gather and scatter.
PointSet points_along(const char* name, const Tensor& tensor, int64_t dim, const Tensor& index);
// index, a vector, names slices along dim: index_select and its kin.
PointSet slices_along(const char* name, const Tensor& tensor, int64_t dim, const Tensor& index,
                      bool negative);

struct IndexingHooks {
  // `values` have the points' shape, or strides of 0. Bad indices are noted (cuda/fault.h).
  DeviceHook<void(const PointSet& points, const Tensor& values)> read{"index"};
  DeviceHook<void(const PointSet& points, const Tensor& values)> write{"index_put"};
  // tensor = tensor . alpha * values; small floats are combined in float32.
  DeviceHook<void(const PointSet& points, const Tensor& values, Combine combine,
                  const Scalar& alpha)>
      combine{"scatter_add"};

  // Where a dense tensor is not zero, in order, as int64: one linear position each, or (unravel)
  // one for each dimension, (n, dims), columns together. The host reads how many there are.
  DeviceHook<Tensor(const Tensor& mask, bool unravel)> true_positions{"nonzero"};
  // For each of `values` (rows, m) how many of the sorted `boundaries` (rows or 1, n) lie before
  // it; like cpu_searchsorted.
  DeviceHook<void(const Tensor& boundaries, const Tensor& values, const Tensor& sorter, bool right,
                  const Tensor& counts)>
      searchsorted{"searchsorted"};
  // out (rows, width) of the sums of grad's rows by the row that `lookups` (int64, dense) names;
  // like kernels/embedding.cpp's.
  DeviceHook<void(const Tensor& grad, const Tensor& lookups, int64_t padding, bool by_frequency,
                  const Tensor& out)>
      sum_rows{"embedding"};
  // Bags of table rows; like kernels/embedding_bag.cpp's. `limits` has one more element than there
  // are bags.
  DeviceHook<void(const Tensor& table, const Tensor& lookups, const Tensor& limits,
                  const Tensor& factors, int64_t mode, int64_t padding, const Tensor& out,
                  const Tensor& sizes, const Tensor& rows)>
      reduce_bags{"embedding_bag"};
  // Parts of `out` along dim, one after the other, of one dtype; all in one launch.
  DeviceHook<void(TensorSpan parts, int64_t dim, const Tensor& out)> cat{"cat"};
  // Keeps elements on one side of a diagonal of the last two dimensions; both contiguous.
  DeviceHook<void(const Tensor& self, int64_t diagonal, bool lower, const Tensor& out)> triangle{
      "tril"};
};
inline constinit IndexingHooks device_indexing;

}  // namespace facula
