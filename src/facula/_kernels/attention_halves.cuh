// Fragments of tiles and their products for 16-bit floats: a part of attention.cuh. The layouts are
// those of mma.cuh.
#pragma once

namespace facula {

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

// The product of two pairs of elements.
__device__ __forceinline__ float dot(uint32 x, uint32 y) {
  return decode(Item{uint16(x)}) * decode(Item{uint16(y)}) +
         decode(Item{uint16(x >> 16)}) * decode(Item{uint16(y >> 16)});
}

// Two neighbours in a row.
__device__ __forceinline__ void store_two(Item* to, float low, float high) {
  *reinterpret_cast<uint32*>(to) = pack(Item{}, low, high);
}

}  // namespace facula
