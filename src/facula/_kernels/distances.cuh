// Distances between the rows of two matrices (FACULA_KIND 0), or the derivative by the first (1);
// see csrc/cpu/distances.h. The host defines FACULA_NAME and
//   FACULA_COMPUTE  the type T of everything
//   FACULA_NORM     0, 1, 2: that p; 3: infinity; 4: another p
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;

// Written by csrc/cuda/sampling.cpp.
struct Arguments {
  int64 count, rows, columns, width;  // results of all matrices
  const T* x1;
  const T* x2;
  const T* grad;
  const T* distances;
  T* out;
  double p;
};

__device__ __forceinline__ float power(float x, float y) { return ::powf(x, y); }
__device__ __forceinline__ double power(double x, double y) { return ::pow(x, y); }
__device__ __forceinline__ float root(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double root(double x) { return ::sqrt(x); }
__device__ __forceinline__ T sign(T x) { return T((x > T(0)) - (x < T(0))); }
__device__ __forceinline__ T absolute(T x) { return x < T(0) ? -x : x; }

__device__ __forceinline__ T slope(T grad, T distance, T difference, T p) {
#if FACULA_NORM == 0
  return T(0);
#elif FACULA_NORM == 1
  return grad * sign(difference);
#elif FACULA_NORM == 2
  return distance == T(0) ? T(0) : grad * difference / distance;
#elif FACULA_NORM == 3
  return absolute(difference) == distance ? grad * sign(difference) : T(0);
#else
  const T size = absolute(difference);
  return size == T(0) || distance == T(0)
             ? T(0)
             : grad * sign(difference) * power(size / distance, p - T(1));
#endif
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  [[maybe_unused]] const T p = T(a.p);
#if FACULA_KIND == 0
  const int64 column = i % a.columns, row = i / a.columns, matrix = row / a.rows;
  const T* x = a.x1 + row * a.width;
  const T* y = a.x2 + (matrix * a.columns + column) * a.width;
  T total = T(0);
  for (int64 m = 0; m < a.width; ++m) {
    const T difference = x[m] - y[m];
#if FACULA_NORM == 0
    total += T(difference != T(0));
#elif FACULA_NORM == 1
    total += absolute(difference);
#elif FACULA_NORM == 2
    total += difference * difference;
#elif FACULA_NORM == 3
    const T size = absolute(difference);
    total = size > total || size != size ? size : total;
#else
    total += power(absolute(difference), p);
#endif
  }
#if FACULA_NORM == 2
  total = root(total);
#elif FACULA_NORM == 4
  total = power(total, T(1) / p);
#endif
  a.out[i] = total;
#else
  const int64 m = i % a.width, row = i / a.width, matrix = row / a.rows;
  const T x = a.x1[i];
  const T* y = a.x2 + matrix * a.columns * a.width + m;
  T sum = T(0);
  for (int64 column = 0; column < a.columns; ++column) {
    const int64 at = row * a.columns + column;
    sum += slope(a.grad[at], a.distances[at], x - y[column * a.width], p);
  }
  a.out[i] = sum;
#endif
}
