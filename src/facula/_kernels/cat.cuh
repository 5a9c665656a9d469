// Copies many dense tensors to their parts of rows of one. The host defines FACULA_NAME and
//   FACULA_ITEM   what is moved at once: an unsigned type, or Words4 for 16 bytes
//   FACULA_PARTS  the most tensors that one launch takes
// Block y is a tensor.
#pragma once
#include "types.cuh"

namespace facula {

constexpr int kUnroll = 4;

// Written by cat in csrc/cuda/indexing.cpp.
struct Arguments {
  FACULA_ITEM* out;
  int64 rows, width;                      // of the result, in items
  const FACULA_ITEM* from[FACULA_PARTS];
  int64 begin[FACULA_PARTS];              // in a row of the result
  int64 size[FACULA_PARTS];               // items of a row
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int part = blockIdx.y;
  const int64 size = arguments.size[part], count = arguments.rows * size;
  const int64 first = int64(blockIdx.x) * (blockDim.x * kUnroll) + threadIdx.x;
  const FACULA_ITEM* from = arguments.from[part];
  FACULA_ITEM* out = arguments.out + arguments.begin[part];
  FACULA_ITEM items[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64 i = first + u * blockDim.x;
    if (i < count) items[u] = from[i];
  }
  // Items move up instead of being addressed: the division is compiled once.
  const int64 last = first + kUnroll * blockDim.x, end = last < count ? last : count;
#pragma unroll 1
  for (int64 i = first; i < end; i += blockDim.x) {
    const int64 row = count <= 0xffffffffll ? int64(uint32(i) / uint32(size)) : i / size;
    out[row * arguments.width + (i - row * size)] = items[0];
#pragma unroll
    for (int u = 1; u < kUnroll; ++u) items[u - 1] = items[u];
  }
}
