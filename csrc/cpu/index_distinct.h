// Distinct elements: NaN equals nothing, -0 equals 0, and the first of equal elements stands for
// them.
#pragma once
#include "core/tensor.h"

namespace facula {

struct Distinct {
  Tensor values;
  Tensor inverse;  // the place in `values` of every element; empty when not asked for
  Tensor counts;   // how many there were of each; empty when not asked for
};

// Of a contiguous vector of an ordered dtype.
Distinct cpu_distinct_sorted(const Tensor& x, bool want_inverse, bool want_counts);
Distinct cpu_distinct_neighbours(const Tensor& x, bool want_inverse, bool want_counts);

}  // namespace facula
