// Reading, writing and combining a tensor at points.
#pragma once
#include "op/hooks/indexing.h"

namespace facula::cuda {

void read_points(const PointSet& points, const Tensor& values);
void write_points(const PointSet& points, const Tensor& values);
void combine_points(const PointSet& points, const Tensor& values, Combine combine,
                    const Scalar& alpha);

}  // namespace facula::cuda
