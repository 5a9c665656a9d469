// The tile of a matrix product: 64 x 64 elements of the result by 256 threads, 4 x 4 each. Kernels
// that include it say where operands lie. The host defines
//   FACULA_ITEM     type of the operands and the result
//   FACULA_COMPUTE  the type T of products and sums
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;
using Item = FACULA_ITEM;
constexpr int kTile = 64, kDepth = 16, kThreads = 256;
// Steps written out. Integers are rarely multiplied, and products of long ones take long to compile.
constexpr int kSteps = is_integer<T> ? 1 : 4;

// Adds a (64, depth) by (depth, 64) product: fetch_a(row, k) and fetch_b(k, column) give elements
// of this tile, 0 outside.
template <class A, class B>
__device__ __forceinline__ void multiply_tile(int64 depth, A fetch_a, B fetch_b, T (&sum)[4][4]) {
  __shared__ T a[kDepth][kTile + 1], b[kDepth][kTile + 1];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll 1
  for (int64 k0 = 0; k0 < depth; k0 += kDepth) {
    auto fetch = [&](int i) {
      a[i % kDepth][i / kDepth] = fetch_a(i / kDepth, k0 + i % kDepth);
      b[i / kTile][i % kTile] = fetch_b(k0 + i / kTile, i % kTile);
    };
    if constexpr (is_integer<T>) {
#pragma unroll 1
      for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) fetch(i);
    } else {
#pragma unroll
      for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) fetch(i);
    }
    __syncthreads();
#pragma unroll kSteps
    for (int k = 0; k < kDepth; ++k) {
      T left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = a[k][y + i * 16];
        right[i] = b[k][x + i * 16];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = sum[i][j] + left[i] * right[j];
      }
    }
    __syncthreads();
  }
}

// Calls f(column, sums) for the thread's columns of the tile; sums[i] belongs to row
// threadIdx.x / 16 + 16 i. Sums move up instead of being addressed, so that f is compiled once.
template <class F>
__device__ __forceinline__ void each_column(T (&sum)[4][4], F f) {
#pragma unroll 1
  for (int column = threadIdx.x % 16; column < kTile; column += 16) {
    const T sums[4] = {sum[0][0], sum[1][0], sum[2][0], sum[3][0]};
    f(column, sums);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 1; j < 4; ++j) sum[i][j - 1] = sum[i][j];
    }
  }
}

}  // namespace facula
