// What the kernels of pooling share: the sizes of results, and windows of any place and size.
#pragma once
#include <functional>

#include "cpu/max_pool.h"
#include "kernels/spatial.h"

namespace facula {

// The spatial sizes of a pooled tensor; refuses kernels, strides and paddings that do not fit.
Dims pooled_sizes(const Tensor& input, IntSpan kernel, IntSpan stride, IntSpan padding,
                  IntSpan dilation, bool ceil_mode);

struct MaxWindows {
  // Window t of an axis (0 to 2), in a plane.
  std::function<PoolWindow(int64_t plane, int axis, int64_t t)> window;
  bool by_plane = false;  // whether planes have windows of their own
};
// The largest element of each window and its position in the flattened plane.
void max_of_windows(const Spatial& in, const Spatial& values, const Spatial& where,
                    const MaxWindows& windows);
// out = for each pixel, the sum of the gradients whose position it is. Floating-point dtypes.
void sum_by_positions(const Spatial& grad, const Spatial& where, const Spatial& out);

}  // namespace facula
