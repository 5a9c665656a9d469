// Mathematical functions of complex numbers.
#pragma once
#include "types.cuh"

namespace facula {
namespace math {

#define FACULA_FUNCTION __device__ __forceinline__
// Branches and loops, or so long that one copy serves all elements of a thread: calling it takes
// little of its time, and compiling a copy for each would take up to seconds.
#define FACULA_LARGE_FUNCTION inline __device__ __noinline__
#define FACULA_COMPLEX \
  template <class R>   \
  FACULA_LARGE_FUNCTION Complex<R>

// The real functions, by precision.
FACULA_FUNCTION float real_exp(float x) { return ::expf(x); }
FACULA_FUNCTION double real_exp(double x) { return ::exp(x); }
FACULA_FUNCTION float real_log(float x) { return ::logf(x); }
FACULA_FUNCTION double real_log(double x) { return ::log(x); }
FACULA_FUNCTION float real_sqrt(float x) { return ::sqrtf(x); }
FACULA_FUNCTION double real_sqrt(double x) { return ::sqrt(x); }
FACULA_FUNCTION float real_sinh(float x) { return ::sinhf(x); }
FACULA_FUNCTION double real_sinh(double x) { return ::sinh(x); }
FACULA_FUNCTION float real_cosh(float x) { return ::coshf(x); }
FACULA_FUNCTION double real_cosh(double x) { return ::cosh(x); }
FACULA_FUNCTION float real_abs(float x) { return ::fabsf(x); }
FACULA_FUNCTION double real_abs(double x) { return ::fabs(x); }
FACULA_FUNCTION float real_hypot(float x, float y) { return ::hypotf(x, y); }
FACULA_FUNCTION double real_hypot(double x, double y) { return ::hypot(x, y); }
FACULA_FUNCTION float real_atan2(float y, float x) { return ::atan2f(y, x); }
FACULA_FUNCTION double real_atan2(double y, double x) { return ::atan2(y, x); }
FACULA_FUNCTION float real_copysign(float x, float y) { return ::copysignf(x, y); }
FACULA_FUNCTION double real_copysign(double x, double y) { return ::copysign(x, y); }
FACULA_FUNCTION float real_asinh(float x) { return ::asinhf(x); }
FACULA_FUNCTION double real_asinh(double x) { return ::asinh(x); }
FACULA_FUNCTION float real_log1p(float x) { return ::log1pf(x); }
FACULA_FUNCTION double real_log1p(double x) { return ::log1p(x); }
FACULA_FUNCTION void real_sincos(float x, float* s, float* c) { ::sincosf(x, s, c); }
FACULA_FUNCTION void real_sincos(double x, double* s, double* c) { ::sincos(x, s, c); }

template <class R>
FACULA_FUNCTION R magnitude(Complex<R> z) {
  return real_hypot(z.re, z.im);
}

template <class T>
FACULA_FUNCTION real_of<T> real(T x) {
  if constexpr (is_complex<T>) return x.re;
  else return x;
}
template <class T>
FACULA_FUNCTION real_of<T> imag(T x) {
  if constexpr (is_complex<T>) return x.im;
  else return T(0);
}
template <class T>
FACULA_FUNCTION T conj(T x) {
  if constexpr (is_complex<T>) return T(x.re, -x.im);
  else return x;
}
template <class T>
FACULA_FUNCTION real_of<T> angle(T x) {
  if constexpr (is_complex<T>) return real_atan2(x.im, x.re);
  else return x != x ? x : (x < T(0) ? T(3.14159265358979323846) : T(0));
}

FACULA_COMPLEX exp(Complex<R> z) {
  const R e = real_exp(z.re);
  if (z.im == R(0)) return {e, z.im};
  R s, c;
  real_sincos(z.im, &s, &c);
  return {e * c, e * s};
}
FACULA_COMPLEX log(Complex<R> z) { return {real_log(magnitude(z)), real_atan2(z.im, z.re)}; }
FACULA_COMPLEX log2(Complex<R> z) { return log(z) / R(0.69314718055994530942); }
FACULA_COMPLEX log10(Complex<R> z) { return log(z) / R(2.30258509299404568402); }
FACULA_COMPLEX log1p(Complex<R> z) { return log(R(1) + z); }
FACULA_COMPLEX expm1(Complex<R> z) { return exp(z) - R(1); }
FACULA_COMPLEX exp2(Complex<R> z) { return exp(z * R(0.69314718055994530942)); }

FACULA_COMPLEX sqrt(Complex<R> z) {
  if (z.re == R(0) && z.im == R(0)) return {R(0), z.im};
  const R t = real_sqrt(R(0.5) * real_abs(z.re) + R(0.5) * magnitude(z));
  if (z.re >= R(0)) return {t, z.im / (R(2) * t)};
  return {real_abs(z.im) / (R(2) * t), real_copysign(t, z.im)};
}
FACULA_COMPLEX rsqrt(Complex<R> z) { return R(1) / sqrt(z); }
FACULA_COMPLEX sigmoid(Complex<R> z) { return R(1) / (R(1) + exp(-z)); }

FACULA_COMPLEX sinh(Complex<R> z) {
  R s, c;
  real_sincos(z.im, &s, &c);
  return {real_sinh(z.re) * c, real_cosh(z.re) * s};
}
FACULA_COMPLEX cosh(Complex<R> z) {
  R s, c;
  real_sincos(z.im, &s, &c);
  return {real_cosh(z.re) * c, real_sinh(z.re) * s};
}
FACULA_COMPLEX tanh(Complex<R> z) {
  R s, c;
  real_sincos(z.im, &s, &c);
  if (real_abs(z.re) > R(20)) {  // cosh would overflow, and tanh is 1 to all digits
    return {real_copysign(R(1), z.re), R(4) * s * c * real_exp(R(-2) * real_abs(z.re))};
  }
  const R h = real_sinh(z.re), d = h * h + c * c;
  return {h * real_cosh(z.re) / d, s * c / d};
}
// sin(z) = -i sinh(iz), and so on.
FACULA_COMPLEX sin(Complex<R> z) {
  const Complex<R> w = sinh(Complex<R>(-z.im, z.re));
  return {w.im, -w.re};
}
FACULA_COMPLEX cos(Complex<R> z) { return cosh(Complex<R>(-z.im, z.re)); }
FACULA_COMPLEX tan(Complex<R> z) {
  const Complex<R> w = tanh(Complex<R>(-z.im, z.re));
  return {w.im, -w.re};
}

// Inverse functions after Kahan, "Branch cuts for complex elementary functions" (1987).
FACULA_COMPLEX asin(Complex<R> z) {
  const Complex<R> minus = sqrt(R(1) - z), plus = sqrt(R(1) + z);
  return {real_atan2(z.re, (minus * plus).re), real_asinh((conj(minus) * plus).im)};
}
FACULA_COMPLEX acos(Complex<R> z) {
  const Complex<R> minus = sqrt(R(1) - z), plus = sqrt(R(1) + z);
  return {R(2) * real_atan2(minus.re, plus.re), real_asinh((conj(plus) * minus).im)};
}
FACULA_COMPLEX acosh(Complex<R> z) {
  const Complex<R> minus = sqrt(z - R(1)), plus = sqrt(z + R(1));
  return {real_asinh((conj(minus) * plus).re), R(2) * real_atan2(minus.im, plus.re)};
}
FACULA_COMPLEX atanh(Complex<R> z) {
  const R x = z.re, y = z.im, below = R(1) - x;
  return {R(0.25) * real_log1p(R(4) * x / (below * below + y * y)),
          R(0.5) * real_atan2(R(2) * y, below * (R(1) + x) - y * y)};
}
FACULA_COMPLEX asinh(Complex<R> z) {
  const Complex<R> w = asin(Complex<R>(z.im, -z.re));
  return {-w.im, w.re};
}
FACULA_COMPLEX atan(Complex<R> z) {
  const Complex<R> w = atanh(Complex<R>(-z.im, z.re));
  return {w.im, -w.re};
}

FACULA_COMPLEX power(Complex<R> base, Complex<R> exponent) {
  if (exponent.re == R(0) && exponent.im == R(0)) return {R(1), R(0)};
  if (base.re == R(0) && base.im == R(0)) {  // defined if the exponent's real part is positive
    const R value = exponent.re > R(0) ? R(0) : R(__int_as_float(0x7fc00000));
    return {value, value};
  }
  return exp(exponent * log(base));
}
#undef FACULA_COMPLEX

}  // namespace math
}  // namespace facula
