// Exact and nearly exact operations: signs, comparisons, rounding, division with its remainders.
#pragma once
#include "cpu/math_bits.h"

namespace facula::math {

// ---- signs and classes ----------------------------------------------------------------------

template <Real T>
FACULA_INLINE T abs(T x) {
  return std::bit_cast<T>(bits_of(x) & ~kSignBit<T>);
}
template <Integer T>
FACULA_INLINE T abs(T x) {  // the most negative number stays itself
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else {
    return x < 0 ? T(U(0) - U(x)) : x;
  }
}
template <Real T>
FACULA_INLINE T copysign(T magnitude, T sign) {
  return std::bit_cast<T>(
      BitsOf<T>((bits_of(magnitude) & ~kSignBit<T>) | (bits_of(sign) & kSignBit<T>)));
}
template <Real T>
FACULA_INLINE bool signbit(T x) {
  return (bits_of(x) & kSignBit<T>) != 0;
}
template <Integer T>
FACULA_INLINE bool signbit(T x) {
  return x < T(0);
}
template <Real T>
FACULA_INLINE bool isnan(T x) {
  return x != x;
}
template <Real T>
FACULA_INLINE bool isinf(T x) {
  return abs(x) == kInf<T>;
}
template <Real T>
FACULA_INLINE bool isfinite(T x) {
  return abs(x) < kInf<T>;
}
template <Integer T>
FACULA_INLINE bool isnan(T) {
  return false;
}
template <Integer T>
FACULA_INLINE bool isinf(T) {
  return false;
}
template <Integer T>
FACULA_INLINE bool isfinite(T) {
  return true;
}

// -1, 0 or 1; 0 for NaN, as PyTorch has it.
template <class T>
  requires(Real<T> || Integer<T>)
FACULA_INLINE T sign(T x) {
  return T(int(T(0) < x) - int(x < T(0)));
}
template <class T>
  requires(Real<T> || Integer<T>)
FACULA_INLINE T sgn(T x) {
  return sign(x);
}
template <class T>
  requires(Real<T> || Integer<T>)
FACULA_INLINE T square(T x) {
  if constexpr (Integer<T>) {
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;  // wraps without UB
    return T(U(x) * U(x));
  } else {
    return x * x;
  }
}
template <Real T>
FACULA_INLINE T reciprocal(T x) {
  return T(1) / x;
}
FACULA_INLINE float sqrt(float x) {
  return __builtin_sqrtf(x);
}
FACULA_INLINE double sqrt(double x) {
  return __builtin_sqrt(x);
}
template <Real T>
FACULA_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

// ---- larger and smaller ---------------------------------------------------------------------

// A NaN wins. Choices within choices become vectors where an "or" of conditions becomes branches.
template <class T>
FACULA_INLINE T maximum(T a, T b) {
  return !(a <= b) ? (b != b ? b : a) : b;
}
template <class T>
FACULA_INLINE T minimum(T a, T b) {
  return !(a >= b) ? (b != b ? b : a) : b;
}
template <class T>
FACULA_INLINE T fmax(T a, T b) {  // a NaN loses
  return ((a > b) | (b != b)) ? a : b;
}
template <class T>
FACULA_INLINE T fmin(T a, T b) {
  return ((a < b) | (b != b)) ? a : b;
}
template <class T>
FACULA_INLINE T max(T a, T b) {
  return maximum(a, b);
}
template <class T>
FACULA_INLINE T min(T a, T b) {
  return minimum(a, b);
}
template <class T>
FACULA_INLINE T heaviside(T x, T at_zero) {
  return x == T(0) ? at_zero : (x > T(0) ? T(1) : T(0));
}

// ---- rounding -------------------------------------------------------------------------------

namespace detail {
#if !(defined(__SSE4_1__) || defined(__ARM_NEON))
// Without a rounding instruction: to nearest even by adding 2^(mantissa bits), then adjust.
template <Real T>
FACULA_INLINE T nearest(T x) {
  constexpr T big = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  const T a = abs(x);
  const T r = (a + big) - big;
  return a < big ? copysign(r, x) : x;
}
#endif
}  // namespace detail

template <Real T>
FACULA_INLINE T round(T x) {  // half to even
#if defined(__SSE4_1__) || defined(__ARM_NEON)
  if constexpr (sizeof(T) == 4) {
    return __builtin_rintf(x);
  } else {
    return __builtin_rint(x);
  }
#else
  return detail::nearest(x);
#endif
}
template <Real T>
FACULA_INLINE T floor(T x) {
#if defined(__SSE4_1__) || defined(__ARM_NEON)
  if constexpr (sizeof(T) == 4) {
    return __builtin_floorf(x);
  } else {
    return __builtin_floor(x);
  }
#else
  const T r = detail::nearest(x);
  return copysign(r > x ? r - T(1) : r, x);
#endif
}
template <Real T>
FACULA_INLINE T ceil(T x) {
  return -floor(-x);
}
template <Real T>
FACULA_INLINE T trunc(T x) {
  return copysign(floor(abs(x)), x);
}
template <Integer T>
FACULA_INLINE T round(T x) {
  return x;
}
template <Integer T>
FACULA_INLINE T floor(T x) {
  return x;
}
template <Integer T>
FACULA_INLINE T ceil(T x) {
  return x;
}
template <Integer T>
FACULA_INLINE T trunc(T x) {
  return x;
}
template <Real T>
FACULA_INLINE T frac(T x) {
  return x - trunc(x);
}

// To multiples of 1 / scale, or of scale itself; halves to even among the scaled numbers, which may
// themselves be rounded.
template <Real T>
FACULA_INLINE T round_scaled(T x, T scale, bool multiples) {
  const T scaled = multiples ? x / scale : x * scale;
  const T rounded = round(scaled);
  const T coarse = isinf(scale) ? x * T(0) : rounded * scale;
  // NaN, infinities, and numbers without digits that far behind the point stay what they are.
  const bool keep = !isfinite(multiples ? x : scaled);
  return keep ? x : (multiples ? coarse : rounded / scale);
}
template <Real T>
FACULA_INLINE T replace_nonfinite(T x, T for_nan, T for_posinf, T for_neginf) {
  const T v = x == kInf<T> ? for_posinf : (x == -kInf<T> ? for_neginf : x);
  return isnan(x) ? for_nan : v;
}

// ---- division -------------------------------------------------------------------------------

// Integer quotients: x / 0 is 0 here (the operator raises before it comes to that) and the most
// negative number divided by -1 wraps; both would trap in hardware.
//
// Processors divide integers one at a time, but floats as vectors. A quotient of floats cannot
// round to a whole number that the true one does not reach while the dividend has a bit less than
// their mantissa: always for up to 32 bits; of 64 bits, a loop asks `quotient_in_range` for a block
// of elements, and takes the functions of the full range when one has more.
namespace detail {
template <bool kFullRange, Integer T>
FACULA_INLINE T plain_quotient(T a, T b) {
  using F = std::conditional_t<(sizeof(T) > 2), double, float>;
  if constexpr (kFullRange && sizeof(T) == 8) return T(a / b);
  else return T(F(a) / F(b));
}
template <Integer T>
FACULA_INLINE T safe_divisor(T b) {
  if constexpr (std::is_signed_v<T>) return (b == 0) | (b == T(-1)) ? T(1) : b;
  else return b == 0 ? T(1) : b;
}
template <bool kFullRange, Integer T>
FACULA_INLINE T integer_quotient(T a, T b) {
  const T q = plain_quotient<kFullRange>(a, safe_divisor(b));
  if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return b == 0 ? T(0) : (b == T(-1) ? T(U(0) - U(a)) : q);
  } else {
    return b == 0 ? T(0) : q;
  }
}
template <bool kFullRange, Integer T>
FACULA_INLINE T integer_rest(T a, T b) {  // sign of the dividend
  const T safe = safe_divisor(b);
  return T(a - T(plain_quotient<kFullRange>(a, safe) * safe));
}
template <bool kFullRange, Integer T>
FACULA_INLINE T integer_remainder(T a, T b) {  // sign of the divisor, as Python's %
  const T r = integer_rest<kFullRange>(a, b);
  return ((r != 0) & ((r < 0) != (b < 0))) ? T(r + b) : r;
}
template <bool kFullRange, Integer T>
FACULA_INLINE T integer_floor_quotient(T a, T b) {
  const T q = integer_quotient<kFullRange>(a, b), r = integer_rest<kFullRange>(a, b);
  return ((r != 0) & ((r < 0) != (b < 0))) ? T(q - 1) : q;
}
}  // namespace detail

