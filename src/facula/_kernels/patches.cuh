// Patches of images as columns (FACULA_KIND 0), or the sums that undo it (1); see
// csrc/cpu/columns.h. The host defines FACULA_NAME and FACULA_ITEM, the elements' type.
#pragma once
#include "division.cuh"

namespace facula {

using Item = FACULA_ITEM;

struct Axis {
  int64 in, out, taps, step, spread, pad;
};

// Written by patches in csrc/cuda/images.cpp.
struct Arguments {
  Item* image;
  Item* columns;
  int64 count;  // elements of what is written
  Axis h, w;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Axis &h = arguments.h, &w = arguments.w;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
#if FACULA_KIND == 0
  int64 rest = i;
  const int64 t1 = rest % w.out, t0 = (rest /= w.out) % h.out;
  rest /= h.out;
  const int64 j1 = rest % w.taps, j0 = (rest /= w.taps) % h.taps, plane = rest / h.taps;
  const int64 y = t0 * h.step + j0 * h.spread - h.pad, x = t1 * w.step + j1 * w.spread - w.pad;
  const bool inside = y >= 0 && y < h.in && x >= 0 && x < w.in;
  arguments.columns[i] =
      inside ? arguments.image[(plane * h.in + y) * w.in + x] : convert<Item>(int32(0));
#else
  using Value = choose<is_small_float<Item>, float, Item>;
  const Division across = quotient_and_rest(i, w.in), down = quotient_and_rest(across.quotient, h.in);
  const int64 x = across.rest, y = down.rest, plane = down.quotient;
  Value sum = convert<Value>(int32(0));
  for (int64 j0 = 0; j0 < h.taps; ++j0) {
    const int64 from0 = y + h.pad - j0 * h.spread;
    if (from0 < 0) continue;
    const auto [t0, rest0] = quotient_and_rest(from0, h.step);
    if (rest0 != 0 || t0 >= h.out) continue;
#pragma unroll 1
    for (int64 j1 = 0; j1 < w.taps; ++j1) {
      const int64 from1 = x + w.pad - j1 * w.spread;
      if (from1 < 0) continue;
      const auto [t1, rest1] = quotient_and_rest(from1, w.step);
      if (rest1 != 0 || t1 >= w.out) continue;
      const int64 row = (plane * h.taps + j0) * w.taps + j1;
      sum = sum + convert<Value>(arguments.columns[(row * h.out + t0) * w.out + t1]);
    }
  }
  arguments.image[i] = convert<Item>(sum);
#endif
}
