// The gradients of attention for compute capability 9.0: see attention_groups.cuh. A block has 128
// keys and goes through the queries that see them. Gradients of keys and values are summed up in
// registers; those of queries are added to `grad_q_sums` by all blocks, in no certain order, in the
// layout of the accumulators: for each 64 rows and 64 columns, 8 times (n) four warps, 32 lanes and
// the four numbers that a thread has of 16 rows and 8 columns. The host defines FACULA_NAME and
// what attention_groups.cuh wants.
#pragma once
#include "attention_groups.cuh"

extern "C" __global__ void __launch_bounds__(128 * (FACULA_GROUPS + 1), 1)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  static_assert(kGroups == 2 && kStep * D == 64 * 128,
                "a group has 64 x 64 of the queries' gradient");
  constexpr int kNumbers = 2 * kStep;  // of a stage: see attention_grad_begin.cuh
  constexpr int kSlopeBytes = kRows * kStep * 2;
  extern __shared__ Words4 memory[];
  __shared__ uint64 barriers[2 * kStages + 1];
  char* const keys = aligned_memory(memory);
  char* const values = keys + kRows * D * 2;
  char* const stages = values + kRows * D * 2;               // queries, gradients
  char* const slopes = stages + kStages * (2 * kStepBytes);  // two tiles: queries by keys
  float* const numbers = reinterpret_cast<float*>(slopes + 2 * kSlopeBytes);
  // For each stage: it is there; all have done with it. The last one: keys and values are there.
  const uint32 barrier = shared_address(barriers);
  constexpr uint32 kEmpty = kStages * 8, kOwn = 2 * kStages * 8;

  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.keys + kRows - 1) / kRows), key_heads = uint32(a.key_heads);
  const uint32 tile = blockIdx.x % tiles, head_number = blockIdx.x / tiles;
  const uint32 batch = head_number / key_heads, key_head = head_number % key_heads;
  const int members = int(uint32(a.heads) / key_heads);
  const int64 first = int64(tile) * kRows;
  const int warp = warp_number(), group = warp / 4;
  // Causal keys are not seen by earlier queries.
  const int begin = FACULA_CAUSAL ? int(first / kStep) : 0;
  const int steps = int((a.queries + kStep - 1) / kStep);

  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      begin_barrier(barrier + i * 8, 128);
      begin_barrier(barrier + kEmpty + i * 8, 128 * kGroups);
    }
    begin_barrier(barrier + kOwn, 128);
  }
  __syncthreads();

  if (group == kGroups) {
    give_registers<24>();
    load_panels<kRows>(keys, a.k.of(batch, key_head), a.k.row, first, a.keys, a.width);
    load_panels<kRows>(values, a.v.of(batch, key_head), a.v.row, first, a.keys, a.value_width);
    arrive_with_copies(barrier + kOwn);
    int stage = 0;
    uint32 phase = 1;  // the first round waits for nobody
    for (int member = 0; member < members; ++member) {
      const int64 head = int64(key_head) * members + member;
      const Item* q = a.q.of(batch, head);
      const Item* grad = a.grad_out.of(batch, head);
      const float* offsets = a.delta + (batch * a.heads + head) * 2 * a.queries;
      const float* deltas = offsets + a.queries;
      for (int step = begin; step < steps; ++step) {
        const int64 at = int64(step) * kStep;
        const uint32 here = barrier + stage * 8;
        char* to = stages + stage * (2 * kStepBytes);
        wait(here + kEmpty, phase);
        load_panels<kStep>(to, q, a.q.row, at, a.queries, a.width);
        load_panels<kStep>(to + kStepBytes, grad, a.grad_out.row, at, a.queries, a.value_width);
        const int row = threadIdx.x % 128;
        if (row < kStep) {
          float* number = numbers + stage * kNumbers + row;
          const bool exists = at + row < a.queries;
          copy_word_or_zero(shared_address(number), offsets + at + row, exists);
          copy_word_or_zero(shared_address(number + kStep), deltas + at + row, exists);
        }
        arrive_with_copies(here);
        if (++stage == kStages) stage = 0, phase ^= 1;
      }
    }
    wait_copies<0>();
  } else {
    take_registers<240>();
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int64 mine = first + warp * 16;
    const uint64 my_keys = tile_descriptor(keys + group * (64 * 128));
    const uint64 my_values = tile_descriptor(values + group * (64 * 128));
    // Of the queries' gradient: 64 columns when there are 128, else 64 rows.
    const uint64 key_columns = tile_descriptor(keys + (D > 64 ? group * (kRows * 128) : 0));
    const uint64 slope_rows = tile_descriptor(slopes + (D > 64 ? 0 : group * (64 * 128)));
    const uint64 all_rows = tile_descriptor(stages),
                 all_columns = tile_descriptor(stages, kStep * 128);
    // Where this lane's row of the matrices of 8 x 8 slopes lies.
    const int slope_row = lane / 16 * 8 + lane % 8;
    const uint32 slope_place = shared_address(slopes) + group * (kStep * 128) + slope_row * 128 +
                               ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;

    float grad_k[D / 8][4] = {}, grad_v[D / 8][4] = {};
    int stage = 0, turn = 0;
    uint32 phase = 0;
    int remaining = (steps - begin) * members;
    wait(barrier + kOwn, 0);
    if (remaining > 0) wait(barrier, 0);
    publish_writes();
    for (int member = 0; member < members; ++member) {
      const int64 head = int64(key_head) * members + member;
      const Scores scores(a, batch, head);
      const float factor = kScaled ? 1.0f : scores.scale;
      float* sums = a.grad_q_sums + (batch * a.heads + head) * steps * (kStep * D) +
                    int64(begin) * (kStep * D) + group * 4096 + warp % 4 * 128 + lane * 4;
      for (int step = begin; step < steps; ++step, sums += kStep * D) {
        const int64 at = int64(step) * kStep;
        const uint64 queries = all_rows + stage * (2 * kStepBytes / 16);
        const uint64 columns = all_columns + stage * (2 * kStepBytes / 16);
        const uint32 here = barrier + stage * 8;
        float weight[kStep / 8][4], slope[kStep / 8][4], grad_q[8][4];
        uint32 left[kStep / 16][4], slopes_left[kStep / 16][4];
        begin_products();
        multiply_rows<kRows, kStep>(weight, my_keys, queries);
        commit_products();
        multiply_rows<kRows, kStep>(slope, my_values, queries + kStepBytes / 16);
        commit_products();
        wait_products<1>();
        settle(weight);
        if (FACULA_MASK || first + kRows > a.keys || (FACULA_CAUSAL && at < first + kRows)) {
          hide_queries(weight, scores, mine + g, at);
        }
        const Words2* number = reinterpret_cast<const Words2*>(numbers + stage * kNumbers) + t;
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
          const Words2 pair = number[n * 4];
          const float offset[2] = {as_float(pair.x), as_float(pair.y)};
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            weight[n][e] = power_of_two(weight[n][e] * factor - offset[e % 2]);
          }
        }
        as_left(left, weight);
        begin_products();
        multiply_columns(grad_v, left, columns + kStepBytes / 16);
        commit_products();
        wait_products<1>();
        settle(slope);
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
          const Words2 pair = number[kStep / 2 + n * 4];
          const float delta[2] = {as_float(pair.x), as_float(pair.y)};
#pragma unroll
          for (int e = 0; e < 4; ++e) slope[n][e] = weight[n][e] * (slope[n][e] - delta[e % 2]);
        }
        as_left(slopes_left, slope);
