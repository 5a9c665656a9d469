// Running totals along lines.
#pragma once
#include "op/hooks/sorting.h"

namespace facula::cuda {

void scan_lines(const Tensor& in, int64_t dim, Scan scan, const Tensor& out);
void scan_extremes(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                   const Tensor& indices);

}  // namespace facula::cuda
