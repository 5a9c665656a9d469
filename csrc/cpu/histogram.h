// Counting points in the cells of a grid.
#pragma once
#include "op/value.h"

namespace facula {

// Adds 1, or the point's weight, to the cell of `counts` (b1, b2, ...) that each row of `points`
// (n, d) lies in. Along every dimension `edges` should rise; the last cell includes its upper end,
// and points outside of the grid, or NaN, are left out. `equal`: the cells have equal widths. All
// tensors are contiguous and of one dtype, float32 or float64.
void cpu_histogram_grid(const Tensor& points, TensorSpan edges, bool equal, const Tensor& weights,
                        const Tensor& counts);

}  // namespace facula
