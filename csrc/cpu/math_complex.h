// Functions of complex numbers, with the branch cuts and signed zeros of C99 Annex G.
//
// abs, exp, log and sqrt are written out (complex64 through double, where nothing overflows); the
// rest goes to the C library's double functions through the compiler's builtins, because
// <complex> drags in the iostreams.
#pragma once
#include "cpu/math_special.h"

namespace facula::math {

template <Real T>
FACULA_INLINE T real(Complex<T> z) {
  return z.re;
}
template <Real T>
FACULA_INLINE T imag(Complex<T> z) {
  return z.im;
}
template <Real T>
FACULA_INLINE Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}
template <Real T>
FACULA_INLINE T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}
template <Real T>
FACULA_INLINE T angle(Complex<T> z) {
  return atan2(z.im, z.re);
}
template <Real T>
FACULA_INLINE bool isnan(Complex<T> z) {
  return isnan(z.re) | isnan(z.im);
}
template <Real T>
FACULA_INLINE bool isinf(Complex<T> z) {
  return isinf(z.re) | isinf(z.im);
}
template <Real T>
FACULA_INLINE bool isfinite(Complex<T> z) {
  return isfinite(z.re) & isfinite(z.im);
}
template <Real T>
FACULA_INLINE Complex<T> square(Complex<T> z) {
  return z * z;
}
template <Real T>
FACULA_INLINE Complex<T> reciprocal(Complex<T> z) {
  return T(1) / z;
}
// z / |z|, 0 at 0.
template <Real T>
FACULA_INLINE Complex<T> sgn(Complex<T> z) {
  const T a = abs(z);
  const bool zero = a == T(0);
  return {zero ? T(0) : z.re / a, zero ? T(0) : z.im / a};
}

// ---- exponential, logarithm, square root ----------------------------------------------------

namespace detail {

// (cos, sin) at any finite angle; for float this needs no branch.
FACULA_INLINE Complex<double> cos_sin(double x) {
  if (__builtin_expect(!angle_in_range(x), 0)) return {cos_full_range(x), sin_full_range(x)};
  return {cos(x), sin(x)};
}
FACULA_INLINE Complex<float> cos_sin(float x) {
  return {cos_full_range(x), sin_full_range(x)};
}

// log|z|. Close to the unit circle the logarithm of x^2 + y^2 - 1, summed without cancellation.
FACULA_INLINE double log_abs(double x, double y) {
  const double ax = abs(x), ay = abs(y);
  const double larger = ax > ay ? ax : ay, smaller = ax > ay ? ay : ax;
  const auto a = two_product(larger, larger), b = two_product(smaller, smaller);
  const auto s = two_sum(a.hi - 1.0, b.hi);
  const double near = 0.5 * log1p(s.hi + (s.lo + (a.lo + b.lo)));
  // Elsewhere scale by a power of two, so that the squares stay in range.
  const uint64_t e = bits_of(larger) & 0x7ff0000000000000ull;
  const uint64_t low = uint64_t(1) << 52, high = uint64_t(2045) << 52;
  const uint64_t clamped = e < low ? low : (e > high ? high : e);
  const double inverse = std::bit_cast<double>((uint64_t(2046) << 52) - clamped);
  const double exponent =
      std::bit_cast<double>((clamped >> 52) | 0x4330000000000000ull) - 4503599627371519.0;
  const double p = larger * inverse, q = smaller * inverse;
  const double far = madd(exponent, 0.6931471805599453, 0.5 * log(madd(p, p, q * q)));
  const bool close = (larger > 0.5) & (larger < 1.5) & (smaller < 1.5);
  const double v = close ? near : far;
  return (isinf(x) | isinf(y)) ? kInf<double> : v;
}

}  // namespace detail

