// Error functions, gamma functions, Bessel functions and the activations built on them.
#pragma once
#include <math.h>

#include "cpu/math_trig.h"

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

// erfc(a + a_lo) for a >= 0: e^(-a^2) P(t) / (1 + 2 a) with t = (a - 4) / (a + 4), a single smooth
// function of t on the whole half-line (Shepherd and Laframboise 1981).
FACULA_INLINE double erfc_positive(double a, double a_lo = 0.0) {
  a = a > 28.0 ? 28.0 : a;  // erfc is zero from 27.3
  const double t = (a - 4.0) / (a + 4.0);
  const double p = polynomial(
      t, 1.2329951186255526, -0.13962111684056253, 0.015379652102619558, 0.06809705425469323,
      -0.10103906603629459, 0.09373283499833023, -0.0663303658124095, 0.03716751553777026,
      -0.01619773405599449, 0.005031969975753176, -0.0007577732973669146, -0.00019925668432389153,
      0.00015062169704678355, -2.439924428312988e-05, -1.1222046316669005e-05,
      5.709784760966506e-06, 2.9377854943443786e-07, -8.254699744871162e-07, 7.471952780500971e-08,
      1.1005996198640057e-07, -1.799947545903142e-08, -1.4091982822555755e-08,
      1.868487385473519e-09, 1.263782858042137e-09);
  const auto square = two_product(a, a);
  return exp_sum(-square.hi, -(square.lo + 2.0 * a * a_lo)) * (p / (1.0 + 2.0 * a));
}

// The same for float, up to 0.9.
FACULA_INLINE float erf_tail(float z) {
  return polynomial(z, 0.128379226f, -0.376126349f, 0.11283718f, -0.0268606655f, 0.00520422682f,
                    -0.000817963213f, 8.52940138e-05f);
}
// erfc(a) for 0.9 <= a as e^-q(a); good for 1 - erfc, and as such to a few ulp. Beyond 4, where
// erf rounds to 1, it is taken for 0.
FACULA_INLINE float erfc_middle(float a) {
  const float b = a > 4.0f ? 4.0f : a;
  const float q =
      polynomial(b, -0.000318539649f, 1.13023102f, 0.631823897f, 0.110087164f, -0.0264276378f,
                 0.00476262579f, -0.000597585749f, 4.61638592e-05f, -1.64306368e-06f);
  const float e = exp(-q);
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
FACULA_INLINE float erfc(float x) {
  return float(erfc(double(x)));
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
  return float(ndtr(double(x)));
}

// Wichura's algorithm AS 241 (1988) for the normal quantile at (1 + y) / 2, over sqrt(2).
FACULA_INLINE double erfinv(double y) {
  const double a = abs(y), q = 0.5 * y;
  const double rc = 0.180625 - q * q;
  const double centre =
      q *
      polynomial(rc, 3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                 3.3430575583588128105e+4, 2.5090809287301226727e+3) /
      polynomial(rc, 1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
                 5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
                 2.8729085735721942674e+4, 5.2264952788528545610e+3);
  const double r = sqrt(-log(0.5 * (1.0 - a)));
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
  const double v = a <= 0.85 ? centre : copysign(tail_num / tail_den, y);
  const double result = v * 0.7071067811865476;
  return a == 1.0 ? copysign(kInf<double>, y) : (a > 1.0 ? kNaN<double> : result);
}
FACULA_INLINE float erfinv(float y) {
  return float(erfinv(double(y)));
}

// ---- activations ----------------------------------------------------------------------------

// x ndtr(x), with no cancellation for negative x.
FACULA_INLINE double gelu(double x) {
  return x * ndtr(x);
}
FACULA_INLINE float gelu(float x) {
  const float y = x * 0.707106781f;
  const float near = 1.0f + madd(y, detail::erf_tail(y * y), y);
  const float c = detail::erfc_middle(abs(y));
  return 0.5f * x * (abs(y) < 0.9f ? near : (x < 0.0f ? c : 2.0f - c));
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
static inline float lgamma(float x) {
  return float(lgamma(double(x)));
}

// The derivative of lgamma: recurrence up to 12, then the asymptotic series.
static inline double digamma(double x) {
  if (x == 0.0) return copysign(kInf<double>, -x);
  double result = 0.0;
  if (x < 0.0) {
    const double whole = std::nearbyint(x);
    if (x == whole) return kNaN<double>;  // a pole with both signs; also -inf
    // psi(x) = psi(1 - x) - pi / tan(pi x); the period of the tangent keeps its argument small
    result = -3.14159265358979323846 / std::tan(3.14159265358979323846 * (x - whole));
    x = 1.0 - x;
  }
  while (x < 12.0) {
    result -= 1.0 / x;
    x += 1.0;
  }
  const double z = 1.0 / (x * x);
  const double series = z * polynomial(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132,
                                       -691.0 / 32760, 1.0 / 12, -3617.0 / 8160);
  return result + (std::log(x) - 0.5 / x - (x < 1e17 ? series : 0.0));
}
static inline float digamma(float x) {
  return float(digamma(double(x)));
}

// The derivative of digamma.
static inline double trigamma(double x) {
  double result = 0.0, sign = 1.0;
  if (x < 0.5) {  // pi^2 / sin^2(pi x) - trigamma(1 - x)
    const double s = std::sin(3.14159265358979323846 * (x - std::nearbyint(x)));
    if (s == 0.0) return kInf<double>;
    result = 9.8696044010893586188 / (s * s);
    sign = -1.0;
    x = 1.0 - x;
  }
  while (x < 12.0) {
    result += sign / (x * x);
    x += 1.0;
  }
  const double z = 1.0 / (x * x);
  const double series =
      z * polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6);
  return result + sign * ((1.0 + series) / x + 0.5 * z);
}
static inline float trigamma(float x) {
  return float(trigamma(double(x)));
}

// The modified Bessel function I0: its power series, all terms positive, or for large arguments
// the asymptotic one.
static inline double i0(double x) {
  const double a = std::fabs(x);
  double sum = 1.0, term = 1.0;
  if (a < 20.0) {
    const double z = 0.25 * a * a;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= z / (double(k) * k);
      sum += term;
    }
    return sum;
  }
  if (!(a < kInf<double>)) return a;
  for (int k = 1; k < 40 && term > 1e-17; ++k) {
    term *= (2.0 * k - 1) * (2.0 * k - 1) / (8.0 * k * a);
    sum += term;
  }
  const double half = std::exp(0.5 * a);  // e^a overflows a little earlier than I0
  return half * (sum / std::sqrt(6.283185307179586 * a)) * half;
}
static inline float i0(float x) {
  return float(i0(double(x)));
}

}  // namespace facula::math
