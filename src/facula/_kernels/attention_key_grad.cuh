// The derivatives of attention by keys and values. Warps have 16 M keys each and go through the
// queries of all heads that share them, in order, so that sums are always the same. The host
// defines FACULA_NAME, what attention.cuh wants, and
//   FACULA_SPLIT  1, or 2: two warps have the same keys, and each one half of the width
#pragma once
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(128 * FACULA_SPLIT)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kThreads = 128 * FACULA_SPLIT, kRows = 64 * M;
  constexpr int kColumns = D / FACULA_SPLIT, kStage = 2 * kStep * kPitch;
  extern __shared__ Words4 memory[];
  Item* const keys = reinterpret_cast<Item*>(memory);
  Item* const values = keys + kRows * kPitch;
  Item* const stages = values + kRows * kPitch;  // two of queries and gradients
  float* const numbers = reinterpret_cast<float*>(stages + 2 * kStage);

  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.keys + kRows - 1) / kRows), key_heads = uint32(a.key_heads);
  const uint32 tile = blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const uint32 batch = head_number / key_heads, key_head = head_number % key_heads;
  const uint32 group = uint32(a.heads) / key_heads;
  const int64 first = int64(tile) * kRows;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int column = threadIdx.x / 128 * kColumns;
  const int64 mine = first + warp * 16 * M;

  // Causal keys are not seen by earlier queries.
  const int64 begin = FACULA_CAUSAL ? first / kStep * kStep : 0;
  const uint32 steps = begin < a.queries ? uint32((a.queries - begin + kStep - 1) / kStep) : 0;

  auto load_queries = [&](uint32 i, int stage) {
    const int64 head = key_head * group + i / steps, at = begin + int64(i % steps) * kStep;
    Item* queries = stages + stage * kStage;
    load_tile<kStep, kThreads>(queries, a.q.of(batch, head), a.q.row, at, a.queries, a.width);
    load_tile<kStep, kThreads>(queries + kStep * kPitch, a.grad_out.of(batch, head),
                               a.grad_out.row, at, a.queries, a.value_width);
    const int64 rows = (batch * a.heads + head) * a.queries;
    for (int r = threadIdx.x; r < kStep; r += blockDim.x) {
      const bool exists = at + r < a.queries;
      numbers[stage * 2 * kStep + r] = exists ? a.logsumexp[rows + at + r] * kLog2e : kInfinity;
      numbers[(stage * 2 + 1) * kStep + r] = exists ? a.delta[rows + at + r] : 0.0f;
    }
    commit_copies();
  };
  load_tile<kRows, kThreads>(keys, a.k.of(batch, key_head), a.k.row, first, a.keys, a.width);
  load_tile<kRows, kThreads>(values, a.v.of(batch, key_head), a.v.row, first, a.keys,
                             a.value_width);
  const uint32 count = steps * group;
  if (count > 0) load_queries(0, 0);

  float grad_k[M][kColumns / 8][4] = {}, grad_v[M][kColumns / 8][4] = {};
  for (uint32 i = 0; i < count; ++i) {
    const int stage = int(i % 2);
    if (i + 1 < count) load_queries(i + 1, stage ^ 1);
    else commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Item* queries = stages + stage * kStage;
    const Item* grads = queries + kStep * kPitch;
    const float* offset = numbers + stage * 2 * kStep;
    const float* delta = offset + kStep;
    const int64 head = key_head * group + i / steps, at = begin + int64(i % steps) * kStep;
    const Scores scores(a, batch, head);
    float weight[M][kStep / 8][4] = {}, slope[M][kStep / 8][4] = {};
    multiply_rows(weight, keys, warp * 16 * M, queries);
    multiply_rows(slope, values, warp * 16 * M, grads);
    auto slope_all = [&](auto score) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int q = n * 8 + t * 2 + e % 2;
            const int64 key = mine + m * 16 + e / 2 * 8 + g;
            const float p = power_of_two(score(weight[m][n][e], at + q, key) - offset[q]);
            weight[m][n][e] = p;
            slope[m][n][e] = p * (slope[m][n][e] - delta[q]) * a.scale;
          }
        }
      }
    };
    if (scores.edge(at, mine, mine + 16 * M)) {  // the same for all lanes
      slope_all(scores);
    } else {
      slope_all([&](float product, int64, int64) { return product * scores.scale; });
    }
    multiply_columns<kColumns>(grad_v, weight, grads, column);
    multiply_columns<kColumns>(grad_k, slope, queries, column);
    __syncthreads();  // all have done with this stage
  }
  wait_copies<0>();
  store_rows<kColumns>(grad_k, a.grad_k.of(batch, key_head), a.grad_k.row, mine, a.keys, column,
                       a.width);
  store_rows<kColumns>(grad_v, a.grad_v.of(batch, key_head), a.grad_v.row, mine, a.keys, column,
                       a.value_width);
}
