// The bricks of the vector math: fused multiply-add where the hardware has it, Horner's scheme,
// exact sums and products, powers of two, rounding by magic numbers.
//
// Rules for everything in facula::math that a loop calls: no branches (selects only), no tables,
// no 64-bit arithmetic shifts and no int64 <-> double conversions (AVX2 has neither), so that
// gcc vectorises `for (...) y[i] = math::f(x[i])`. Functions are forced inline or static because
// loop files are built once per instruction set: an external copy made for one must not be
// linked into another.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/numeric.h"

namespace facula::math {

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <Real T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <Real T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <Real T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <Real T>
FACULA_INLINE BitsOf<T> bits_of(T x) {
  return std::bit_cast<BitsOf<T>>(x);
}
template <Real T>
inline constexpr BitsOf<T> kSignBit = BitsOf<T>(1) << (8 * sizeof(T) - 1);

// a * b + c, fused only where that is one instruction; callers may not rely on either rounding.
FACULA_INLINE float madd(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
FACULA_INLINE double madd(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// c0 + c1 x + c2 x^2 + ...
template <class T>
FACULA_INLINE T polynomial(T, T c0) {
  return c0;
}
template <class T, class... C>
FACULA_INLINE T polynomial(T x, T c0, C... rest) {
  return madd(x, polynomial(x, rest...), c0);
}

// An unevaluated sum hi + lo.
struct DoubleDouble {
  double hi, lo;
};

FACULA_INLINE DoubleDouble two_sum(double a, double b) {  // exact
  const double s = a + b;
  const double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
FACULA_INLINE DoubleDouble quick_two_sum(double a, double b) {  // exact when |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}
FACULA_INLINE DoubleDouble two_product(double a, double b) {  // exact for |a|, |b| < 2^990
  const double p = a * b;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return {p, __builtin_fma(a, b, -p)};
#else
  constexpr double split = 134217729.0;  // 2^27 + 1, Dekker
  const double ca = split * a, cb = split * b;
  const double ah = ca - (ca - a), bh = cb - (cb - b);
  const double al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

// 2^n for a biased count: n + bias must lie within the normal exponents.
FACULA_INLINE float power_of_two(int32_t n) {
  return std::bit_cast<float>(uint32_t(n + 127) << 23);
}
FACULA_INLINE double power_of_two(int64_t n) {
  return std::bit_cast<double>(uint64_t(n + 1023) << 52);
}

// Adding 1.5 * 2^(mantissa bits) leaves the nearest integer in the low bits, ties to even. Valid
// for |x| < 2^21 (float) and 2^50 (double).
template <Real T>
inline constexpr T kRoundMagic = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);

// value = x rounded, count = the same as an integer (wrapping, meaningless for NaN).
template <Real T>
struct Rounded {
  T value;
  std::conditional_t<sizeof(T) == 4, int32_t, int64_t> count;
};
template <Real T>
FACULA_INLINE Rounded<T> round_to_count(T x) {
  const T shifted = x + kRoundMagic<T>;
  const auto bits = bits_of(shifted) - bits_of(kRoundMagic<T>);
  return {shifted - kRoundMagic<T>, static_cast<decltype(Rounded<T>::count)>(bits)};
}

// v * 2^n in two factors, so that neither over- nor underflows before the result does.
FACULA_INLINE float scale_by(float v, int32_t n) {  // |n| <= 252
  const uint32_t biased = uint32_t(n) + 254u;
  const uint32_t first = biased >> 1;
  return v * std::bit_cast<float>(first << 23) * std::bit_cast<float>((biased - first) << 23);
}
FACULA_INLINE double scale_by(double v, int64_t n) {  // |n| <= 2044
  const uint64_t biased = uint64_t(n) + 2046u;
  const uint64_t first = biased >> 1;
  return v * std::bit_cast<double>(first << 52) * std::bit_cast<double>((biased - first) << 52);
}

}  // namespace facula::math
