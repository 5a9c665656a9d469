// Where element i of a shape lies in several strided operands. The host (csrc/cuda/walk.h) defines
//   FACULA_NDIM   number of dimensions, after merging and padding
//   FACULA_INDEX  uint32 or uint64
#pragma once
#include "types.cuh"

namespace facula {

using Index = FACULA_INDEX;
using Offset = signed_index<Index>;

template <int Operands>
struct Walk {
  Divider<Index> size[FACULA_NDIM];        // innermost first
  Offset stride[Operands][FACULA_NDIM];    // bytes

  // Byte offsets of element i (row-major over the shape).
  __device__ __forceinline__ void find(int64 i, int64 (&at)[Operands]) const {
    Offset sum[Operands] = {};
    Index rest = Index(i);
#pragma unroll
    for (int d = 0; d < FACULA_NDIM; ++d) {
      // The outermost dimension needs no division.
      const Index quotient = d + 1 < FACULA_NDIM ? size[d].divide(rest) : 0;
      const Offset position = Offset(rest - quotient * size[d].divisor);
      rest = quotient;
#pragma unroll
      for (int k = 0; k < Operands; ++k) sum[k] += position * stride[k][d];
    }
#pragma unroll
    for (int k = 0; k < Operands; ++k) at[k] = sum[k];
  }
};

}  // namespace facula
