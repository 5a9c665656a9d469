// The largest element of every window and what belongs to it. The host defines FACULA_NAME and
//   FACULA_ITEM  type of the elements
//   FACULA_TAP   uint8 or int32: the number of the tap within its window
//   FACULA_KIND  0: the largest element and its tap (max_pool_forward in csrc/cpu/max_pool.h)
//                1: for each pixel, the sum of the elements whose tap was there (max_pool_back)
//                2: the elements of the input at the taps (max_pool_pick)
//                3: the pixels of the taps (max_pool_positions)
#pragma once
#include "image_index.cuh"

namespace facula {

using Item = FACULA_ITEM;
using Value = choose<is_small_float<Item>, float, Item>;

// Mirrors PoolAxis in csrc/cpu/max_pool.h: window t and tap j meet input
// t * step + j * spread - pad.
struct Axis {
  int64 taps, step, spread, pad;
};

// Written by max_pool in csrc/cuda/images.cpp.
struct Arguments {
  Item* x;
  Item* y;
  FACULA_TAP* taps;
  int64* positions;
  int64 count;  // elements of what is written
  ImageShape in, out;
  Axis axis[3];
};

template <class Number>
__device__ __forceinline__ Number smallest() {
  if constexpr (is_integer<Number>) {
    constexpr bool is_signed = Number(-1) < Number(0);
    return is_signed ? Number(1ull << (8 * sizeof(Number) - 1)) : Number(0);
  } else {
    return Number(__int_as_float(int(0xff800000u)));
  }
}

// Where a tap of a window lies; false: outside.
__device__ __forceinline__ bool find_tap(const Arguments& a, const int64 (&window)[3], int64 tap,
                                         int64 (&at)[3]) {
  bool inside = true;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const Division division = quotient_and_rest(tap, a.axis[d].taps);
    const int64 j = division.rest;
    tap = division.quotient;
    at[d] = window[d] * a.axis[d].step + j * a.axis[d].spread - a.axis[d].pad;
    inside = inside && at[d] >= 0 && at[d] < a.in.size[d];
  }
  return inside;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
#if FACULA_KIND == 0
  const ImagePlace place(a.out, i);
  Value best = smallest<Value>();
  int tap = 0, best_tap = 0;
  bool found = false;
  for (int j0 = 0; j0 < a.axis[0].taps; ++j0) {
    const int64 z = place.at[0] * a.axis[0].step + j0 * a.axis[0].spread - a.axis[0].pad;
    for (int j1 = 0; j1 < a.axis[1].taps; ++j1) {
      const int64 y = place.at[1] * a.axis[1].step + j1 * a.axis[1].spread - a.axis[1].pad;
      const bool row = z >= 0 && z < a.in.size[0] && y >= 0 && y < a.in.size[1];
#pragma unroll 1  // windows are small
      for (int j2 = 0; j2 < a.axis[2].taps; ++j2, ++tap) {
        const int64 x = place.at[2] * a.axis[2].step + j2 * a.axis[2].spread - a.axis[2].pad;
        if (!row || x < 0 || x >= a.in.size[2]) continue;
        const Value value =
            convert<Value>(a.x[a.in.offset(place.outer, z, y, x, place.channel)]);
        if (!found || value > best || value != value) best = value, best_tap = tap;
        found = true;
      }
    }
  }
  a.y[i] = convert<Item>(best);
  a.taps[i] = FACULA_TAP(best_tap);
#elif FACULA_KIND == 1
  // A gather, so that sums have an order: windows that reach this pixel, and its tap in each.
  const ImagePlace place(a.in, i);
  Value sum = Value(0);
  auto meets = [&](int d, int tap, int64& window) {
    const int64 distance = place.at[d] + a.axis[d].pad - tap * a.axis[d].spread;
    if (distance < 0) return false;
    const Division division = quotient_and_rest(distance, a.axis[d].step);
    window = division.quotient;
    return division.rest == 0 && window < a.out.size[d];
  };
  int64 t0, t1, t2;
  for (int j0 = 0; j0 < a.axis[0].taps; ++j0) {
    if (!meets(0, j0, t0)) continue;
    for (int j1 = 0; j1 < a.axis[1].taps; ++j1) {
      if (!meets(1, j1, t1)) continue;
#pragma unroll 1
      for (int j2 = 0; j2 < a.axis[2].taps; ++j2) {
        if (!meets(2, j2, t2)) continue;
        const int64 from = a.out.offset(place.outer, t0, t1, t2, place.channel);
        const int tap = (j0 * int(a.axis[1].taps) + j1) * int(a.axis[2].taps) + j2;
        if (int(a.taps[from]) == tap) sum = sum + convert<Value>(a.y[from]);
      }
    }
  }
  a.x[i] = convert<Item>(sum);
#else
  const ImagePlace place(a.out, i);
  int64 at[3];
  const bool inside = find_tap(a, place.at, int64(a.taps[i]), at);
#if FACULA_KIND == 2
  a.y[i] = inside ? a.x[a.in.offset(place.outer, at[0], at[1], at[2], place.channel)]
                  : convert<Item>(Value(0));
#else
  a.positions[i] = (at[0] * a.in.size[1] + at[1]) * a.in.size[2] + at[2];
#endif
#endif
}
