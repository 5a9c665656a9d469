// Two sums over the rows of a matrix for each of its columns, in parts: blocks along y take shares
// of the rows. The host defines FACULA_NAME and
//   FACULA_COMPUTE  the type T of all arithmetic
//   FACULA_ITEM     type of the matrix, FACULA_GRAD that of a second one
//   FACULA_VECTOR   V, neighbouring columns of a thread
//   FACULA_KIND     0: x - x0 and (x - x0)^2, x0 the column's first element
//                   1: g and g (x - mean of the column)
//                   2: g and g (x - mean of the row) rstd of the row
//                   3: g and g x rstd of the row
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;
// A first element far from all others must not cost the variance its digits.
using Sum = choose<FACULA_KIND == 0, double, T>;
constexpr int V = FACULA_VECTOR;
constexpr int kAcross = 32, kDown = 8;  // threads of a block

// Written by column_sums in csrc/cuda/normalization.cpp.
struct Arguments {
  const char* in;
  const char* grad;
  const T* mean;
  const T* rstd;
  Sum* out;  // (2, parts, columns)
  int64 rows, columns, share;
};

// What a thread reads of one row.
constexpr int kAhead = 4;  // rows in flight
struct Row {
  Vector<FACULA_ITEM, V> x;
#if FACULA_KIND > 0
  Vector<FACULA_GRAD, V> grad;
#endif
  [[maybe_unused]] T mean, rstd;

  __device__ __forceinline__ void read(const Arguments& arguments, int64 row, int64 column) {
    const int64 at = row * arguments.columns + column;
    load(x, arguments.in + at * int64(sizeof(FACULA_ITEM)));
#if FACULA_KIND > 0
    load(grad, arguments.grad + at * int64(sizeof(FACULA_GRAD)));
#endif
    if (FACULA_KIND == 2) mean = arguments.mean[row];
    if (FACULA_KIND >= 2) rstd = arguments.rstd[row];
  }
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 column = (int64(blockIdx.x) * kAcross + threadIdx.x) * V;
  const bool exists = column < arguments.columns;
  const int64 begin = blockIdx.y * arguments.share;
  const int64 end = begin + arguments.share < arguments.rows ? begin + arguments.share
                                                             : arguments.rows;
  Sum first[V] = {}, second[V] = {};
  [[maybe_unused]] T from[V] = {};
  if (exists) {
#if FACULA_KIND <= 1
#pragma unroll
    for (int v = 0; v < V; ++v) {
      from[v] = FACULA_KIND == 0
                    ? convert<T>(reinterpret_cast<const FACULA_ITEM*>(arguments.in)[column + v])
                    : arguments.mean[column + v];
    }
#endif
    // The next rows move up instead of being addressed, so that the loop stays a loop and the sums
    // are compiled once.
    Row next[kAhead];
#pragma unroll 1
    for (int64 some = begin + threadIdx.y; some < end; some += kAhead * kDown) {
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (some + u * kDown < end) next[u].read(arguments, some + u * kDown, column);
      }
      const int64 last = some + kAhead * kDown < end ? some + kAhead * kDown : end;
#pragma unroll 1
      for (int64 row = some; row < last; row += kDown) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const T value = convert<T>(next[0].x.at[v]);
#if FACULA_KIND == 0
          const Sum away = value - from[v];
          first[v] += away;
          second[v] += away * away;
#else
          const T g = convert<T>(next[0].grad.at[v]);
          first[v] += g;
#if FACULA_KIND == 1
          second[v] += g * (value - from[v]);
#elif FACULA_KIND == 2
          second[v] += g * ((value - next[0].mean) * next[0].rstd);
#else
          second[v] += g * (value * next[0].rstd);
#endif
#endif
        }
#pragma unroll
        for (int u = 1; u < kAhead; ++u) next[u - 1] = next[u];
      }
    }
  }
  __shared__ Sum parts[2][kDown][kAcross * V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    parts[0][threadIdx.y][v * kAcross + threadIdx.x] = first[v];
    parts[1][threadIdx.y][v * kAcross + threadIdx.x] = second[v];
  }
  __syncthreads();
  if (!exists || threadIdx.y >= 2) return;
  const int which = threadIdx.y;
#pragma unroll 1
  for (int v = 0; v < V; ++v) {
    Sum sum = parts[which][0][v * kAcross + threadIdx.x];
#pragma unroll
    for (int i = 1; i < kDown; ++i) sum += parts[which][i][v * kAcross + threadIdx.x];
    arguments.out[(int64(which) * gridDim.y + blockIdx.y) * arguments.columns + column + v] = sum;
  }
}
