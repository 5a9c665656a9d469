// Binary search and counting.
#pragma once
#include "core/tensor.h"

namespace facula {

// For each of `values` (rows, m), how many of the sorted `boundaries` (rows or 1, n) lie before it;
// `right`: or are equal. `sorter` (like boundaries) gives their order, or is undefined. All are
// contiguous and of one ordered dtype; counts are int64 or int32.
void cpu_searchsorted(const Tensor& boundaries, const Tensor& values, const Tensor& sorter,
                      bool right, const Tensor& counts);

// counts[v] += 1 (int64) or += weights (float32 or float64) for each value; all contiguous.
void cpu_bincount(const Tensor& values, const Tensor& weights, const Tensor& counts);

// Counts of elements of x (contiguous float32 or float64) in equal bins of [low, high].
void cpu_histogram(const Tensor& x, double low, double high, const Tensor& counts);

}  // namespace facula
