// How gamma and beta samples move with their parameters while the value of their distribution
// function stays what it is: dx/da = -(dF/da) / (dF/dx) (Figurnov, Mohamed and Mnih 2018).
// The distribution functions are summed as series or continued fractions together with their
// derivatives, to about 1e-12; PyTorch's approximations are good to about 1e-3.
// Shared by CPU and CUDA; FACULA_SAMPLER stands before every function, and gamma.h comes first.
#pragma once

namespace facula {
namespace samplers {

constexpr double kLargest = 1.7976931348623157e308;
constexpr double kNotANumber = __builtin_bit_cast(float, 0x7fc00000u);
constexpr double kPrecision = 1e-16;
constexpr int kMostTerms = 100000;

// A value with its derivative by one parameter.
struct Dual {
  double v, d;
};
FACULA_SAMPLER Dual operator+(Dual a, Dual b) {
  return {a.v + b.v, a.d + b.d};
}
FACULA_SAMPLER Dual operator*(Dual a, Dual b) {
  return {a.v * b.v, a.d * b.v + a.v * b.d};
}
FACULA_SAMPLER Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

// A continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz's method. term(i, a, b) gives the
// i-th pair, i >= 1.
template <class Term>
FACULA_SAMPLER Dual continued_fraction(Dual b0, Term&& term) {
  Dual f = b0, c = b0, d = {0, 0};
  for (int i = 1; i < kMostTerms; ++i) {
    Dual a, b;
    term(i, a, b);
    d = Dual{1, 0} / (b + a * d);
    c = b + a / c;
    const Dual step = c * d;
    f = f * step;
    if (::fabs(step.v - 1) < kPrecision && ::fabs(step.d) < kPrecision * (1 + ::fabs(f.d)))
      break;
  }
  return f;
}

// log(1 + t) / t
FACULA_SAMPLER double log1p_ratio(double t) {
  return t == 0 ? 1 : ::log1p(t) / t;
}

// Large shapes: the signed root of twice the exponent is nearly normal, which ties x to the shape.
// The last term is the first correction, at the centre. Relative error below 1e-6 from 1e5 on.
FACULA_SAMPLER double large_gamma_gradient(double shape, double x) {
  const double ratio = x / shape;
  return ratio * log1p_ratio(ratio - 1) + 1 / (6 * shape);
}

FACULA_SAMPLER double gamma_gradient(double shape, double x) {
  if (!(shape > 0) || !(x >= 0))
    return kNotANumber;
  if (x == 0) return 0;
  if (shape > 1e5) return large_gamma_gradient(shape, x);
  const double log_x = ::log(x);
  if (x <= shape + 1) {
    // F / F' = x sum t_n with t_n = x^n / (shape ... (shape + n)), and the derivative of log t_n
    // times the rest of F by the shape is log x - psi(shape + n + 1).
    double term = 1 / shape, psi = math::digamma(shape + 1), sum = 0;
    for (int n = 0; n < kMostTerms; ++n) {
      const double add = term * (psi - log_x);
      sum += add;
      const double next = shape + n + 1;
      psi += 1 / next;
      term *= x / next;
      if (n > 2 && ::fabs(term * (psi - log_x)) < kPrecision * ::fabs(sum)) break;
    }
    return x * sum;
  }
  // (1 - F) / F' = x C with Legendre's fraction 1 / C = x + 1 - a - 1 (1 - a) / (x + 3 - a - ...).
  const Dual inverse = continued_fraction({x + 1 - shape, -1}, [&](int i, Dual& a, Dual& b) {
    a = {-i * (i - shape), double(i)};
    b = {x + 1 + 2 * i - shape, -1};
  });
  const Dual fraction = Dual{1, 0} / inverse;
  return x * (fraction.v * (log_x - math::digamma(shape)) + fraction.d);
}

// The fraction of the incomplete beta function: F = x^a (1 - x)^b / (a B(a, b)) / fraction. The
// derivative is by the first parameter or by the second.
FACULA_SAMPLER Dual beta_fraction(double first, double second, double x, bool by_first) {
  const Dual p{first, by_first ? 1.0 : 0.0}, q{second, by_first ? 0.0 : 1.0};
  return continued_fraction({1, 0}, [&](int i, Dual& a, Dual& b) {
    b = {1, 0};
    const int m = i / 2;
    const Dual k{double(m), 0}, one{1, 0}, by_x{x, 0}, minus{-1, 0};
    const Dual end = p + Dual{double(i), 0};
    if (i % 2 == 1) a = minus * (p + k) * (p + q + k) * by_x / (end * (end + minus * one));
    else a = k * (q + minus * k) * by_x / (end * (end + minus * one));
  });
}

// Both parameters large: likewise. Relative error below 1e-5 from 1e5 on.
FACULA_SAMPLER double large_beta_gradient(double a, double b, double x) {
  const double mean = a / (a + b);
  return x / a * log1p_ratio((x - mean) / mean);
}

// For x from Beta(a, b): dx/da / (1 - x).
FACULA_SAMPLER double beta_gradient(double x, double a, double b) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || a > kLargest || b > kLargest)
    return kNotANumber;
  if (x == 0) return 0;
  if (a > 1e5 && b > 1e5) return large_beta_gradient(a, b, x);
  const double psi_sum = math::digamma(a + b);
  if (x < (a + 1) / (a + b + 2)) {
    // F / F' = x (1 - x) / a / fraction
    const Dual part = Dual{1, 0} / beta_fraction(a, b, x, true);
    return -x / a * (part.v * (::log(x) + psi_sum - math::digamma(a + 1)) + part.d);
  }
  // 1 - F is the distribution function of 1 - x with the parameters exchanged.
  const double y = 1 - x;
  const Dual part = Dual{1, 0} / beta_fraction(b, a, y, false);
  return x / b * (part.v * (::log1p(-y) + psi_sum - math::digamma(a)) + part.d);
}

}  // namespace samplers
}  // namespace facula
