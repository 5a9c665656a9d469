// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011): four random words from a counter and a key.
// Thread or element `subsequence` reads words offset, offset + 1, ... of its own sequence.
#pragma once
#include "types.cuh"

namespace facula {

struct RandomWords {
  uint32 word[4];
};

// The words at offset 4 * block of a subsequence.
__device__ __forceinline__ RandomWords philox(uint64 seed, uint64 subsequence, uint64 block) {
  uint32 c0 = uint32(block), c1 = uint32(block >> 32);
  uint32 c2 = uint32(subsequence), c3 = uint32(subsequence >> 32);
  uint32 k0 = uint32(seed), k1 = uint32(seed >> 32);
#pragma unroll 5
  for (int round = 0; round < 10; ++round) {
    const uint32 low0 = 0xd2511f53u * c0, high0 = __umulhi(0xd2511f53u, c0);
    const uint32 low1 = 0xcd9e8d57u * c2, high1 = __umulhi(0xcd9e8d57u, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

// Where the numbers of a kernel begin. In a graph, `given` points at the seed and the block of the
// replay (graph_place.cuh), and `block` counts on from there. Mirrored by RandomPlace in
// csrc/cuda/graph_random.h.
struct RandomPlace {
  uint64 seed, block;
  const uint64* given;

  __device__ __forceinline__ uint64 seed_now() const { return given ? given[0] : seed; }
  __device__ __forceinline__ uint64 block_now() const { return given ? given[1] + block : block; }
};

// Uniform on (0, 1].
__device__ __forceinline__ float unit_float(uint32 x) {
  return float(x) * 2.3283064e-10f + 2.3283064e-10f / 2.0f;
}
__device__ __forceinline__ double unit_double(uint32 x, uint32 y) {
  const uint64 bits = uint64(x) ^ (uint64(y) << 21);
  return double(bits) * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}

}  // namespace facula
