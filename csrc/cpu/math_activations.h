// Activations, losses and their derivatives; the text is shared with the CUDA kernels.
#pragma once
#include "cpu/math_special.h"

namespace facula::math {

// ndtr to the precision of the type near 1/2 and above, which is what a sum with it needs.
FACULA_INLINE double normal_cdf(double x) {
  return ndtr(x);
}
// (1 + erf(y)) / 2 with erf as a quotient of polynomials that was fitted on |y| < 3.92: without
// exponentials, and with an absolute error below 2e-7.
FACULA_INLINE float normal_cdf(float x) {
  const float y = x * 0.707106781f, u = y * y;
  const float above = polynomial(u, 1.12837902f, 0.192763321f, 0.05306037f, 0.00386829101f,
                                 0.000287477765f, 2.03473055e-06f);
  const float below = polynomial(u, 1.0f, 0.504163712f, 0.115084301f, 0.0151722252f, 0.00118810473f,
                                 3.80705096e-05f);
  const float erf = abs(y) > 3.92f ? copysign(1.0f, y) : y * above / below;
  return madd(0.5f, erf, 0.5f);
}

}  // namespace facula::math

#include "_kernels/activations.h"