template <Real T>
FACULA_INLINE Complex<T> exp(Complex<T> z) {
  // e^x may overflow where e^x cos(y) does not: hold back 2^64.
  const T limit = sizeof(T) == 4 ? T(80) : T(700);
  const bool large = z.re > limit;
  const T e = detail::exp_shifted(z.re, large ? -64 : 0);
  const T scale = large ? T(18446744073709551616.0) : T(1);
  const auto cs = detail::cos_sin(z.im);
  const T re = e * cs.re * scale;
  const T im = z.im == T(0) ? z.im : e * cs.im * scale;
  const bool vanishes = z.re == -kInf<T>;  // whatever the angle, even infinite or NaN
  const bool lost = (z.re == kInf<T>)&!isfinite(z.im);
  const bool zero = vanishes & !isfinite(z.im);
  return {lost ? kInf<T> : (zero ? T(0) : re), zero ? copysign(T(0), z.im) : im};
}

template <Real T>
FACULA_INLINE Complex<T> log(Complex<T> z) {
  return {T(detail::log_abs(double(z.re), double(z.im))), angle(z)};
}
template <Real T>
FACULA_INLINE Complex<T> log2(Complex<T> z) {
  const auto l = log(z);
  return {l.re * T(1.4426950408889634), l.im * T(1.4426950408889634)};
}
template <Real T>
FACULA_INLINE Complex<T> log10(Complex<T> z) {
  const auto l = log(z);
  return {l.re * T(0.4342944819032518), l.im * T(0.4342944819032518)};
}
template <Real T>
FACULA_INLINE Complex<T> log1p(Complex<T> z) {
  const double x = z.re, y = z.im;
  const double near = 0.5 * log1p(madd(x, 2.0 + x, y * y));
  const double far = detail::log_abs(1.0 + x, y);
  const bool close = (abs(x) < 0.5) & (abs(y) < 0.5);
  return {T(close ? near : far), T(atan2(y, 1.0 + x))};
}
template <Real T>
FACULA_INLINE Complex<T> expm1(Complex<T> z) {
  const auto cs = detail::cos_sin(z.im);
  const T half = detail::cos_sin(z.im * T(0.5)).im;
  const T m = expm1(z.re);
  const auto whole = exp(z);
  const bool small = abs(z.re) < T(1);
  return {small ? m * cs.re - T(2) * half * half : whole.re - T(1), whole.im};
}
template <Real T>
FACULA_INLINE Complex<T> exp2(Complex<T> z) {
  const auto turned = exp(Complex<T>(T(0), z.im * T(0.6931471805599453)));
  const T size = exp2(z.re);  // exact for whole exponents
  const auto far = exp(Complex<T>(z.re * T(0.6931471805599453), z.im * T(0.6931471805599453)));
  const bool usual = isfinite(z) & isfinite(size);
  return {usual ? size * turned.re : far.re, usual ? size * turned.im : far.im};
}
template <Real T>
FACULA_INLINE Complex<T> ldexp(Complex<T> z, Complex<T> n) {
  return z * exp2(n);
}

template <Real T>
FACULA_INLINE Complex<T> sqrt(Complex<T> z) {
  // Powers of four bring the larger part of a double near 1; floats are safe in double as they are.
  double x = z.re, y = z.im, scale = 1.0;
  if constexpr (sizeof(T) == 8) {
    const double larger = abs(x) > abs(y) ? abs(x) : abs(y);
    const double up = larger < 0x1p-900 ? 0x1p200 : 1.0, down = larger > 0x1p900 ? 0x1p-200 : 1.0;
    x *= up * down;
    y *= up * down;
    scale = larger < 0x1p-900 ? 0x1p-100 : (larger > 0x1p900 ? 0x1p100 : 1.0);
  }
  const double ax = abs(x), ay = abs(y);
  const double t = sqrt(0.5 * (ax + hypot(ax, ay)));
  const double u = t == 0.0 ? 0.0 : 0.5 * ay / t;
  double re = (x >= 0.0 ? t : u) * scale, im = (x >= 0.0 ? u : t) * scale;
  // Infinities: sqrt(x + i inf) = inf + i inf for every x, sqrt(-inf + i y) = 0 + i inf, and so on.
  re = ax == kInf<double> ? (x > 0.0 ? ax : (isnan(y) ? y : 0.0)) : re;
  im = ax == kInf<double> ? (x > 0.0 ? (isnan(y) ? y : 0.0) : ax) : im;
  re = ay == kInf<double> ? ay : re;
  im = ay == kInf<double> ? ay : im;
  return {T(re), copysign(T(im), z.im)};
}
template <Real T>
FACULA_INLINE Complex<T> rsqrt(Complex<T> z) {
  return T(1) / sqrt(z);
}
template <Real T>
FACULA_INLINE Complex<T> sigmoid(Complex<T> z) {
  return T(1) / (T(1) + exp(-z));
}
template <Real T>
FACULA_INLINE Complex<T> silu(Complex<T> z) {
  return z / (T(1) + exp(-z));
}

