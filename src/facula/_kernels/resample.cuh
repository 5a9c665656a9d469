// Weighted sums of neighbours along the axes (csrc/cpu/resample.h). The host defines FACULA_NAME,
//   FACULA_ITEM     type of the elements
//   FACULA_COMPUTE  the type T of weights and sums
#pragma once
#include "image_index.cuh"

namespace facula {

using T = FACULA_COMPUTE;
using Item = FACULA_ITEM;

// Element t is the sum over k < count[t] of weight[t * width + k] times element start[t] + k.
struct Axis {
  const int32* start;
  const int32* count;
  const T* weight;
  int64 width;
};

// Written by resample in csrc/cuda/images.cpp.
struct Arguments {
  const Item* x;
  Item* y;
  int64 count;
  ImageShape in, out;
  Axis axis[3];
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const ImagePlace place(a.out, i);
  int32 start[3], count[3];
  const T* weight[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    start[d] = a.axis[d].start[place.at[d]];
    count[d] = a.axis[d].count[place.at[d]];
    weight[d] = a.axis[d].weight + place.at[d] * a.axis[d].width;
  }
  T sum = T(0);
#pragma unroll 1
  for (int32 z = 0; z < count[0]; ++z) {
    T plane = T(0);
#pragma unroll 1
    for (int32 y = 0; y < count[1]; ++y) {
      const Item* row = a.x + a.in.offset(place.outer, start[0] + z, start[1] + y, start[2],
                                          place.channel);
      T line = T(0);
#pragma unroll 2
      for (int32 x = 0; x < count[2]; ++x) {
        line += weight[2][x] * convert<T>(row[x * a.in.inner]);
      }
      plane += weight[1][y] * line;
    }
    sum += weight[0][z] * plane;
  }
  if constexpr (is_integer<Item>) {
    // Bytes are rounded to the nearest.
    sum = (sum < T(0) ? T(0) : (sum > T(255) ? T(255) : sum)) + T(0.5);
  }
  a.y[i] = convert<Item>(sum);
}
