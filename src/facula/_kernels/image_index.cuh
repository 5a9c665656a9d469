// Elements of a dense (outer, depth, height, width, inner) tensor, numbered as they lie.
#pragma once
#include "division.cuh"

namespace facula {

struct ImageShape {
  int64 size[3];  // depth, height, width
  int64 inner;

  __device__ __forceinline__ int64 offset(int64 outer, int64 z, int64 y, int64 x,
                                          int64 channel) const {
    return (((outer * size[0] + z) * size[1] + y) * size[2] + x) * inner + channel;
  }
};

struct ImagePlace {
  int64 outer, at[3], channel;

  __device__ __forceinline__ ImagePlace(const ImageShape& shape, int64 i) {
    // Most tensors have fewer than 2^32 elements, and narrow divisions are several times faster.
    const int64 bits = i | shape.inner | shape.size[0] | shape.size[1] | shape.size[2];
    if (uint64(bits) >> 32 == 0) {
      uint32 rest = uint32(i);
      channel = next(rest, uint32(shape.inner));
#pragma unroll
      for (int d = 2; d >= 0; --d) at[d] = next(rest, uint32(shape.size[d]));
      outer = rest;
    } else {
      channel = next(i, shape.inner);
#pragma unroll
      for (int d = 2; d >= 0; --d) at[d] = next(i, shape.size[d]);
      outer = i;
    }
  }

 private:
  // The position in an axis; `rest` is left with that in the axes before it.
  static __device__ __forceinline__ uint32 next(uint32& rest, uint32 size) {
    const uint32 all = rest;
    rest /= size;
    return all - rest * size;
  }
  static __device__ __forceinline__ int64 next(int64& rest, int64 size) {
    const Division division = quotient_and_rest(rest, size);
    rest = division.quotient;
    return division.rest;
  }
};

}  // namespace facula