// x^y = e^(y log x); 0^y is 1 for y = 0, 0 for Re y > 0, and undefined otherwise.
template <Real T>
static inline Complex<T> pow(Complex<T> x, Complex<T> y) {
  if (y.re == T(0) && y.im == T(0)) return {T(1), T(0)};
  if (x.re == T(0) && x.im == T(0)) {
    return y.re > T(0) ? Complex<T>(T(0), T(0)) : Complex<T>(kNaN<T>, kNaN<T>);
  }
  const double modulus = detail::log_abs(x.re, x.im), argument = atan2(double(x.im), double(x.re));
  const auto r =
      exp(Complex<double>(y.re * modulus - y.im * argument, y.im * modulus + y.re * argument));
  return {T(r.re), T(r.im)};
}

template <Real T>
FACULA_INLINE Complex<T> replace_nonfinite(Complex<T> z, T for_nan, T for_posinf, T for_neginf) {
  return {replace_nonfinite(z.re, for_nan, for_posinf, for_neginf),
          replace_nonfinite(z.im, for_nan, for_posinf, for_neginf)};
}

// log(e^a + e^b), from the one with the larger real part.
template <Real T>
static inline Complex<T> logaddexp(Complex<T> a, Complex<T> b) {
  if (isnan(a) || isnan(b)) return {kNaN<T>, kNaN<T>};
  const Complex<T> larger = a.re < b.re ? b : a, smaller = a.re < b.re ? a : b;
  if (smaller.re == -kInf<T>) return larger;  // e^smaller is 0, whatever its angle
  if (smaller.re == kInf<T>) return log(exp(a) + exp(b));
  return larger + log1p(exp(smaller - larger));
}

// ---- through the C library ------------------------------------------------------------------

namespace detail {
FACULA_INLINE __complex__ double to_builtin(double re, double im) {
  __complex__ double c;
  __real__ c = re;
  __imag__ c = im;
  return c;
}
}  // namespace detail

#define FACULA_COMPLEX_FROM_LIBC(name)                                \
  template <Real T>                                                   \
  static inline Complex<T> name(Complex<T> z) {                       \
    const auto r = __builtin_c##name(detail::to_builtin(z.re, z.im)); \
    return {T(__real__ r), T(__imag__ r)};                            \
  }
FACULA_COMPLEX_FROM_LIBC(sin)
FACULA_COMPLEX_FROM_LIBC(cos)
FACULA_COMPLEX_FROM_LIBC(tan)
FACULA_COMPLEX_FROM_LIBC(asin)
FACULA_COMPLEX_FROM_LIBC(acos)
FACULA_COMPLEX_FROM_LIBC(atan)
FACULA_COMPLEX_FROM_LIBC(sinh)
FACULA_COMPLEX_FROM_LIBC(cosh)
FACULA_COMPLEX_FROM_LIBC(tanh)
FACULA_COMPLEX_FROM_LIBC(asinh)
FACULA_COMPLEX_FROM_LIBC(acosh)
FACULA_COMPLEX_FROM_LIBC(atanh)
#undef FACULA_COMPLEX_FROM_LIBC

template <Real T>
static inline Complex<T> sinc(Complex<T> z) {
  if (z.re == T(0) && z.im == T(0)) return {T(1), T(0)};
  constexpr T pi = T(3.14159265358979323846);
  const T whole = round(z.re);
  const auto s = sin(Complex<T>((z.re - whole) * pi, z.im * pi));
  return (T(2) * round(T(0.5) * whole) == whole ? s : -s) / (z * pi);
}

}  // namespace facula::math

#include "_kernels/sinc_derivative.h"
