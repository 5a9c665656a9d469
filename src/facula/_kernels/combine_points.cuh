// tensor[point] = tensor[point] . alpha * value for every point, in no fixed order. The host defines
// FACULA_NAME, what walk.cuh and combine.cuh want, and
//   FACULA_POINTS  number of index tensors
//   FACULA_TYPE    element type; small floats are widened before
//   FACULA_ALPHA   whether values are multiplied by a factor
#pragma once
#include "combine.cuh"
#include "fault.cuh"
#include "walk.cuh"

namespace facula {

// Written by combine_points in csrc/cuda/points.cpp.
struct Arguments {
  int64 count;
  const char* values;
  char* tensor;
  const char* index[FACULA_POINTS];
  int64 step[FACULA_POINTS];
  FaultSite site[FACULA_POINTS];
  Slot alpha;
  Walk<2 + FACULA_POINTS> walk;  // values, tensor, indices
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  using T = FACULA_TYPE;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 at[2 + FACULA_POINTS];
  arguments.walk.find(i, at);
  char* place = arguments.tensor + at[1];
#pragma unroll
  for (int k = 0; k < FACULA_POINTS; ++k) {
    int64 index = *reinterpret_cast<const int64*>(arguments.index[k] + at[2 + k]);
    if (!good_index(arguments.site[k], index, at[2 + k] / 8)) return;
    place += index * arguments.step[k];
  }
  T value = T(*reinterpret_cast<const stored<T>*>(arguments.values + at[0]));
#if FACULA_ALPHA
  value = scaled(value, read_slot<T>(arguments.alpha));
#endif
  combine_at<T>(place, value);
}
