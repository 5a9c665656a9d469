// Convolution of single planes: every channel has its own filter. The host defines FACULA_NAME and
//   FACULA_ITEM, FACULA_COMPUTE  element type, and that of sums
//   FACULA_DOWN, FACULA_ACROSS   taps
//   FACULA_STEP                  step of both axes
//   FACULA_ROWS                  results below each other that a thread computes
// Neighbouring threads have neighbouring columns. A thread reads each row of its window once and
// adds it to all results that it belongs to.
#pragma once
#include "division.cuh"

namespace facula {

using Item = FACULA_ITEM;
using Compute = FACULA_COMPUTE;

// Written by csrc/cuda/depthwise.cpp. Result (t, s) and tap (i, j) meet input (t * step + i + top,
// s * step + j + left), which counts as zero where it lies outside.
struct Arguments {
  const Item* x;
  const Item* w;
  const Item* bias;  // or null
  Item* y;
  int64 x_batch, x_channel, x_row, y_batch, y_channel, y_row, w_channel, w_row, w_column;
  int64 threads;
  uint32 channels, in_rows, in_columns, out_rows, out_columns, strips;
  int32 top, left;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments a) {
  using namespace facula;
  constexpr int kDown = FACULA_DOWN, kAcross = FACULA_ACROSS, kStep = FACULA_STEP;
  constexpr int kRows = FACULA_ROWS, kWindow = (kRows - 1) * kStep + kDown;
  const int64 index = int64(blockIdx.x) * 256 + threadIdx.x;
  if (index >= a.threads) return;
  const Division strip = quotient_and_rest(index, a.out_columns);
  const uint32 column = uint32(strip.rest);
  const Division plane = quotient_and_rest(strip.quotient, a.strips);
  const uint32 first = uint32(plane.rest) * kRows;
  const auto [image, channel] = quotient_and_rest(plane.quotient, a.channels);

  Compute weight[kDown][kAcross];
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      weight[i][j] =
          convert<Compute>(a.w[channel * a.w_channel + i * a.w_row + j * a.w_column]);
    }
  }
  Compute sum[kRows];
  const Compute start = a.bias ? convert<Compute>(a.bias[channel]) : Compute(0);
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r] = start;

  const int32 from_row = int32(first) * kStep + a.top, from_column = int32(column) * kStep + a.left;
  const Item* x = a.x + image * a.x_batch + channel * a.x_channel + from_row * a.x_row + from_column;
#pragma unroll
  for (int i = 0; i < kWindow; ++i) {
    const bool row_exists = uint32(from_row + i) < a.in_rows;
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const bool exists = row_exists && uint32(from_column + j) < a.in_columns;
      const Compute value = exists ? convert<Compute>(x[i * a.x_row + j]) : Compute(0);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int tap = i - r * kStep;
        if (tap >= 0 && tap < kDown) sum[r] += value * weight[tap][j];
      }
    }
  }
  Item* y = a.y + image * a.y_batch + channel * a.y_channel + int64(first) * a.y_row + column;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r < a.out_rows) y[r * a.y_row] = convert<Item>(sum[r]);
  }
}