#pragma unroll
        for (int k = 0; k < kStep / 16; ++k) {
          store_transposed(slope_place + turn * kSlopeBytes + k * (16 * 128), slopes_left[k]);
        }
        publish_writes();
        // The other group's slopes are there, and it has read the tile before this one.
        wait_for_threads(1, 256);
        begin_products();
        const uint64 all_slopes = slope_rows + turn * (kSlopeBytes / 16);
        begin_rows<true>(Item{}, grad_q, all_slopes, key_columns);
#pragma unroll
        for (int k = 1; k < kRows / 64; ++k) {
          multiply_rows<true>(Item{}, grad_q, all_slopes + k * (kStep * 8),
                              key_columns + k * (4 * 128));
        }
        commit_products();
        multiply_columns(grad_k, slopes_left, columns);
        commit_products();
        turn ^= 1;
        // The next step is there: before the sums are added, since publish_writes waits for these.
        if (++stage == kStages) stage = 0, phase ^= 1;
        if (--remaining > 0) wait(barrier + stage * 8, phase);
        publish_writes();
        wait_products<1>();
        settle(grad_q);
        settle(grad_v);
        release(left);
#pragma unroll
        for (int n = 0; n < 8; ++n) add_to_global(sums + n * 512, grad_q[n]);
        wait_products<0>();
        settle(grad_k);
        release(slopes_left);
        arrive(here + kEmpty);
      }
    }
    wait_for_threads(1, 256);  // all have done with keys and values
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) grad_k[n][e] *= a.scale;
    }
    store_tile(keys + group * (64 * D * 2), grad_k, a.grad_k.of(batch, key_head), a.grad_k.row,
               mine, a.keys, a.width);
    store_tile(values + group * (64 * D * 2), grad_v, a.grad_v.of(batch, key_head), a.grad_v.row,
               mine, a.keys, a.value_width);
  }
}
