// Activations, losses and their derivatives; the text is shared with the CUDA kernels.
#pragma once
#include "cpu/math_special.h"

namespace facula::math {

// ndtr to the precision of the type near 1/2 and above, which is what a sum with it needs.
FACULA_INLINE double normal_cdf(double x) {
  return ndtr(x);
}
FACULA_INLINE float normal_cdf(float x) {
  const float y = x * 0.707106781f;
  const float near = 1.0f + madd(y, detail::erf_tail(y * y), y);
  const float c = detail::erfc_middle(abs(y));
  return 0.5f * (abs(y) < 0.9f ? near : (x < 0.0f ? c : 2.0f - c));
}

}  // namespace facula::math

#include "_kernels/activations.h"
