// A tensor at points: places whose positions along some dimensions come from index tensors. The host
// defines FACULA_NAME, what walk.cuh wants, and
//   FACULA_POINTS  number of index tensors
//   FACULA_ITEM    an unsigned type of the elements' size (or Words4): bits move as they are
//   FACULA_WRITE   0: values = tensor; 1: tensor = values
#pragma once
#include "fault.cuh"
#include "walk.cuh"

namespace facula {

// Written by move_points in csrc/cuda/points.cpp.
struct Arguments {
  int64 count;
  char* values;
  char* tensor;
  const char* index[FACULA_POINTS];
  int64 step[FACULA_POINTS];  // of the tensor along the index's dimension, in bytes
  FaultSite site[FACULA_POINTS];
  Walk<2 + FACULA_POINTS> walk;  // values, tensor, indices
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kUnroll = 4;
  const int64 first = int64(blockIdx.x) * (blockDim.x * kUnroll) + threadIdx.x;
  const char* from[kUnroll];
  char* to[kUnroll];
  bool good[kUnroll];
  LastFault fault;
#pragma unroll
  for (int u = kUnroll - 1; u >= 0; --u) {
    const int64 i = first + u * blockDim.x;
    good[u] = i < arguments.count;
    if (!good[u]) continue;
    int64 at[2 + FACULA_POINTS];
    arguments.walk.find(i, at);
    char* place = arguments.tensor + at[1];
#pragma unroll
    for (int k = FACULA_POINTS - 1; k >= 0; --k) {
      int64 index = *reinterpret_cast<const int64*>(arguments.index[k] + at[2 + k]);
      if (!fault.check(arguments.site, k, index, at[2 + k] / 8)) good[u] = false;
      place += index * arguments.step[k];
    }
    char* value = arguments.values + at[0];
    from[u] = FACULA_WRITE ? value : place;
    to[u] = FACULA_WRITE ? place : value;
  }
  fault.note(arguments.site);
  FACULA_ITEM items[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (good[u]) items[u] = *reinterpret_cast<const FACULA_ITEM*>(from[u]);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (good[u]) *reinterpret_cast<FACULA_ITEM*>(to[u]) = items[u];
  }
}
