// The functions that formulas may call, for float, double, integers and complex numbers where they
// make sense. Formulas are compiled inside namespace facula::math, so that these hide CUDA's own.
#pragma once
#include "complex.cuh"
#include "roots.cuh"

namespace facula {
namespace math {

// Integers enter mathematical functions as double, as in C++'s own library.
template <class T>
using float_of = choose<is_real_float<T>, T, choose<is_complex<T>, T, double>>;

// The type of an expression over both, e.g. `a < b ? a : b`.
template <class A, class B>
using common = decltype(true ? A() : B());

#define FACULA_UNARY_AS(kind, kind_of_double, name, single, twice)     \
  kind float name(float x) { return single; }                        \
  kind_of_double double name(double x) { return twice; }             \
  template <class T>                                                 \
  FACULA_FUNCTION double name(T n) { return name(double(n)); }
#define FACULA_UNARY(name, single, twice) \
  FACULA_UNARY_AS(FACULA_FUNCTION, FACULA_FUNCTION, name, single, twice)
#define FACULA_LARGE_DOUBLE(name, single, twice) \
  FACULA_UNARY_AS(FACULA_FUNCTION, FACULA_LARGE_FUNCTION, name, single, twice)
#define FACULA_LARGE_UNARY(name, single, twice) \
  FACULA_UNARY_AS(FACULA_LARGE_FUNCTION, FACULA_LARGE_FUNCTION, name, single, twice)

FACULA_UNARY(exp, ::expf(x), ::exp(x))
FACULA_UNARY(exp2, ::exp2f(x), ::exp2(x))
FACULA_LARGE_DOUBLE(expm1, ::expm1f(x), ::expm1(x))
FACULA_UNARY(log, ::logf(x), ::log(x))
FACULA_LARGE_DOUBLE(log1p, ::log1pf(x), ::log1p(x))
FACULA_UNARY(log2, ::log2f(x), ::log2(x))
FACULA_UNARY(log10, ::log10f(x), ::log10(x))
FACULA_UNARY(sqrt, exact_root(x), ::sqrt(x))
FACULA_UNARY(rsqrt, ::rsqrtf(x), ::rsqrt(x))
FACULA_LARGE_DOUBLE(cbrt, ::cbrtf(x), ::cbrt(x))
FACULA_LARGE_UNARY(sin, ::sinf(x), ::sin(x))
FACULA_LARGE_UNARY(cos, ::cosf(x), ::cos(x))
FACULA_LARGE_UNARY(tan, ::tanf(x), ::tan(x))
FACULA_LARGE_DOUBLE(asin, ::asinf(x), ::asin(x))
FACULA_LARGE_DOUBLE(acos, ::acosf(x), ::acos(x))
FACULA_LARGE_DOUBLE(atan, ::atanf(x), ::atan(x))
FACULA_LARGE_DOUBLE(sinh, ::sinhf(x), ::sinh(x))
FACULA_LARGE_DOUBLE(cosh, ::coshf(x), ::cosh(x))
FACULA_LARGE_DOUBLE(tanh, ::tanhf(x), ::tanh(x))
FACULA_LARGE_UNARY(asinh, ::asinhf(x), ::asinh(x))
FACULA_LARGE_UNARY(acosh, ::acoshf(x), ::acosh(x))
FACULA_LARGE_UNARY(atanh, ::atanhf(x), ::atanh(x))
FACULA_LARGE_DOUBLE(erf, ::erff(x), ::erf(x))
FACULA_LARGE_DOUBLE(erfc, ::erfcf(x), ::erfc(x))
FACULA_LARGE_UNARY(erfinv, ::erfinvf(x), ::erfinv(x))
FACULA_LARGE_UNARY(lgamma, ::lgammaf(x), ::lgamma(x))
#undef FACULA_LARGE_UNARY
#undef FACULA_LARGE_DOUBLE
#undef FACULA_UNARY
#undef FACULA_UNARY_AS

// Rounding leaves integers alone; round goes to the even neighbour, as in Python.
#define FACULA_ROUNDING(name, single, twice)                       \
  FACULA_FUNCTION float name(float x) { return single; }           \
  FACULA_FUNCTION double name(double x) { return twice; }          \
  template <class T>                                               \
  FACULA_FUNCTION T name(T n) { return n; }
FACULA_ROUNDING(floor, ::floorf(x), ::floor(x))
FACULA_ROUNDING(ceil, ::ceilf(x), ::ceil(x))
FACULA_ROUNDING(trunc, ::truncf(x), ::trunc(x))
FACULA_ROUNDING(round, ::rintf(x), ::rint(x))
#undef FACULA_ROUNDING

template <class T>
FACULA_FUNCTION real_of<T> abs(T x) {
  if constexpr (is_complex<T>) return magnitude(x);
  else if constexpr (same<T, float>) return ::fabsf(x);
  else if constexpr (same<T, double>) return ::fabs(x);
  else return x < T(0) ? T(-x) : x;
}

template <class T>
FACULA_FUNCTION bool isnan(T x) {
  if constexpr (is_complex<T>) return x.re != x.re || x.im != x.im;
  else return x != x;
}
template <class T>
FACULA_FUNCTION bool isinf(T x) {
  if constexpr (is_complex<T>) return isinf(x.re) || isinf(x.im);
  else if constexpr (is_real_float<T>) return abs(x) == T(__int_as_float(0x7f800000));
  else return false;
}
template <class T>
FACULA_FUNCTION bool isfinite(T x) {
  return !isnan(x) && !isinf(x);
}
template <class T>
FACULA_FUNCTION bool signbit(T x) {
  if constexpr (same<T, float>) return __float_as_int(x) < 0;
  else if constexpr (same<T, double>) return __double_as_longlong(x) < 0;
  else return x < T(0);
}

// -1, 0 or 1 (0 for NaN); of a complex number, the number of that direction with magnitude 1.
template <class T>
FACULA_FUNCTION T sgn(T x) {
  if constexpr (is_complex<T>) {
    const real_of<T> r = magnitude(x);
    return r == 0 ? T(0) : x / r;
  } else {
    return T((x > T(0)) - (x < T(0)));
  }
}
template <class T>
FACULA_FUNCTION T sign(T x) {
  return sgn(x);
}
template <class T>
FACULA_FUNCTION T frac(T x) {
  return x - trunc(x);
}

// NaN wins over every number.
template <class A, class B>
FACULA_FUNCTION common<A, B> maximum(A x, B y) {
  const common<A, B> a = x, b = y;
  return a > b || a != a ? a : b;
}
template <class A, class B>
FACULA_FUNCTION common<A, B> minimum(A x, B y) {
  const common<A, B> a = x, b = y;
  return a < b || a != a ? a : b;
}
template <class A, class B>
FACULA_FUNCTION common<A, B> max(A a, B b) {
  return maximum(a, b);
}
template <class A, class B>
FACULA_FUNCTION common<A, B> min(A a, B b) {
  return minimum(a, b);
}
// A number wins over NaN.
template <class A, class B>
FACULA_FUNCTION common<A, B> fmax(A x, B y) {
  const common<A, B> a = x, b = y;
  return a > b || b != b ? a : b;
}
template <class A, class B>
FACULA_FUNCTION common<A, B> fmin(A x, B y) {
  const common<A, B> a = x, b = y;
  return a < b || b != b ? a : b;
}
template <class A, class B, class C>
FACULA_FUNCTION common<common<A, B>, C> clamp(A x, B low, C high) {
  return minimum(maximum(x, low), high);
}

template <class A, class B>
FACULA_FUNCTION common<A, B> where(bool condition, A a, B b) {
  return condition ? common<A, B>(a) : common<A, B>(b);
}
template <class A, class B>
FACULA_FUNCTION common<A, B> select(bool condition, A a, B b) {
  return where(condition, a, b);
}

template <class T>
FACULA_FUNCTION T square(T x) {
  return x * x;
}
template <class T>
FACULA_FUNCTION float_of<T> reciprocal(T x) {
  return float_of<T>(1) / float_of<T>(x);
}
template <class T>
FACULA_FUNCTION T relu(T x) {
  return x > T(0) || x != x ? x : T(0);
}
template <class A, class B>
FACULA_FUNCTION common<A, B> heaviside(A x, B at_zero) {
  using T = common<A, B>;
  return x == A(0) ? T(at_zero) : (x > A(0) ? T(1) : T(0));
}

#define FACULA_BINARY(name, single, twice)                                              \
  FACULA_LARGE_FUNCTION float name(float x, float y) { return single; }                 \
  FACULA_LARGE_FUNCTION double name(double x, double y) { return twice; }               \
  template <class A, class B>                                                           \
  FACULA_FUNCTION float_of<common<A, B>> name(A x, B y) {                               \
    return name(float_of<common<A, B>>(x), float_of<common<A, B>>(y));                  \
  }
FACULA_BINARY(atan2, ::atan2f(x, y), ::atan2(x, y))
FACULA_BINARY(hypot, ::hypotf(x, y), ::hypot(x, y))
FACULA_BINARY(nextafter, ::nextafterf(x, y), ::nextafter(x, y))
#undef FACULA_BINARY

template <class A, class B>
FACULA_FUNCTION float_of<common<A, B>> copysign(A x, B y) {
  using T = float_of<common<A, B>>;
  if constexpr (same<T, float>) return ::copysignf(x, y);
  else return ::copysign(T(x), T(y));
}

// Powers of integers are exact modulo 2^n; negative exponents give 0 except for bases 1 and -1.
template <class T>
FACULA_LARGE_FUNCTION T integer_power(T base, T exponent) {
  if (exponent < T(0)) {
    if (base == T(1)) return T(1);
    return base == T(-1) && base < T(0) ? T(exponent & 1 ? -1 : 1) : T(0);
  }
  T result = 1;
  while (exponent) {
    if (exponent & 1) result = T(result * base);
    exponent = T(exponent >> 1);
    base = T(base * base);
  }
  return result;
}
template <class A, class B>
FACULA_LARGE_FUNCTION common<A, B> pow(A x, B y) {
  using T = common<A, B>;
  if constexpr (is_complex<T>) return power(T(x), T(y));
  else if constexpr (same<T, float>) return ::powf(x, y);
  else if constexpr (same<T, double>) return ::pow(double(x), double(y));
  else return integer_power<T>(T(x), T(y));
}

// The remainder of C, with the sign of the dividend.
template <class A, class B>
FACULA_LARGE_FUNCTION common<A, B> fmod(A x, B y) {
  using T = common<A, B>;
  if constexpr (same<T, float>) return ::fmodf(x, y);
  else if constexpr (same<T, double>) return ::fmod(double(x), double(y));
  else return T(y) == T(0) ? T(0) : T(x) % T(y);
}
// The remainder of Python, with the sign of the divisor.
template <class A, class B>
FACULA_FUNCTION common<A, B> remainder(A x, B y) {
  using T = common<A, B>;
  const T b = T(y), r = math::fmod(T(x), b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
}
// Division rounded down. For floats: what is left after the exact remainder, so that
// floor_divide(a, b) * b + remainder(a, b) gives a.
template <class A, class B>
FACULA_LARGE_FUNCTION common<A, B> floor_divide(A x, B y) {
  using T = common<A, B>;
  const T a = T(x), b = T(y);
  if constexpr (is_real_float<T>) {
    if (b == T(0)) return a / b;
    const T r = math::fmod(a, b);
    T quotient = (a - r) / b;
    if (r != T(0) && (b < T(0)) != (r < T(0))) quotient -= T(1);
    if (quotient == T(0)) return math::copysign(T(0), a / b);
    const T down = math::floor(quotient);
    return quotient - down > T(0.5) ? down + T(1) : down;
  } else {
    if (b == T(0)) return T(0);
    const T quotient = T(a / b);
    return a % b != T(0) && (a < T(0)) != (b < T(0)) ? T(quotient - 1) : quotient;
  }
}
template <class A, class B>
FACULA_FUNCTION common<A, B> trunc_divide(A x, B y) {
  using T = common<A, B>;
  if constexpr (is_real_float<T>) return math::trunc(T(x) / T(y));
  else return T(y) == T(0) ? T(0) : T(T(x) / T(y));
}
// `/` of Python: integers divide as floats.
template <class A, class B>
FACULA_FUNCTION float_of<common<A, B>> true_divide(A x, B y) {
  using T = float_of<common<A, B>>;
  return T(x) / T(y);
}

// Shifts by less than nothing or by more than there are bits leave zeros, or the sign.
template <class T>
FACULA_FUNCTION T left_shift(T x, T count) {
  const bool possible = count >= T(0) && uint64(count) < 8 * sizeof(T);
  return possible ? T(uint64(x) << uint64(count)) : T(0);
}
template <class T>
FACULA_FUNCTION T right_shift(T x, T count) {
  const bool possible = count >= T(0) && uint64(count) < 8 * sizeof(T);
  return possible ? T(x >> count) : T(x < T(0) ? -1 : 0);
}
template <class T>
FACULA_LARGE_FUNCTION T gcd(T a, T b) {
  a = abs(a);
  b = abs(b);
  while (b != T(0)) {
    const T r = T(a % b);
    a = b;
    b = r;
  }
  return abs(a);
}
template <class T>
FACULA_FUNCTION T lcm(T a, T b) {
  const T g = gcd(a, b);
  return g == T(0) ? T(0) : abs(T(T(a / g) * b));
}

// x 2^n for any n, whole or not; a whole n only moves the exponent.
template <class T>
FACULA_LARGE_FUNCTION T ldexp(T x, T n) {
  if constexpr (is_complex<T>) {
    return x * exp2(n);
  } else {
    if (isinf(n)) return x * exp2(n);
    const T limited = clamp(n, T(-5000), T(5000)), whole = round(limited), rest = limited - whole;
    const T y = rest == T(0) ? x : x * exp2(rest);
    if constexpr (same<T, float>) return ::ldexpf(y, int(whole));
    else return ::ldexp(y, int(whole));
  }
}
// x = mantissa 2^exponent; 0, infinities and NaN have the exponent 0.
template <class T>
FACULA_FUNCTION T frexp_mantissa(T x) {
  int exponent;
  if constexpr (same<T, float>) return ::frexpf(x, &exponent);
  else return ::frexp(x, &exponent);
}
template <class T>
FACULA_FUNCTION T frexp_exponent(T x) {
  int exponent = 0;
  if (x == x && abs(x) != abs(T(__int_as_float(0x7f800000)))) ::frexp(double(x), &exponent);
  return T(exponent);
}
// The neighbour of x towards y among the floats with `digits` mantissa bits and no exponent below
// `lowest`: those that a half-precision type holds.
template <class T>
FACULA_LARGE_FUNCTION T nextafter_coarse(T x, T y, int64 digits, int64 lowest) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  const double a = ::fabs(double(x));
  if (isinf(x)) {
    return copysign(T(::ldexp(2.0 - ::ldexp(1.0, int(-digits)), int(1 - lowest))), x);
  }
  const bool grows = a == 0.0 || (x < y) == (x > T(0));
  int e;
  const bool at_edge = ::frexp(a, &e) == 0.5 && e - 1 > lowest && !grows;
  const int exponent = a == 0.0 || e - 1 < lowest ? int(lowest) : e - 1 - int(at_edge);
  const double step = ::ldexp(1.0, exponent - int(digits));
  const bool negative = a == 0.0 ? y < T(0) : x < T(0);
  return T(negative ? -(grows ? a + step : a - step) : (grows ? a + step : a - step));
}

// To multiples of 1 / scale, or of scale; halves to even among the scaled numbers.
template <class T>
FACULA_FUNCTION T round_scaled(T x, T scale, bool multiples) {
  if (!isfinite(x)) return x;
  if (multiples) return isinf(scale) ? x * T(0) : round(x / scale) * scale;
  const T scaled = x * scale;
  return isfinite(scaled) ? round(scaled) / scale : x;
}
template <class T>
FACULA_FUNCTION T replace_nonfinite(T x, real_of<T> for_nan, real_of<T> for_posinf,
                                    real_of<T> for_neginf) {
  if constexpr (is_complex<T>) {
    return T(replace_nonfinite(x.re, for_nan, for_posinf, for_neginf),
             replace_nonfinite(x.im, for_nan, for_posinf, for_neginf));
  } else {
    return isnan(x) ? for_nan : (isinf(x) ? (x > T(0) ? for_posinf : for_neginf) : x);
  }
}

// Ends of the range of a type: infinities where they exist.
template <class T>
FACULA_FUNCTION constexpr T highest_value() {
  if constexpr (is_complex<T>) return T(highest_value<real_of<T>>());
  else if constexpr (is_real_float<T>) return T(__builtin_bit_cast(float, 0x7f800000u));
  else if constexpr (same<T, bool>) return true;
  else if constexpr (T(-1) < T(0)) return T(~(uint64(1) << 63) >> (64 - 8 * sizeof(T)));
  else return T(~uint64(0));
}
template <class T>
FACULA_FUNCTION constexpr T lowest_value() {
  if constexpr (is_complex<T>) return T(lowest_value<real_of<T>>());
  else if constexpr (is_real_float<T>) return T(__builtin_bit_cast(float, 0xff800000u));
  else if constexpr (same<T, bool>) return false;
  else if constexpr (T(-1) < T(0)) return T(-highest_value<T>() - 1);
  else return T(0);
}

}  // namespace math
}  // namespace facula
