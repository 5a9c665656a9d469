// attention_forward.cuh for compute capability 9.0: see attention_groups.cuh. While the matrix
// units multiply weights and values of one step, the weights of the next are computed. Blocks stay
// until all tiles of queries are done: one more group loads the next tile while the others finish
// theirs. The host defines FACULA_NAME and what attention_groups.cuh wants.
#pragma once
#include "attention_groups.cuh"

extern "C" __global__ void __launch_bounds__(128 * (FACULA_GROUPS + 1), 1)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  // Registers of a thread that loads and of one that computes: three or four groups share them.
  constexpr int kLoader = kGroups == 2 ? 40 : 32, kWorker = kGroups == 2 ? 232 : 160;
  // Two groups take turns: one issues products while the other computes weights.
  constexpr bool kTurns = kGroups == 2;
  // The first step has the last keys that a group sees. Without a mask all its rows see all keys of
  // the others, since rows and keys are cut at the same places, so that only the first step hides
  // keys: a second copy of that would take long to compile.
  static_assert(FACULA_MASK != 0 || kStep % (kTurns ? kRows : 64) == 0);
  extern __shared__ Words4 memory[];
  __shared__ uint64 barriers[4 * kStages + 2];
  __shared__ uint32 work_here, work_next[2];
  char* const queries = aligned_memory(memory);      // kGroups tiles
  char* const keys = queries + kRows * D * 2;        // kStages tiles
  char* const values = keys + kStages * kStepBytes;  // likewise
  char* const outs = values + kStages * kStepBytes;  // like the queries
  // For each stage: keys are there; values are there; all have done with the keys, with the values.
  // Then: queries are there; all have done with them.
  const uint32 barrier = shared_address(barriers);
  constexpr uint32 kValues = kStages * 8, kEmpty = 2 * kStages * 8, kQueries = 4 * kStages * 8;

  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.queries + kRows - 1) / kRows), heads = uint32(a.heads);
  const int warp = warp_number(), group = warp / 4;
  struct Work {
    uint32 batch, head, key_head;
    int64 first;
    int steps;
  };
  // Late tiles have the most keys to see when attention is causal: they go first.
  auto work_at = [&](uint32 number) {
    const uint32 head_number = number / tiles, head = head_number % heads;
    const int64 first = int64(tiles - 1 - number % tiles) * kRows;
    int64 end = a.keys;
    if (FACULA_CAUSAL && first + kRows < end) end = first + kRows;
    return Work{head_number / heads, head, head / (heads / uint32(a.key_heads)), first,
                int((end + kStep - 1) / kStep)};
  };

  if (threadIdx.x == 0) {
    for (int i = 0; i < 2 * kStages; ++i) {
      begin_barrier(barrier + i * 8, 128);
      begin_barrier(barrier + kEmpty + i * 8, 4 * kGroups);
    }
    begin_barrier(barrier + kQueries, 129);
    begin_barrier(barrier + kQueries + 8, 128 * kGroups);  // each thread reads work_here
  }
  __syncthreads();

  if (group == kGroups) {
    give_registers<kLoader>();
    const bool leads = threadIdx.x % 128 == 0;
    int stage = 0;
    uint32 phase = 1, number = blockIdx.x;  // the first round waits for nobody
    for (uint32 round = 0;; ++round) {
      const Work work = number < a.tiles ? work_at(number) : Work{};
      const Item* k = a.k.of(work.batch, work.key_head);
      const Item* v = a.v.of(work.batch, work.key_head);
      int before = 0;
      uint32 before_phase = 0;
      // Keys are one step ahead of values, and those of the first step come before the queries,
      // whose place the other groups need for longer.
      for (int i = 0; i <= work.steps; ++i) {
        if (i < work.steps) {
          const uint32 here = barrier + stage * 8;
          wait(here + kEmpty, phase);
          load_panels<kStep>(keys + stage * kStepBytes, k, a.k.row,
                             int64(work.steps - 1 - i) * kStep, a.keys, a.width);
          arrive_with_copies(here);
        }
        if (i == 0) {
          wait(barrier + kQueries + 8, round + 1);
          if (leads) {
            work_here = number;
            // Blocks that have one tile each do not count.
            work_next[round % 2] =
                gridDim.x < a.tiles ? gridDim.x + atomicAdd(a.counter, 1u) : uint32(a.tiles);
            arrive(barrier + kQueries);
          }
#pragma unroll 1
          for (int j = 0; j < kGroups; ++j) {
            load_panels<64>(queries + j * (64 * D * 2), a.q.of(work.batch, work.head), a.q.row,
                            work.first + j * 64, work.steps > 0 ? a.queries : 0, a.width);
          }
          arrive_with_copies(barrier + kQueries);
        } else {
          const uint32 here = barrier + kValues + before * 8;
          wait(here + kEmpty, before_phase);
          load_panels<kStep>(values + before * kStepBytes, v, a.v.row,
                             int64(work.steps - i) * kStep, a.keys, a.value_width);
          arrive_with_copies(here);
        }
        before = stage;
        before_phase = phase;
        if (i < work.steps && ++stage == kStages) stage = 0, phase ^= 1;
      }
      if (number >= a.tiles) break;
      wait_for_threads(1, 128);
      number = work_next[round % 2];
    }
    wait_copies<0>();
  } else {
    take_registers<kWorker>();
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Left factors that stay the same lie in shared memory: in registers, ptxas 12.9 gave their
    // place to others while products were under way.
    const uint64 my_queries = tile_descriptor(queries + group * (64 * D * 2));
    const uint64 all_keys = tile_descriptor(keys),
                 all_values = tile_descriptor(values, kStep * 128);
    constexpr int kTurn = 2;  // and so on: barriers by which groups take turns
    if (kTurns && group == kGroups - 1) come_by(kTurn, 256);
    auto leave = [&](uint32 empty) {
      if (lane == 0) arrive(empty);
    };
    int stage = 0;
    uint32 phase = 0;
    for (uint32 round = 0;; ++round) {
      wait(barrier + kQueries, round);
      const uint32 number = *static_cast<volatile uint32*>(&work_here);
      if (number >= a.tiles) break;
      const Work work = work_at(number);
      const int64 mine = work.first + warp * 16;
      int steps = work.steps;
      if (!kTurns) {  // what no row of the group sees is left out
        const int64 begin = work.first + group * 64, end = FACULA_CAUSAL ? begin + 64 : a.keys;
        const int seen = begin < a.queries ? int((end + kStep - 1) / kStep) : 0;
        for (; steps > seen; --steps) {
          const uint32 here = barrier + stage * 8;
          wait(here, phase);
          leave(here + kEmpty);
          wait(here + kValues, phase);
          leave(here + kEmpty + kValues);
          if (++stage == kStages) stage = 0, phase ^= 1;
        }
        if (steps == 0) {
          arrive(barrier + kQueries + 8);
          continue;
        }
      }
      const Scores scores(a, work.batch, work.head);
      const float factor = kScaled ? 1.0f : scores.scale;

      float out[D / 8][4] = {}, weight[kStep / 8][4];
      float top[2] = {-kInfinity, -kInfinity}, sum[2] = {}, change[2];
      uint32 left[kStep / 16][4];
      auto hide = [&](int step) {
        const int64 at = int64(step) * kStep;
        if (scores.edge(mine, at, at + kStep)) hide_keys(weight, scores, mine + g, at);
      };
      auto weigh = [&] {
        float largest[2], from[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float chains[2] = {top[h], -kInfinity};
#pragma unroll
          for (int n = 0; n < kStep / 8; ++n) {
            chains[n % 2] = ::fmaxf(chains[n % 2], ::fmaxf(weight[n][h * 2], weight[n][h * 2 + 1]));
          }
          largest[h] = ::fmaxf(chains[0], chains[1]);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          largest[h] = ::fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 1));
          largest[h] = ::fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 2));
          from[h] = largest[h] == -kInfinity ? 0.0f : largest[h] * factor;
          change[h] = power_of_two(top[h] * factor - from[h]);
          top[h] = largest[h];
          float added[2] = {};
