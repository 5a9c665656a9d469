// Derivatives of sin(pi x) / (pi x), of any order, for real and complex x.
// Shared text, see special.cuh and cpu/math_complex.h.
#pragma once

namespace facula {
namespace math {

// In double or in complex numbers of double. With f(u) = sin(u) / u and u = pi x: the power series
// where it converges at once, else the recurrence from u f(u) = sin(u), which is stable for large
// u.
template <class W>
FACULA_LARGE_FUNCTION W sinc_derivative_in_double(W x, long long order) {
  constexpr double pi = 3.14159265358979323846;
  const W u = x * pi;
  double scale = 1.0;
  for (long long k = 0; k < order; ++k) scale *= pi;
  if (abs(u) < double(order) + 1.0) {
    // The sum of (-1)^m u^(2m - n) / ((2m + 1) (2m - n)!) over m >= n / 2.
    const long long first = order + (order & 1);
    W term = order & 1 ? u : W(1.0), sum = W(0.0);
    double sign = first & 2 ? -1.0 : 1.0;
    for (long long k = first; k < first + 200; k += 2, sign = -sign) {
      sum = sum + term * (sign / double(k + 1));
      const double next = double(k - order);
      term = term * u * u * (1.0 / ((next + 1.0) * (next + 2.0)));
      if (abs(term) <= 1e-18 * abs(sum)) break;
    }
    return sum * scale;
  }
  const double whole = round(double(real(x)));
  const double parity = 2.0 * round(0.5 * whole) == whole ? 1.0 : -1.0;
  const W angle = (x - W(whole)) * pi;
  const W s = sin(angle) * parity, c = cos(angle) * parity;
  W value = s / u;
  for (long long k = 1; k <= order; ++k) {
    const W turned = (k & 1 ? c : s) * (k & 2 ? -1.0 : 1.0);  // sin(u + k pi / 2)
    value = (turned - value * double(k)) / u;
  }
  return value * scale;
}

FACULA_FUNCTION double sinc_derivative(double x, long long order) {
  return sinc_derivative_in_double(x, order);
}
FACULA_FUNCTION float sinc_derivative(float x, long long order) {
  return float(sinc_derivative_in_double(double(x), order));
}
template <class R>
FACULA_FUNCTION Complex<R> sinc_derivative(Complex<R> z, long long order) {
  const Complex<double> wide(double(z.re), double(z.im));
  const Complex<double> v = sinc_derivative_in_double(wide, order);
  return Complex<R>(R(v.re), R(v.im));
}

}  // namespace math
}  // namespace facula