template <Integer T>
FACULA_INLINE bool quotient_in_range(T a, T b) {
  constexpr uint64_t kBits52 = uint64_t(1) << 52;
  if constexpr (sizeof(T) < 8) return true;
  else if constexpr (std::is_signed_v<T>)
    return (uint64_t(a) + kBits52 < 2 * kBits52) & (uint64_t(b) + kBits52 < 2 * kBits52);
  else return (a < kBits52) & (b < kBits52);
}
template <Integer T>
FACULA_INLINE T trunc_divide(T a, T b) {
  return detail::integer_quotient<true>(a, b);
}
template <Integer T>
FACULA_INLINE T fmod(T a, T b) {
  return detail::integer_rest<false>(a, b);
}
template <Integer T>
FACULA_INLINE T fmod_full_range(T a, T b) {
  return detail::integer_rest<true>(a, b);
}
template <Integer T>
FACULA_INLINE T remainder(T a, T b) {
  return detail::integer_remainder<false>(a, b);
}
template <Integer T>
FACULA_INLINE T remainder_full_range(T a, T b) {
  return detail::integer_remainder<true>(a, b);
}
template <Integer T>
FACULA_INLINE T floor_divide(T a, T b) {
  return detail::integer_floor_quotient<false>(a, b);
}
template <Integer T>
FACULA_INLINE T floor_divide_full_range(T a, T b) {
  return detail::integer_floor_quotient<true>(a, b);
}