#pragma unroll
          for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float& score = weight[n][h * 2 + e];
              score = power_of_two(score * factor - from[h]);
              added[e] += score;
            }
          }
          sum[h] = sum[h] * change[h] + (added[0] + added[1]);
        }
      };

      wait(barrier + stage * 8, phase);
      publish_writes();
      begin_products();
      multiply_rows<64, kStep>(weight, my_queries, all_keys + stage * (kStepBytes / 16));
      commit_products();
      wait_products<0>();
      settle(weight);
      leave(barrier + kEmpty + stage * 8);
      hide(steps - 1);
      weigh();
      as_left(left, weight);

      for (int step = steps - 2; step >= 0; --step) {
        const uint32 before = barrier + kValues + stage * 8;
        const uint64 before_values = all_values + stage * (kStepBytes / 16);
        const uint32 before_phase = phase;
        wait(before, before_phase);
        if (++stage == kStages) stage = 0, phase ^= 1;
        wait(barrier + stage * 8, phase);
        publish_writes();
        if (kTurns) wait_for_threads(kTurn + group, 256);
        begin_products();
        multiply_rows<64, kStep>(weight, my_queries, all_keys + stage * (kStepBytes / 16));
        commit_products();
        multiply_columns(out, left, before_values);
        commit_products();
        if (kTurns) come_by(kTurn + (group + 1) % kGroups, 256);
        wait_products<1>();
        settle(weight);
        leave(barrier + kEmpty + stage * 8);
        if constexpr (FACULA_MASK != 0) hide(step);
        weigh();
        settle(weight);
        // Already over. The compiler moves the next wait up to the last branch before it: to here.
        wait(before, before_phase);
        wait_products<0>();
        settle(out);
        release(left);
        leave(before + kEmpty);
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) out[n][e] *= change[e / 2];
        }
        as_left(left, weight);
      }
      arrive(barrier + kQueries + 8);
      wait(barrier + kValues + stage * 8, phase);
      publish_writes();
      begin_products();
      multiply_columns(out, left, all_values + stage * (kStepBytes / 16));
      commit_products();
      wait_products<0>();
      settle(out);
      release(left);
      leave(barrier + kEmpty + kValues + stage * 8);
      if (++stage == kStages) stage = 0, phase ^= 1;

#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float total = sum[h];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          out[n][h * 2] *= inverse;
          out[n][h * 2 + 1] *= inverse;
        }
        const int64 row = mine + h * 8 + g;
        if (t == 0 && row < a.queries) {
          // Queries that see no key have +infinity, so that their weights are 0.
          a.logsumexp[(work.batch * a.heads + work.head) * a.queries + row] =
              total > 0.0f ? top[h] * factor * kLn2 + ::logf(total)
                           : (total != total ? total : kInfinity);
        }
      }
      store_tile(outs + group * (64 * D * 2), out, a.out.of(work.batch, work.head), a.out.row, mine,
                 a.queries, a.value_width);
    }
  }
}
