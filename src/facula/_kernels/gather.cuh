// out[i] = self[i with its position along one dimension replaced by index[i]]. The host defines
// FACULA_NAME, what walk.cuh wants, and
//   FACULA_ITEM   an unsigned type of the elements' size (or complex128): bits move as they are
#pragma once
#include "fault.cuh"
#include "walk.cuh"

namespace facula {

// Written by gather in csrc/cuda/indexing.cpp.
struct Arguments {
  FaultSite site;
  int64 count;
  char* out;
  const char* self;
  const char* index;
  int64 step;  // of self along the dimension, in bytes
  Walk<3> walk;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 at[3];
  arguments.walk.find(i, at);
  int64 index = *reinterpret_cast<const int64*>(arguments.index + at[2]);
  if (!good_index(arguments.site, index, i)) return;
  *reinterpret_cast<FACULA_ITEM*>(arguments.out + at[0]) =
      *reinterpret_cast<const FACULA_ITEM*>(arguments.self + at[1] + index * arguments.step);
}