// The remainder in one step, exact and without branches, while the quotient has few bits enough:
// a loop asks `quotient_in_range` for a block of elements and takes fmod_full_range and its like,
// which go through C's digit by digit, when one has not. NaN, infinities and 0 as divisor are out
// of range. The quotient that is rounded to an integer is never below that of the exact one.
namespace detail {
FACULA_INLINE bool quotient_below_2_to_28(float x, float y) {
  const double a = abs(x), b = abs(y);
  return (a < b * 0x1p28) & (b < kInf<double>);
}
FACULA_INLINE float fmod_in_double(float x, float y) {
  const double a = abs(x), b = abs(y);
  const double r = a - trunc(a / b) * b;  // exact: 24 + 28 bits
  return copysign(float(r < 0 ? r + b : r), x);
}
}  // namespace detail
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
FACULA_INLINE bool quotient_in_range(float x, float y) {
  const float b = abs(y);
  return (abs(x) < b * 0x1p23f) & (b > 1e-30f) & (b < kInf<float>);
}
FACULA_INLINE bool quotient_in_range(double x, double y) {
  const double b = abs(y);
  return (abs(x) < b * 0x1p52) & (b > 1e-290) & (b < kInf<double>);
}
template <Real T>
FACULA_INLINE T fmod(T x, T y) {
  const T a = abs(x), b = abs(y);
  const T r = madd(-trunc(a / b), b, a);  // exact: it has no more bits than a and b
  return copysign(r < T(0) ? r + b : r, x);
}
#else
FACULA_INLINE bool quotient_in_range(float x, float y) {
  return detail::quotient_below_2_to_28(x, y);
}
FACULA_INLINE float fmod(float x, float y) {
  return detail::fmod_in_double(x, y);
}
FACULA_INLINE bool quotient_in_range(double, double) {
  return false;
}
FACULA_INLINE double fmod(double x, double y) {
  return std::fmod(x, y);
}
#endif
static inline float fmod_full_range(float x, float y) {
  return detail::quotient_below_2_to_28(x, y) ? detail::fmod_in_double(x, y) : std::fmod(x, y);
}
static inline double fmod_full_range(double x, double y) {
  return quotient_in_range(x, y) ? fmod(x, y) : std::fmod(x, y);
}

