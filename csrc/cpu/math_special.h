// Error functions, gamma functions, Bessel functions and the activations built on them.
//
// Longer functions stand in _kernels/*.h, texts that the CPU and the CUDA kernels share; they use
// what is defined up to here and FACULA_FUNCTION or, with branches and loops and therefore better
// once per file, FACULA_LARGE_FUNCTION.
#pragma once
#include <math.h>

#include "cpu/math_trig.h"

#define FACULA_FUNCTION FACULA_INLINE
#define FACULA_LARGE_FUNCTION [[maybe_unused]] static __attribute__((noinline))

namespace facula::math {

namespace detail {

// erf(x) / x - 1 for x^2 = z <= 1
FACULA_INLINE double erf_tail(double z) {
  return polynomial(z, 0.1283791670955126, -0.3761263890318375, 0.11283791670954879,
                    -0.026866170645076792, 0.0052239776248180145, -0.000854832698083379,
                    0.0001205533111164271, -1.4925595266831182e-05, 1.6461000484121368e-06,
                    -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
                    5.957176147748911e-11);
}

// e^(a^2) erfc(a) for a >= 0: P(t) / (1 + 2 a) with t = (a - 4) / (a + 4), a single smooth function
// of t on the whole half-line (Shepherd and Laframboise 1981).
FACULA_INLINE double erfcx_positive(double a) {
  const double t = 1.0 - 8.0 / (a + 4.0);
  const double p = polynomial(
      t, 1.2329951186255526, -0.1396211168405621, 0.015379652102610863, 0.06809705425465282,
      -0.10103906603588023, 0.09373283499951279, -0.06633036582009304, 0.037167515521587896,
      -0.016197733983091697, 0.005031970100429561, -0.0007577736999090731, -0.00019925727871342386,
      0.00015062307766296716, -2.4397404357342915e-05, -1.1225067540071328e-05,
      5.706023614968417e-06, 2.9797469153791186e-07, -8.204506930848534e-07, 7.11807235208486e-08,
      1.0589109767163738e-07, -1.6382678283362324e-08, -1.2169358970109135e-08,
      1.5757072700273918e-09, 9.005454970567924e-10);
  return p * (0.5 / (0.5 + a));
}
// erfc(a + a_lo) for a >= 0
FACULA_INLINE double erfc_positive(double a, double a_lo = 0.0) {
  a = a > 28.0 ? 28.0 : a;  // erfc is zero from 27.3
  const auto square = two_product(a, a);
  return exp_sum(-square.hi, -(square.lo + 2.0 * a * a_lo)) * erfcx_positive(a);
}

// The same for float, up to 0.9.
FACULA_INLINE float erf_tail(float z) {
  return polynomial(z, 0.128379226f, -0.376126349f, 0.11283718f, -0.0268606655f, 0.00520422682f,
                    -0.000817963213f, 8.52940138e-05f);
}
// erfc(a) for 0.9 <= a as 2^-q(a); good for 1 - erfc, and as such to a few ulp. Beyond 4, where
// erf rounds to 1, it is taken for 0.
FACULA_INLINE float erfc_middle(float a) {
  const float b = a > 4.0f ? 4.0f : a;
  const float q =
      polynomial(b, -0.000459555566f, 1.63057864f, 0.911529183f, 0.158822209f, -0.0381270237f,
                 0.0068710167f, -0.00086213398f, 6.66003689e-05f, -2.37043992e-06f);
  const float e = exp2_of_negative(-q);
  return a > 4.0f ? 0.0f : e;
}

}  // namespace detail

// ---- error functions ------------------------------------------------------------------------

FACULA_INLINE float erf(float x) {
  const float a = abs(x);
  const float near = madd(x, detail::erf_tail(x * x), x);
  return a < 0.9f ? near : copysign(1.0f - detail::erfc_middle(a), x);
}
FACULA_INLINE double erf(double x) {
  const double a = abs(x);
  const double near = madd(x, detail::erf_tail(x * x), x);
  return a < 1.0 ? near : copysign(1.0 - detail::erfc_positive(a), x);
}
FACULA_INLINE double erfc(double x) {
  const double c = detail::erfc_positive(abs(x));
  const double near = 1.0 - madd(x, detail::erf_tail(x * x), x);
  return abs(x) < 0.5 ? near : (x < 0.0 ? 2.0 - c : c);
}
// As in double, with the precision of a float.
FACULA_INLINE double erfc_for_float(double x) {
  const double a = abs(x) > 10.5 ? 10.5 : abs(x);  // the smallest floats are at 10.06
  const double inverse = 1.0 / ((a + 4.0) * (a + 0.5));
  const double t = 1.0 - 8.0 * (a + 0.5) * inverse;
  const double p = polynomial(t, 1.2329951187596935, -0.13962111804291286, 0.015379626772245887,
                              0.06809712144101768, -0.10103824844174722, 0.09373219486222768,
                              -0.06634015830944451, 0.03716427360445929, -0.016149128882883106,
                              0.005087272170211608, -0.0008302747384942939, -0.000358274018923199,
                              8.453505669936686e-05);
  const double e = detail::exp2_for_float(a * a * -1.4426950408889634);
  const double c = e * p * (0.5 * (a + 4.0) * inverse);
  return x < 0.0 ? 2.0 - c : c;
}
FACULA_INLINE float erfc(float x) {
  return float(erfc_for_float(x));
}

// e^(x^2) erfc(x)
FACULA_INLINE double erfcx(double x) {
  const double a = abs(x), b = a > 30.0 ? 30.0 : a;  // e^(x^2) overflows from 26.7
  const auto square = two_product(b, b);
  const double right = detail::erfcx_positive(a);
  return x < 0.0 ? 2.0 * detail::exp_sum(square.hi, square.lo) - right : right;
}
FACULA_INLINE float erfcx(float x) {
  return float(erfcx(double(x)));
}

// The cumulative normal distribution, erfc(-x / sqrt(2)) / 2. Far in the tail the rounding of
// x / sqrt(2) would cost many digits, so its second word comes along.
FACULA_INLINE double ndtr(double x) {
  constexpr double root = 0x1.6a09e667f3bcdp-1, root_lo = -0x1.bdd3413b26456p-55;  // sqrt(1/2)
  const double b = abs(x) > 40.0 ? 40.0 : abs(x);
  const auto a = two_product(b, root);
  const double c = 0.5 * detail::erfc_positive(a.hi, a.hi < 27.5 ? madd(b, root_lo, a.lo) : 0.0);
  const double y = x * root;
  const double near = 0.5 + 0.5 * madd(y, detail::erf_tail(y * y), y);
  return abs(x) < 0.7 ? near : (x < 0.0 ? c : 1.0 - c);
}
FACULA_INLINE float ndtr(float x) {
  return float(0.5 * erfc_for_float(double(x) * -0.7071067811865476));
}

// The logarithm of ndtr, also where that is below all numbers.
FACULA_INLINE double log_ndtr(double x) {
  const double y = x * 0.7071067811865476;
  const bool far = x < -1.0;
  const double scaled = 0.5 * detail::erfcx_positive(-y);
  // By bits: choices within choices stayed branches.
  const double tail = select(far, scaled < 0x1p-52 ? 0x1p-52 : scaled, ndtr(-x));
  const double v = log1p(far ? tail - 1.0 : -tail);  // what tail - 1 loses, x^2 / 2 hides
  return far ? v - 0.5 * x * x : v;
}
FACULA_INLINE float log_ndtr(float x) {
  return float(log_ndtr(double(x)));
}

namespace detail {

// Wichura's algorithm AS 241 (1988): the normal quantile at 1/2 + q, where `tail` is the distance
// from 1/2 + q to the nearer of 0 and 1.
FACULA_INLINE double normal_quantile(double q, double tail) {
  const double rc = 0.180625 - q * q;
  const double centre =
      q *
      polynomial(rc, 3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                 3.3430575583588128105e+4, 2.5090809287301226727e+3) /
      polynomial(rc, 1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
                 5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
                 2.8729085735721942674e+4, 5.2264952788528545610e+3);
  const double r = sqrt(-log(tail));
  const bool far = r > 5.0;
  const double u = far ? r - 5.0 : r - 1.6;
  const double tail_num = far ? polynomial(u, 6.65790464350110377720e0, 5.46378491116411436990e0,
                                           1.78482653991729133580e0, 2.96560571828504891230e-1,
                                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                           2.71155556874348757815e-5, 2.01033439929228813265e-7)
                              : polynomial(u, 1.42343711074968357734e0, 4.63033784615654529590e0,
                                           5.76949722146069140550e0, 3.64784832476320460504e0,
                                           1.27045825245236838258e0, 2.41780725177450611770e-1,
                                           2.27238449892691845833e-2, 7.74545014278341407640e-4);
  const double tail_den = far ? polynomial(u, 1.0, 5.99832206555887937690e-1,
                                           1.36929880922735805310e-1, 1.48753612908506148525e-2,
                                           7.86869131145613259100e-4, 1.84631831751005468180e-5,
                                           1.42151175831644588870e-7, 2.04426310338993978564e-15)
                              : polynomial(u, 1.0, 2.05319162663775882187e0,
                                           1.67638483018380384940e0, 6.89767334985100004550e-1,
                                           1.48103976427480074590e-1, 1.51986665636164571966e-2,
                                           5.47593808499534494600e-4, 1.05075007164441684324e-9);
  return abs(q) <= 0.425 ? centre : copysign(tail_num / tail_den, q);
}

}  // namespace detail

FACULA_INLINE double erfinv(double y) {
  const double a = abs(y);
  const double v = detail::normal_quantile(0.5 * y, 0.5 * (1.0 - a)) * 0.7071067811865476;
  return a == 1.0 ? copysign(kInf<double>, y) : (a > 1.0 ? kNaN<double> : v);
}
// y times a function of -log2(1 - y^2), which for a float is at most 23.
FACULA_INLINE float erfinv(float y) {
  const double x = y, w = -detail::log2_for_float(1.0 - x * x), u = w - 15.0;
  const double near =
      polynomial(w, 0.8862269273716492, 0.16081954981992333, 0.005549324526370791,
                 -0.0007785866908692338, -2.8449057775693658e-05, 6.699940142300149e-06,
                 5.436654765071187e-07, -1.617520415485285e-07, 1.092528530615634e-08,
                 -3.5189870244299122e-12, -3.118699551001106e-11, 1.074265957914858e-12);
  const double far =
      polynomial(u, 3.0582250629404175, 0.10801729575618221, -0.001734811807937832,
                 5.2841272969848485e-05, -1.7965540684286625e-06, 4.919011403976238e-08,
                 1.4141563848356334e-10, -1.727876215512243e-10, 2.007859532766746e-11,
                 -1.5266169028812912e-12, 5.3105517019451915e-14);
  const float v = float(x * (w < 8.0 ? near : far)), a = abs(y);
  return a == 1.0f ? copysign(kInf<float>, y) : (a < 1.0f ? v : kNaN<float>);
}
// The inverse of ndtr.
FACULA_INLINE double ndtri(double p) {
  const double v = detail::normal_quantile(p - 0.5, p < 0.5 ? p : 1.0 - p);
  const double ends = p == 0.0 ? -kInf<double> : (p == 1.0 ? kInf<double> : v);
  return (p < 0.0) | (p > 1.0) ? kNaN<double> : ends;
}
FACULA_INLINE float ndtri(float p) {
  return float(ndtri(double(p)));
}

// ---- activations ----------------------------------------------------------------------------

// x ndtr(x), with no cancellation for negative x.
FACULA_INLINE double gelu(double x) {
  return x * ndtr(x);
}
// With erfc(b / sqrt(2)) / 2 = 2^(b p(b) - 1) for b = |x| up to 4 sqrt(2), and 0 beyond: what
// cancels in erf does not here. p by pairs of its terms, so that less waits for what is before it;
// limits and the power of two as integers, which take no turn of the multipliers. half_lanes.h has
// the same for vectors.
namespace detail {
inline constexpr uint32_t kGeluMost = std::bit_cast<uint32_t>(5.65685425f);
inline constexpr float kGeluTerms[] = {
    -1.15110576f,     -0.459205389f,  -0.052491799f,   0.0070242933f,   -6.41213919e-05f,
    -0.000248838332f, 6.7627494e-05f, -9.4845218e-06f, 7.24313509e-07f, -2.37514399e-08f};
// 2^(r - 1) for |r| <= 1/2.
inline constexpr float kHalfExp2Terms[] = {0.5f,          0.346573502f,  0.120111212f,
                                           0.0277536679f, 0.0048357565f, 0.000663236191f};
}  // namespace detail
FACULA_INLINE float gelu(float x) {
  constexpr auto& c = detail::kGeluTerms;
  constexpr auto& d = detail::kHalfExp2Terms;
  constexpr uint32_t most = detail::kGeluMost;
  constexpr float magic = kRoundMagic<float>;
  const uint32_t a = bits_of(abs(x));
  const float b = std::bit_cast<float>(a < most ? a : most);
  const float p = polynomial(b * b, madd(b, c[1], c[0]), madd(b, c[3], c[2]), madd(b, c[5], c[4]),
                             madd(b, c[7], c[6]), madd(b, c[9], c[8]));
  const float shifted = madd(b, p, magic), r = madd(b, p, magic - shifted);
  const float e = polynomial(r, d[0], d[1], d[2], d[3], d[4], d[5]);
  const uint32_t scaled = bits_of(e) + (bits_of(shifted) << 23);
  const float half_erfc = std::bit_cast<float>(a > most ? 0u : scaled);
  return x * (x < 0.0f ? half_erfc : 1.0f - half_erfc);
}
template <Real T>
FACULA_INLINE T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}

