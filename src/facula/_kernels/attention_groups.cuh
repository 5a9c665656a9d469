// What the kernels of attention for compute capability 9.0 share: groups of four warps have 64 rows
// each, the matrix units read the tiles where they lie in shared memory, and one more group loads
// what the others go through. The host defines what attention.cuh wants (FACULA_TILES and
// FACULA_ALIGNED are 1, FACULA_WIDTH is 64 or 128; the scale is positive) and
//   FACULA_GROUPS  groups of a block that compute
//   FACULA_STAGES  steps of the other side that are in shared memory at once
#pragma once
#include "attention.cuh"
#include "wgmma.cuh"

namespace facula {

constexpr int kGroups = FACULA_GROUPS, kRows = 64 * kGroups, kThreads = 128 * (kGroups + 1);
constexpr int kStages = FACULA_STAGES;
constexpr int kPanels = D / 64;  // a tile's columns, 64 at a time, lie behind one another
constexpr int kStepBytes = kStep * D * 2;
static_assert(M == 1 && kStep % 64 == 0 && FACULA_ALIGNED && D % 64 == 0);

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

// Rows [first, first + Rows) of a head's matrix, zeros beyond `rows` and `width`, by the 128
// threads of a group.
template <int Rows>
__device__ __forceinline__ void load_panels(char* to, const Item* from, int64 stride, int64 first,
                                            int64 rows, int64 width) {
  constexpr int kPieces = D / 8, kDown = 128 / kPieces;
  static_assert(Rows % kDown == 0 && kDown % 8 == 0);
  const int piece = threadIdx.x % kPieces, row = threadIdx.x % 128 / kPieces;
  const int64 left = piece * 8 < width ? rows - first - row : 0;
  const int count = left > Rows ? Rows : int(left);
  uint32 place =
      shared_address(to) + piece / 8 * (Rows * 128) + row * 128 + (piece % 8 ^ row % 8) * 16;
  const Item* source = from + (first + row) * stride + piece * 8;
#pragma unroll 4
  for (int i = 0; i < Rows; i += kDown) {
    copy_async_or_zero(place, source, i < count);
    place += kDown * 128;
    source += kDown * stride;
  }
}

// products = 64 left rows times N right rows. Panels of the left tile are LeftRows rows long.
template <int LeftRows, int N>
__device__ __forceinline__ void multiply_rows(float (&products)[N / 8][4], uint64 left,
                                              uint64 right) {
  begin_rows<false>(Item{}, products, left, right);
  if constexpr (D > 64) multiply_rows<false>(Item{}, products, left + LeftRows * 8, right + N * 8);
}

// sums += weights (64 by kStep) times the kStep rows of a tile.
__device__ __forceinline__ void multiply_columns(float (&sums)[D / 8][4],
                                                 const uint32 (&weights)[kStep / 16][4],
                                                 uint64 tile) {
#pragma unroll
  for (int k = 0; k < kStep / 16; k += 4) {
    multiply_columns(Item{}, sums, weights + k, tile + k * 128);
  }
}

__device__ __forceinline__ float as_float(uint32 bits) {
  return __builtin_bit_cast(float, bits);
}

// 64 x kStep sums as a left factor.
__device__ __forceinline__ void as_left(uint32 (&a)[kStep / 16][4],
                                        const float (&sums)[kStep / 8][4]) {
#pragma unroll
  for (int k = 0; k < kStep / 16; ++k) as_left(a[k], sums[2 * k], sums[2 * k + 1]);
}

// Products of queries (rows, the thread's first one is `query`) and keys from `key` on, of which
// those that are not seen become -infinity.
__device__ __forceinline__ void hide_keys(float (&products)[kStep / 8][4], const Scores& scores,
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
    for (int n = 0; n < kStep / 8; ++n) {
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
__device__ __forceinline__ void hide_queries(float (&products)[kStep / 8][4], const Scores& scores,
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
    for (int n = 0; n < kStep / 8; ++n) {
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

// The 64 rows of a group, 16 of them this warp's, to rows [first, rows) of a matrix, by way of a
// tile in shared memory that the warp's rows are written to.
__device__ __forceinline__ void store_tile(char* tile, const float (&sums)[D / 8][4], Item* to,
                                           int64 stride, int64 first, int64 rows, int64 width) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  tile += threadIdx.x / 32 % 4 * (16 * 128);
  __syncwarp();  // all lanes have read what was there
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      char* at = tile + n / 8 * (64 * 128) + (h * 8 + g) * 128 + (n % 8 ^ g) * 16 + t * 4;
      *reinterpret_cast<uint32*>(at) = pack(Item{}, sums[n][h * 2], sums[n][h * 2 + 1]);
    }
  }
  __syncwarp();
  constexpr int kPieces = D / 8;
#pragma unroll 4
  for (int i = lane; i < 16 * kPieces; i += 32) {
    const int row = i / kPieces, piece = i % kPieces;
    if (first + row < rows && piece * 8 < width) {
      *reinterpret_cast<Words4*>(to + (first + row) * stride + piece * 8) =
          *reinterpret_cast<const Words4*>(tile + piece / 8 * (64 * 128) + row * 128 +
                                           (piece % 8 ^ row % 8) * 16);
    }
  }
}

}  // namespace facula
