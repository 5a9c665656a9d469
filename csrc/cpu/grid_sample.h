// Values of images and volumes at arbitrary points, on the host, in float32 or float64.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

enum class GridMode : uint8_t { Linear, Nearest, Cubic };
enum class GridPadding : uint8_t { Zeros, Border, Reflection };

// input (batch, channels, size ...), grid (batch, points, dims) with x first, output (batch,
// channels, points), all dense. Missing dimensions of an image are 1, in front. Or channels, a
// multiple of four, are the last dimension of input and output.
struct GridSample {
  GridMode mode;
  GridPadding padding;
  bool align_corners, channels_last;
  int64_t batch, channels, points;
  int dims;
  int64_t size[3];

  FACULA_INLINE int64_t pixels() const { return size[0] * size[1] * size[2]; }
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

// ---- what grid_sample_isa.cpp offers

constexpr int kGridBlock = 64;     // points
constexpr int kMostGridTaps = 16;  // 4 x 4 of cubic interpolation; volumes have 8

// What a block of points sees: tap by tap, the pixel (-1: outside), the weight and its slopes.
template <class T>
struct GridBlock {
  int taps;
  // Points with a pixel outside (of cubic interpolation: whose pixels are no square), and which
  // they are.
  int edges;
  uint8_t edge[kGridBlock];
  // Of interpolation in images: the upper left of the four (linear) or 16 (cubic) pixels, 0 for
  // points at edges, and the distance of rows; 0 where pixels have to be looked up one by one.
  // Where there is one pixel: that one, or 0.
  int32_t corner[kGridBlock];
  int64_t row;
  int32_t pixel[kMostGridTaps][kGridBlock];
  T weight[kMostGridTaps][kGridBlock];
  T slope[3][kMostGridTaps][kGridBlock];  // by x, y, z
};

template <class T>
struct GridLoops {
  void (*look_up)(const GridSample&, const T* grid, const T* direction, int64_t n, bool slopes,
                  GridBlock<T>&);
  void (*sample)(const GridBlock<T>&, const T* x, int64_t n, T* y);
  void (*slopes)(const GridBlock<T>&, const T* x, const T* y, int64_t n, int dims,
                 T (*sums)[kGridBlock]);
  // The same, and the transpose of the first, where channels lie side by side: y is (n, channels).
  // `add` takes `count` of the channels.
  void (*sample_pixels)(const GridBlock<T>&, const T* x, int64_t n, int64_t channels, T* y);
  void (*add_pixels)(const GridBlock<T>&, const T* y, int64_t n, int64_t channels, int64_t count,
                     T* x);
  void (*slope_pixels)(const GridBlock<T>&, const T* x, const T* y, int64_t n, int64_t channels,
                       int dims, T* slopes);
};

}  // namespace facula
