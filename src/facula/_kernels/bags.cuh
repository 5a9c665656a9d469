// Sums, means and maxima of table rows over bags of lookups. Block x is a bag, threads are columns.
// The host defines FACULA_NAME, FACULA_TYPE and
//   FACULA_MODE     0 sum, 1 mean, 2 maximum
//   FACULA_FACTORS  1: lookups have factors
#pragma once
#include "fault.cuh"

namespace facula {

using T = FACULA_TYPE;
using Acc = choose<is_small_float<T>, float, T>;

// Written by reduce_bags in csrc/cuda/indexing.cpp.
struct Arguments {
  FaultSite site;        // for lookups
  FaultSite limits_site;
  const T* table;
  int64 apart;           // elements between rows
  const int64* lookups;
  const int64* limits;
  const T* factors;
  int64 count, width, padding;
  T* out;
  int64* sizes;
  int64* rows;           // of maxima
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 bag = blockIdx.x;
  const int64 column = int64(blockIdx.y) * blockDim.x + threadIdx.x;
  int64 begin = arguments.limits[bag], end = arguments.limits[bag + 1];
  if (!good_index(arguments.limits_site, begin, bag) ||
      !good_index(arguments.limits_site, end, bag + 1)) {
    begin = end = 0;
  }
  const bool exists = column < arguments.width;
  Acc total = Acc(0);
  int64 chosen = -1, count = 0;
  // Checks of indices keep the next loads behind them: writing out several rows gains nothing.
#pragma unroll 1
  for (int64 i = begin; i < end; ++i) {
    int64 row = arguments.lookups[i];
    if (!good_index(arguments.site, row, i)) continue;
    if (row == arguments.padding) continue;
    if (exists) {
      const Acc value = convert<Acc>(arguments.table[row * arguments.apart + column]);
#if FACULA_MODE == 2
      if (count == 0 || value > total || value != value) {
        total = value;
        chosen = row;
      }
#elif FACULA_FACTORS
      total = total + convert<Acc>(arguments.factors[i]) * value;
#else
      total = total + value;
#endif
    }
    ++count;
  }
  if (blockIdx.y == 0 && threadIdx.x == 0) arguments.sizes[bag] = count;
  if (!exists) return;
#if FACULA_MODE == 1
  if (count > 1) total = total / Acc(count);
#endif
  arguments.out[bag * arguments.width + column] = convert<T>(total);
#if FACULA_MODE == 2
  arguments.rows[bag * arguments.width + column] = chosen;
#endif
}
