// Sums of rows by the row of a table that each belongs to. The lookups come sorted, with the order
// they had; the first of equal ones adds up the rows of all, in that order. The host defines
// FACULA_NAME and FACULA_TYPE. Small floats are summed in float32.
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_TYPE;
using Acc = choose<is_small_float<T>, float, T>;

// Written by sum_rows in csrc/cuda/indexing.cpp.
struct Arguments {
  const uint64* lookups;  // sorted
  const uint32* order;
  int64 count, width;
  uint64 rows, padding;   // padding is a row that stays as it is
  int32 by_frequency;
  const T* in;
  T* out;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  int64 i = blockIdx.x;
  const uint64 row = arguments.lookups[i];
  if (i > 0 && arguments.lookups[i - 1] == row) return;
  if (row >= arguments.rows || row == arguments.padding) return;
  const int64 column = int64(blockIdx.y) * blockDim.x + threadIdx.x;
  if (column >= arguments.width) return;
  Acc sum = convert<Acc>(arguments.in[int64(arguments.order[i]) * arguments.width + column]);
  int64 count = 1;
  for (++i; i < arguments.count && arguments.lookups[i] == row; ++i, ++count) {
    sum = sum + convert<Acc>(arguments.in[int64(arguments.order[i]) * arguments.width + column]);
  }
  if (arguments.by_frequency && count > 1) sum = sum / convert<Acc>(float(count));
  arguments.out[int64(row) * arguments.width + column] = convert<T>(sum);
}
