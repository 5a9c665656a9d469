// Elements at given positions along the axes (FACULA_KIND 0), or the sums that undo it (1); see
// csrc/cpu/positions.h. The host defines FACULA_NAME and FACULA_ITEM, the elements' type.
#pragma once
#include "image_index.cuh"

namespace facula {

using Item = FACULA_ITEM;

// Kind 0: element t comes from at[t], -1: from outside. Kind 1: the places that element t went to
// are at[first[t]] ... at[first[t + 1] - 1].
struct Axis {
  const int32* at;
  const int32* first;
};

// Written by positions in csrc/cuda/images.cpp.
struct Arguments {
  const Item* from;
  Item* to;
  Item outside;
  int64 count;
  ImageShape source, result;
  Axis axis[3];
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const ImagePlace place(a.result, i);
#if FACULA_KIND == 0
  int32 at[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) at[d] = a.axis[d].at[place.at[d]];
  a.to[i] = at[0] < 0 || at[1] < 0 || at[2] < 0
                ? a.outside
                : a.from[a.source.offset(place.outer, at[0], at[1], at[2], place.channel)];
#else
  using Value = choose<is_small_float<Item>, float, Item>;
  int32 begin[3], end[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    begin[d] = a.axis[d].first[place.at[d]];
    end[d] = a.axis[d].first[place.at[d] + 1];
  }
  Value sum = Value(0);
  for (int32 z = begin[0]; z < end[0]; ++z) {
    for (int32 y = begin[1]; y < end[1]; ++y) {
      for (int32 x = begin[2]; x < end[2]; ++x) {
        sum = sum + convert<Value>(a.from[a.source.offset(place.outer, a.axis[0].at[z],
                                                          a.axis[1].at[y], a.axis[2].at[x],
                                                          place.channel)]);
      }
    }
  }
  a.to[i] = convert<Item>(sum);
#endif
}
