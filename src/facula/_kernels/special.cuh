// Functions made of others: activations, logarithmic sums, and some special functions. The longer
// ones stand in texts that the CPU shares (*.h).
#pragma once
#include "shared.cuh"

// All of them are long. The CPU inlines what it can compute in vectors.
#undef FACULA_FUNCTION
#define FACULA_FUNCTION FACULA_LARGE_FUNCTION
#include "bessel.h"
#include "gamma.h"
#include "orthogonal_polynomials.h"
#include "sinc_derivative.h"
#undef FACULA_FUNCTION
#define FACULA_FUNCTION __device__ __forceinline__

namespace facula {
namespace math {

template <class T>
FACULA_FUNCTION T exp_of_minus_abs(T x) {
  return exp(-abs(x));
}
// The exponential never overflows here, and small results keep their precision.
template <class T>
FACULA_FUNCTION T sigmoid(T x) {
  const T e = exp_of_minus_abs(x);
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
// The same for activations. In float32 by erf, for which a third fewer instructions are needed; far
// below 0 that costs relative accuracy, which activations do not need.
template <class T>
FACULA_FUNCTION T normal_cdf(T x) {
  if constexpr (same<T, float>) return 0.5f + 0.5f * erf(x * 0.70710678118654752440f);
  else return ndtr(x);
}
template <class T>
FACULA_FUNCTION T gelu(T x) {
  return x * normal_cdf(x);
}
template <class T>
FACULA_FUNCTION T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}

template <class T>
FACULA_FUNCTION T logaddexp(T a, T b) {
  if constexpr (is_complex<T>) {
    using R = real_of<T>;
    if (isnan(a) || isnan(b)) return T(kNaN<R>, kNaN<R>);
    const T larger = a.re < b.re ? b : a, smaller = a.re < b.re ? a : b;
    if (smaller.re == -kInf<R>) return larger;  // e^smaller is 0, whatever its angle
    if (smaller.re == kInf<R>) return log(exp(a) + exp(b));
    return larger + log1p(exp(smaller - larger));
  } else {
    const T d = a == b ? T(0) : -abs(a - b);  // equal infinities have no difference
    return maximum(a, b) + log1p(exp(d));
  }
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
// sin(pi x) / (pi x), by the distance to the nearest integer.
template <class T>
FACULA_LARGE_FUNCTION T sinc(T x) {
  using R = real_of<T>;
  const R pi = R(3.14159265358979323846), whole = round(real(x));
  const T s = sin((x - whole) * pi);
  return x == T(0) ? T(1) : (R(2) * round(R(0.5) * whole) == whole ? s : -s) / (x * pi);
}
// From the nearer end, so that weights 0 and 1 give both ends exactly.
template <class T>
FACULA_FUNCTION T lerp(T from, T to, T weight) {
  using R = real_of<T>;
  return abs(weight) < R(0.5) ? from + weight * (to - from)
                              : to - (to - from) * (R(1) - weight);
}

#define FACULA_UNARY(name, single, twice)                       \
  FACULA_LARGE_FUNCTION float name(float x) { return single; }  \
  FACULA_LARGE_FUNCTION double name(double x) { return twice; }
FACULA_UNARY(erfcx, ::erfcxf(x), ::erfcx(x))
FACULA_UNARY(ndtri, ::normcdfinvf(x), ::normcdfinv(x))
#undef FACULA_UNARY
// In single precision CUDA's own, which need no double arithmetic.
#define FACULA_SINGLE(name, function) \
  FACULA_LARGE_FUNCTION float name(float x) { return ::function(x); }
FACULA_SINGLE(i0, cyl_bessel_i0f)
FACULA_SINGLE(i1, cyl_bessel_i1f)
FACULA_SINGLE(bessel_j0, j0f)
FACULA_SINGLE(bessel_j1, j1f)
FACULA_SINGLE(bessel_y0, y0f)
FACULA_SINGLE(bessel_y1, y1f)
#undef FACULA_SINGLE
FACULA_LARGE_FUNCTION float spherical_bessel_j0(float x) {
  return isinf(x) ? 0.0f : (x == 0.0f ? 1.0f : ::sinf(x) / x);
}

template <class T>
FACULA_LARGE_FUNCTION T log_ndtr(T x) {
  const T y = x * T(0.70710678118654752440);
  return x < T(-1) ? log(T(0.5) * erfcx(-y)) - T(0.5) * x * x : log1p(T(-0.5) * erfc(y));
}
// With `eps` not negative, x is first limited to [eps, 1 - eps].
template <class T>
FACULA_LARGE_FUNCTION T logit(T x, T eps) {
  const T high = T(1) - eps, limited = x < eps ? eps : (x > high ? high : x);
  const T y = eps >= T(0) ? limited : x;
  const bool near = abs(y - T(0.5)) < T(0.25);
  return near ? log1p((y - T(0.5)) * T(2) / (T(1) - y)) : log(y / (T(1) - y));
}

}  // namespace math
}  // namespace facula

#include "activations.h"
