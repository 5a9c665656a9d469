// Convolution as a product of matrices that are never written out, for what cuDNN does not do. The
// host defines FACULA_NAME, what gemm_tile.cuh wants, and
//   FACULA_KIND  0: forward; 1: transposed; 2: gradient of the weight
// Rows are output channels of a group. Columns are (image, output pixel), or (input channel, tap)
// of a weight. Sums run over (input channel, tap), or over (image, pixel).
#pragma once
#include "division.cuh"
#include "gemm_tile.cuh"

namespace facula {

// Mirrors ConvAxis in csrc/cpu/conv.h: output t and tap j meet input t * step + j * spread + start.
struct Axis {
  int64 out, in, taps, step, spread, start, x_stride, w_stride, y_stride;
};

// Written by own_convolution in csrc/cuda/convolution.cpp.
struct Arguments {
  Item* x;
  Item* w;
  const Item* bias;
  Item* y;
  int64 in, out;  // channels of one group
  int64 x_batch, x_channel, w_group, w_out, w_in, y_batch, y_channel;
  int64 columns, depth;
  Axis axis[3];
};

// Offsets in x, w and y, of which some part may lie outside.
struct Place {
  int64 offset;
  bool inside;
};

__device__ __forceinline__ int64 pop(int64& rest, int64 size) {
  const Division division = quotient_and_rest(rest, size);
  rest = division.quotient;
  return division.rest;
}

// Where tap (t0, t1, t2) of column pixel p lies in x, for forward; in x of the transposed operator.
struct Pixel {
  int64 image, at[3];
  // From an index over (image, pixels); sizes are those of the tensor whose pixels are counted.
  __device__ __forceinline__ Pixel(const Arguments& a, int64 i, bool of_input) {
#pragma unroll
    for (int d = 2; d >= 0; --d) at[d] = pop(i, of_input ? a.axis[d].in : a.axis[d].out);
    image = i;
  }
};
struct Tap {
  int64 channel, at[3];
  __device__ __forceinline__ Tap(const Arguments& a, int64 i) {
#pragma unroll
    for (int d = 2; d >= 0; --d) at[d] = pop(i, a.axis[d].taps);
    channel = i;
  }
};

__device__ __forceinline__ int64 weight_offset(const Arguments& a, int64 group, int64 out,
                                               const Tap& tap) {
  int64 at = group * a.w_group + out * a.w_out + tap.channel * a.w_in;
#pragma unroll
  for (int d = 0; d < 3; ++d) at += tap.at[d] * a.axis[d].w_stride;
  return at;
}

__device__ __forceinline__ Place input_of(const Arguments& a, int64 group, const Pixel& pixel,
                                          const Tap& tap) {
  Place place{pixel.image * a.x_batch + (group * a.in + tap.channel) * a.x_channel, true};
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const Axis& axis = a.axis[d];
#if FACULA_KIND == 1
    const int64 distance = pixel.at[d] - axis.start - tap.at[d] * axis.spread;
    const Division division = quotient_and_rest(distance < 0 ? 0 : distance, axis.step);
    const int64 at = division.quotient;
    place.inside = place.inside && distance >= 0 && division.rest == 0 && at < axis.out;
#else
    const int64 at = pixel.at[d] * axis.step + tap.at[d] * axis.spread + axis.start;
    place.inside = place.inside && at >= 0 && at < axis.in;
#endif
    place.offset += at * axis.x_stride;
  }
  return place;
}

__device__ __forceinline__ int64 output_offset(const Arguments& a, int64 group, int64 out,
                                               const Pixel& pixel) {
  int64 at = pixel.image * a.y_batch + (group * a.out + out) * a.y_channel;
#pragma unroll
  for (int d = 0; d < 3; ++d) at += pixel.at[d] * a.axis[d].y_stride;
  return at;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 column0 = int64(blockIdx.x) * kTile, row0 = int64(blockIdx.y) * kTile;
  const int64 group = blockIdx.z;
  T sum[4][4] = {};
  multiply_tile(
      arguments.depth,
      [&](int row, int64 k) {
        if (row0 + row >= arguments.out || k >= arguments.depth) return T(0);
#if FACULA_KIND == 2
        const Pixel pixel(arguments, k, false);
        return convert<T>(arguments.y[output_offset(arguments, group, row0 + row, pixel)]);
#else
        return convert<T>(
            arguments.w[weight_offset(arguments, group, row0 + row, Tap(arguments, k))]);
#endif
      },
      [&](int64 k, int column) {
        if (column0 + column >= arguments.columns || k >= arguments.depth) return T(0);
        const int64 pixels = FACULA_KIND == 2 ? k : column0 + column;
        const int64 taps = FACULA_KIND == 2 ? column0 + column : k;
        const Place place = input_of(arguments, group, Pixel(arguments, pixels, FACULA_KIND == 1),
                                     Tap(arguments, taps));
        return place.inside ? convert<T>(arguments.x[place.offset]) : T(0);
      },
      sum);
  each_column(sum, [&](int column, const T (&sums)[4]) {
    if (column0 + column >= arguments.columns) return;
#if FACULA_KIND == 2
    const Tap tap(arguments, column0 + column);
#else
    const Pixel pixel(arguments, column0 + column, FACULA_KIND == 1);
#endif
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64 row = row0 + threadIdx.x / 16 + i * 16;
      if (row >= arguments.out) return;
#if FACULA_KIND == 2
      arguments.w[weight_offset(arguments, group, row, tap)] = convert<Item>(sums[i]);
#else
      T value = sums[i];
      if (arguments.bias) {
        value = value + convert<T>(arguments.bias[group * arguments.out + row]);
      }
      arguments.y[output_offset(arguments, group, row, pixel)] = convert<Item>(value);
#endif
    }
  });
}
