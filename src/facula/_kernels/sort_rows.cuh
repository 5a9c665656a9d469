// Sorts short lines, stably: a bitonic network over entries of a key and a position, in registers, by
// shuffles, and beyond a warp through shared memory. Positions make all entries different, so that
// the network needs no stability of its own. The host defines FACULA_NAME, what walk.cuh wants, and
//   FACULA_TYPE     element type
//   FACULA_LANES    threads per line, a power of 2; up to 32 several lines share a block
//   FACULA_ITEMS    entries per thread, a power of 2
//   FACULA_THREADS  threads of a block
#pragma once
#include "order.cuh"
#include "walk.cuh"

namespace facula {

using T = FACULA_TYPE;
constexpr int kLanes = FACULA_LANES;
constexpr int kItems = FACULA_ITEMS;
constexpr int kCapacity = kLanes * kItems;

// Written by sort_short in csrc/cuda/sort.cpp.
struct Arguments {
  int64 lines;
  int32 n, kept;  // elements of a line, and how many of them are written
  int32 descending;
  const char* in;
  char* values;
  int64* indices;
  int64 in_step, values_step, indices_step;  // along the line: bytes, bytes, elements
  Walk<3> walk;  // of the lines: in, values, indices
};

#if FACULA_WIDE_KEY
struct Entry {
  uint64 key;
  uint32 position;
  __device__ bool operator<(const Entry& other) const {
    return key < other.key || (key == other.key && position < other.position);
  }
};
__device__ __forceinline__ Entry entry(uint64 key, uint32 position) { return {key, position}; }
__device__ __forceinline__ uint32 position_of(const Entry& e) { return e.position; }
__device__ __forceinline__ Entry from_lane(const Entry& e, int distance) {
  return {__shfl_xor_sync(0xffffffffu, e.key, distance),
          __shfl_xor_sync(0xffffffffu, e.position, distance)};
}
#else
using Entry = uint64;
__device__ __forceinline__ Entry entry(uint32 key, uint32 position) {
  return uint64(key) << 32 | position;
}
__device__ __forceinline__ uint32 position_of(Entry e) { return uint32(e); }
__device__ __forceinline__ Entry from_lane(Entry e, int distance) {
  return __shfl_xor_sync(0xffffffffu, e, distance);
}
#endif

// All entries differ but those behind the end of the line, whose order does not matter.
__device__ __forceinline__ void order_pair(Entry& a, Entry& b, bool rising) {
  const Entry x = a, y = b;
  const bool exchange = (y < x) == rising;
  a = exchange ? y : x;
  b = exchange ? x : y;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_THREADS)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kLines = FACULA_THREADS / kLanes;  // of a block
  const int lane = threadIdx.x % kLanes;
  const int64 line = int64(blockIdx.x) * kLines + threadIdx.x / kLanes;
  const bool exists = line < arguments.lines;
  int64 at[3] = {0, 0, 0};
  if (exists) arguments.walk.find(line, at);
  const char* in = arguments.in + at[0];

  // Which thread starts with which element does not matter: neighbours read neighbours. Behind the
  // end of the line the first element is read in vain, which needs no branch.
  const int n = exists ? arguments.n : 0;
  Entry e[kItems];
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int i = j * kLanes + lane;
    const bool inside = i < n;
    const key_of<T> key =
        load_key<T>(in + (inside ? i : 0) * arguments.in_step, arguments.descending != 0);
    e[j] = entry(inside ? key : key_of<T>(~key_of<T>(0)), inside ? uint32(i) : 0xffffffffu);
  }

  // Entry j of thread t stands at t * kItems + j of the network. The steps inside a thread are
  // compiled once, for runs of every size.
#if FACULA_LANES > 32
  alignas(16) __shared__ unsigned char storage[kCapacity * sizeof(Entry)];
  Entry* shared = reinterpret_cast<Entry*>(storage);
#endif
#pragma unroll 1
  for (int size = 2; size <= kCapacity; size *= 2) {
    const bool rising = !(lane * kItems & size);
#pragma unroll 1
    for (int distance = size / (2 * kItems); distance > 0; distance /= 2) {
      const bool lower = !(lane & distance);
#if FACULA_LANES > 32
      if (distance >= 32) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kItems; ++j) shared[j * kLanes + lane] = e[j];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kItems; ++j) {
          const Entry other = shared[j * kLanes + (lane ^ distance)];
          if ((lower == rising) == (other < e[j])) e[j] = other;
        }
        continue;
      }
#endif
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const Entry other = from_lane(e[j], distance);
        if ((lower == rising) == (other < e[j])) e[j] = other;
      }
    }
#pragma unroll
    for (int stride = kItems / 2; stride > 0; stride /= 2) {
      if (stride >= size) continue;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        if (!(j & stride)) order_pair(e[j], e[j | stride], rising != ((j & size) != 0));
      }
    }
  }

  char* values = arguments.values + at[1];
  int64* indices = reinterpret_cast<int64*>(reinterpret_cast<char*>(arguments.indices) + at[2]);
#if FACULA_LANES > 32
  // Neighbours write neighbours.
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) shared[lane * kItems + j] = e[j];
  __syncthreads();
#endif
  if (!exists) return;
#pragma unroll 4
  for (int j = 0; j < kItems; ++j) {
#if FACULA_LANES > 32
    const int i = j * kLanes + lane;
    const uint32 position = position_of(shared[i]);
#else
    const int i = lane * kItems + j;
    const uint32 position = position_of(e[j]);
#endif
    if (i >= arguments.kept) continue;
    indices[i * arguments.indices_step] = position;
    *reinterpret_cast<key_of<T>*>(values + i * arguments.values_step) =
        *reinterpret_cast<const key_of<T>*>(in + position * arguments.in_step);
  }
}
