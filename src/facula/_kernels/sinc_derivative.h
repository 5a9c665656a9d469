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

// The first derivative of a real number, without branches: pi (cos(u) - sin(u) / u) / u, and its
// power series where that cancels.
FACULA_FUNCTION double sinc_slope(double x) {
  constexpr double pi = 3.14159265358979323846;
  const double u = x * pi, z = u * u;
  const double near =
      u * polynomial(z, -1.0 / 3, 1.0 / 30, -1.0 / 840, 1.0 / 45360, -1.0 / 3991680,
                     1.0 / 518918400, -1.0 / 93405312000.0, 1.0 / 22230464256000.0,
                     -1.0 / 6758061133824000.0, 1.0 / 2554547108585472000.0,
                     -1.0 / 1175091669949317120000.0, 1.0 / 646300418472124416000000.0,
                     -1.0 / 418802671169936621568000000.0);
  const double whole = round(x), angle = (x - whole) * pi;
  const double turned = cos(angle) - sin(angle) / u;
  const double far = (2.0 * round(0.5 * whole) == whole ? turned : -turned) / u;
  return pi * (abs(u) < 2.0 ? near : far);
}
FACULA_FUNCTION float sinc_slope(float x) {
  return float(sinc_slope(double(x)));
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
