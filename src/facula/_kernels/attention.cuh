// What the kernels of attention share: tiles in shared memory, their products, scores and masks.
// The host (csrc/cuda/attention.cpp) defines
//   FACULA_ITEM     float16, bfloat16 or float32
//   FACULA_SINGLE   1: it is float32
//   FACULA_WIDTH    D, the heads' width, padded to 32, 64, 128 or 256
//   FACULA_TILES    M, row tiles of 16 that a warp works on
//   FACULA_STEP     rows of the other side that are taken at once
//   FACULA_CAUSAL   1: query i sees keys 0 to i
//   FACULA_MASK     0: none; 1: boolean; 2: added to the scores
//   FACULA_ALIGNED  1: rows begin at multiples of 16 bytes, and so do rows' ends
#pragma once
#include "mma.cuh"

namespace facula {

using Item = FACULA_ITEM;
constexpr int D = FACULA_WIDTH;
constexpr int M = FACULA_TILES;
constexpr int kStep = FACULA_STEP;
constexpr int kPiece = 16 / sizeof(Item);  // elements that are moved at once
constexpr int kPitch = D + kPiece;  // of a row in shared memory: eight rows fall on different banks
constexpr float kLog2e = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;
constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u);

// (batch, heads, rows, width), mirrored by csrc/cpu/attention.h; the last stride is 1.
struct HeadMatrix {
  Item* data;
  int64 batch, head, row;  // strides in elements

  __device__ __forceinline__ Item* of(int64 b, int64 h) const {
    return data + b * batch + h * head;
  }
};

// Written by write_problem in csrc/cuda/attention.cpp.
struct Arguments {
  HeadMatrix q, k, v, out, grad_out, grad_q, grad_k, grad_v;
  const char* mask;
  int64 mask_batch, mask_head, mask_row, mask_column;  // elements
  float* logsumexp;                                    // (batch, heads, queries)
  float* delta;                                        // likewise: the sums of grad_out times out
  float* grad_q_sums;                                  // see attention_grad_groups.cuh
  uint32* counter;  // of attention_forward_groups.cuh, 0 at first: tiles that blocks have taken
                    // behind their first one
  int64 tiles;      // of all heads
  int64 heads, key_heads, queries, keys, width, value_width;
  float scale;
};

// Rows [first, first + Rows) of a head's matrix, zeros beyond `rows` and `width`. Each thread has
// kPiece columns of every (Threads * kPiece / D)th row.
template <int Rows, int Threads>
__device__ __forceinline__ void load_tile(Item* to, const Item* from, int64 stride, int64 first,
                                          int64 rows, int64 width) {
  constexpr int kAcross = D / kPiece, kDown = Threads / kAcross;
  static_assert(Threads % kAcross == 0 && Rows % kDown == 0, "rows are shared out evenly");
  const int row = threadIdx.x / kAcross, column = threadIdx.x % kAcross * kPiece;
  const int left = int(rows - first < Rows ? rows - first : Rows);  // rows that exist
  Item* at = to + row * kPitch + column;
  const Item* source = from + (first + row) * stride + column;
#pragma unroll 4
  for (int i = 0; i < Rows; i += kDown, at += kDown * kPitch, source += kDown * stride) {
    const bool exists = row + i < left;
#if FACULA_ALIGNED
    if (exists && column < width) copy_async(at, source);
    else *reinterpret_cast<Words4*>(at) = Words4{0, 0, 0, 0};
#else
#pragma unroll
    for (int e = 0; e < kPiece; ++e) at[e] = exists && column + e < width ? source[e] : Item{0};
#endif
  }
}

}  // namespace facula
#if FACULA_SINGLE
#include "attention_singles.cuh"
#else
#include "attention_halves.cuh"
#endif
namespace facula {

// A score in units of log 2, from the product of a query and a key; -infinity: not seen.
struct Scores {
  const char* mask;
  int64 row, column, queries, keys;
  float scale;

  __device__ __forceinline__ Scores(const Arguments& a, int64 batch, int64 head)
      : row(a.mask_row),
        column(a.mask_column),
        queries(a.queries),
        keys(a.keys),
        scale(a.scale * kLog2e) {
    const int64 first = batch * a.mask_batch + head * a.mask_head;
    mask = a.mask + first * (FACULA_MASK == 1 ? 1 : int64(sizeof(Item)));
  }
  __device__ __forceinline__ float operator()(float product, int64 query, int64 key) const {
    bool seen = query < queries && key < keys;
    if (FACULA_CAUSAL) seen = seen && key <= query;
    return masked(product * scale, query, key, seen);
  }
  // What the mask leaves of a score.
  __device__ __forceinline__ float masked(float score, int64 query, int64 key, bool seen) const {
#if FACULA_MASK == 1
    if (seen) seen = reinterpret_cast<const uint8*>(mask)[query * row + key * column] != 0;
#elif FACULA_MASK == 2
    if (seen) {
      score += kLog2e * decode(reinterpret_cast<const Item*>(mask)[query * row + key * column]);
    }
#endif
    return seen ? score : -kInfinity;
  }

  // Whether some key from `key` on is not seen by some query from `query` on.
  __device__ __forceinline__ bool edge(int64 query, int64 key, int64 key_end) const {
    return FACULA_MASK != 0 || key_end > keys || (FACULA_CAUSAL && key_end > query + 1);
  }
};

// The sum of grad_out times out of a query, in the four lanes that share its row.
__device__ __forceinline__ float grad_times_out(const Arguments& a, int64 batch, int64 head,
                                                int64 query) {
  const int t = threadIdx.x % 4;
  float total = 0.0f;
  if (query < a.queries) {
    const Item* grad = a.grad_out.of(batch, head) + query * a.grad_out.row;
    const Item* out = a.out.of(batch, head) + query * a.out.row;
#if FACULA_ALIGNED
#pragma unroll
    for (int c = 0; c < D; c += 4 * kPiece) {
      const int column = c + t * kPiece;
      if (column < a.value_width) {
        const Words4 x = *reinterpret_cast<const Words4*>(grad + column);
        const Words4 y = *reinterpret_cast<const Words4*>(out + column);
        total += dot(x.x, y.x) + dot(x.y, y.y) + dot(x.z, y.z) + dot(x.w, y.w);
      }
    }
#else
    for (int64 c = t; c < a.value_width; c += 4) total += decode(grad[c]) * decode(out[c]);
#endif
  }
  total += __shfl_xor_sync(0xffffffffu, total, 1);
  total += __shfl_xor_sync(0xffffffffu, total, 2);
  return total;
}

// The two neighbours that a thread has in a row of an accumulator, to a row of `width` elements.
__device__ __forceinline__ void store_pair(Item* row, int column, int64 width, float low,
                                           float high) {
#if FACULA_ALIGNED
  if (column < width) store_two(row + column, low, high);
#else
  if (column < width) row[column] = convert<Item>(low);
  if (column + 1 < width) row[column + 1] = convert<Item>(high);
#endif
}

// Rows of accumulators, times a factor, to rows [first, rows) of a matrix.
template <int Columns>
__device__ __forceinline__ void store_rows(const float (&sums)[M][Columns / 8][4], Item* to,
                                           int64 stride, int64 first, int64 rows, int column,
                                           int64 width) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64 row = first + m * 16 + h * 8 + g;
      if (row >= rows) continue;
#pragma unroll
      for (int n = 0; n < Columns / 8; ++n) {
        store_pair(to + row * stride, column + n * 8 + t * 2, width, sums[m][n][h * 2],
                   sums[m][n][h * 2 + 1]);
      }
    }
  }
}

}  // namespace facula
