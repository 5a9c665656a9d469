// Activations and the derivatives of those that have none in terms of their result.
// Shared text, see special.cuh and cpu/math_activations.h.
#pragma once

namespace facula {
namespace math {

// Between `least` and `most`; NaN stays. One choice after the other: compilers make more of two that
// are one within the other.
template <class T>
FACULA_FUNCTION T limited(T x, T least, T most) {
  const T y = x < least ? least : x;
  return y > most ? most : y;
}
template <class T>
FACULA_FUNCTION T limited(T x, int most) {
  return limited(x, T(0), T(most));
}

// The derivative of x normal_cdf(x). Infinities are limited: their product with 0 has no value.
template <class T>
FACULA_FUNCTION T gelu_derivative(T x) {
  const T y = x > T(40) ? T(40) : (x < T(-40) ? T(-40) : x);
  return normal_cdf(x) + y * exp_of_minus_abs(T(0.5) * y * y) * T(0.39894228040143267794);
}
// With t = tanh(u): (1 + t + x (1 - t^2) u') / 2.
template <class T>
FACULA_FUNCTION T gelu_tanh_derivative(T x) {
  const T y = x > T(40) ? T(40) : (x < T(-40) ? T(-40) : x);
  const T square = T(0.044715) * y * y, root = T(0.79788456080286535588);
  const T t = tanh(root * y * (T(1) + square));
  return T(0.5) * ((T(1) + t) + y * (T(1) - t * t) * root * (T(1) + T(3) * square));
}
template <class T>
FACULA_FUNCTION T sigmoid_derivative(T x) {
  const T e = exp_of_minus_abs(x), inverse = T(1) / (T(1) + e);
  return e * inverse * inverse;
}
// sigmoid(x) without its last half ulp, for products with it.
template <class T>
FACULA_FUNCTION T quick_sigmoid(T x) {
  const T e = exp_of_minus_abs(x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T>
FACULA_FUNCTION T silu_derivative(T x) {
  const T y = x > T(745) ? T(745) : (x < T(-745) ? T(-745) : x);
  // With e = exp(-|x|), the sigmoid is 1 / (1 + e) or e / (1 + e), and its derivative e / (1 + e)^2.
  const T e = exp_of_minus_abs(x), inverse = T(1) / (T(1) + e), rest = e * inverse;
  return y * (rest * inverse) + (y < T(0) ? rest : inverse);
}

// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); 1 in all digits from 40 on.
template <class T>
FACULA_FUNCTION T mish(T x) {
  const T e = exp(x > T(40) ? T(40) : x);
  const T n = e * (e + T(2));
  return x * (n / (n + T(2)));
}
template <class T>
FACULA_FUNCTION T mish_derivative(T x) {
  const T y = x > T(40) ? T(40) : (x < T(-745) ? T(-745) : x);
  const T e = exp(y);
  const T n = e * (e + T(2)), inverse = T(1) / (n + T(2));
  return n * inverse + T(4) * y * e * (T(1) + e) * inverse * inverse;
}

// log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold.
template <class T>
FACULA_FUNCTION T scaled_softplus(T x, T beta, T threshold) {
  return x * beta > threshold ? x : softplus(x * beta) / beta;
}

// -(t log(p) + (1 - t) log(1 - p)), with logarithms of no less than -100.
template <class T>
FACULA_FUNCTION T binary_cross_entropy(T p, T t) {
  const T low = T(-100);
  const T yes = log(p), no = log1p(-p);
  return (t - T(1)) * (no < low ? low : no) - t * (yes < low ? low : yes);
}
template <class T>
FACULA_FUNCTION T binary_cross_entropy_derivative(T p, T t) {
  const T spread = (T(1) - p) * p, least = T(1e-12);
  return (p - t) / (spread < least ? least : spread);
}

// Quadratic up to `delta`, linear beyond it.
template <class T>
FACULA_FUNCTION T huber(T difference, T delta) {
  const T z = abs(difference);
  return z <= delta ? T(0.5) * z * z : delta * (z - T(0.5) * delta);
}
// The same divided by beta, which may be 0: the absolute value then.
template <class T>
FACULA_FUNCTION T smooth_l1(T difference, T beta) {
  const T z = abs(difference);
  return z < beta ? T(0.5) * z * z / beta : z - T(0.5) * beta;
}

}  // namespace math
}  // namespace facula
