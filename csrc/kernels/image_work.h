// Work along the axes of images and volumes, on the host or on a device.
#pragma once
#include "cpu/positions.h"
#include "cpu/resample.h"
#include "kernels/spatial.h"
#include "op/hooks/images.h"

namespace facula {

ImageTensor on_device(const Spatial& s);

// out = weighted sums of elements of `in` (cpu/resample.h).
void resample_images(const Spatial& in, const ResampleTable tables[3], const Spatial& out);
// out = elements of `in` at given positions, and the sums that undo it (cpu/positions.h).
void select_positions(const Spatial& in, const AxisPositions axis[3], const Spatial& out);
void add_positions(const Spatial& in, const AxisPositions axis[3], const Spatial& out);

}  // namespace facula