// ---- gamma ----------------------------------------------------------------------------------

static inline double lgamma(double x) {
#if defined(__GLIBC__)
  int sign;  // the plain function stores it in a global, which threads would fight over
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}
// Without branches, and as exact in double as a float needs: eight steps of the recurrence where
// x < 8, then Stirling's series; left of 0 the reflection. One logarithm takes all that is divided
// off.
FACULA_INLINE float lgamma(float x) {
  constexpr double pi = 3.14159265358979323846;
  const double a = x;
  const bool negative = a < 0.0;
  const double y = negative ? 1.0 - a : a;
  const bool small = y < 8.0;
  const double u = y * (y + 7.0);
  const double product = u * ((u + 6.0) * ((u + 10.0) * (u + 12.0)));  // y (y + 1) ... (y + 7)
  const double w = small ? y + 8.0 : y;
  const double inverse = 1.0 / w;
  const double series = inverse * polynomial(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260,
                                             -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156);
  const double stirling = (w - 0.5) * log(w) - w + (0.9189385332046728 + series);
  const double s = abs(sin(pi * (a - round(a))));
  const double l = log((small ? product : 1.0) / (negative ? s : 1.0));
  const double v = negative ? (1.1447298858494002 - stirling) + l : stirling - l;
  const bool zero = (x == 1.0f) | (x == 2.0f);
  return isinf(x) ? kInf<float> : (zero ? 0.0f : float(v));
}
// For functions that are not vectorised anyway.
static inline double scalar_pow(double x, double y) {
  return std::pow(x, y);
}

}  // namespace facula::math

