// What the kernels of attention for compute capability 9.0 share: groups of four warps have 64 rows
// each, and the matrix units read the tiles where they lie in shared memory. The host defines what
// attention.cuh wants (FACULA_TILES and FACULA_ALIGNED are 1, FACULA_STEP is 64, FACULA_WIDTH is 64
// or 128; the scale is positive) and
//   FACULA_GROUPS  groups of a block
#pragma once
#include "attention.cuh"
#include "wgmma.cuh"

namespace facula {

constexpr int kGroups = FACULA_GROUPS, kThreads = 128 * kGroups, kRows = 64 * kGroups;
constexpr int kPanels = D / 64;  // a tile's columns, 64 at a time, lie behind one another
constexpr int kStages = 4;       // one is worked on, two are loaded, one may still be read
constexpr int kStepBytes = kStep * D * 2;
static_assert(M == 1 && kStep == 64 && FACULA_ALIGNED && D % 64 == 0);

// Masks are added to scores in units of log 2; all else is applied to the products as they are.
constexpr bool kScaled = FACULA_MASK == 2;
__device__ __forceinline__ float scaled(float product, const Scores& scores) {
  return kScaled ? product * scores.scale : product;
}

// The same for all lanes also in the compiler's eyes, which keeps descriptors in uniform registers.
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
}

__device__ __forceinline__ char* aligned_memory(void* memory) {
  const uint32 address = shared_address(memory);
  return static_cast<char*>(memory) + ((1024 - address % 1024) % 1024);
}

// Rows [first, first + Rows) of a head's matrix, zeros beyond `rows` and `width`.
template <int Rows>
__device__ __forceinline__ void load_panels(char* to, const Item* from, int64 stride, int64 first,
                                            int64 rows, int64 width) {
  constexpr int kPieces = D / 8;
  const int piece = threadIdx.x % kPieces;
  const bool inside = piece * 8 < width;
  to += piece / 8 * (Rows * 128);
#pragma unroll
  for (int i = 0; i < (Rows + kThreads / kPieces - 1) / (kThreads / kPieces); ++i) {
    const int row = threadIdx.x / kPieces + i * (kThreads / kPieces);
    if (Rows % (kThreads / kPieces) != 0 && row >= Rows) break;
    const bool exists = inside && first + row < rows;
    copy_async_or_zero(to + row * 128 + (piece % 8 ^ row % 8) * 16,
                       exists ? from + (first + row) * stride + piece * 8 : from, exists);
  }
}

// products = left rows times the 64 right rows. `left`: of a tile of LeftRows rows.
template <int LeftRows>
__device__ __forceinline__ void multiply_rows(float (&products)[8][4], uint64 left, uint64 right) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    multiply_group<false>(Item{}, products, left + k / 4 * (LeftRows * 8) + k % 4 * 2,
                          right + k / 4 * (kStep * 8) + k % 4 * 2, k > 0);
  }
}

// sums += weights (rows by 64) times the 64 rows of a tile.
__device__ __forceinline__ void multiply_columns(float (&sums)[1][D / 8][4],
                                                 const uint32 (&weights)[4][4], uint64 tile) {
#pragma unroll
  for (int p = 0; p < kPanels; ++p) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      multiply_group<true>(Item{}, sums[0] + p * 8, weights[k], tile + p * (kStep * 8) + k * 128,
                           true);
    }
  }
}

__device__ __forceinline__ float as_float(uint32 bits) {
  return __builtin_bit_cast(float, bits);
}

// 64 x 64 sums as a left factor.
__device__ __forceinline__ void as_left(uint32 (&a)[4][4], const float (&sums)[8][4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) as_left(a[k], sums[2 * k], sums[2 * k + 1]);
}

// Products of queries (rows, the thread's first one is `query`) and keys from `key` on, of which
// those that are not seen become -infinity.
__device__ __forceinline__ void hide_keys(float (&products)[8][4], const Scores& scores,
                                          int64 query, int64 key) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int64 row = query + h * 8;
    int64 seen = scores.keys - key;
    if (FACULA_CAUSAL && row + 1 - key < seen) seen = row + 1 - key;
    if (FACULA_MASK && row >= scores.queries) seen = 0;
    const int count = seen > kStep ? kStep : seen < 0 ? 0 : int(seen);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = n * 8 + t * 2 + e;
        float& product = products[n][h * 2 + e];
        if (FACULA_MASK)
          product = scores.masked(scaled(product, scores), row, key + column, column < count);
        else product = column < count ? product : -kInfinity;
      }
    }
  }
}

// Likewise with the keys as rows.
__device__ __forceinline__ void hide_queries(float (&products)[8][4], const Scores& scores,
                                             int64 key, int64 query) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int64 row = key + h * 8;
    const int64 begin = FACULA_CAUSAL ? row - query : 0, end = scores.queries - query;
    const int low = begin > kStep ? kStep : begin < 0 ? 0 : int(begin);
    int high = end > kStep ? kStep : int(end);
    if (row >= scores.keys) high = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = n * 8 + t * 2 + e;
        const bool seen = column >= low && column < high;
        float& product = products[n][h * 2 + e];
        if (FACULA_MASK)
          product = scores.masked(scaled(product, scores), query + column, row, seen);
        else product = seen ? product : -kInfinity;
      }
    }
  }
}

}  // namespace facula
