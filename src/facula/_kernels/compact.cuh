// The positions of elements that are not zero. Stage 0 counts them in every tile, stage 1, which is
// given where each tile's positions begin, writes them. The host defines FACULA_NAME and
//   FACULA_IN     dtype of the elements, which lie one after the other
//   FACULA_STAGE
//   FACULA_DIMS   0: linear positions; else the number of dimensions to write positions of
// Blocks have 256 threads.
#pragma once
#include "division.cuh"

namespace facula {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRounds = 16;
constexpr int kTile = kThreads * kRounds;

// Written by true_positions in csrc/cuda/indexing.cpp.
struct Arguments {
  const char* in;
  int64 n;
  int64* counts;  // of the tiles; in stage 1: those of all tiles up to each
  int64* out;
  int64 column;   // elements between the positions along different dimensions
  int64 sizes[FACULA_DIMS > 0 ? FACULA_DIMS : 1];
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  __shared__ uint32 found[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // A warp looks at neighbours, round by round.
  const int64 begin = int64(blockIdx.x) * kTile + warp * (32 * kRounds) + lane;
  const auto* in = reinterpret_cast<const stored<FACULA_IN>*>(arguments.in);
  uint32 ballots = 0;  // of round r in lane r
  uint32 mine = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int64 i = begin + r * 32;
    const bool yes = i < arguments.n && convert<bool>(in[i]);
    const uint32 ballot = __ballot_sync(0xffffffffu, yes);
    ballots = lane == r ? ballot : ballots;
    mine += uint32(__popc(ballot));
  }
  if (lane == 0) found[warp] = mine;
  __syncthreads();
#if FACULA_STAGE == 0
  if (threadIdx.x == 0) {
    uint32 all = 0;
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) all += found[w];
    arguments.counts[blockIdx.x] = all;
  }
#else
  int64 number = blockIdx.x > 0 ? arguments.counts[blockIdx.x - 1] : 0;
#pragma unroll 1
  for (int w = 0; w < warp; ++w) number += found[w];
#pragma unroll 1
  for (int r = 0; r < kRounds; ++r) {
    const uint32 ballot = __shfl_sync(0xffffffffu, ballots, r);
    if (ballot >> lane & 1) {
      const int64 to = number + __popc(ballot & ((1u << lane) - 1));
      int64 position = begin + r * 32;
#if FACULA_DIMS == 0
      arguments.out[to] = position;
#else
#pragma unroll 1
      for (int d = FACULA_DIMS - 1; d > 0; --d) {
        const Division division = quotient_and_rest(position, arguments.sizes[d]);
        arguments.out[to + d * arguments.column] = division.rest;
        position = division.quotient;
      }
      arguments.out[to] = position;
#endif
    }
    number += __popc(ballot);
  }
#endif
}
