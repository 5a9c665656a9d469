// Values of images and volumes at arbitrary points, on the host, in float32 or float64.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

enum class GridMode : uint8_t { Linear, Nearest, Cubic };
enum class GridPadding : uint8_t { Zeros, Border, Reflection };

// input (batch, channels, size ...), grid (batch, points, dims) with x first, output (batch,
// channels, points), all dense. Missing dimensions of an image are 1, in front.
struct GridSample {
  GridMode mode;
  GridPadding padding;
  bool align_corners;
  int64_t batch, channels, points;
  int dims;
  int64_t size[3];

  int64_t pixels() const { return size[0] * size[1] * size[2]; }
};

// Sums over what points see of the input, for each point; for each element of the input; and with
// the slopes of the weights by the coordinates, for each point and coordinate. With a direction (of
// the grid's shape) in place of a null pointer, weights are differentiated along it before.
template <class T>
void grid_sample(const GridSample&, const T* input, const T* grid, const T* direction, T* output);
template <class T>
void grid_sample_back(const GridSample&, const T* grad, const T* grid, const T* direction,
                      T* input);
template <class T>
void grid_sample_slopes(const GridSample&, const T* grad, const T* input, const T* grid,
                        const T* direction, T* slopes);

}  // namespace facula
