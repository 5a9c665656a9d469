// Values of images and volumes at arbitrary points (csrc/cpu/grid_sample.h). The host defines
// FACULA_NAME and
//   FACULA_COMPUTE    the type T of everything
//   FACULA_KIND       0: values; 1: sums for each element of the input; 2: slopes by coordinates
//   FACULA_DIMS       2 or 3
//   FACULA_MODE       0: linear; 1: nearest; 2: cubic
//   FACULA_PADDING    0: zeros; 1: border; 2: reflection
//   FACULA_CORNERS    1: align_corners
//   FACULA_ALONG      1: weights are differentiated along a direction
#pragma once
#include "division.cuh"

namespace facula {

using T = FACULA_COMPUTE;
constexpr int kTaps = FACULA_MODE == 0 ? 2 : FACULA_MODE == 1 ? 1 : 4;
constexpr int kDepthTaps = FACULA_DIMS == 3 ? kTaps : 1;

// Written by grid_sample in csrc/cuda/sampling.cpp.
struct Arguments {
  int64 batch, channels, points, pixels;
  int64 size[3];  // depth, height, width
  T* input;
  const T* grid;
  const T* direction;
  T* output;  // (batch, channels, points)
  T* slopes;  // (batch, points, dims)
};

__device__ __forceinline__ float floor_of(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor_of(double x) { return ::floor(x); }
__device__ __forceinline__ float round_of(float x) { return ::rintf(x); }
__device__ __forceinline__ double round_of(double x) { return ::rint(x); }
__device__ __forceinline__ T absolute(T x) { return x < T(0) ? -x : x; }

// Neighbours along one axis, their weights, and derivatives of those by the coordinate.
struct Line {
  int32 at[kTaps];  // -1: outside, where there are zeros
  T weight[kTaps], slope[kTaps], bend[kTaps];

  __device__ __forceinline__ T of(int order, int tap) const {
    return order == 0 ? weight[tap] : order == 1 ? slope[tap] : bend[tap];
  }

  __device__ __forceinline__ void find(T x, int64 elements) {
    const T size = T(elements);
    const T scale = FACULA_CORNERS ? (size - T(1)) / T(2) : size / T(2);
    const T pixel = FACULA_CORNERS ? (x + T(1)) / T(2) * (size - T(1))
                                   : ((x + T(1)) * size - T(1)) / T(2);
    auto valid = [&](T place) {
      return place >= T(0) && place < size ? int32(place) : int32(-1);
    };
#if FACULA_MODE == 0
    T by = scale;
    const T place = placed(pixel, size, by), left = floor_of(place), part = place - left;
    at[0] = valid(left), at[1] = valid(left + T(1));
    weight[0] = T(1) - part, weight[1] = part;
    slope[0] = -by, slope[1] = by;
    bend[0] = bend[1] = T(0);
#elif FACULA_MODE == 1
    T none = T(0);
    at[0] = valid(round_of(placed(pixel, size, none)));
    weight[0] = T(1), slope[0] = T(0), bend[0] = T(0);
#else
    // Keys' kernel. Each of the four neighbours goes where the padding brings it.
    const T a = T(-0.75), near = within(pixel), left = floor_of(near), t = near - left;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      T none = T(0);
      at[k] = valid(placed(left + T(k - 1), size, none));
      const T u = k == 0 ? t + T(1) : k == 1 ? t : k == 2 ? T(1) - t : T(2) - t;
      const T sign = k < 2 ? scale : -scale;
      const bool far = k == 0 || k == 3;
      weight[k] = far ? ((a * u - T(5) * a) * u + T(8) * a) * u - T(4) * a
                      : ((a + T(2)) * u - (a + T(3))) * u * u + T(1);
      slope[k] = sign * (far ? (T(3) * a * u - T(10) * a) * u + T(8) * a
                             : (T(3) * (a + T(2)) * u - T(2) * (a + T(3))) * u);
      bend[k] = scale * scale * (far ? T(6) * a * u - T(10) * a
                                     : T(6) * (a + T(2)) * u - T(2) * (a + T(3)));
    }
#endif
  }

  // The next neighbour takes the place of the first.
  __device__ __forceinline__ void move_up() {
#pragma unroll
    for (int k = 1; k < kTaps; ++k) {
      at[k - 1] = at[k];
      weight[k - 1] = weight[k], slope[k - 1] = slope[k], bend[k - 1] = bend[k];
    }
  }

  // Far away, or nowhere: outside in any case, and an integer can hold it.
  static __device__ __forceinline__ T within(T place) {
    return place > T(-1e9) && place < T(1e9) ? place : T(-100);
  }

  // Where the padding brings a place; `by` is multiplied by the derivative of that.
  static __device__ __forceinline__ T placed(T place, T size, T& by) {
#if FACULA_PADDING == 2
    // Mirrored at both ends as often as needed.
    const T low = FACULA_CORNERS ? T(0) : T(-0.5), span = FACULA_CORNERS ? size - T(1) : size;
    const T from = absolute(place - low), safe = span > T(0) ? span : T(1);
    const T flips = floor_of(from / safe), extra = from - flips * safe;
    const bool odd = flips != T(2) * floor_of(flips / T(2));
    const T mirrored = (odd ? safe - extra : extra) + low;
    by = span > T(0) ? ((place < low) != odd ? -by : by) : T(0);
    place = span > T(0) ? mirrored : T(0);
#endif
#if FACULA_PADDING != 0
    const T last = size - T(1);
    by = place > T(0) && place < last ? by : T(0);
    place = place > T(0) ? place : T(0);
    place = place < last ? place : last;
#endif
    return within(place);
  }
};

// The product of the three weights, differentiated by the given coordinates.
__device__ __forceinline__ T product(const Line (&lines)[3], const int (&tap)[3], int first,
                                     int second) {
  T value = T(1);
#pragma unroll
  for (int d = 0; d < FACULA_DIMS; ++d) {
    value *= lines[d].of((d == first) + (d == second), tap[d]);
  }
  return value;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;  // image and point
  if (i >= a.batch * a.points) return;
  const auto [image, point] = quotient_and_rest(i, a.points);
  Line lines[3];  // x, y, z
  T along[3] = {};
#pragma unroll
  for (int d = 0; d < FACULA_DIMS; ++d) {
    lines[d].find(a.grid[i * FACULA_DIMS + d], a.size[2 - d]);
    if (FACULA_ALONG) along[d] = a.direction[i * FACULA_DIMS + d];
  }
  T sums[3] = {};
  for (int64 channel = blockIdx.y; channel < a.channels; channel += gridDim.y) {
    T* input = a.input + (image * a.channels + channel) * a.pixels;
    T* output = a.output + (image * a.channels + channel) * a.points + point;
    [[maybe_unused]] T sum = T(0);
    // The four rows of a cubic kernel move up instead of being addressed, so that their loop stays
    // one: what is done for a row is compiled once.
    constexpr int kRows = FACULA_MODE == 2 ? 1 : kTaps;
    const Line down = lines[1];
#pragma unroll
    for (int k = 0; k < kDepthTaps; ++k) {
#pragma unroll kRows
      for (int step = 0; step < kTaps; ++step) {
        const int j = FACULA_MODE == 2 ? 0 : step;
#pragma unroll
        for (int l = 0; l < kTaps; ++l) {
          const int32 z = FACULA_DIMS == 3 ? lines[2].at[k] : 0;
          const int32 y = lines[1].at[j], x = lines[0].at[l];
          if ((x | y | z) < 0) continue;
          T* at = input + (z * a.size[1] + y) * a.size[2] + x;
          const int tap[3] = {l, j, k};
#if FACULA_KIND < 2
          T weight = T(0);
          if (FACULA_ALONG) {
#pragma unroll
            for (int d = 0; d < FACULA_DIMS; ++d) weight += along[d] * product(lines, tap, d, -1);
          } else {
            weight = product(lines, tap, -1, -1);
          }
#if FACULA_KIND == 0
          sum += weight * *at;
#else
          atomicAdd(at, weight * *output);
#endif
#else
          const T seen = *at * *output;
#pragma unroll
          for (int e = 0; e < FACULA_DIMS; ++e) {
            T slope = FACULA_ALONG ? T(0) : product(lines, tap, e, -1);
            if (FACULA_ALONG) {
#pragma unroll
              for (int d = 0; d < FACULA_DIMS; ++d) slope += along[d] * product(lines, tap, d, e);
            }
            sums[e] += slope * seen;
          }
#endif
        }
        if (FACULA_MODE == 2) lines[1].move_up();
      }
    }
    lines[1] = down;
#if FACULA_KIND == 0
    *output = sum;
#endif
  }
#if FACULA_KIND == 2
#pragma unroll
  for (int d = 0; d < FACULA_DIMS; ++d) a.slopes[i * FACULA_DIMS + d] = sums[d];
#endif
}
