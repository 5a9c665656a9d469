// How gamma and beta samples move with their parameters; see implicit_gradients.h. The host defines
// FACULA_NAME, what walk.cuh wants, and
//   FACULA_BETA    0: out = gamma_gradient(first, second); 1: beta_gradient(first, second, third - second)
//   FACULA_OUT, FACULA_FIRST, FACULA_SECOND, FACULA_THIRD   dtypes
#pragma once
#include "shared.cuh"
#include "walk.cuh"
#include "gamma.h"
#define FACULA_SAMPLER __device__ inline
#include "implicit_gradients.h"

namespace facula {

// Written by sample_gradient in csrc/cuda/random.cpp.
struct Arguments {
  int64 count;
  char* out;
  const char* first;
  const char* second;
  const char* third;
  Walk<4> walk;
};

template <class T>
__device__ __forceinline__ double read(const char* address) {
  return convert<double>(*reinterpret_cast<const T*>(address));
}

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 at[4];
  arguments.walk.find(i, at);
  const double first = read<FACULA_FIRST>(arguments.first + at[1]);
  const double second = read<FACULA_SECOND>(arguments.second + at[2]);
#if FACULA_BETA
  const double third = read<FACULA_THIRD>(arguments.third + at[3]);
  const double result = samplers::beta_gradient(first, second, third - second);
#else
  const double result = samplers::gamma_gradient(first, second);
#endif
  *reinterpret_cast<FACULA_OUT*>(arguments.out + at[0]) = convert<FACULA_OUT>(result);
}
