// counts[r][j] = how many of the sorted boundaries[r] lie before values[r][j] (FACULA_RIGHT: or are
// equal to it). The host defines FACULA_NAME and
//   FACULA_TYPE    of boundaries and values
//   FACULA_COUNT   int32 or int64
//   FACULA_RIGHT, FACULA_SORTER  0 or 1
#pragma once
#include "types.cuh"

namespace facula {

// Written by searchsorted in csrc/cuda/indexing.cpp.
struct Arguments {
  int64 count;    // of values
  int64 columns;  // values of a row
  int64 n;        // boundaries of a row
  int64 row;      // elements between rows of boundaries, 0 for one row
  const FACULA_TYPE* boundaries;
  const FACULA_TYPE* values;
  const int64* sorter;
  FACULA_COUNT* counts;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  const int64 offset = arguments.row ? i / arguments.columns * arguments.row : 0;
  const FACULA_TYPE* boundaries = arguments.boundaries + offset;
  const FACULA_TYPE value = arguments.values[i];
  int64 low = 0, high = arguments.n;
  while (low < high) {
    const int64 middle = low + (high - low) / 2;
#if FACULA_SORTER
    const int64 at = arguments.sorter[offset + middle];
    // A sorter that is no permutation must not lead out of the row.
    const FACULA_TYPE edge = boundaries[uint64(at) < uint64(arguments.n) ? at : middle];
#else
    const FACULA_TYPE edge = boundaries[middle];
#endif
    // Written so that NaN goes behind everything, as on the host.
    const bool before = FACULA_RIGHT ? !(edge > value) : !(edge >= value);
    if (before) low = middle + 1;
    else high = middle;
  }
  arguments.counts[i] = FACULA_COUNT(low);
}
