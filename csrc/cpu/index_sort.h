// Sorting and selection along one dimension. Tensors have one rank, at least 1, and any strides;
// results may be shorter along the dimension.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "cpu/index_order.h"

namespace facula {

// The k lowest (with `descending`, highest) elements of each line in order.
void cpu_sort(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
              const Tensor& indices);
void cpu_pick(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
              const Tensor& indices);

// Rows of a contiguous matrix brought into groups of equal ones; NaN equals nothing.
struct Grouping {
  std::vector<int64_t> order;   // rows, those of a group together
  std::vector<int64_t> starts;  // where in `order` each group begins, and the end
};
Grouping cpu_group_sorted(const Tensor& matrix);
Grouping cpu_group_neighbours(const Tensor& matrix);

}  // namespace facula
