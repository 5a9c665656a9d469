// Exponentials, logarithms and powers.
//
// exp: x = n ln2 + r with |r| <= ln2 / 2, a near-minimax polynomial for (e^r - 1 - r) / r^2, then
// scaling by 2^n in two steps. log: x = 2^k m with m in [sqrt(1/2), sqrt(2)); for double the
// series in s = (m - 1) / (m + 1), for float a polynomial in m - 1. Coefficients were fitted for
// this file at Chebyshev nodes in 60-digit arithmetic.
#pragma once
#include "cpu/math_basic.h"

namespace facula::math {

namespace detail {

constexpr double kLn2High = 0x1.62e42fefp-1;  // 33 bits: times a 20-bit integer it is exact
constexpr double kLn2Low = 0x1.473de6af278edp-34;
constexpr float kLn2HighF = 0x1.62e4p-1f;  // 15 bits
constexpr float kLn2LowF = 0x1.7f7d1cp-20f;

FACULA_INLINE float clamp(float x, float low, float high) {  // keeps NaN
  x = x < low ? low : x;
  return x > high ? high : x;
}
FACULA_INLINE double clamp(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2. By pairs of terms: what waits for all that is before it
// keeps other elements from being begun.
FACULA_INLINE float exp_tail(float r) {
  return polynomial(r * r, madd(r, 0.166665763f, 0.5f), madd(r, 0.00836318545f, 0.0416665561f),
                    0.0013926191f);
}
FACULA_INLINE double exp_tail(double r) {
  return polynomial(r * r, madd(r, 0.16666666666666669, 0.5000000000000001),
                    madd(r, 0.00833333333333006, 0.041666666666624094),
                    madd(r, 0.00019841269863066696, 0.0013888888917230724),
                    madd(r, 2.7557268439678e-06, 2.4801521269532122e-05),
                    madd(r, 2.5100395159429243e-08, 2.7620101012098e-07));
}

// e^x or 2^x as a factor between sqrt(1/2) and sqrt(2), and n in the low bits of a sum, where 2^n
// is the other one.
template <Real T>
struct ExpFactors {
  T near_one, shifted;

  // The product with another power of two: exponents are added as integers. Of NaN, anything.
  T scaled(BitsOf<T> by) const {
    return std::bit_cast<T>(BitsOf<T>(bits_of(near_one) + ((bits_of(shifted) + by) << kMantissa)));
  }
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
};
template <Real T>
FACULA_INLINE ExpFactors<T> exp_factors(T x) {
  constexpr bool kFloat = sizeof(T) == 4;
  constexpr T ln2_high = kFloat ? T(kLn2HighF) : T(kLn2High);
  constexpr T ln2_low = kFloat ? T(kLn2LowF) : T(kLn2Low);
  const T shifted = madd(x, kFloat ? T(1.44269504f) : T(1.4426950408889634), kRoundMagic<T>);
  const T n = shifted - kRoundMagic<T>;
  const T r = madd(n, -ln2_low, madd(n, -ln2_high, x));
  return {T(1) + madd(r * r, exp_tail(r), r), shifted};
}
// The product of the factors of e^x or 2^x, which is 0 below `least` and infinite above `most`. On
// the way 2^n is this much closer to 1; choices come last, where nothing waits for them.
template <Real T>
inline constexpr BitsOf<T> kExpShift = sizeof(T) == 4 ? 32 : 64;
template <Real T>
inline constexpr T kExpUp = sizeof(T) == 4 ? T(0x1p32) : T(0x1p64);
template <Real T>
FACULA_INLINE T exp_product(ExpFactors<T> e, T x, T least, T most) {
  constexpr BitsOf<T> shift = kExpShift<T>;
  const T near = e.scaled(x < T(0) ? shift : BitsOf<T>(0) - shift);
  T v = near * (x < T(0) ? T(1) / kExpUp<T> : kExpUp<T>);
  v = x < least ? T(0) : v;
  return x <= most ? v : x + kInf<T>;  // NaN stays
}

template <Real T>
struct ExpReduction {
  T r;
  decltype(Rounded<T>::count) n;
};
FACULA_INLINE ExpReduction<float> reduce_exp(float x) {
  const auto n = round_to_count(x * 1.44269504f);
  return {madd(n.value, -kLn2LowF, madd(n.value, -kLn2HighF, x)), n.count};
}
FACULA_INLINE ExpReduction<double> reduce_exp(double x) {
  const auto n = round_to_count(x * 1.4426950408889634);
  return {madd(n.value, -kLn2Low, madd(n.value, -kLn2High, x)), n.count};
}

// e^x 2^shift; the exponent may leave the format's range on the way.
FACULA_INLINE float exp_shifted(float x, int shift) {
  const auto [r, n] = reduce_exp(clamp(x, -150.0f, 150.0f));
  return scale_by(1.0f + madd(r * r, exp_tail(r), r), n + shift);
}
FACULA_INLINE double exp_shifted(double x, int shift) {
  const auto [r, n] = reduce_exp(clamp(x, -1000.0, 1000.0));
  return scale_by(1.0 + madd(r * r, exp_tail(r), r), n + shift);
}
// e^(hi + lo), |lo| below one ulp of hi.
FACULA_INLINE double exp_sum(double hi, double lo) {
  auto [r, n] = reduce_exp(clamp(hi, -1000.0, 1000.0));
  r += lo;
  return scale_by(1.0 + madd(r * r, exp_tail(r), r), n);
}

// x = 2^k m. `bias` moves the split point of the mantissa from 1 to sqrt(1/2).
template <Real T>
struct LogReduction {
  T k, m;
};
FACULA_INLINE LogReduction<float> split_exponent(float x) {
  constexpr uint32_t root = 0x3f3504f3u;
  const uint32_t u = bits_of(x) + (0x3f800000u - root);
  return {float(int32_t(u >> 23) - 127), std::bit_cast<float>((u & 0x7fffffu) + root)};
}
FACULA_INLINE LogReduction<double> split_exponent(double x) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdull;
  const uint64_t u = bits_of(x) + (0x3ff0000000000000ull - root);
  // The biased exponent becomes the low bits of 2^52 + it: AVX2 converts no 64-bit integers.
  const double k = std::bit_cast<double>((u >> 52) | 0x4330000000000000ull) - 4503599627371519.0;
  return {k, std::bit_cast<double>((u & 0xfffffffffffffull) + root)};
}
// As above for any positive x, subnormal ones included.
FACULA_INLINE LogReduction<float> split_positive(float x) {
  const bool tiny = x < 0x1p-126f;
  auto s = split_exponent(tiny ? x * 0x1p24f : x);
  s.k -= tiny ? 24.0f : 0.0f;
  return s;
}
FACULA_INLINE LogReduction<double> split_positive(double x) {
  const bool tiny = x < 0x1p-1022;
  auto s = split_exponent(tiny ? x * 0x1p54 : x);
  s.k -= tiny ? 54.0 : 0.0;
  return s;
}
// log of what is not a positive finite number.
template <Real T>
FACULA_INLINE T log_special(T x, T result) {
  result = x < kInf<T> ? result : x;  // inf, NaN
  result = x < T(0) ? kNaN<T> : result;
  return x == T(0) ? -kInf<T> : result;
}

// (log(1 + f) - f + f^2 / 2) / f^3
FACULA_INLINE float log_tail(float f) {
  return polynomial(f, 0.333333313f, -0.24999997f, 0.200007156f, -0.166678026f, 0.142490536f,
                    -0.12425676f, 0.116854429f, -0.114798367f, 0.0697168112f);
}
// (2 atanh(s) / s - 2), z = s^2
FACULA_INLINE double log_series(double z) {
  return z * polynomial(z, 0.666666666666667, 0.3999999999989889, 0.28571428626253836,
                        0.22222211089379496, 0.1818289243253687, 0.15331611722055008,
                        0.14617807153417325);
}

// log(x) + c for a small correction c
FACULA_INLINE float log_finite(LogReduction<float> v, float c) {
  const float f = v.m - 1.0f;
  const float z = f * f;
  float r = madd(f * z, log_tail(f), madd(v.k, kLn2LowF, c));
  r = madd(z, -0.5f, r);
  return madd(v.k, kLn2HighF, f + r);
}
FACULA_INLINE double log_finite(LogReduction<double> v, double c) {
  const double f = v.m - 1.0;
  const double s = f / (2.0 + f);
  const double half = 0.5 * f * f;
  const double r = s * (half + log_series(s * s));
  return madd(v.k, kLn2High, f - (half - (r + madd(v.k, kLn2Low, c))));
}

// log(m) = hi + lo with hi of few enough bits to be multiplied exactly by another such constant.
struct LogParts {
  double k, hi, lo;
};
FACULA_INLINE LogParts log_parts(double x) {
  const auto v = split_positive(x);
  const double f = v.m - 1.0;
  const double s = f / (2.0 + f);
  const double half = 0.5 * f * f;
  const double hi = std::bit_cast<double>(bits_of(f - half) & 0xffffffff00000000ull);
  return {v.k, hi, (f - hi) - half + s * (half + log_series(s * s))};
}

// log(x) to about 2^-68, for pow.
FACULA_INLINE DoubleDouble log_double_double(double x) {
  const auto v = split_positive(x);
  const double f = v.m - 1.0;
  const auto d = two_sum(v.m, 1.0);
  const double inverse = 1.0 / d.hi;
  const double s = f * inverse;
  const auto sd = two_product(s, d.hi);
  const double s_lo = ((f - sd.hi) - sd.lo - s * d.lo) * inverse;
  const auto z = two_product(s, s);
  const double z_lo = z.lo + 2.0 * s * s_lo;
  // 2 atanh(s) = 2 s + s^3 (2/3 + z g(z))
  const double g =
      polynomial(z.hi, 0.4, 0.2857142857142937, 0.22222222221652765, 0.18181818336099848,
                 0.1538459488700718, 0.1333480879881234, 0.11706126464563398, 0.11724327060846747);
  auto c = quick_two_sum(0x1.5555555555555p-1, z.hi * g);
  c.lo += 0x1.5555555555555p-55;
  auto cube = two_product(s, z.hi);
  cube.lo += s * z_lo + s_lo * z.hi;
  auto t = two_product(cube.hi, c.hi);
  t.lo += cube.hi * c.lo + cube.lo * c.hi;
  const auto a = two_sum(v.k * kLn2High, 2.0 * s);
  const auto b = two_sum(a.hi, t.hi);
  return quick_two_sum(b.hi, a.lo + b.lo + (v.k * kLn2Low + 2.0 * s_lo + t.lo));
}

// Logarithm and power of two in double, as exact as a result in float asks for: to 2^-42 of the
// logarithm of m, and 2^-33.
FACULA_INLINE double log2_for_float(double x) {  // positive and normal, as every positive float is
  const auto v = split_exponent(x);
  const double f = v.m - 1.0, s = f / (v.m + 1.0), z = s * s;
  const double p = polynomial(z, 2.8853900817779268, 0.961796693936196, 0.5770779990048344,
                              0.4122032857846058, 0.320154239282653, 0.27934404491929504);
  return madd(s, p, v.k);
}
FACULA_INLINE double exp2_for_float(double x) {  // beyond the range of float: anything that is, too
  constexpr double magic = kRoundMagic<double> + 1023.0;
  const double y = clamp(x, -200.0, 200.0), shifted = y + magic, r = y - (shifted - magic);
  const double p = polynomial(r, 1.0, 0.6931471805599453, 0.24022650922288757, 0.055504108839096185,
                              0.009618056678524637, 0.001333350238616277, 0.0001546144469856913,
                              1.5297323760701075e-05);
  return p * std::bit_cast<double>(bits_of(shifted) << 52);
}

template <Real T>
FACULA_INLINE bool is_integer(T x) {
  constexpr T big = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  const T a = abs(x);
  return (a >= big) | ((a + big) - big == a);
}

// All bits or none, and the choice between two patterns by such a mask.
template <Real T>
FACULA_INLINE BitsOf<T> mask_of(bool condition) {
  return BitsOf<T>(0) - BitsOf<T>(condition);
}
template <class B>
FACULA_INLINE B choose(B mask, B yes, B no) {
  return (yes & mask) | (no & B(~mask));
}

// Signs and special values of pow, given `r` = |x|^y for positive finite arguments. By bits: where
// y is one number for a whole loop, gcc does not vectorise conditions on it beside others.
template <Real T>
FACULA_INLINE T pow_special(T x, T y, T r) {
  using B = BitsOf<T>;
  const B y_integer = mask_of<T>(is_integer(y));
  const B y_odd = y_integer & B(~mask_of<T>(is_integer(y * T(0.5))));
  const B y_infinite = mask_of<T>(abs(y) == kInf<T>);
  const T a = abs(x);
  // Zero and infinite bases, infinite exponents: 0 or inf.
  const B edge = bits_of(kInf<T>) & B(~(mask_of<T>(a > T(1)) ^ mask_of<T>(y > T(0))));
  const B at_edge = mask_of<T>((a == T(0)) | (a == kInf<T>)) | y_infinite;
  B v = choose(at_edge, edge, bits_of(r));
  v = choose(B(mask_of<T>(a == T(1)) & y_infinite), bits_of(T(1)), v);
  v |= bits_of(x) & kSignBit<T> & y_odd;
  v = choose(B(mask_of<T>((x < T(0)) & (a < kInf<T>)) & B(~y_integer)), bits_of(kNaN<T>), v);
  v = choose(B(mask_of<T>(isnan(x)) | mask_of<T>(isnan(y))), bits_of(x + y), v);
  v = choose(B(mask_of<T>(x == T(1)) | mask_of<T>(y == T(0))), bits_of(T(1)), v);
  return std::bit_cast<T>(v);
}

}  // namespace detail

// ---- exponentials ---------------------------------------------------------------------------

template <Real T>
FACULA_INLINE T exp(T x) {
  constexpr bool kFloat = sizeof(T) == 4;
  return detail::exp_product(detail::exp_factors(x), x, kFloat ? T(-104) : T(-746),
                             kFloat ? T(89) : T(710));
}
template <Real T>
FACULA_INLINE T exp2(T x) {
  constexpr bool kFloat = sizeof(T) == 4;
  const T shifted = x + kRoundMagic<T>;
  const T r = (x - (shifted - kRoundMagic<T>)) * T(0.6931471805599453);
  const detail::ExpFactors<T> e{T(1) + madd(r * r, detail::exp_tail(r), r), shifted};
  return detail::exp_product(e, x, kFloat ? T(-151) : T(-1076), kFloat ? T(129) : T(1025));
}

// e^x for x <= 0, where results below the smallest normal number count as 0: one factor is enough.
FACULA_INLINE float exp_of_negative(float x) {
  const auto [r, n] = detail::reduce_exp(x);
  const float e = (1.0f + madd(r * r, detail::exp_tail(r), r)) *
                  std::bit_cast<float>((uint32_t(n) + 127u) << 23);
  return x < -86.6f ? 0.0f : e;
}
FACULA_INLINE double exp_of_negative(double x) {
  const auto [r, n] = detail::reduce_exp(x);
  const double e = (1.0 + madd(r * r, detail::exp_tail(r), r)) *
                   std::bit_cast<double>((uint64_t(n) + 1023u) << 52);
  return x < -707.0 ? 0.0 : e;
}

// 2^x for -125 <= x <= 0.
FACULA_INLINE float exp2_of_negative(float x) {
  constexpr float magic = kRoundMagic<float> + 127.0f;  // of which the bits are an exponent
  const float shifted = x + magic, r = x - (shifted - magic), z = r * r;
  // In pairs, so that less waits for what is before it.
  const float low = madd(z, madd(r, 0.0555035695f, 0.240226507f), madd(r, 0.693147182f, 1.0f));
  const float high = madd(z, 0.000154531634f, madd(r, 0.00133908633f, 0.00961808302f));
  return madd(z * z, high, low) * std::bit_cast<float>(bits_of(shifted) << 23);
}

// e^-|x|
template <Real T>
FACULA_INLINE T exp_of_minus_abs(T x) {
  const T a = abs(x), near = detail::exp_factors(-a).scaled(detail::kExpShift<T>);
  const T v = a > (sizeof(T) == 4 ? T(104) : T(746)) ? T(0) : near * (T(1) / detail::kExpUp<T>);
  return isnan(a) ? a : v;
}

// 2 (s e + (s - 1/2)) with s = 2^(n - 1) and e = e^r - 1: nothing overflows before the result.
FACULA_INLINE float expm1(float x) {
  const auto [r, n] = detail::reduce_exp(detail::clamp(x, -30.0f, 89.0f));
  const float e = madd(r * r, detail::exp_tail(r), r);
  const float s = power_of_two(int32_t(n - 1));
  const float y = 2.0f * madd(s, e, s - 0.5f);
  return abs(x) < 0x1p-25f ? x : y;
}
FACULA_INLINE double expm1(double x) {
  const auto [r, n] = detail::reduce_exp(detail::clamp(x, -60.0, 710.0));
  const double e = madd(r * r, detail::exp_tail(r), r);
  const double s = power_of_two(int64_t(n - 1));
  const double y = 2.0 * madd(s, e, s - 0.5);
  return abs(x) < 0x1p-54 ? x : y;
}

// ---- logarithms -----------------------------------------------------------------------------

template <Real T>
FACULA_INLINE T log(T x) {
  return detail::log_special(x, detail::log_finite(detail::split_positive(x), T(0)));
}

// log(1 + x) = log(u) + (x - (u - 1)) / u for u = 1 + x rounded.
template <Real T>
FACULA_INLINE T log1p(T x) {
  const T u = T(1) + x;
  const T c = u < kInf<T> ? (x >= T(1) ? T(1) - (u - x) : x - (u - T(1))) / u : T(0);
  const T y = detail::log_special(u, detail::log_finite(detail::split_exponent(u), c));
  return x == T(0) ? x : y;
}

FACULA_INLINE double log2(double x) {
  const auto p = detail::log_parts(x);
  constexpr double high = 0x1.71547652p+0, low = 0x1.705fc2eefa2p-33;  // 1 / ln 2
  const auto s = two_sum(p.k, p.hi * high);
  return detail::log_special(x, s.hi + (s.lo + ((p.lo + p.hi) * low + p.lo * high)));
}
FACULA_INLINE double log10(double x) {
  const auto p = detail::log_parts(x);
  constexpr double high = 0x1.bcb7b152p-2, low = 0x1.b9438ca9aadd5p-36;          // 1 / ln 10
  constexpr double ten_high = 0x1.34413509p-2, ten_low = 0x1.ef3fde623e256p-35;  // log10(2)
  const auto s = two_sum(p.k * ten_high, p.hi * high);
  return detail::log_special(x,
                             s.hi + (s.lo + (p.k * ten_low + ((p.lo + p.hi) * low + p.lo * high))));
}
FACULA_INLINE float log2(float x) {
  const auto v = detail::split_positive(x);
  const float l = detail::log_finite({0.0f, v.m}, 0.0f);
  constexpr float high = 1.44269502f, low = 1.92596303e-08f;
  return detail::log_special(x, madd(l, high, madd(l, low, v.k)));
}
FACULA_INLINE float log10(float x) {
  return detail::log_special(x, float(detail::log2_for_float(double(x)) * 0.30102999566398120));
}

// ---- powers ---------------------------------------------------------------------------------

FACULA_INLINE double pow(double x, double y) {
  const auto l = detail::log_double_double(abs(x));
  const auto p = two_product(y, l.hi);
  const double lo = madd(y, l.lo, p.lo);
  const double r = detail::exp_sum(p.hi, abs(p.hi) < 1000.0 ? lo : 0.0);
  return detail::pow_special(x, y, r);
}
FACULA_INLINE float pow(float x, float y) {
  const double l = detail::log2_for_float(double(abs(x)));
  return detail::pow_special(x, y, float(detail::exp2_for_float(double(y) * l)));
}

// x 2^n for any n, whole or not; a whole n only moves the exponent.
FACULA_INLINE float ldexp(float x, float n) {
  const double limited = detail::clamp(double(n), -600.0, 600.0);
  const auto whole = round_to_count(limited);
  const double rest = limited - whole.value;
  const double y = rest == 0.0 ? double(x) : double(x) * exp2(rest);
  const float v = float(y * power_of_two(whole.count));
  return isinf(n) ? x * (n > 0.0f ? n : 0.0f) : v;
}
FACULA_INLINE double ldexp(double x, double n) {
  const double limited = detail::clamp(n, -2200.0, 2200.0);
  const auto whole = round_to_count(limited);
  const double rest = limited - whole.value;
  const double v = ldexp(rest == 0.0 ? x : x * exp2(rest), whole.count);
  return isinf(n) ? x * (n > 0.0 ? n : 0.0) : v;
}

// ---- compositions of the above --------------------------------------------------------------

template <Real T>
FACULA_INLINE T sigmoid(T x) {
  // The exponential of a negative number never overflows, and keeps the precision of a small
  // result.
  const T e = exp_of_minus_abs(x);
  const T s = T(1) + e;
  const T q = (x < T(0) ? e : T(1)) / s;
  // Take out most of what rounding s added, q more / s; 1 / s is 1 - e / 2 or a little less.
  const T more = (s - T(1)) - e;
  return madd(q, more * madd(e, T(-0.5), T(1)), q);
}
// e^x for a sum with 1: 0 where 1 hides it. Of NaN, anything.
template <Real T>
FACULA_INLINE T exp_beside_one(T x) {
  constexpr T least = sizeof(T) == 4 ? T(-80) : T(-700);
  constexpr T most = sizeof(T) == 4 ? T(88.7228317f) : T(709.782712893);
  const T e = detail::exp_factors(x).scaled(0), v = x < least ? T(0) : e;
  return x > most ? kInf<T> : v;
}
template <Real T>
FACULA_INLINE T silu(T x) {
  return x / (T(1) + exp_beside_one(-x));
}
// log(1 + e^x)
template <Real T>
FACULA_INLINE T softplus(T x) {
  return (x > T(0) ? x : (isnan(x) ? x : T(0))) + log1p(exp_of_minus_abs(x));
}
template <Real T>
FACULA_INLINE T log_sigmoid(T x) {
  return -softplus(-x);
}
template <Real T>
FACULA_INLINE T logaddexp(T a, T b) {
  const T larger = maximum(a, b);
  const T d = a == b ? T(0) : -abs(a - b);  // equal infinities have no difference
  return larger + log1p(exp(d));
}
template <Real T>
FACULA_INLINE T logaddexp2(T a, T b) {
  const T larger = maximum(a, b);
  const T d = a == b ? T(0) : -abs(a - b);
  return larger + (d == T(0) ? T(1) : log1p(exp2(d)) * T(1.4426950408889634));
}
template <Real T>
FACULA_INLINE T xlogy(T x, T y) {
  const T r = x * log(y);
  return ((x == T(0)) & !isnan(y)) ? T(0) : r;
}
template <Real T>
FACULA_INLINE T xlog1py(T x, T y) {
  const T r = x * log1p(y);
  return ((x == T(0)) & !isnan(y)) ? T(0) : r;
}
// log(x / (1 - x)); around 1/2 by what the quotient differs from 1. With `eps` not negative, x is
// first limited to [eps, 1 - eps].
template <Real T>
FACULA_INLINE T logit(T x, T eps) {
  const T low = eps, high = T(1) - eps;
  const T limited = x < low ? low : (x > high ? high : x);
  x = eps >= T(0) ? limited : x;
  const bool near = abs(x - T(0.5)) < T(0.25);
  const T less = T(1) - x;
  const T q = (near ? (x - T(0.5)) + (x - T(0.5)) : x) / less;
  const T u = near ? T(1) + q : q;
  const T c = near ? (q - (u - T(1))) / u : T(0);
  return detail::log_special(u, detail::log_finite(detail::split_positive(u), c));
}
template <Real T>
FACULA_INLINE T entr(T x) {
  const T r = -x * log(x);
  return x == T(0) ? T(0) : (x < T(0) ? -kInf<T> : r);
}

}  // namespace facula::math
