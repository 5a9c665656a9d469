// The largest element of every window of an image or volume, on the host. Where it was found is
// kept as the number of the tap within the window, one byte for windows of up to 256 taps.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// One spatial axis. Window t and tap j meet input t * step + j * spread - pad.
struct PoolAxis {
  int64_t in = 1, out = 1, taps = 1;
  int64_t step = 1, spread = 1, pad = 0;
};

// x is (outer, in ..., inner) and y (outer, out ..., inner), dense.
struct MaxPool {
  DType dtype;
  int64_t outer, inner;
  PoolAxis axis[3];  // depth, height, width

  FACULA_INLINE int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  FACULA_INLINE int64_t in_pixels() const { return axis[0].in * axis[1].in * axis[2].in; }
  FACULA_INLINE int64_t out_pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
};

constexpr int64_t kMostByteTaps = 256;
inline DType tap_dtype(int64_t taps) {
  return taps <= kMostByteTaps ? DType::UInt8 : DType::Int32;
}

// The first of the largest wins, NaN wins over all. A window without any tap on the input gives the
// smallest value of its dtype and a tap that lies outside, which the others pass over.
// taps may be null.
void max_pool_forward(const MaxPool&, const void* x, void* y, void* taps);
// x = for each pixel, the sum of the y whose tap was there.
void max_pool_back(const MaxPool&, const void* y, const void* taps, void* x);
// y = what x has at the taps (zero outside).
void max_pool_pick(const MaxPool&, const void* x, const void* taps, void* y);
// The pixel of each tap, counted within its plane.
void max_pool_positions(const MaxPool&, const void* taps, int64_t* positions);

// Windows of any place and size, along each axis, in one plane (in ..., inner) of floating-point
// numbers with fewer than 2^31 pixels. No window is empty.
struct PoolWindow {
  int64_t first, end;
};
struct PoolWindows {
  DType dtype;
  int64_t inner, in[3], out[3];
  const PoolWindow* axis[3];
};
// The largest elements and the pixels that have them; first and NaN as above.
void max_of_windows(const PoolWindows&, const void* x, void* y, int64_t* positions);

// ---- what max_pool_isa.cpp offers: windows of a row of output pixels

struct MaxPoolLoops {
  // Output rows (outer, depth, height) from `begin` to `end`; scratch holds row_scratch() bytes.
  void (*forward)(const MaxPool&, const void* x, void* y, void* taps, int64_t begin, int64_t end,
                  void* scratch);
  void (*windows)(const PoolWindows&, const void* x, void* y, int64_t* positions);
};

}  // namespace facula
