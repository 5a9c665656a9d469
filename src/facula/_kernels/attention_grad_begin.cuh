// What attention_grad_groups.cuh wants of 64 queries, and a block for each: their
// logsumexp in units of log 2 and, behind those of all queries of the head, the sums of grad_out
// times out; and zeros in their place of `grad_q_sums`. The host defines FACULA_NAME and what
// attention.cuh wants.
#pragma once
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const uint32 tiles = uint32((a.queries + 63) / 64), head_number = blockIdx.x / tiles;
  const uint32 tile = blockIdx.x % tiles, heads = uint32(a.heads);
  const int64 row = int64(tile) * 64 + threadIdx.x / 4;
  const float delta = grad_times_out(a, head_number / heads, head_number % heads, row);
  if (threadIdx.x % 4 == 0 && row < a.queries) {
    float* numbers = a.delta + head_number * 2 * a.queries + row;
    numbers[0] = a.logsumexp[head_number * a.queries + row] * kLog2e;
    numbers[a.queries] = delta;
  }
  constexpr int kTogether = kStep / 64;  // the sums of so many tiles lie together
  const int64 all = (a.queries + kStep - 1) / kStep * kTogether;
  auto* sums = reinterpret_cast<Words4*>(a.grad_q_sums + (head_number * all + tile) * (64 * D));
#pragma unroll
  for (int i = 0; i < 64 * D / 4; i += 256) sums[i + threadIdx.x] = Words4{0, 0, 0, 0};
}