namespace detail {
// From the remainder `r` with the sign of the dividend.
template <Real T>
FACULA_INLINE T python_remainder(T b, T r) {
  return ((r != T(0)) & ((r < T(0)) != (b < T(0)))) ? r + b : r;
}
// Python's //: from the exact remainder, so that it agrees with `remainder`; x // 0 is x / 0.
template <Real T>
FACULA_INLINE T python_quotient(T a, T b, T r) {
  T q = (a - r) / b;
  q = ((r != T(0)) & ((r < T(0)) != (b < T(0)))) ? q - T(1) : q;
  T f = floor(q);
  f = q - f > T(0.5) ? f + T(1) : f;
  f = q == T(0) ? copysign(T(0), a / b) : f;
  return b == T(0) ? a / b : f;
}
}  // namespace detail

template <Real T>
FACULA_INLINE T remainder(T a, T b) {
  return detail::python_remainder(b, fmod(a, b));
}
template <Real T>
static inline T remainder_full_range(T a, T b) {
  return detail::python_remainder(b, fmod_full_range(a, b));
}
template <Real T>
FACULA_INLINE T floor_divide(T a, T b) {
  return detail::python_quotient(a, b, fmod(a, b));
}
template <Real T>
static inline T floor_divide_full_range(T a, T b) {
  return detail::python_quotient(a, b, fmod_full_range(a, b));
}
template <Real T>
FACULA_INLINE T trunc_divide(T a, T b) {
  return trunc(a / b);
}
// ---- integers -------------------------------------------------------------------------------

// Wraps around; a negative exponent gives the truncated reciprocal, 0 except for bases 1 and -1.
template <Integer T>
static inline T pow(T base, T exponent) {
  using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      return base == 1 ? T(1) : (base == -1 ? (exponent % 2 == 0 ? T(1) : T(-1)) : T(0));
    }
  }
  U result = 1, square = U(base);
  for (auto e = std::make_unsigned_t<T>(exponent); e != 0; e = decltype(e)(e >> 1)) {
    if (e & 1) result *= square;
    square *= square;
  }
  return T(result);
}
template <Integer T>
static inline T gcd(T a, T b) {
  a = abs(a);
  b = abs(b);
  while (b != 0) {
    const T r = fmod_full_range(a, b);
    a = b;
    b = r;
  }
  return abs(a);
}
template <Integer T>
static inline T lcm(T a, T b) {
  using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  const T g = gcd(a, b);
  return g == 0 ? T(0) : abs(T(U(a / g) * U(b)));
}

// ---- floating-point format ------------------------------------------------------------------

// By the bits: their order is that of the magnitudes.
template <Real T>
FACULA_INLINE T nextafter(T x, T y) {
  const BitsOf<T> bits = bits_of(x);
  const bool grows = (x < y) == (x > T(0));
  const T moved = std::bit_cast<T>(BitsOf<T>(grows ? bits + 1 : bits - 1));
  const T first = copysign(std::numeric_limits<T>::denorm_min(), y);
  const T v = x == T(0) ? first : moved;
  return (isnan(x) | isnan(y)) ? x + y : (x == y ? y : v);
}

// x * 2^n for any n, rounded once (a result below the normal numbers may round twice).
FACULA_INLINE float ldexp(float x, int32_t n) {
  n = n < -300 ? -300 : (n > 300 ? 300 : n);
  // A float spans 277 binades, which double holds with room to spare.
  return float(double(x) * power_of_two(int64_t(n)));
}
FACULA_INLINE double ldexp(double x, int64_t n) {
  n = n < -2200 ? -2200 : (n > 2200 ? 2200 : n);
  const int64_t third = n / 3;
  return x * power_of_two(third) * power_of_two(third) * power_of_two(n - 2 * third);
}

// Mantissa in [1/2, 1) and exponent: x = mantissa * 2^exponent; 0, infinities and NaN have the
// exponent 0 and are their own mantissa.
template <Real T>
struct MantissaExponent {
  T mantissa, exponent;
};
FACULA_INLINE MantissaExponent<double> mantissa_exponent(double x) {
  const double a = abs(x);
  const bool tiny = a < 0x1p-1022, special = !((a > 0.0) & (a < kInf<double>));
  const uint64_t u = bits_of(tiny ? x * 0x1p54 : x);
  const double e = std::bit_cast<double>(((u >> 52) & 0x7ffu) | 0x4330000000000000ull) -
                   4503599627370496.0 - (tiny ? 1076.0 : 1022.0);
  const double m = std::bit_cast<double>((u & 0x800fffffffffffffull) | 0x3fe0000000000000ull);
  return {special ? x : m, special ? 0.0 : e};
}
FACULA_INLINE MantissaExponent<float> mantissa_exponent(float x) {
  const auto v = mantissa_exponent(double(x));  // every float is a normal double
  return {float(v.mantissa), float(v.exponent)};
}
template <Real T>
FACULA_INLINE T frexp_mantissa(T x) {
  return mantissa_exponent(x).mantissa;
}
template <Real T>
FACULA_INLINE T frexp_exponent(T x) {
  return mantissa_exponent(x).exponent;
}

