// What the two files on Winograd's algorithm share: F(4x4, 3x3) and F(3x3, 4x4) (Lavin and Gray,
// 2015). Both cut the output into tiles of 4x4, which see 6x6 inputs, and interpolate at the same
// six points, so that the transformed input is the same.
//
// The points are 0, 5/8, -5/8, 3/2, -3/2 and infinity. They keep the rounding error within twice
// that of a plain sum; the usual 0, 1, -1, 2, -2 lose two more bits.
//
// Vectors run along channels. Images that lie by planes (NCHW) are turned in strips.
#pragma once
#include "cpu/conv_pack.h"

namespace facula::FACULA_ISA {

constexpr int kPoints = 36;  // elements of a transformed tile
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr float kProduct = kA2 * kB2, kSum = kA2 + kB2;
// The reciprocals of the products of differences between each point and the others.
constexpr float kAt0 = 1 / kProduct, kAtA = 1 / (2 * kA2 * (kA2 - kB2)),
                kAtB = 1 / (2 * kB2 * (kB2 - kA2));

using Floats = Vector<float>;
constexpr int64_t kWide = kLanes<float>;

// Points are written side by side: an odd number of cache lines keeps them in different sets.
FACULA_INLINE int64_t odd_lines(int64_t floats) {
  return (round_up(floats, 16) / 16 | 1) * 16;
}

FACULA_INLINE void transform_input(const Floats* d, int step, Floats* out, int out_step) {
  const Floats d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
               d5 = d[5 * step];
  const Floats even_a = d4 - kB2 * d2, odd_a = d3 - kB2 * d1;
  const Floats even_b = d4 - kA2 * d2, odd_b = d3 - kA2 * d1;
  out[0] = (d4 - kSum * d2) + kProduct * d0;
  out[out_step] = even_a + kA * odd_a;
  out[2 * out_step] = even_a - kA * odd_a;
  out[3 * out_step] = even_b + kB * odd_b;
  out[4 * out_step] = even_b - kB * odd_b;
  out[5 * out_step] = (d5 - kSum * d3) + kProduct * d1;
}

// One tile from pixels that lie `row` and `column` apart; `count` channels of a vector exist.
template <class S>
FACULA_INLINE void transform_tile(const S* x, int64_t row, int64_t column, int64_t count, float* to,
                                  int64_t step) {
  Floats d[6], t[kPoints];
#pragma GCC unroll 6
  for (int q = 0; q < 6; ++q) {
#pragma GCC unroll 6
    for (int r = 0; r < 6; ++r) d[r] = load_first(x + r * row + q * column, count);
    transform_input(d, 1, t + q, 6);
  }
#pragma GCC unroll 6
  for (int r = 0; r < 6; ++r) {
    transform_input(t + 6 * r, 1, d, 1);
#pragma GCC unroll 6
    for (int q = 0; q < 6; ++q) store(to + (6 * r + q) * step, d[q]);
  }
}

struct Tiles {
  int64_t rows, columns, all;
  explicit Tiles(const Conv& v)
      : rows(divide_up(v.axis[1].out, 4)),
        columns(divide_up(v.axis[2].out, 4)),
        all(v.batch * rows * columns) {}
};

// Neighbouring tiles of one row of tiles.
struct TileRun {
  int64_t first, count;  // within the task
  int64_t batch, row, column;
};
template <class F>
FACULA_INLINE void for_each_tile_run(const Tiles& tiles, int64_t begin, int64_t count, F f) {
  for (int64_t i = 0; i < count;) {
    const int64_t at = begin + i, column = at % tiles.columns, row = at / tiles.columns;
    const int64_t n = smaller(tiles.columns - column, count - i);
    f(TileRun{i, n, row / tiles.rows, row % tiles.rows, column});
    i += n;
  }
}

// An image of the input or of the gradient.
template <class S>
struct Image {
  const S* data;
  int64_t rows, columns, row_stride, column_stride, channel_stride;

  // `count` pixels from (row, column) on, of up to kWide channels, as vectors; zero outside.
  void gather(int64_t row, int64_t column, int64_t count, int64_t channels, float* to) const {
    const int64_t low = smaller(larger(-column, 0), count);
    const int64_t high = larger(low, smaller(count, columns - column));
    if (row < 0 || row >= rows || low == high) {
      for (int64_t i = 0; i < count * kWide; ++i) to[i] = 0;
      return;
    }
    for (int64_t i = 0; i < low * kWide; ++i) to[i] = 0;
    for (int64_t i = high * kWide; i < count * kWide; ++i) to[i] = 0;
    const S* from = data + row * row_stride + (column + low) * column_stride;
    if (channel_stride != 1)
      return turn_channels(from, column_stride, channel_stride, high - low, channels,
                           to + low * kWide);
    for (int64_t i = low; i < high; ++i, from += column_stride) {
      store(to + i * kWide, load_first(from, channels));
    }
  }
  bool contains(int64_t row, int64_t column, int64_t size) const {
    return row >= 0 && row + size <= rows && column >= 0 && column + size <= columns;
  }
};

template <class S>
FACULA_INLINE Image<S> input_image(const Conv& v, int64_t group, int64_t batch) {
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  return {static_cast<const S*>(v.x) + group * v.in * v.x_channel + batch * v.x_batch,
          h.in,
          w.in,
          h.x_stride,
          w.x_stride,
          v.x_channel};
}

// A strip has room for six rows of a run of tiles.
FACULA_INLINE int64_t strip_floats(const Tiles& tiles, int64_t count) {
  return 6 * (4 * smaller(tiles.columns, count) + 2) * kWide;
}

// Transforms tiles [begin, begin + count) of the input, channels [first, first + channels):
// to[point * step + tile * pitch + channel], zero for channels that do not exist.
template <class S>
void transform_inputs(const Conv& v, const Tiles& tiles, int64_t group, int64_t begin,
                      int64_t count, int64_t first, int64_t channels, float* strip, float* to,
                      int64_t pitch, int64_t step) {
  for_each_tile_run(tiles, begin, count, [&](const TileRun& run) {
    Image<S> image = input_image<S>(v, group, run.batch);
    const S* const start = image.data;
    const int64_t row = run.row * 4 + v.axis[1].start, column0 = run.column * 4 + v.axis[2].start;
    for (int64_t c = 0; c < channels; c += kWide) {
      const int64_t exist = smaller(kWide, v.in - first - c);
      image.data = start + (first + c) * image.channel_stride;
      float* out = to + run.first * pitch + c;
      if (image.channel_stride != 1) {
        const int64_t columns = run.count * 4 + 2;
        for (int64_t r = 0; r < 6; ++r) {
          image.gather(row + r, column0, columns, exist, strip + r * columns * kWide);
        }
        for (int64_t i = 0; i < run.count; ++i, out += pitch) {
          transform_tile(strip + i * 4 * kWide, columns * kWide, kWide, kWide, out, step);
        }
        continue;
      }
      for (int64_t i = 0; i < run.count; ++i, out += pitch) {
        const int64_t column = column0 + i * 4;
        if (image.contains(row, column, 6)) {
          transform_tile(image.data + row * image.row_stride + column * image.column_stride,
                         image.row_stride, image.column_stride, exist, out, step);
          continue;
        }
        for (int64_t r = 0; r < 6; ++r) {
          image.gather(row + r, column, 6, exist, strip + r * 6 * kWide);
        }
        transform_tile(strip, 6 * kWide, kWide, kWide, out, step);
      }
    }
  });
}

}  // namespace facula::FACULA_ISA
