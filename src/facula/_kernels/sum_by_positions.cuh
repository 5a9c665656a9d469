// to[position of i] += from[i], within planes. The host defines FACULA_NAME and
//   FACULA_ITEM     type of `from`
//   FACULA_COMPUTE  type of `to`
//   FACULA_KIND     0: a thread for each i; the order of sums is not fixed where windows overlap
//                   1: a thread for each element of `to`, which looks at all of its plane in order
#pragma once
#include "image_index.cuh"

namespace facula {

// Written by sum_by_positions in csrc/cuda/images.cpp.
struct Arguments {
  const FACULA_ITEM* from;
  const int64* positions;
  FACULA_COMPUTE* to;
  int64 count, plane;       // threads, and elements of one outer element of `to`
  ImageShape shape, whole;  // of `from` and of `to`
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
#if FACULA_KIND == 1
  const ImagePlace place(arguments.whole, i);
  const ImageShape& from = arguments.shape;
  const int64 pixel = (place.at[0] * arguments.whole.size[1] + place.at[1]) *
                          arguments.whole.size[2] + place.at[2];
  const int64 sources = from.size[0] * from.size[1] * from.size[2];
  FACULA_COMPUTE sum = FACULA_COMPUTE(0);
  for (int64 s = 0; s < sources; ++s) {
    const int64 at = (place.outer * sources + s) * from.inner + place.channel;
    if (arguments.positions[at] == pixel) sum += convert<FACULA_COMPUTE>(arguments.from[at]);
  }
  arguments.to[i] = sum;
#else
  const ImagePlace place(arguments.shape, i);
  atomicAdd(arguments.to + place.outer * arguments.plane +
                arguments.positions[i] * arguments.shape.inner + place.channel,
            convert<FACULA_COMPUTE>(arguments.from[i]));
#endif
}
