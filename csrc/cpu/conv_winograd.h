// What the two files on Winograd's algorithm share: the output is cut into tiles of M x M, which
// see (M + 2) x (M + 2) inputs.
//
// Vectors run along channels. Images that lie by planes (NCHW) are turned in strips.
#pragma once
#include "cpu/winograd_points.h"

namespace facula::FACULA_ISA {

template <int M>
constexpr int kSide = M + 2;  // of a transformed tile
template <int M>
constexpr int kPoints = kSide<M> * kSide<M>;
constexpr int64_t kWide = kLanes<float>;

// Points are written side by side: an odd number of cache lines keeps them in different sets.
FACULA_INLINE int64_t odd_lines(int64_t floats) {
  return (round_up(floats, 16) / 16 | 1) * 16;
}

// One tile from pixels that lie `row` and `column` apart; `count` channels of a vector exist.
template <int M, class S>
FACULA_INLINE void transform_tile(const S* x, int64_t row, int64_t column, int64_t count, float* to,
                                  int64_t step) {
  constexpr int side = kSide<M>;
  Floats d[side], t[kPoints<M>];
#pragma GCC unroll 6
  for (int q = 0; q < side; ++q) {
#pragma GCC unroll 6
    for (int r = 0; r < side; ++r) d[r] = load_first(x + r * row + q * column, count);
    Winograd<M>::input(d, t + q, side);
  }
#pragma GCC unroll 6
  for (int r = 0; r < side; ++r) {
    Winograd<M>::input(t + side * r, d, 1);
#pragma GCC unroll 6
    for (int q = 0; q < side; ++q) store(to + (side * r + q) * step, d[q]);
  }
}

template <int M>
struct Tiles {
  int64_t rows, columns, all;
  explicit Tiles(const Conv& v)
      : rows(divide_up(v.axis[1].out, M)),
        columns(divide_up(v.axis[2].out, M)),
        all(v.batch * rows * columns) {}
};

// Neighbouring tiles of one row of tiles.
struct TileRun {
  int64_t first, count;  // within the task
  int64_t batch, row, column;
};
template <int M, class F>
FACULA_INLINE void for_each_tile_run(const Tiles<M>& tiles, int64_t begin, int64_t count, F f) {
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

// A strip has room for the rows that a run of tiles sees.
template <int M>
FACULA_INLINE int64_t strip_floats(const Tiles<M>& tiles, int64_t count) {
  return kSide<M> * (M * smaller(tiles.columns, count) + 2) * kWide;
}

// Transforms tiles [begin, begin + count) of the input, channels [first, first + channels):
// to[point * step + tile * pitch + channel], zero for channels that do not exist.
template <class S, int M>
void transform_inputs(const Conv& v, const Tiles<M>& tiles, int64_t group, int64_t begin,
                      int64_t count, int64_t first, int64_t channels, float* strip, float* to,
                      int64_t pitch, int64_t step) {
  constexpr int side = kSide<M>;
  for_each_tile_run(tiles, begin, count, [&](const TileRun& run) {
    Image<S> image = input_image<S>(v, group, run.batch);
    const S* const start = image.data;
    const int64_t row = run.row * M + v.axis[1].start, column0 = run.column * M + v.axis[2].start;
    for (int64_t c = 0; c < channels; c += kWide) {
      const int64_t exist = smaller(kWide, v.in - first - c);
      image.data = start + (first + c) * image.channel_stride;
      float* out = to + run.first * pitch + c;
      if (image.channel_stride != 1) {
        const int64_t columns = run.count * M + 2;
        for (int64_t r = 0; r < side; ++r) {
          image.gather(row + r, column0, columns, exist, strip + r * columns * kWide);
        }
        for (int64_t i = 0; i < run.count; ++i, out += pitch) {
          transform_tile<M>(strip + i * M * kWide, columns * kWide, kWide, kWide, out, step);
        }
        continue;
      }
      for (int64_t i = 0; i < run.count; ++i, out += pitch) {
        const int64_t column = column0 + i * M;
        if (image.contains(row, column, side)) {
          transform_tile<M>(image.data + row * image.row_stride + column * image.column_stride,
                            image.row_stride, image.column_stride, exist, out, step);
          continue;
        }
        for (int64_t r = 0; r < side; ++r) {
          image.gather(row + r, column, side, exist, strip + r * side * kWide);
        }
        transform_tile<M>(strip, side * kWide, kWide, kWide, out, step);
      }
    }
  });
}

}  // namespace facula::FACULA_ISA
