// What follows from the sums of column_sums.cuh or channel_sums.cuh, for each channel: a batch
// norm's moments (FACULA_KIND 0) or its derivative (1). A warp adds up the parts of a channel. The
// host defines FACULA_NAME and
//   FACULA_COMPUTE     the type T of all arithmetic
//   FACULA_ITEM        type of the input
//   FACULA_PARAMETER   type of the weight; FACULA_WEIGHT 1: it is given
#pragma once
#include "roots.cuh"
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;
using Sum = choose<FACULA_KIND == 0, double, T>;  // see column_sums.cuh

// Written by channel_moments in csrc/cuda/normalization.cpp.
struct Arguments {
  const Sum* sums;  // (2, parts, channels)
  const char* in;
  int64 channel_stride;  // of the input, in elements
  const char* weight;
  T* mean;   // derivative: not used
  T* rstd;   // derivative: read
  T* other;  // the variance; derivative: the mean of g
  T* slope;  // derivative: rstd^2 mean(g (x - mean))
  T* scale;  // rstd times the weight
  T* weight_grad;
  T* bias_grad;
  int64 channels, parts, count;
  double eps;
};

__device__ __forceinline__ float inverse_root(float x) { return exact_reciprocal(exact_root(x)); }
__device__ __forceinline__ double inverse_root(double x) { return 1.0 / ::sqrt(x); }

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 channel = int64(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool exists = channel < arguments.channels;
  Sum sum[2] = {};
#pragma unroll 1
  for (int which = 0; which < 2; ++which) {
    Sum total = Sum(0);
    if (exists) {
#pragma unroll 4
      for (int64 part = threadIdx.x; part < arguments.parts; part += 32) {
        total += arguments.sums[(which * arguments.parts + part) * arguments.channels + channel];
      }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      total += __shfl_xor_sync(0xffffffffu, total, distance);
    }
    sum[0] = sum[1];  // by moving up, both are compiled once
    sum[1] = total;
  }
  if (!exists || threadIdx.x != 0) return;
  const T n = T(arguments.count);
  const T weight =
      FACULA_WEIGHT
          ? convert<T>(reinterpret_cast<const FACULA_PARAMETER*>(arguments.weight)[channel])
          : T(1);
#if FACULA_KIND == 0
  const T from = convert<T>(
      reinterpret_cast<const FACULA_ITEM*>(arguments.in)[channel * arguments.channel_stride]);
  const Sum away = sum[0] / Sum(n), excess = sum[1] / Sum(n) - away * away;
  const T variance = T(excess < Sum(0) ? Sum(0) : excess);
  const T rstd = inverse_root(variance + T(arguments.eps));
  arguments.mean[channel] = T(Sum(from) + away);
  arguments.rstd[channel] = rstd;
  arguments.other[channel] = variance;
  arguments.scale[channel] = rstd * weight;
#else
  const T rstd = arguments.rstd[channel];
  arguments.bias_grad[channel] = sum[0];
  arguments.weight_grad[channel] = sum[1] * rstd;
  arguments.other[channel] = sum[0] / n;
  arguments.slope[channel] = sum[1] / n * rstd * rstd;
  arguments.scale[channel] = rstd * weight;
#endif
}
