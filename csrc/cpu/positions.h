// Elements at given positions along the axes of images and volumes (padding by repetition, nearest
// neighbours), and the sums that undo it.
#pragma once
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace facula {

// Element t of the result is element at[t] of the input, or a given value where that is -1.
struct AxisPositions {
  int64_t in = 1;
  std::vector<int64_t> at{0};

  int64_t out() const { return int64_t(at.size()); }
};

// y(outer, out ..., inner) from x(outer, in ..., inner), both dense, of any dtype. `outside` points
// to the value of positions -1, where there are any.
void select_positions(DType dtype, int64_t outer, int64_t inner, const AxisPositions axis[3],
                      const void* x, void* y, const void* outside = nullptr);
// x = the sums of the y that were taken from the same element. Half types are added in float32.
void add_positions(DType dtype, int64_t outer, int64_t inner, const AxisPositions axis[3],
                   const void* y, void* x);

}  // namespace facula
