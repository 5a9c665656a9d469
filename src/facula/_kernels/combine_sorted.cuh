// The same as combine_points.cuh in the order of the values, so that sums do not vary: stage 0 writes
// where each value goes, the host sorts these places, and in stage 1 the first of equal ones combines
// them all. Small floats are combined in float32. The host defines what combine_points.cuh wants and
//   FACULA_STAGE
#pragma once
#include "combine.cuh"
#include "fault.cuh"
#include "walk.cuh"

namespace facula {

// Written by combine_in_order in csrc/cuda/points.cpp.
struct Arguments {
  int64 count;
  const char* values;
  char* tensor;
  const char* index[FACULA_POINTS];
  int64 step[FACULA_POINTS];
  FaultSite site[FACULA_POINTS];
  uint64* places;       // bytes behind the tensor's first element
  const uint32* order;  // the values that the places belong to
  Slot alpha;
  Walk<2 + FACULA_POINTS> walk;  // values, tensor, indices
};
constexpr uint64 kNowhere = ~0ull;

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 at[2 + FACULA_POINTS];
#if FACULA_STAGE == 0
  arguments.walk.find(i, at);
  uint64 place = uint64(at[1]);
#pragma unroll
  for (int k = 0; k < FACULA_POINTS; ++k) {
    int64 index = *reinterpret_cast<const int64*>(arguments.index[k] + at[2 + k]);
    if (place == kNowhere || !good_index(arguments.site[k], index, at[2 + k] / 8)) place = kNowhere;
    else place += uint64(index * arguments.step[k]);
  }
  arguments.places[i] = place;
#else
  using T = FACULA_TYPE;
  using Acc = choose<is_small_float<T>, float, T>;
  const uint64 place = arguments.places[i];
  if (place == kNowhere || (i > 0 && arguments.places[i - 1] == place)) return;
  stored<T>* to = reinterpret_cast<stored<T>*>(arguments.tensor + place);
  Acc total = convert<Acc>(T(*to));
  for (; i < arguments.count && arguments.places[i] == place; ++i) {
    arguments.walk.find(arguments.order[i], at);
    Acc value =
        convert<Acc>(T(*reinterpret_cast<const stored<T>*>(arguments.values + at[0])));
#if FACULA_ALPHA
    value = scaled(value, read_slot<Acc>(arguments.alpha));
#endif
    total = combine(total, value);
  }
  *to = convert<T>(total);
#endif
}
