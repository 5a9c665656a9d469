// What the kernels of attention share: tiles in shared memory, their products, scores and masks.
// The host (csrc/cuda/attention.cpp) defines
//   FACULA_ITEM     float16 or bfloat16
//   FACULA_WIDTH    D, the heads' width, padded to 32, 64, 128 or 256
//   FACULA_TILES    M, row tiles of 16 that a warp works on
//   FACULA_STEP     rows of the other side that are taken at once
//   FACULA_CAUSAL   1: query i sees keys 0 to i
//   FACULA_MASK     0: none; 1: boolean; 2: added to the scores
//   FACULA_ALIGNED  1: rows begin at multiples of 16 bytes, and widths are multiples of 8
#pragma once
#include "mma.cuh"

namespace facula {

using Item = FACULA_ITEM;
constexpr int D = FACULA_WIDTH;
constexpr int M = FACULA_TILES;
constexpr int kStep = FACULA_STEP;
constexpr int kPitch = D + 8;  // of a row in shared memory: eight rows fall on different banks
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
  float* logsumexp;  // (batch, heads, queries)
  float* delta;      // likewise: the sums of grad_out times out
  int64 heads, key_heads, queries, keys, width, value_width;
  float scale;
};

// Rows [first, first + Rows) of a head's matrix, zeros beyond `rows` and `width`. Each thread has
// eight columns of every (Threads * 8 / D)th row.
template <int Rows, int Threads>
__device__ __forceinline__ void load_tile(Item* to, const Item* from, int64 stride, int64 first,
                                          int64 rows, int64 width) {
  constexpr int kAcross = D / 8, kDown = Threads / kAcross;
  static_assert(Threads % kAcross == 0 && Rows % kDown == 0, "rows are shared out evenly");
  const int row = threadIdx.x / kAcross, column = threadIdx.x % kAcross * 8;
  const int left = int(rows - first < Rows ? rows - first : Rows);  // rows that exist
  Item* at = to + row * kPitch + column;
  const Item* source = from + (first + row) * stride + column;
#pragma unroll
  for (int i = 0; i < Rows; i += kDown, at += kDown * kPitch, source += kDown * stride) {
    const bool exists = row + i < left;
#if FACULA_ALIGNED
    if (exists && column < width) copy_async(at, source);
    else *reinterpret_cast<Words4*>(at) = Words4{0, 0, 0, 0};
#else
#pragma unroll
    for (int e = 0; e < 8; ++e) at[e] = exists && column + e < width ? source[e] : Item{0};
#endif
  }
}

// Fragments of the tile's rows from `row` on: as the left factor ...
__device__ __forceinline__ void left_fragment(uint32 (&a)[4], const Item* tile, int row,
                                              int column) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, tile + (row + lane % 16) * kPitch + column + lane / 16 * 8);
}
// ... as the right factor of rows times rows, 16 of them: {b0, b1} of the first 8, then the others
__device__ __forceinline__ void right_fragment(uint32 (&b)[4], const Item* tile, int row,
                                               int column) {
  const int lane = threadIdx.x % 32;
  load_matrices(b, tile + (row + lane / 16 * 8 + lane % 8) * kPitch + column + lane / 8 % 2 * 8);
}
// ... and as the right factor whose inner dimension are the rows, for 16 columns.
__device__ __forceinline__ void right_fragment_of_columns(uint32 (&b)[4], const Item* tile, int row,
                                                          int column) {
  const int lane = threadIdx.x % 32;
  load_transposed(b, tile + (row + lane % 16) * kPitch + column + lane / 16 * 8);
}

// An accumulator of 16 x 16 as the left factor of another product.
__device__ __forceinline__ void as_left(uint32 (&a)[4], const float (&first)[4],
                                        const float (&second)[4]) {
  a[0] = pack(Item{}, first[0], first[1]);
  a[1] = pack(Item{}, first[2], first[3]);
  a[2] = pack(Item{}, second[0], second[1]);
  a[3] = pack(Item{}, second[2], second[3]);
}

// sums[m][n] += left rows (row + 16 m ...) times right rows (8 n ...), over the whole width.
__device__ __forceinline__ void multiply_rows(float (&sums)[M][kStep / 8][4], const Item* left,
                                              int row, const Item* right) {
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    uint32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) left_fragment(a[m], left, row + m * 16, k);
#pragma unroll
    for (int n = 0; n < kStep; n += 16) {
      uint32 b[4];
      right_fragment(b, right, n, k);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(Item{}, sums[m][n / 8], a[m], b[0], b[1]);
        multiply_add(Item{}, sums[m][n / 8 + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// sums[m][n] += weights (rows by kStep) times the tile's columns from `column` on.
template <int Columns>
__device__ __forceinline__ void multiply_columns(float (&sums)[M][Columns / 8][4],
                                                 const float (&weights)[M][kStep / 8][4],
                                                 const Item* tile, int column) {
#pragma unroll
  for (int k = 0; k < kStep; k += 16) {
    uint32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) as_left(a[m], weights[m][k / 8], weights[m][k / 8 + 1]);
#pragma unroll
    for (int n = 0; n < Columns; n += 16) {
      uint32 b[4];
      right_fragment_of_columns(b, tile, k, column + n);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(Item{}, sums[m][n / 8], a[m], b[0], b[1]);
        multiply_add(Item{}, sums[m][n / 8 + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// A score in units of log 2, from the product of a query and a key; -infinity: not seen.
struct Scores {
  const char* mask;
  int64 row, column, queries, keys;
  float scale;

  __device__ __forceinline__ Scores(const Arguments& a, int64 batch, int64 head)
      : row(a.mask_row), column(a.mask_column), queries(a.queries), keys(a.keys),
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
      score += kLog2e *
               decode(reinterpret_cast<const Item*>(mask)[query * row + key * column]);
    }
#endif
    return seen ? score : -kInfinity;
  }

  // Whether some key from `key` on is not seen by some query from `query` on.
  __device__ __forceinline__ bool edge(int64 query, int64 key, int64 key_end) const {
    return FACULA_MASK != 0 || key_end > keys || (FACULA_CAUSAL && key_end > query + 1);
  }
};

// The product of two pairs of elements.
__device__ __forceinline__ float dot(uint32 x, uint32 y) {
  return decode(Item{uint16(x)}) * decode(Item{uint16(y)}) +
         decode(Item{uint16(x >> 16)}) * decode(Item{uint16(y >> 16)});
}

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
    for (int c = 0; c < D; c += 32) {
      const int column = c + t * 8;
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
  if (width % 2 == 0) {
    if (column < width) *reinterpret_cast<uint32*>(row + column) = pack(Item{}, low, high);
  } else {
    if (column < width) row[column] = convert<Item>(low);
    if (column + 1 < width) row[column + 1] = convert<Item>(high);
  }
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
