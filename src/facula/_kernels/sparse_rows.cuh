// A sparse matrix in CSR form and dense ones, row by row; see csrc/sparse/rows.h. A row has
// lanes * shares threads, neighbours in a warp or a whole block: lanes for columns, shares for
// elements. The host defines FACULA_NAME and
//   FACULA_TYPE    T, of all elements; small floats are added up in float32
//   FACULA_VECTOR  V, neighbouring columns that are loaded at once
//   FACULA_KIND    0: out(i, :) = sum over k of first[k] * second(columns[k], :)
//                  1: out[k] = inner product of first(i, :) and second(columns[k], :)
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_TYPE;
using Acc = choose<is_small_float<T>, float, T>;
constexpr int V = FACULA_VECTOR;

// Written by csrc/cuda/sparse_rows.cpp.
struct Arguments {
  const int64* starts;
  const int64* columns;
  const T* first;
  const T* second;
  T* out;
  int64 rows, width;
  int32 lanes, shares;  // powers of two; their product is at most 32, or kThreads
};

constexpr int kThreads = 256, kWarp = 32;

// The sums of threads that are `least`, 2 * least, ... below `count` apart: a tree, so that all of
// them have the same sum. `mask` names the threads that take part.
__device__ __forceinline__ Acc sum_of_threads(Acc value, int least, int count, uint32 mask) {
  union Whole {
    Acc value;
    uint32 word[(sizeof(Acc) + 3) / 4];
    __device__ Whole() {}
  };
#pragma unroll 1
  for (int distance = least; distance < count; distance *= 2) {
    Whole other;
    other.value = value;
#pragma unroll
    for (int i = 0; i < int((sizeof(Acc) + 3) / 4); ++i) {
      other.word[i] = __shfl_xor_sync(mask, other.word[i], distance);
    }
    value = Acc(value + other.value);
  }
  return value;
}

// The threads of a warp that are in the same group of `count` neighbours as this one.
__device__ __forceinline__ uint32 neighbours(int count) {
  const int first = int(threadIdx.x) % kWarp & ~(count - 1);
  return (count == kWarp ? 0xffffffffu : (1u << count) - 1u) << first;
}

__device__ __forceinline__ void read(const T* from, Acc* to) {
  Vector<T, V> x;
  load(x, reinterpret_cast<const char*>(from));
  convert_all<Acc>(x, to);
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(facula::kThreads)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int lanes = a.lanes, shares = a.shares, group = lanes * shares;
  const int64 row = int64(blockIdx.x) * (kThreads / group) + int(threadIdx.x) / group;
  if (row >= a.rows) return;
  const int place = int(threadIdx.x) % group, lane = place % lanes, share = place / lanes;
  const int64 begin = a.starts[row] + share, end = a.starts[row + 1];
#if FACULA_KIND == 0
  __shared__ Acc parts[kThreads / kWarp][kWarp * V];  // of warps that share a row
  const int threads = group < kWarp ? group : kWarp, warp = int(threadIdx.x) / kWarp;
  const int64 step = int64(lanes) * V;
  for (int64 tile = blockIdx.y * step; tile < a.width; tile += gridDim.y * step) {
    const int64 column = tile + lane * V;
    const bool exists = column < a.width;
    Acc sum[V];
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] = Acc(0);
    if (exists) {
#pragma unroll 4
      for (int64 k = begin; k < end; k += shares) {
        const Acc value = convert<Acc>(a.first[k]);
        Acc x[V];
        read(a.second + a.columns[k] * a.width + column, x);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] = Acc(sum[v] + value * x[v]);
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sum[v] = sum_of_threads(sum[v], lanes, threads, neighbours(threads));
    }
    if (group > kWarp) {
      if (place % kWarp < lanes) {
#pragma unroll
        for (int v = 0; v < V; ++v) parts[warp][lane * V + v] = sum[v];
      }
      __syncthreads();
      if (share == 0) {
        for (int w = 1; w < kThreads / kWarp; ++w) {
#pragma unroll
          for (int v = 0; v < V; ++v) sum[v] = Acc(sum[v] + parts[w][lane * V + v]);
        }
      }
      __syncthreads();  // the next tile writes there
    }
    if (exists && share == 0) {
      Vector<T, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) result.at[v] = convert<T>(sum[v]);
      store(result, reinterpret_cast<char*>(a.out + row * a.width + column));
    }
  }
#else
  for (int64 k = begin; k < end; k += shares) {
    const T* x = a.first + row * a.width;
    const T* y = a.second + a.columns[k] * a.width;
    Acc sum = Acc(0);
#pragma unroll 2
    for (int64 column = int64(lane) * V; column < a.width; column += int64(lanes) * V) {
      Acc p[V], q[V];
      read(x + column, p);
      read(y + column, q);
#pragma unroll
      for (int v = 0; v < V; ++v) sum = Acc(sum + p[v] * q[v]);
    }
    sum = sum_of_threads(sum, 1, lanes, neighbours(lanes));
    if (lane == 0) a.out[k] = convert<T>(sum);
  }
#endif
}
