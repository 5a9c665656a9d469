// One pass of a stable radix sort of long lines, 8 bits at a time from the lowest: stage 0 counts the
// digits of every tile, stage 1 adds these up along the tiles, stage 2 moves keys and positions to
// their places. The host defines FACULA_NAME and
//   FACULA_TYPE   type of the elements where keys are made of them (FACULA_FIRST), else of the keys
//   FACULA_FIRST  1: the pass reads elements, whose positions are their places; 0: keys and positions
//   FACULA_STAGE
// Blocks have 256 threads.
#pragma once
#include "order.cuh"

namespace facula {

using T = FACULA_TYPE;
using Key = key_of<T>;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kItems = sizeof(Key) == 8 ? 8 : 16;  // of a thread
constexpr int kTile = kThreads * kItems;

// Written by Radix in csrc/cuda/sort.cpp. Lines are grid rows.
struct Arguments {
  int64 n;
  int64 tiles;  // of a line
  int32 shift;  // of the digit
  int32 descending;
  const char* in;  // elements or keys, line by line
  const uint32* positions;
  Key* out;
  uint32* out_positions;
  uint32* counts;  // [line][digit][tile]
  uint32* totals;  // [line][digit]
};

__device__ __forceinline__ Key read_key([[maybe_unused]] const Arguments& arguments,
                                        const Key* from) {
#if FACULA_FIRST
  return load_key<T>(reinterpret_cast<const char*>(from), arguments.descending != 0);
#else
  return *from;
#endif
}
__device__ __forceinline__ uint32 digit_of(const Arguments& arguments, Key key) {
  return uint32(key >> arguments.shift) & 255u;
}

// Sum over all threads before this one; `total` is that of all. `shared` has kWarps elements. Not
// inlined: a tile needs it twice.
__device__ __noinline__ uint32 sum_before(uint32 value, uint32* shared, uint32& total) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32 sum = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32 other = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) shared[warp] = sum;
  __syncthreads();
  uint32 before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += shared[w];
    total += shared[w];
  }
  __syncthreads();
  return before + sum - value;
}

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int me = threadIdx.x;
  const int64 line = blockIdx.y;

#if FACULA_STAGE == 0
  __shared__ uint32 counts[256];
  counts[me] = 0;
  __syncthreads();
  const int64 tile = blockIdx.x, begin = tile * kTile;
  const Key* const in = reinterpret_cast<const Key*>(arguments.in) + line * arguments.n;
#pragma unroll 4
  for (int j = 0; j < kItems; ++j) {
    const int64 i = begin + j * kThreads + me;
    if (i < arguments.n) atomicAdd(&counts[digit_of(arguments, read_key(arguments, in + i))], 1u);
  }
  __syncthreads();
  arguments.counts[(line * 256 + me) * arguments.tiles + tile] = counts[me];

#elif FACULA_STAGE == 1
  if (gridDim.x == 1) {  // few tiles: each thread adds up a digit
    uint32* mine = arguments.counts + (line * 256 + me) * arguments.tiles;
    uint32 sum = 0;
#pragma unroll 1
    for (int64 i = 0; i < arguments.tiles; ++i) {
      const uint32 count = mine[i];
      mine[i] = sum;
      sum += count;
    }
    arguments.totals[line * 256 + me] = sum;
    return;
  }
  // Block x is a digit.
  __shared__ uint32 shared[kWarps];
  const int64 digit = blockIdx.x;
  uint32* counts = arguments.counts + (line * 256 + digit) * arguments.tiles;
  uint32 carried = 0;
#pragma unroll 1
  for (int64 first = 0; first < arguments.tiles; first += kThreads) {
    const int64 i = first + me;
    const uint32 count = i < arguments.tiles ? counts[i] : 0;
    uint32 total;
    const uint32 before = sum_before(count, shared, total);
    if (i < arguments.tiles) counts[i] = carried + before;
    carried += total;
  }
  if (me == 0) arguments.totals[line * 256 + digit] = carried;

#else
  __shared__ uint32 counters[kWarps][256];
  __shared__ uint32 further[256];
  __shared__ uint32 shared[kWarps];
  __shared__ Key keys[kTile];
  __shared__ uint32 positions[kTile];
  const int warp = me / 32, lane = me % 32;
  const int64 tile = blockIdx.x, begin = tile * kTile;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) counters[w][me] = 0;
  __syncthreads();

  // A warp reads neighbouring elements in their order, so ranks keep it.
  const int within = warp * (32 * kItems) + lane;  // the thread's first element in the tile
  const int left = int(arguments.n - begin < kTile ? arguments.n - begin : kTile);  // of the tile
  const uint32 below = (1u << lane) - 1;
  const Key* const in_tile =
      reinterpret_cast<const Key*>(arguments.in) + line * arguments.n + begin;
  [[maybe_unused]] const uint32* const tile_positions =
      arguments.positions + line * arguments.n + begin;
  Key key[kItems];
  uint32 position[kItems];
  uint32 rank[kItems];
  // All reads come first, so that they wait for each other's memory once. Behind the end of the
  // line stand the highest keys: they take the last places of the tile and are never written.
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int i = within + j * 32;
    const int from = i < left ? i : left - 1;
    const Key read = read_key(arguments, in_tile + from);
    key[j] = i < left ? read : Key(~Key(0));
#if FACULA_FIRST
    position[j] = uint32(begin) + i;
#else
    position[j] = tile_positions[from];
#endif
  }
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    uint32& counter = counters[warp][digit_of(arguments, key[j])];
    const uint32 peers = __match_any_sync(0xffffffffu, digit_of(arguments, key[j]));
    rank[j] = counter + uint32(__popc(peers & below));
    __syncwarp();
    if (peers >> lane == 1) counter = rank[j] + 1;  // the last of them
    __syncwarp();
  }
  __syncthreads();

  // Thread `me` is a digit: where its elements begin in the tile, for each warp, and how much
  // further those of the tile stand in the line.
  uint32 count = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) count += counters[w][me];
  uint32 total;
  uint32 start = sum_before(count, shared, total);
  const uint32 in_line = arguments.totals[line * 256 + me];
  further[me] = sum_before(in_line, shared, total) +
                arguments.counts[(line * 256 + me) * arguments.tiles + tile] - start;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const uint32 mine = counters[w][me];
    counters[w][me] = start;
    start += mine;
  }
  __syncthreads();

#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const uint32 to = counters[warp][digit_of(arguments, key[j])] + rank[j];
    keys[to] = key[j];
    positions[to] = position[j];
  }
  __syncthreads();
  Key* const out = arguments.out + line * arguments.n;
  uint32* const out_positions = arguments.out_positions + line * arguments.n;
#pragma unroll 4
  for (int i = me; i < left; i += kThreads) {
    const Key moved = keys[i];
    const uint32 to = further[digit_of(arguments, moved)] + uint32(i);
    out[to] = moved;
    out_positions[to] = positions[i];
  }
#endif
}
