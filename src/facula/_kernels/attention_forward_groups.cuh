// attention_forward.cuh for compute capability 9.0: see attention_groups.cuh. The host defines
// FACULA_NAME and what that file wants.
#pragma once
#include "attention_groups.cuh"

extern "C" __global__ void __launch_bounds__(128 * FACULA_GROUPS, FACULA_WIDTH == 64 ? 2 : 1)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  extern __shared__ Words4 memory[];
  char* const queries = aligned_memory(memory);
  char* const stages = queries + kRows * D * 2;  // of keys and values

  const Arguments& a = arguments;
  const int64 tiles = (a.queries + kRows - 1) / kRows;
  // Late tiles have the most keys to see when attention is causal: they go first.
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
  load_keys(0, 0);
  load_keys(kStep, 1);
  // Left factors that stay the same lie in shared memory: in registers, ptxas 12.9 gave their place
  // to others while products were under way (heads of 64 columns, from the second tile of keys on).
  const uint64 my_queries = tile_descriptor(queries + warp / 4 * (64 * 128));
  float out[1][D / 8][4] = {}, top[2] = {-kInfinity, -kInfinity}, sum[2] = {};
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
    float weight[8][4];
    begin_products();
    multiply_rows<kRows>(weight, my_queries, keys);
    commit_products();
    wait_products<0>();
    settle(weight);
    settle(out[0]);
    release(left);
    if (scores.edge(mine, at, at + kStep)) hide_keys(weight, scores, mine + g, at);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = top[h];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        largest = ::fmaxf(largest, ::fmaxf(weight[n][h * 2], weight[n][h * 2 + 1]));
      }
      largest = ::fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = ::fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      const float from = largest == -kInfinity ? 0.0f : largest * factor;
      const float change = power_of_two(top[h] * factor - from);
      top[h] = largest;
      float added = 0.0f;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = weight[n][h * 2 + e];
          score = power_of_two(score * factor - from);
          added += score;
        }
      }
      sum[h] = sum[h] * change + added;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        out[0][n][h * 2] *= change;
        out[0][n][h * 2 + 1] *= change;
      }
    }
    as_left(left, weight);
    settle(out[0]);
    begin_products();
    multiply_columns(out, left, values);
    commit_products();
    if (FACULA_MASK) {  // whose branches the compiler does not place beside products under way
      wait_products<0>();
      settle(out[0]);
    }
  }
  wait_products<0>();
  settle(out[0]);
  release(left);

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = sum[h];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      out[0][n][h * 2] *= inverse;
      out[0][n][h * 2 + 1] *= inverse;
    }
    const int64 row = mine + h * 8 + g;
    if (t == 0 && row < a.queries) {
      // Queries that see no key have +infinity, so that their weights are 0.
      a.logsumexp[head_number * a.queries + row] = total > 0.0f
                                                       ? top[h] * factor * kLn2 + ::logf(total)
                                                       : (total != total ? total : kInfinity);
    }
  }
  wait_copies<0>();
  store_rows<D>(out, a.out.of(batch, head), a.out.row, mine, a.queries, 0, a.value_width);
}
