// The order of rows that a list of exchanges makes; one block for each matrix.
//   FACULA_INVERSE  1: the inverse order
#pragma once
#include "fault.cuh"

namespace facula {

struct Arguments {
  FaultSite site;  // limit: the number of rows
  const int32* pivots;
  int64* order;
  int64* spare;  // as large as order, for the inverse
  int64 exchanges, rows;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 matrix = blockIdx.x, rows = arguments.rows;
  const int32* pivots = arguments.pivots + matrix * arguments.exchanges;
  int64* const order = arguments.order + matrix * rows;
  int64* const to = FACULA_INVERSE ? arguments.spare + matrix * rows : order;
#pragma unroll 1
  for (int64 i = threadIdx.x; i < rows; i += blockDim.x) to[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {  // exchanges depend on each other
#pragma unroll 1
    for (int64 i = 0; i < arguments.exchanges; ++i) {
      int64 with = int64(pivots[i]) - 1;
      if (!good_index(arguments.site, with, matrix * arguments.exchanges + i)) continue;
      const int64 held = to[i];
      to[i] = to[with];
      to[with] = held;
    }
  }
  __syncthreads();
  if (FACULA_INVERSE) {
#pragma unroll 1
    for (int64 i = threadIdx.x; i < rows; i += blockDim.x) order[to[i]] = i;
  }
}
