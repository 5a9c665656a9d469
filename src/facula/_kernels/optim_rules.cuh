// The rules of the optimisers on numbers of the device.
#pragma once
#include "math.cuh"

namespace facula {
namespace optim {

#define FACULA_HELPER template <class T> __device__ __forceinline__
FACULA_HELPER T root(T x) { return math::sqrt(x); }
FACULA_HELPER T larger(T a, T b) { return a > b || a != a ? a : b; }
FACULA_HELPER T smaller(T a, T b) { return a < b || a != a ? a : b; }
FACULA_HELPER T magnitude(T x) { return x < T(0) ? -x : x; }
FACULA_HELPER T sign_of(T x) { return T((x > T(0)) - (x < T(0))); }
FACULA_HELPER T choose(bool first, T a, T b) { return first ? a : b; }
FACULA_HELPER bool equals(T a, T b) { return a == b; }
// From a to b by the share w, exact at both ends.
FACULA_HELPER T mix(T a, T b, T w) {
  return w < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
}
#undef FACULA_HELPER
__device__ inline double power(double base, double exponent) { return ::pow(base, exponent); }
__device__ inline double number_of(double x) { return x; }
template <class S>
__device__ inline S number(double x) {
  return x;
}

}  // namespace optim
}  // namespace facula

#define FACULA_UPDATE __device__ __forceinline__
#define FACULA_UPDATES optim
#include "optim_coefficients.h"
