// attention_query_grad.cuh for compute capability 9.0: see attention_groups.cuh. For the kernel
// that follows it writes two numbers for each query: its logsumexp in units of log 2, and the sum
// of grad_out times out. The host defines FACULA_NAME and what attention_groups.cuh wants.
#pragma once
#include "attention_groups.cuh"

extern "C" __global__ void __launch_bounds__(128 * FACULA_GROUPS, FACULA_WIDTH == 64 ? 2 : 1)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  extern __shared__ Words4 memory[];
  char* const queries = aligned_memory(memory);
  char* const grads = queries + kRows * D * 2;
  char* const stages = grads + kRows * D * 2;  // of keys and values

  const Arguments& a = arguments;
  const int64 tiles = (a.queries + kRows - 1) / kRows;
  const int64 tile = tiles - 1 - blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const int64 batch = head_number / a.heads, head = head_number % a.heads;
  const int64 key_head = head / (a.heads / a.key_heads);
  const int64 first = tile * kRows;
  const int warp = warp_number(), lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64 mine = first + warp * 16, group_first = first + warp / 4 * 64;
  const Item* k = a.k.of(batch, key_head);
  const Item* v = a.v.of(batch, key_head);
  const Scores scores(a, batch, head);
  const float factor = kScaled ? 1.0f : scores.scale;

  int64 end = a.keys;
  if (FACULA_CAUSAL && first + kRows < end) end = first + kRows;
  const int64 group_end = group_first >= a.queries ? 0 : FACULA_CAUSAL ? group_first + 64 : end;
  auto load_keys = [&](int64 at, int stage) {
    if (at < end) {
      char* to = stages + stage * (2 * kStepBytes);
      load_panels<kStep>(to, k, a.k.row, at, a.keys, a.width);
      load_panels<kStep>(to + kStepBytes, v, a.v.row, at, a.keys, a.value_width);
    }
    commit_copies();
  };
  load_panels<kRows>(queries, a.q.of(batch, head), a.q.row, first, a.queries, a.width);
  load_panels<kRows>(grads, a.grad_out.of(batch, head), a.grad_out.row, first, a.queries,
                     a.value_width);
  load_keys(0, 0);
  load_keys(kStep, 1);

  float offset[2], delta[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int64 row = mine + h * 8 + g;
    const bool exists = row < a.queries;
    const int64 number = head_number * a.queries + row;
    delta[h] = grad_times_out(a, batch, head, row);
    offset[h] = exists ? a.logsumexp[number] * kLog2e : kInfinity;
    if (exists && t == 0) {
      a.delta[number * 2] = offset[h];
      a.delta[number * 2 + 1] = delta[h];
    }
  }

  const uint64 my_queries = tile_descriptor(queries + warp / 4 * (64 * 128));
  const uint64 my_grads = tile_descriptor(grads + warp / 4 * (64 * 128));
  float sums[1][D / 8][4] = {};
  uint32 left[4][4] = {};
  int stage = 0;
  for (int64 at = 0; at < end; at += kStep, stage = (stage + 1) % kStages) {
    wait_copies<1>();
    publish_writes();
    __syncthreads();  // this stage is there; all have done with the one before the last
    load_keys(at + 2 * kStep, (stage + 2) % kStages);
    if (at >= group_end) {  // the same for the group
      wait_products<0>();   // whose stage is loaded again soon
      continue;
    }
    const uint64 keys = tile_descriptor(stages + stage * (2 * kStepBytes));
    const uint64 values = keys + kStepBytes / 16;
    float weight[8][4], slope[8][4];
    begin_products();
    multiply_rows<kRows>(weight, my_queries, keys);
    commit_products();
    multiply_rows<kRows>(slope, my_grads, values);
    commit_products();
    wait_products<1>();
    settle(weight);
    release(left);
    if (scores.edge(mine, at, at + kStep)) hide_keys(weight, scores, mine + g, at);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        weight[n][e] = power_of_two(weight[n][e] * factor - offset[e / 2]);
      }
    }
    wait_products<0>();
    settle(slope);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) slope[n][e] = weight[n][e] * (slope[n][e] - delta[e / 2]);
    }
    as_left(left, slope);
    begin_products();
    multiply_columns(sums, left, keys);
    commit_products();
    if (D == 64) {  // registers of half a multiprocessor do not suffice for products under way
      wait_products<0>();
      settle(sums[0]);
    }
  }
  wait_products<0>();
  settle(sums[0]);
  release(left);
  wait_copies<0>();
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[0][n][e] *= a.scale;
  }
  store_rows<D>(sums, a.grad_q.of(batch, head), a.grad_q.row, mine, a.queries, 0, a.width);
}
