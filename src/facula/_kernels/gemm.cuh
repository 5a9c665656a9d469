// c = alpha a @ b + beta c for the dtypes that cuBLAS has no product of. The host defines
// FACULA_NAME and what gemm_tile.cuh wants.
#pragma once
#include "gemm_tile.cuh"

namespace facula {

// Written by plain_gemm in csrc/cuda/matmul.cpp.
struct Arguments {
  const Item* a;
  const Item* b;
  Item* c;
  int64 m, n, k;
  int64 a_batch, a_row, a_col;
  int64 b_batch, b_row, b_col;
  int64 c_batch, c_row, c_col;
  T alpha, beta;
  int32 reads;  // 0: beta is 0, and c is not read
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const uint32 across = uint32((arguments.n + kTile - 1) / kTile);  // no more than blocks
  const int64 column0 = int64(blockIdx.x % across) * kTile;
  const int64 row0 = int64(blockIdx.x / across) * kTile;
  const Item* a = arguments.a + blockIdx.y * arguments.a_batch;
  const Item* b = arguments.b + blockIdx.y * arguments.b_batch;
  Item* c = arguments.c + blockIdx.y * arguments.c_batch;
  T sum[4][4] = {};
  multiply_tile(
      arguments.k,
      [&](int row, int64 k) {
        return row0 + row < arguments.m && k < arguments.k
                   ? convert<T>(a[(row0 + row) * arguments.a_row + k * arguments.a_col])
                   : T(0);
      },
      [&](int64 k, int column) {
        return column0 + column < arguments.n && k < arguments.k
                   ? convert<T>(b[k * arguments.b_row + (column0 + column) * arguments.b_col])
                   : T(0);
      },
      sum);
  each_column(sum, [&](int column, const T (&sums)[4]) {
    if (column0 + column >= arguments.n) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64 row = row0 + threadIdx.x / 16 + i * 16;
      if (row >= arguments.m) return;
      Item& to = c[row * arguments.c_row + (column0 + column) * arguments.c_col];
      T value = sums[i] * arguments.alpha;
      if (arguments.reads) value = value + arguments.beta * convert<T>(to);
      to = convert<Item>(value);
    }
  });
}
