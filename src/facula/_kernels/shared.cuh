// What the texts that CPU and CUDA share (*.h) need beside math.cuh; cpu/math_*.h define the same.
#pragma once
#include "math.cuh"

namespace facula {
namespace math {

template <class T>
constexpr T kInf = T(__builtin_bit_cast(float, 0x7f800000u));
template <class T>
constexpr T kNaN = T(__builtin_bit_cast(float, 0x7fc00000u));

// c0 + c1 x + c2 x^2 + ...
template <class T>
FACULA_FUNCTION T polynomial(T, T c0) {
  return c0;
}
template <class T, class... C>
FACULA_FUNCTION T polynomial(T x, T c0, C... rest) {
  return ::fma(x, polynomial(x, rest...), c0);
}

// An unevaluated sum hi + lo.
struct DoubleDouble {
  double hi, lo;
};
FACULA_FUNCTION DoubleDouble two_product(double a, double b) {
  const double p = a * b;
  return {p, ::fma(a, b, -p)};
}

FACULA_FUNCTION double sin_full_range(double x) { return ::sin(x); }
FACULA_FUNCTION double cos_full_range(double x) { return ::cos(x); }
FACULA_FUNCTION double scalar_pow(double x, double y) { return ::pow(x, y); }

}  // namespace math
}  // namespace facula
