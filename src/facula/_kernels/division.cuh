// Quotient and rest of 64-bit numbers that are not negative: what the compiler writes for one such
// division is long, and kernels have several. This is compiled once and called. The name is no other
// function's, so that kernels without such divisions are compiled without it.
#pragma once
#include "types.cuh"

namespace facula {

struct Division {
  int64 quotient, rest;
};

inline __device__ __noinline__ Division quotient_and_rest(int64 n, int64 by) {
  // Narrow divisions are several times faster, and most numbers allow them.
  if ((uint64(n) | uint64(by)) >> 32 == 0) {
    const uint32 quotient = uint32(n) / uint32(by);
    return {quotient, uint32(n) - quotient * uint32(by)};
  }
  // 20 bits of the quotient at a time, from a reciprocal that is a little too small.
  float inverse;  // (1 - 2^-21) / by, with an error of 2^-22 at most
  asm("{.reg .f32 x; cvt.rp.f32.u64 x, %1; rcp.approx.ftz.f32 x, x; mul.f32 %0, x, 0f3F7FFFF8;}"
      : "=f"(inverse)
      : "l"(by));
  int64 quotient = 0;
#pragma unroll 1
  while (n >= by) {
    int64 some;
    asm("{.reg .f32 x; cvt.rz.f32.u64 x, %1; mul.rz.f32 x, x, %2; cvt.rzi.s64.f32 %0, x;}"
        : "=l"(some)
        : "l"(n), "f"(inverse));
    const int64 more = some > 0 ? some : 1;
    quotient += more;
    n -= more * by;
  }
  return {quotient, n};
}

}  // namespace facula
