// Elements of a dense (outer, depth, height, width, inner) tensor, numbered as they lie.
#pragma once
#include "types.cuh"

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
    if (i <= 0xffffffffll) split(uint32(i), shape);
    else split(uint64(i), shape);
  }

 private:
  template <class Index>
  __device__ __forceinline__ void split(Index i, const ImageShape& shape) {
    channel = i % Index(shape.inner);
    i /= Index(shape.inner);
#pragma unroll
    for (int d = 2; d >= 0; --d) {
      at[d] = i % Index(shape.size[d]);
      i /= Index(shape.size[d]);
    }
    outer = i;
  }
};

}  // namespace facula
