// Before a graph is replayed: the seed and the block that its random numbers begin at. The host
// defines FACULA_NAME.
#pragma once
#include "types.cuh"

namespace facula {

// Written by before_replay in csrc/cuda/graph_random.cpp.
struct Arguments {
  uint64* to;
  uint64 seed, block;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  arguments.to[0] = arguments.seed;
  arguments.to[1] = arguments.block;
}
