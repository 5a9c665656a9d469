// Patches of images as columns, and the sums that undo it, on the host.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

struct ColumnAxis {
  int64_t in, out;  // pixels, patches
  int64_t taps, step, spread, pad;
};

// columns[plane, tap, patch] = image[plane, pixel], zero in the padding; of any dtype.
void image_to_columns(DType dtype, int64_t planes, const ColumnAxis& h, const ColumnAxis& w,
                      const void* image, void* columns);
// The transpose: image = the sums of what columns took from each pixel.
void columns_to_image(DType dtype, int64_t planes, const ColumnAxis& h, const ColumnAxis& w,
                      const void* columns, void* image);

}  // namespace facula
