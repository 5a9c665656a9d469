// attention_key_grad.cuh for compute capability 9.0: see attention_groups.cuh. The host defines
// FACULA_NAME and what that file wants.
#pragma once
#include "attention_groups.cuh"

extern "C" __global__ void __launch_bounds__(128 * FACULA_GROUPS, 1)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kNumbers = 2 * kStep;  // of a stage: see attention_query_grad_groups.cuh
  extern __shared__ Words4 memory[];
  char* const keys = aligned_memory(memory);
  char* const values = keys + kRows * D * 2;
  char* const stages = values + kRows * D * 2;  // of queries and gradients
  float* const numbers = reinterpret_cast<float*>(stages + kStages * 2 * kStepBytes);

  const Arguments& a = arguments;
  const int64 tiles = (a.keys + kRows - 1) / kRows;
  const int64 tile = blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const int64 batch = head_number / a.key_heads, key_head = head_number % a.key_heads;
  const int64 group = a.heads / a.key_heads, first = tile * kRows;
  const int warp = warp_number(), lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64 mine = first + warp * 16, group_begin = first + warp / 4 * 64;

  // Causal keys are not seen by earlier queries.
  const int64 begin = FACULA_CAUSAL ? first : 0;
  // Queries are loaded two steps ahead, those of the first head of the group first.
  int64 next = begin, next_head = begin < a.queries ? 0 : group;
  auto load_queries = [&](int stage) {
    if (next_head < group) {
      const int64 head = key_head * group + next_head;
      char* to = stages + stage * (2 * kStepBytes);
      load_panels<kStep>(to, a.q.of(batch, head), a.q.row, next, a.queries, a.width);
      load_panels<kStep>(to + kStepBytes, a.grad_out.of(batch, head), a.grad_out.row, next,
                         a.queries, a.value_width);
      if (threadIdx.x < kStep) {
        const bool exists = next + threadIdx.x < a.queries;
        const int64 row = (batch * a.heads + head) * a.queries + next + threadIdx.x;
        copy_pair_or_zero(numbers + stage * kNumbers + threadIdx.x * 2,
                          exists ? a.delta + row * 2 : a.delta, exists);
      }
      next += kStep;
      if (next >= a.queries) next = begin, ++next_head;
    }
    commit_copies();
  };
  load_panels<kRows>(keys, a.k.of(batch, key_head), a.k.row, first, a.keys, a.width);
  load_panels<kRows>(values, a.v.of(batch, key_head), a.v.row, first, a.keys, a.value_width);
  load_queries(0);
  load_queries(1);

  const uint64 my_keys = tile_descriptor(keys + warp / 4 * (64 * 128));
  const uint64 my_values = tile_descriptor(values + warp / 4 * (64 * 128));
  float grad_k[1][D / 8][4] = {}, grad_v[1][D / 8][4] = {};
  uint32 left[4][4] = {}, slopes[4][4] = {};
  int stage = 0;
  for (int64 member = 0; member < group; ++member) {
    const Scores scores(a, batch, key_head * group + member);
    const float factor = kScaled ? 1.0f : scores.scale;
    for (int64 at = begin; at < a.queries; at += kStep, stage = (stage + 1) % kStages) {
      wait_copies<1>();
      publish_writes();
      __syncthreads();  // this stage is there; all have done with the one before the last
      load_queries((stage + 2) % kStages);
      if (FACULA_CAUSAL && at + kStep <= group_begin) {  // the same for the group
        wait_products<0>();                              // whose stage is loaded again soon
        continue;
      }
      const uint64 queries = tile_descriptor(stages + stage * (2 * kStepBytes));
      const uint64 grads = queries + kStepBytes / 16;
      float weight[8][4], slope[8][4];
      begin_products();
      multiply_rows<kRows>(weight, my_keys, queries);
      commit_products();
      multiply_rows<kRows>(slope, my_values, grads);
      commit_products();
      wait_products<1>();
      settle(weight);
      release(left);
      release(slopes);
      // Rows of zeros stand for queries that are not there: they add nothing.
      if (FACULA_MASK || (FACULA_CAUSAL && at < mine + 15)) {
        hide_queries(weight, scores, mine + g, at);
      }
      const Words4* number = reinterpret_cast<const Words4*>(numbers + stage * kNumbers);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const Words4 pairs = number[n * 4 + t];
        const float offset[2] = {as_float(pairs.x), as_float(pairs.z)};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          weight[n][e] = power_of_two(weight[n][e] * factor - offset[e % 2]);
        }
      }
      as_left(left, weight);
      begin_products();
      multiply_columns(grad_v, left, grads);
      commit_products();
      wait_products<1>();
      settle(slope);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const Words4 pairs = number[n * 4 + t];
        const float delta[2] = {as_float(pairs.y), as_float(pairs.w)};
#pragma unroll
        for (int e = 0; e < 4; ++e) slope[n][e] = weight[n][e] * (slope[n][e] - delta[e % 2]);
      }
      as_left(slopes, slope);
      begin_products();
      multiply_columns(grad_k, slopes, queries);
      commit_products();
      if (D > 64) {  // registers would not suffice for products under way
        wait_products<0>();
        settle(grad_k[0]);
        settle(grad_v[0]);
      }
    }
    wait_products<0>();
    settle(grad_k[0]);
    settle(grad_v[0]);
    release(left);
    release(slopes);
  }
  wait_copies<0>();
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) grad_k[0][n][e] *= a.scale;
  }
  store_rows<D>(grad_k, a.grad_k.of(batch, key_head), a.grad_k.row, mine, a.keys, 0, a.width);
  store_rows<D>(grad_v, a.grad_v.of(batch, key_head), a.grad_v.row, mine, a.keys, 0, a.value_width);
}
