// Rows of pixels with their padding, for windows that move by more than one pixel; included by
// files that are built per ISA.
#pragma once
#include "cpu/max_pool.h"

namespace facula::FACULA_ISA {
namespace {

FACULA_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Column q of the padded row is kept at q % step * phase + q / step: what the same tap of
// neighbouring windows sees lies side by side.
struct SplitRow {
  int64_t step, phase, pad, in;

  FACULA_INLINE explicit SplitRow(const PoolAxis& a)
      : step(a.step), phase(a.out + (a.taps - 1) * a.spread / a.step), pad(a.pad), in(a.in) {}
  FACULA_INLINE int64_t elements() const { return step * phase; }
  FACULA_INLINE int64_t offset(int64_t q) const { return q % step * phase + q / step; }

  template <class S, class A>
  void copy(const S* from, A* to, A outside) const {
    for (int64_t r = 0; r < step; ++r, to += phase) {
      // Element i is input column i * step + r - pad.
      const int64_t low = r < pad ? smaller(phase, (pad - r + step - 1) / step) : 0;
      const int64_t left = in + pad - r;
      int64_t high = left > 0 ? smaller(phase, (left + step - 1) / step) : 0;
      high = high < low ? low : high;
      for (int64_t i = 0; i < low; ++i) to[i] = outside;
      const S* x = from + r - pad;
      if (step == 1) {
#pragma GCC ivdep
        for (int64_t i = low; i < high; ++i) to[i] = A(x[i]);
      } else if (step == 2) {
#pragma GCC ivdep
        for (int64_t i = low; i < high; ++i) to[i] = A(x[2 * i]);
      } else {
        for (int64_t i = low; i < high; ++i) to[i] = A(x[i * step]);
      }
      for (int64_t i = high; i < phase; ++i) to[i] = outside;
    }
  }
};

}  // namespace
}  // namespace facula::FACULA_ISA
