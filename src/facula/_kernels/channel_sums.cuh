// The two sums of column_sums.cuh for the channels of a dense (batch, channels, inner) tensor: x
// runs over channels, y over shares of a channel's elements. The host defines FACULA_NAME and
//   FACULA_COMPUTE, FACULA_ITEM, FACULA_GRAD, FACULA_VECTOR, FACULA_KIND (0 or 1) as there
//   FACULA_INDEX    uint32 or uint64
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;
using Sum = choose<FACULA_KIND == 0, double, T>;  // see column_sums.cuh
constexpr int V = FACULA_VECTOR;
constexpr int kThreads = 256;
using Index = FACULA_INDEX;

// Written by channel_sums in csrc/cuda/normalization.cpp.
struct Arguments {
  const char* in;
  const char* grad;
  const T* mean;
  Sum* out;             // (2, parts, channels)
  int64 loads, share;   // of a channel, of a block
  int64 batch_stride, channel_stride;  // elements
  Divider<Index> run;   // loads of one image's channel
};

__device__ __forceinline__ Sum over_block(Sum value, Sum* parts) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
#pragma unroll
  for (int i = 1; i < kThreads / 32; ++i) value += parts[i];
  return value;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 channel = blockIdx.x, start = channel * arguments.channel_stride;
  const int64 begin = blockIdx.y * arguments.share;
  const int64 end = begin + arguments.share < arguments.loads ? begin + arguments.share
                                                              : arguments.loads;
  const T from = FACULA_KIND == 0
                     ? convert<T>(reinterpret_cast<const FACULA_ITEM*>(arguments.in)[start])
                     : arguments.mean[channel];
  Sum first = Sum(0), second = Sum(0);
#pragma unroll 4
  for (int64 i = begin + threadIdx.x; i < end; i += kThreads) {
    const Index image = arguments.run.divide(Index(i));
    const int64 at = start + int64(image) * arguments.batch_stride +
                     int64(Index(i) - image * arguments.run.divisor) * V;
    Vector<FACULA_ITEM, V> x;
    load(x, arguments.in + at * int64(sizeof(FACULA_ITEM)));
#if FACULA_KIND == 1
    Vector<FACULA_GRAD, V> grad;
    load(grad, arguments.grad + at * int64(sizeof(FACULA_GRAD)));
#endif
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const T value = convert<T>(x.at[v]) - from;
#if FACULA_KIND == 0
      first += Sum(value);
      second += Sum(value) * Sum(value);
#else
      const T g = convert<T>(grad.at[v]);
      first += g;
      second += g * value;
#endif
    }
  }
  __shared__ Sum parts[2][kThreads / 32];
#pragma unroll 1
  for (int which = 0; which < 2; ++which, first = second) {
    const Sum sum = over_block(first, parts[which]);
    if (threadIdx.x != 0) continue;
    arguments.out[(int64(which) * gridDim.y + blockIdx.y) * gridDim.x + channel] = sum;
  }
}
