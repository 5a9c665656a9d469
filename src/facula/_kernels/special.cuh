// Functions made of others: activations, logarithmic sums, and some special functions.
#pragma once
#include "math.cuh"

namespace facula {
namespace math {

// The exponential never overflows here, and small results keep their precision.
template <class T>
FACULA_FUNCTION T sigmoid(T x) {
  const T e = exp(-abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T>
FACULA_FUNCTION T silu(T x) {
  return x / (real_of<T>(1) + exp(-x));
}
template <class T>
FACULA_FUNCTION T softplus(T x) {
  return relu(x) + log1p(exp(-abs(x)));
}
template <class T>
FACULA_FUNCTION T log_sigmoid(T x) {
  return -softplus(-x);
}
template <class T>
FACULA_FUNCTION T ndtr(T x) {  // the normal distribution function
  return T(0.5) * erfc(x * T(-0.70710678118654752440));
}
template <class T>
FACULA_FUNCTION T gelu(T x) {
  return x * ndtr(x);
}
template <class T>
FACULA_FUNCTION T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}

template <class T>
FACULA_FUNCTION T logaddexp(T a, T b) {
  const T d = a == b ? T(0) : -abs(a - b);  // equal infinities have no difference
  return maximum(a, b) + log1p(exp(d));
}
template <class T>
FACULA_FUNCTION T logaddexp2(T a, T b) {
  const T d = a == b ? T(0) : -abs(a - b);
  return maximum(a, b) + log1p(exp2(d)) * T(1.44269504088896340736);
}
template <class T>
FACULA_FUNCTION T xlogy(T x, T y) {
  return x == T(0) && !isnan(y) ? T(0) : x * log(y);
}
template <class T>
FACULA_FUNCTION T xlog1py(T x, T y) {
  return x == T(0) && !isnan(y) ? T(0) : x * log1p(y);
}
template <class T>
FACULA_FUNCTION T entr(T x) {
  return x == T(0) ? T(0) : (x < T(0) ? lowest_value<T>() : -x * log(x));
}
template <class T>
FACULA_FUNCTION T sinc(T x) {
  const T angle = T(3.14159265358979323846) * x;
  return x == T(0) ? T(1) : sin(angle) / angle;
}
// From the nearer end, so that weights 0 and 1 give both ends exactly.
template <class T>
FACULA_FUNCTION T lerp(T from, T to, T weight) {
  using R = real_of<T>;
  return abs(weight) < R(0.5) ? from + weight * (to - from)
                              : to - (to - from) * (R(1) - weight);
}

// The derivative of lgamma: recurrence up to 12, then the asymptotic series.
FACULA_FUNCTION double digamma(double x) {
  if (x == 0.0) return ::copysign(highest_value<double>(), -x);
  double result = 0.0;
  if (x < 0.0) {
    const double whole = ::rint(x);
    if (x == whole) return __longlong_as_double(0x7ff8000000000000ll);  // a pole with both signs
    result = -3.14159265358979323846 / ::tan(3.14159265358979323846 * (x - whole));
    x = 1.0 - x;
  }
  for (; x < 12.0; x += 1.0) result -= 1.0 / x;
  const double z = 1.0 / (x * x);
  // Bernoulli numbers B(2k) / 2k.
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 -
      z * (691.0 / 32760 - z * (1.0 / 12 - z * 3617.0 / 8160)))))));
  return result + (::log(x) - 0.5 / x - (x < 1e17 ? series : 0.0));
}
FACULA_FUNCTION float digamma(float x) { return float(digamma(double(x))); }

FACULA_FUNCTION float i0(float x) { return ::cyl_bessel_i0f(x); }
FACULA_FUNCTION double i0(double x) { return ::cyl_bessel_i0(x); }

}  // namespace math
}  // namespace facula
