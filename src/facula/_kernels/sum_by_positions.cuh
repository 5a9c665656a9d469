// to[position of i] += from[i], within planes. The order of sums is not fixed: windows may overlap.
// The host defines FACULA_NAME, FACULA_ITEM, the type of `from`, and FACULA_COMPUTE, that of `to`.
#pragma once
#include "image_index.cuh"

namespace facula {

// Written by sum_by_positions in csrc/cuda/images.cpp.
struct Arguments {
  const FACULA_ITEM* from;
  const int64* positions;
  FACULA_COMPUTE* to;
  int64 count, plane;  // elements of `from`, and those of one outer element of `to`
  ImageShape shape;    // of `from`
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  const ImagePlace place(arguments.shape, i);
  atomicAdd(arguments.to + place.outer * arguments.plane +
                arguments.positions[i] * arguments.shape.inner + place.channel,
            convert<FACULA_COMPUTE>(arguments.from[i]));
}