#include "_kernels/bessel.h"
#include "_kernels/gamma.h"
#include "_kernels/orthogonal_polynomials.h"

namespace facula::math {

// Bessel functions at angles where sin and cos need their long way.
template <Real T>
FACULA_INLINE bool bessel_in_range(T x) {
  return angle_in_range(double(x));
}
#define FACULA_BESSEL(name)                                     \
  FACULA_INLINE float name(float x) {                           \
    return float(name(double(x)));                              \
  }                                                             \
  template <Real T>                                             \
  static inline T name##_full_range(T x) {                      \
    const double a = std::fabs(double(x));                      \
    return T(name##_from(double(x), std::sin(a), std::cos(a))); \
  }
FACULA_BESSEL(bessel_j0)
FACULA_BESSEL(bessel_j1)
FACULA_BESSEL(bessel_y0)
FACULA_BESSEL(bessel_y1)
#undef FACULA_BESSEL
FACULA_INLINE float spherical_bessel_j0(float x) {
  return float(spherical_bessel_j0(double(x)));
}
template <Real T>
static inline T spherical_bessel_j0_full_range(T x) {
  return T(spherical_bessel_j0_from(double(x), std::sin(std::fabs(double(x)))));
}
FACULA_INLINE float i0(float x) {
  return float(i0(double(x)));
}
FACULA_INLINE float i1(float x) {
  return float(i1(double(x)));
}

}  // namespace facula::math
