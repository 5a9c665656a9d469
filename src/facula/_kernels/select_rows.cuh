// The k first elements of long lines in order: one block finds the k-th key digit by digit, collects
// what lies before it, and sorts that. Of elements equal to the k-th the first ones are taken. The
// host defines FACULA_NAME, what walk.cuh wants, FACULA_TYPE and FACULA_KEPT, a power of 2, at least k.
// Blocks have 256 threads.
#pragma once
#include "order.cuh"
#include "walk.cuh"

namespace facula {

using T = FACULA_TYPE;
using Key = key_of<T>;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kAhead = 4;  // keys in flight

// Written by select_long in csrc/cuda/sort.cpp.
struct Arguments {
  int64 lines;
  int64 n;
  int32 kept;
  int32 descending;
  const char* in;
  char* values;
  int64* indices;
  int64 in_step, values_step, indices_step;  // along the line: bytes, bytes, elements
  Walk<3> walk;  // of the lines: in, values, indices
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  __shared__ uint32 counts[kWarps][256];
  __shared__ uint32 totals[kThreads];
  __shared__ uint32 chosen_digit, before_digit, collected;
  __shared__ uint32 warp_counts[kWarps];
  __shared__ Key keys[FACULA_KEPT];
  __shared__ uint32 positions[FACULA_KEPT];
  const int me = threadIdx.x, warp = me / 32, lane = me % 32;
  const bool descending = arguments.descending != 0;
  int64 at[3];
  arguments.walk.find(blockIdx.x, at);
  const char* in = arguments.in + at[0];

  // The key of rank `kept`, from its highest digit down.
  Key prefix = 0;
  uint32 wanted = uint32(arguments.kept);  // so many of the keys that share the prefix are needed
#pragma unroll 1
  for (int shift = 8 * int(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) counts[w][me] = 0;
    __syncthreads();
    const bool whole = shift == 8 * int(sizeof(Key)) - 8;
    // The next keys move up instead of being addressed, so that the loop stays a loop.
#pragma unroll 1
    for (int64 first = me; first < arguments.n; first += kAhead * kThreads) {
      Key next[kAhead];
      // Behind the end the first of them is read again, which needs no branch.
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64 i = first + u * kThreads;
        next[u] = load_key<T>(in + (i < arguments.n ? i : first) * arguments.in_step, descending);
      }
      const int64 last = first + kAhead * kThreads, end = last < arguments.n ? last : arguments.n;
#pragma unroll 1
      for (int64 i = first; i < end; i += kThreads) {
        const Key key = next[0];
        const bool matches = whole || uint64(key) >> (shift + 8) == uint64(prefix) >> (shift + 8);
        if (matches) atomicAdd(&counts[warp][uint32(key >> shift) & 255], 1u);
#pragma unroll
        for (int u = 1; u < kAhead; ++u) next[u - 1] = next[u];
      }
    }
    __syncthreads();
    uint32 mine = 0;
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) mine += counts[w][me];
    // Sums up to each digit.
    totals[me] = mine;
    __syncthreads();
#pragma unroll 1
    for (int distance = 1; distance < kThreads; distance *= 2) {
      const uint32 other = me >= distance ? totals[me - distance] : 0;
      __syncthreads();
      totals[me] += other;
      __syncthreads();
    }
    const uint32 until = totals[me];
    if (until >= wanted && until - mine < wanted) {
      chosen_digit = uint32(me);
      before_digit = until - mine;
    }
    __syncthreads();
    prefix = Key(prefix | Key(Key(chosen_digit) << shift));
    wanted -= before_digit;
    __syncthreads();
  }

  // Everything before that key, and the first `wanted` that are equal to it.
#pragma unroll 1
  for (int i = me; i < FACULA_KEPT; i += kThreads) {
    keys[i] = Key(~Key(0));
    positions[i] = 0xffffffffu;
  }
  if (me == 0) collected = 0;
  __syncthreads();
  const uint32 less = uint32(arguments.kept) - wanted;
  uint32 seen = 0;  // equal ones so far
#pragma unroll 1
  for (int64 first = 0; first < arguments.n; first += kThreads) {
    const int64 i = first + me;
    Key key = 0;
    bool equal = false;
    if (i < arguments.n) {
      key = load_key<T>(in + i * arguments.in_step, descending);
      equal = key == prefix;
      if (key < prefix) {
        const uint32 to = atomicAdd(&collected, 1u);
        keys[to] = key;
        positions[to] = uint32(i);
      }
    }
    if (seen >= wanted) continue;
    const uint32 ballot = __ballot_sync(0xffffffffu, equal);
    if (__syncthreads_or(equal) == 0) continue;
    if (lane == 0) warp_counts[warp] = uint32(__popc(ballot));
    __syncthreads();
    uint32 rank = seen + uint32(__popc(ballot & ((1u << lane) - 1)));
    uint32 all = 0;
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) rank += warp_counts[w];
      all += warp_counts[w];
    }
    if (equal && rank < wanted) {
      keys[less + rank] = key;
      positions[less + rank] = uint32(i);
    }
    seen += all;
    __syncthreads();  // before the counts are written again
  }
  __syncthreads();

  // They are few: a bitonic network in shared memory.
#pragma unroll 1
  for (int size = 2; size <= FACULA_KEPT; size *= 2) {
#pragma unroll 1
    for (int stride = size / 2; stride > 0; stride /= 2) {
#pragma unroll 1
      for (int pair = me; pair < FACULA_KEPT / 2; pair += kThreads) {
        const int low = 2 * pair - (pair & (stride - 1)), high = low + stride;
        const Key a = keys[low], b = keys[high];
        const uint32 p = positions[low], q = positions[high];
        const bool greater = b < a || (a == b && q < p);
        if (greater == !(low & size)) {
          keys[low] = b;
          keys[high] = a;
          positions[low] = q;
          positions[high] = p;
        }
      }
      __syncthreads();
    }
  }
  char* values = arguments.values + at[1];
  int64* indices = reinterpret_cast<int64*>(reinterpret_cast<char*>(arguments.indices) + at[2]);
#pragma unroll 1
  for (int i = me; i < arguments.kept; i += kThreads) {
    const uint32 position = positions[i];
    indices[i * arguments.indices_step] = position;
    *reinterpret_cast<Key*>(values + i * arguments.values_step) =
        *reinterpret_cast<const Key*>(in + int64(position) * arguments.in_step);
  }
}
