// Orthogonal polynomials of degree n at x, by their recurrences or, for Chebyshev's inside of
// (-1, 1), by their angle. Shared text, see special.cuh and cpu/math_special.h.
//
// Degrees below 0 give 0. Where a recurrence overflows, outside of the interval that holds all
// zeros the sign of the infinity is known; elsewhere the result is NaN.
#pragma once

namespace facula {
namespace math {

// Beyond, recurrences would take milliseconds for one element.
constexpr long long kLargestDegree = 1 << 20;

struct Degree {
  long long n;
  bool odd;
};
FACULA_FUNCTION Degree degree_of(double n) {
  const bool fits = (n > -1e18) & (n < 1e18);
  const long long whole = fits ? (long long)n : -1;
  return {whole, (whole & 1) != 0};
}
// The value at -x from that at x > 0.
FACULA_FUNCTION double with_parity(double x, Degree d, double value) {
  return x < 0.0 && d.odd ? -value : value;
}
FACULA_FUNCTION double signed_infinity(double x, Degree d) {
  return with_parity(x, d, kInf<double>);
}

// p(k + 1) = 2 x p(k) - p(k - 1), of which the four kinds differ in p(1) only.
FACULA_LARGE_FUNCTION double chebyshev_recurrence(double x, Degree d, double first) {
  if (d.n == 0) return 1.0;
  const double twice = 2.0 * x;
  double before = 1.0, value = first;
  for (long long k = 1; k < d.n; ++k) {
    const double next = twice * value - before;
    before = value;
    value = next;
  }
  return abs(value) < kInf<double> || isnan(x) ? value : signed_infinity(x, d);
}

// Outside of [-1, 1] the angle is imaginary: hyperbolic functions of it, for large degrees.
constexpr long long kManySteps = 1000;

FACULA_FUNCTION double chebyshev_half_angle(double x, Degree d, bool even) {
  const double a = abs(x), angle = (double(d.n) + 0.5) * acosh(a);
  return with_parity(
      x, d, even ? cosh(angle) / sqrt(0.5 * (a + 1.0)) : sinh(angle) / sqrt(0.5 * (a - 1.0)));
}

// cos(n theta), x = cos(theta)
FACULA_LARGE_FUNCTION double chebyshev_t(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  if (abs(x) == 1.0) return x < 0.0 && d.odd ? -1.0 : 1.0;
  if (d.n > 6 && abs(x) < 1.0) return cos_full_range(double(d.n) * acos(x));
  if (d.n > kManySteps) return with_parity(x, d, cosh(double(d.n) * acosh(abs(x))));
  return chebyshev_recurrence(x, d, x);
}
// sin((n + 1) theta) / sin(theta)
FACULA_LARGE_FUNCTION double chebyshev_u(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  const double next = double(d.n) + 1.0;
  if (abs(x) == 1.0) return x < 0.0 && d.odd ? -next : next;
  if (d.n > 8 && abs(x) < 1.0) return sin_full_range(next * acos(x)) / sqrt((1.0 - x) * (1.0 + x));
  if (d.n > kManySteps) {
    const double a = abs(x);
    return with_parity(x, d, sinh(next * acosh(a)) / sqrt((a - 1.0) * (a + 1.0)));
  }
  return chebyshev_recurrence(x, d, 2.0 * x);
}
// cos((n + 1/2) theta) / cos(theta / 2)
FACULA_LARGE_FUNCTION double chebyshev_v(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  const double twice = 2.0 * double(d.n) + 1.0;
  if (abs(x) == 1.0) return x > 0.0 ? 1.0 : (d.odd ? -twice : twice);
  if (d.n > 8 && abs(x) < 1.0) return cos_full_range(0.5 * twice * acos(x)) / sqrt(0.5 * (1.0 + x));
  if (d.n > kManySteps) return chebyshev_half_angle(x, d, x > 0.0);
  return chebyshev_recurrence(x, d, 2.0 * x - 1.0);
}
// sin((n + 1/2) theta) / sin(theta / 2)
FACULA_LARGE_FUNCTION double chebyshev_w(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  const double twice = 2.0 * double(d.n) + 1.0;
  if (abs(x) == 1.0) return x > 0.0 ? twice : (d.odd ? -1.0 : 1.0);
  if (d.n > 8 && abs(x) < 1.0) return sin_full_range(0.5 * twice * acos(x)) / sqrt(0.5 * (1.0 - x));
  if (d.n > kManySteps) return chebyshev_half_angle(x, d, x < 0.0);
  return chebyshev_recurrence(x, d, 2.0 * x + 1.0);
}

// p(k + 1) = scale (x p(k) - k p(k - 1)): 2 for the physicists' kind, 1 for the probabilists'.
FACULA_LARGE_FUNCTION double hermite(double x, double degree, double scale) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  if (d.n == 0) return 1.0;
  if (x == 0.0 && d.odd) return 0.0;
  double before = 1.0, value = scale * x;
  for (long long k = 1; k < d.n && abs(value) < kInf<double>; ++k) {
    const double next = scale * (x * value - double(k) * before);
    before = value;
    value = next;
  }
  if (abs(value) < kInf<double>) return value;
  return scale * x * x > 4.0 * double(d.n) + 2.0 ? signed_infinity(x, d) : kNaN<double>;
}

// (k + 1) p(k + 1) = (2 k + 1 - x) p(k) - k p(k - 1)
FACULA_LARGE_FUNCTION double laguerre(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  if (d.n == 0 || x == 0.0) return 1.0;
  if (d.n > kLargestDegree) return kNaN<double>;
  double before = 1.0, value = 1.0 - x;
  for (long long k = 1; k < d.n; ++k) {
    const double inverse = 1.0 / double(k + 1);  // does not wait for the values
    const double next = value + (double(k) * (value - before) - x * value) * inverse;
    before = value;
    value = next;
  }
  if (abs(value) < kInf<double>) return value;
  return x < 0.0 || x > 4.0 * double(d.n) + 2.0 ? signed_infinity(-x, d) : kNaN<double>;
}

// (k + 1) p(k + 1) = (2 k + 1) x p(k) - k p(k - 1)
FACULA_LARGE_FUNCTION double legendre(double x, double degree) {
  const Degree d = degree_of(degree);
  if (d.n < 0) return 0.0;
  if (abs(x) == 1.0) return with_parity(x, d, 1.0);
  if (d.n == 0) return 1.0;
  if (d.n > kLargestDegree) return abs(x) > 1.0 ? signed_infinity(x, d) : kNaN<double>;
  double before = 1.0, value = x;
  for (long long k = 1; k < d.n; ++k) {
    const double weight = double(k) / double(k + 1), product = x * value;
    const double next = product + (product - before) * weight;
    before = value;
    value = next;
  }
  return abs(value) < kInf<double> || isnan(x) ? value : signed_infinity(x, d);
}

// By the names of the operators. Shifted polynomials live on (0, 1).
#define FACULA_POLYNOMIAL(name, expression)                \
  template <class T>                                       \
  FACULA_FUNCTION T name(T argument, T degree) {           \
    const double x = double(argument), n = double(degree); \
    return T(expression);                                  \
  }
FACULA_POLYNOMIAL(chebyshev_polynomial_t, chebyshev_t(x, n))
FACULA_POLYNOMIAL(chebyshev_polynomial_u, chebyshev_u(x, n))
FACULA_POLYNOMIAL(chebyshev_polynomial_v, chebyshev_v(x, n))
FACULA_POLYNOMIAL(chebyshev_polynomial_w, chebyshev_w(x, n))
FACULA_POLYNOMIAL(shifted_chebyshev_polynomial_t, chebyshev_t(2.0 * x - 1.0, n))
FACULA_POLYNOMIAL(shifted_chebyshev_polynomial_u, chebyshev_u(2.0 * x - 1.0, n))
FACULA_POLYNOMIAL(shifted_chebyshev_polynomial_v, chebyshev_v(2.0 * x - 1.0, n))
FACULA_POLYNOMIAL(shifted_chebyshev_polynomial_w, chebyshev_w(2.0 * x - 1.0, n))
FACULA_POLYNOMIAL(hermite_polynomial_h, hermite(x, n, 2.0))
FACULA_POLYNOMIAL(hermite_polynomial_he, hermite(x, n, 1.0))
FACULA_POLYNOMIAL(laguerre_polynomial_l, laguerre(x, n))
FACULA_POLYNOMIAL(legendre_polynomial_p, legendre(x, n))
#undef FACULA_POLYNOMIAL

}  // namespace math
}  // namespace facula
