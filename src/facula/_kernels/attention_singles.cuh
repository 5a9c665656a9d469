// Fragments of tiles and their products for float32: a part of attention.cuh. The matrix units take
// TF32, the first 11 bits of a number. Each number is the sum of two of these, and of the four
// products of such sums all but the smallest are taken: what is lost is of the order of float32's
// rounding.
//
// The matrix units cut their sums off instead of rounding them, always towards zero: chains of
// products are kept short, and ordinary additions put them together.
//
// With g = lane / 4 and t = lane % 4, a thread has rows g and g + 8 and columns t and t + 4 of a
// left factor, rows t and t + 4 and column g of a right one (mma.m16n8k8), and accumulators as in
// mma.cuh.
#pragma once

namespace facula {

// A number without its last 13 bits, and what is left of it, rounded when its last 13 bits are not
// read. Infinities leave 0: their difference has all bits set but the sign, which is rounded to -0.
struct Parts {
  uint32 high, low;
};
__device__ __forceinline__ Parts split(float x) {
  const uint32 high = __float_as_uint(x) & 0xffffe000u;
  return {high, __float_as_uint(x - __uint_as_float(high)) + 0x1000u};
}

__device__ __forceinline__ void multiply_add(float (&sum)[4], uint32 a0, uint32 a1, uint32 a2,
                                             uint32 a3, uint32 b0, uint32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// sum + small += a b
__device__ __forceinline__ void multiply_add(float (&sum)[4], float (&small)[4],
                                             const Parts (&a)[4], Parts b0, Parts b1) {
  multiply_add(small, a[0].low, a[1].low, a[2].low, a[3].low, b0.high, b1.high);
  multiply_add(small, a[0].high, a[1].high, a[2].high, a[3].high, b0.low, b1.low);
  multiply_add(sum, a[0].high, a[1].high, a[2].high, a[3].high, b0.high, b1.high);
}

__device__ __forceinline__ void add(float (&sum)[4], const float (&more)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) sum[e] += more[e];
}

// sums[0][n] += left rows (row ...) times right rows (8 n ...), over the whole width.
__device__ __forceinline__ void multiply_rows(float (&sums)[M][kStep / 8][4], const Item* left,
                                              int row, const Item* right) {
  static_assert(M == 1, "registers do not suffice for more");
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  left += (row + g) * kPitch + t;
  right += g * kPitch + t;
  float small[kStep / 8][4] = {};
#pragma unroll 2  // all would take a second to compile
  for (int k = 0; k < D; k += 8) {
    Parts a[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) a[e] = split(left[e % 2 * 8 * kPitch + k + e / 2 * 4]);
#pragma unroll
    for (int n = 0; n < kStep; n += 8) {
      multiply_add(sums[0][n / 8], small[n / 8], a, split(right[n * kPitch + k]),
                   split(right[n * kPitch + k + 4]));
    }
  }
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n) add(sums[0][n], small[n]);
}

// sums[0][n] += weights (rows by kStep) times the tile's columns from `column` on. An accumulator
// has columns 2 t and 2 t + 1: these are t and t + 4 of the left factor, and the rows of the right
// one are taken in the same order.
template <int Columns>
__device__ __forceinline__ void multiply_columns(float (&sums)[M][Columns / 8][4],
                                                 const float (&weights)[M][kStep / 8][4],
                                                 const Item* tile, int column) {
  constexpr int kTogether = Columns <= 64 ? Columns : 32;  // as far as registers go
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  tile += 2 * t * kPitch + column + g;
#pragma unroll
  for (int c = 0; c < Columns; c += kTogether) {
    float of_tile[kTogether / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kStep; k += 8) {
      Parts a[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) a[e] = split(weights[0][k / 8][e % 2 * 2 + e / 2]);
#pragma unroll
      for (int n = 0; n < kTogether; n += 8) {
        multiply_add(of_tile[n / 8], of_tile[n / 8], a, split(tile[k * kPitch + c + n]),
                     split(tile[(k + 1) * kPitch + c + n]));
      }
    }
#pragma unroll
    for (int n = 0; n < kTogether / 8; ++n) add(sums[0][c / 8 + n], of_tile[n]);
  }
}

__device__ __forceinline__ float decode(float x) {
  return x;
}

__device__ __forceinline__ float dot(uint32 x, uint32 y) {
  return __uint_as_float(x) * __uint_as_float(y);
}

// Two neighbours in a row.
__device__ __forceinline__ void store_two(Item* to, float low, float high) {
  *reinterpret_cast<Words2*>(to) = Words2{__float_as_uint(low), __float_as_uint(high)};
}

}  // namespace facula
