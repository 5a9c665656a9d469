// The largest element of windows that divide an axis (FACULA_KIND 0) or that begin at random places
// (1), and its position in the flattened plane. The host defines FACULA_NAME and
//   FACULA_ITEM    type of the elements
//   FACULA_NARROW  1: places are computed in float (see random_start in csrc/kernels/pooling.cpp)
#pragma once
#include "image_index.cuh"

namespace facula {

using Item = FACULA_ITEM;
using Value = choose<is_small_float<Item>, float, Item>;
using Real = choose<FACULA_NARROW, float, double>;

// Written by window_max in csrc/cuda/images.cpp.
struct Arguments {
  const Item* x;
  Item* y;
  int64* positions;
  const double* samples;  // (planes, dims)
  int64 count;
  ImageShape in, out;
  int64 taps[3];
  int32 dims;
};

__device__ __forceinline__ void window_of(const Arguments& a, int64 plane, int d, int64 t,
                                          int64& begin, int64& end) {
  const int64 in = a.in.size[d], out = a.out.size[d];
#if FACULA_KIND == 0
  begin = quotient_and_rest(t * in, out).quotient;
  end = quotient_and_rest((t + 1) * in + out - 1, out).quotient;
#else
  const int k = d - (3 - a.dims);
  begin = 0;
  end = 1;
  if (k < 0) return;
  // Samples are given as (width, height) of images, but (depth, height, width) of volumes.
  const int at = a.dims == 2 ? 1 - k : k;
  if (t == out - 1) {
    begin = in - a.taps[d];
  } else {
    const Real sample = Real(a.samples[plane * a.dims + at]);
    const Real alpha = Real(in - a.taps[d]) / Real(out - 1);
    begin = int64((Real(t) + sample) * alpha) - int64(sample * alpha);
  }
  end = begin + a.taps[d];
#endif
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const ImagePlace place(a.out, i);
  int64 begin[3], end[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) window_of(a, place.outer, d, place.at[d], begin[d], end[d]);
  int64 best = (begin[0] * a.in.size[1] + begin[1]) * a.in.size[2] + begin[2];
  const Item* plane = a.x + a.in.offset(place.outer, 0, 0, 0, place.channel);
  Value largest = convert<Value>(plane[best * a.in.inner]);
  for (int64 z = begin[0]; z < end[0]; ++z) {
    for (int64 y = begin[1]; y < end[1]; ++y) {
#pragma unroll 1  // windows are small
      for (int64 x = begin[2]; x < end[2]; ++x) {
        const int64 pixel = (z * a.in.size[1] + y) * a.in.size[2] + x;
        const Value value = convert<Value>(plane[pixel * a.in.inner]);
        if (value > largest || value != value) largest = value, best = pixel;
      }
    }
  }
  a.y[i] = convert<Item>(largest);
  a.positions[i] = best;
}