// The neighbour of x towards y among the floats with `digits` mantissa bits and no exponent below
// `lowest`: those that a half-precision type holds, all of them floats.
template <Real T>
FACULA_INLINE T nextafter_coarse(T x, T y, int64_t digits, int64_t lowest) {
  const double a = abs(double(x));
  const uint64_t bits = bits_of(a);
  const int64_t e = int64_t(bits >> 52) - 1023;
  const bool grows = a == 0.0 ? true : (x < y) == (x > T(0));
  // Below a power of two the steps are half as wide.
  const bool at_edge = ((bits & 0xfffffffffffffull) == 0) & (e > lowest) & !grows;
  const int64_t exponent = e < lowest ? lowest : e - int64_t(at_edge);
  const double step = power_of_two(exponent - digits);
  const double moved = grows ? a + step : a - step;
  const bool negative = a == 0.0 ? y < T(0) : x < T(0);
  // From infinity, the largest finite number: the exponent field says where it is.
  const T v = T(negative ? -moved : moved);
  const T largest = T((2.0 - power_of_two(-digits)) * power_of_two(1 - lowest));
  const T w = a == kInf<double> ? copysign(largest, x) : v;
  return (isnan(x) | isnan(y)) ? x + y : (x == y ? y : w);
}

template <Real T>
FACULA_INLINE T real(T x) {
  return x;
}
template <Real T>
FACULA_INLINE T imag(T) {
  return T(0);
}
template <Real T>
FACULA_INLINE T conj(T x) {
  return x;
}
template <Real T>
FACULA_INLINE T angle(T x) {
  return x < T(0) ? T(3.14159265358979323846) : (isnan(x) ? x : T(0));
}

// b where the mask is set, else c, by bits: a random mask would mispredict every branch.
template <class T>
FACULA_INLINE T select(bool mask, T b, T c) {
  if constexpr (is_complex_v<T>) {
    return T(select(mask, b.re, c.re), select(mask, b.im, c.im));
  } else if constexpr (std::is_same_v<T, bool>) {
    return bool((uint8_t(mask) & uint8_t(b)) | (uint8_t(!mask) & uint8_t(c)));
  } else {
    using U = std::conditional_t<
        sizeof(T) == 1, uint8_t,
        std::conditional_t<sizeof(T) == 2, uint16_t,
                           std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
    const U m = U(U(0) - U(mask));
    return std::bit_cast<T>(U((std::bit_cast<U>(b) & m) | (std::bit_cast<U>(c) & U(~m))));
  }
}

// Shifts by a whole width or more, or by a negative count, give 0 (or the sign), not nonsense: the
// count is limited, to a whole width where bytes are shifted within 16 bits.
template <class T>
FACULA_INLINE T left_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U bits = U(sizeof(T) * 8), most = U(sizeof(T) == 1 ? bits : bits - 1);
  const U count = U(b) < most ? U(b) : most;
  if constexpr (sizeof(T) == 1) return T(uint16_t(uint16_t(U(a)) << count));
  else return T(U(a) << count) & T(U(0) - U(U(b) < bits));
}
template <class T>
FACULA_INLINE T right_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U bits = U(sizeof(T) * 8);
  constexpr U most = U(std::is_unsigned_v<T> && sizeof(T) == 1 ? bits : bits - 1);
  const U count = U(b) < most ? U(b) : most;
  if constexpr (sizeof(T) == 1 && std::is_unsigned_v<T>) return T(uint16_t(a) >> count);
  else if constexpr (sizeof(T) == 1) return T(int16_t(a) >> count);
  else if constexpr (std::is_signed_v<T>) return T(a >> count);
  else return T(a >> count) & T(U(0) - U(U(b) < bits));
}

}  // namespace facula::math
