// The derivative of attention by the queries, and for the kernel that follows the sums of grad_out
// times out. Four warps have 16 M queries each. The host defines FACULA_NAME and what attention.cuh
// wants.
#pragma once
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(128)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kThreads = 128, kRows = 64 * M, kStage = 2 * kStep * kPitch;
  extern __shared__ Words4 memory[];
  Item* const queries = reinterpret_cast<Item*>(memory);
  Item* const grads = queries + kRows * kPitch;
  Item* const stages = grads + kRows * kPitch;  // two of keys and values

  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.queries + kRows - 1) / kRows), heads = uint32(a.heads);
  const uint32 tile = tiles - 1 - blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const uint32 batch = head_number / heads, head = head_number % heads;
  const uint32 key_head = head / (heads / uint32(a.key_heads));
  const int64 first = int64(tile) * kRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64 mine = first + warp * 16 * M;
  const Scores scores(a, batch, head);

  auto load_keys = [&](int64 at, int stage) {
    Item* keys = stages + stage * kStage;
    load_tile<kStep, kThreads>(keys, a.k.of(batch, key_head), a.k.row, at, a.keys, a.width);
    load_tile<kStep, kThreads>(keys + kStep * kPitch, a.v.of(batch, key_head), a.v.row, at, a.keys,
                               a.value_width);
    commit_copies();
  };
  load_tile<kRows, kThreads>(queries, a.q.of(batch, head), a.q.row, first, a.queries, a.width);
  load_tile<kRows, kThreads>(grads, a.grad_out.of(batch, head), a.grad_out.row, first, a.queries,
                             a.value_width);
  load_keys(0, 0);

  float delta[M][2], offset[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64 query = mine + m * 16 + h * 8 + g, number = head_number * a.queries + query;
      const bool exists = query < a.queries;
      delta[m][h] = grad_times_out(a, batch, head, query);
      offset[m][h] = exists ? a.logsumexp[number] * kLog2e : kInfinity;
      if (exists && t == 0) a.delta[number] = delta[m][h];
    }
  }

  int64 end = a.keys;
  if (FACULA_CAUSAL && first + kRows < end) end = first + kRows;
  float sums[M][D / 8][4] = {};
  int stage = 0;
  for (int64 at = 0; at < end; at += kStep, stage ^= 1) {
    if (at + kStep < end) load_keys(at + kStep, stage ^ 1);
    else commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Item* keys = stages + stage * kStage;
    const Item* values = keys + kStep * kPitch;
    float weight[M][kStep / 8][4] = {}, slope[M][kStep / 8][4] = {};
    multiply_rows(weight, queries, warp * 16 * M, keys);
    multiply_rows(slope, grads, warp * 16 * M, values);
    auto slope_all = [&](auto score) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int h = i / 2;
            const int64 query = mine + m * 16 + h * 8 + g, key = at + n * 8 + t * 2 + i % 2;
            const float p = power_of_two(score(weight[m][n][i], query, key) - offset[m][h]);
            slope[m][n][i] = p * (slope[m][n][i] - delta[m][h]) * a.scale;
          }
        }
      }
    };
    if (scores.edge(mine, at, at + kStep)) {  // the same for all lanes
      slope_all(scores);
    } else {
      slope_all([&](float product, int64, int64) { return product * scores.scale; });
    }
    multiply_columns<D>(sums, slope, keys, 0);
    __syncthreads();  // all have done with this stage
  }
  wait_copies<0>();
  store_rows<D>(sums, a.grad_q.of(batch, head), a.grad_q.row, mine, a.queries, 0, a.width);
}
