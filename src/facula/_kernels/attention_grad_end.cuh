// The queries' gradient from the sums of attention_grad_groups.cuh; a warp has 16 rows and 64
// columns. The host defines FACULA_NAME and what attention.cuh wants.
#pragma once
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  __shared__ Words4 memory[8 * 128];
  const Arguments& a = arguments;
  const uint32 steps = uint32((a.queries + kStep - 1) / kStep), head_number = blockIdx.x / steps;
  const uint32 heads = uint32(a.heads);
  const int64 step = blockIdx.x % steps;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64 first = step * kStep + (D > 64 ? warp % 4 : warp) * 16;
  const int column = D > 64 ? warp / 4 * 64 : 0;
  const auto* sums = reinterpret_cast<const Words4*>(a.grad_q_sums) +
                     (head_number * int64(steps) + step) * (kStep * D / 4) + warp / 4 * 1024 +
                     warp % 4 * 32 + lane;
  Words4* const tile = memory + warp * 128;  // 16 rows of 8 pieces; piece i lies in i ^ (row % 8)
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const Words4 s = sums[n * 128];
    auto* low = reinterpret_cast<uint32*>(tile + g * 8 + (n ^ g)) + t;
    auto* high = reinterpret_cast<uint32*>(tile + (g + 8) * 8 + (n ^ g)) + t;
    *low = pack(Item{}, __uint_as_float(s.x) * a.scale, __uint_as_float(s.y) * a.scale);
    *high = pack(Item{}, __uint_as_float(s.z) * a.scale, __uint_as_float(s.w) * a.scale);
  }
  __syncwarp();
  Item* to = a.grad_q.of(head_number / heads, head_number % heads);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = i * 4 + lane / 8, piece = lane % 8;
    if (first + row < a.queries && column + piece * 8 < a.width) {
      *reinterpret_cast<Words4*>(to + (first + row) * a.grad_q.row + column + piece * 8) =
          tile[row * 8 + (piece ^ row % 8)];
    }
  }
}
