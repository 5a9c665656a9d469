// softmax(scale q k^T + mask) v in tiles, with running maxima and sums (Milakov and Gimelshein,
// 2018; Dao et al., 2022). Four warps have 16 M queries each and go through keys kStep at a time.
// The host defines FACULA_NAME and what attention.cuh wants.
#pragma once
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(128)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int kThreads = 128, kRows = 64 * M;
  extern __shared__ Words4 memory[];
  Item* const queries = reinterpret_cast<Item*>(memory);
  Item* const keys = queries + kRows * kPitch;
  Item* const values = keys + kStep * kPitch;

  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.queries + kRows - 1) / kRows), heads = uint32(a.heads);
  // Late tiles have the most keys to see when attention is causal: they go first.
  const uint32 tile = tiles - 1 - blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const uint32 batch = head_number / heads, head = head_number % heads;
  const uint32 key_head = head / (heads / uint32(a.key_heads));
  const int64 first = int64(tile) * kRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64 mine = first + warp * 16 * M;
  const Item* k = a.k.of(batch, key_head);
  const Item* v = a.v.of(batch, key_head);
  const Scores scores(a, batch, head);

  int64 end = a.keys;
  if (FACULA_CAUSAL && first + kRows < end) end = first + kRows;
  load_tile<kRows, kThreads>(queries, a.q.of(batch, head), a.q.row, first, a.queries, a.width);
  load_tile<kStep, kThreads>(keys, k, a.k.row, 0, a.keys, a.width);
  commit_copies();

  float out[M][D / 8][4] = {}, top[M][2], sum[M][2] = {};
#pragma unroll
  for (int m = 0; m < M; ++m) top[m][0] = top[m][1] = -kInfinity;

  for (int64 at = 0; at < end; at += kStep) {
    wait_copies<0>();
    __syncthreads();  // keys are there; all have done with the values before
    load_tile<kStep, kThreads>(values, v, a.v.row, at, a.keys, a.value_width);
    commit_copies();
    float weight[M][kStep / 8][4] = {};
    multiply_rows(weight, queries, warp * 16 * M, keys);
    wait_copies<0>();
    __syncthreads();  // values are there; all have done with the keys
    if (at + kStep < end) {
      load_tile<kStep, kThreads>(keys, k, a.k.row, at + kStep, a.keys, a.width);
    }
    commit_copies();

    auto score_all = [&](auto score) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            weight[m][n][e] = score(weight[m][n][e], mine + m * 16 + e / 2 * 8 + g,
                                    at + n * 8 + t * 2 + e % 2);
          }
        }
      }
    };
    if (scores.edge(mine, at, at + kStep)) {  // the same for all lanes
      score_all(scores);
    } else {
      score_all([&](float product, int64, int64) { return product * scores.scale; });
    }
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float largest = top[m][h];
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float score = weight[m][n][h * 2 + e];
            largest = score > largest ? score : largest;
          }
        }
#pragma unroll
        for (int distance = 1; distance <= 2; distance *= 2) {
          const float other = __shfl_xor_sync(0xffffffffu, largest, distance);
          largest = other > largest ? other : largest;
        }
        const float from = largest == -kInfinity ? 0.0f : largest;
        const float factor = power_of_two(top[m][h] - from);
        top[m][h] = largest;
        float added = 0.0f;
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = weight[m][n][h * 2 + e];
            score = power_of_two(score - from);
            added += score;
          }
        }
        sum[m][h] = sum[m][h] * factor + added;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          out[m][n][h * 2] *= factor;
          out[m][n][h * 2 + 1] *= factor;
        }
      }
    }
    multiply_columns<D>(out, weight, values, 0);
  }

#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[m][h];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        out[m][n][h * 2] *= inverse;
        out[m][n][h * 2 + 1] *= inverse;
      }
      const int64 query = mine + m * 16 + h * 8 + g;
      if (t == 0 && query < a.queries) {
        // Queries that see no key have +infinity, so that their weights are 0.
        a.logsumexp[head_number * a.queries + query] =
            total > 0.0f ? top[m][h] * kLn2 + ::logf(total) : (total != total ? total : kInfinity);
      }
    }
  }
  wait_copies<0>();
  store_rows<D>(out, a.out.of(batch, head), a.out.row, mine, a.queries, 0, a.value_width);
}
