// out = in * scale where a coin says so, else in * 0; mask is what the coins said. The host defines
// FACULA_NAME and FACULA_TYPE. All lie one after the other in memory, aligned to four elements.
#pragma once
#include "philox.cuh"

namespace facula {

using T = FACULA_TYPE;
using Acc = choose<same<T, double>, double, float>;

// Written by dropout in csrc/cuda/random.cpp.
struct Arguments {
  RandomPlace place;
  int64 count;
  const char* in;
  char* out;
  char* mask;
  double keep, scale;  // the probability of keeping an element
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 thread = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64 threads = int64(gridDim.x) * blockDim.x;
  const float keep = float(arguments.keep);
  const Acc scale = Acc(arguments.scale), none = scale * Acc(0);
  const uint64 seed = arguments.place.seed_now();
  uint64 block = arguments.place.block_now();
  for (int64 first = thread * 4; first < arguments.count; first += threads * 4, ++block) {
    const RandomWords words = philox(seed, uint64(thread), block);
    if (first + 4 <= arguments.count) {
      Vector<T, 4> given, result;
      Vector<uint8, 4> kept;
      load(given, arguments.in + first * int64(sizeof(T)));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        kept.at[k] = unit_float(words.word[k]) <= keep;
        result.at[k] = convert<T>(convert<Acc>(given.at[k]) * (kept.at[k] ? scale : none));
      }
      store(result, arguments.out + first * int64(sizeof(T)));
      store(kept, arguments.mask + first);
    } else {
      const T* in = reinterpret_cast<const T*>(arguments.in);
      T* out = reinterpret_cast<T*>(arguments.out);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (first + k >= arguments.count) break;
        const bool kept = unit_float(words.word[k]) <= keep;
        arguments.mask[first + k] = kept;
        out[first + k] = convert<T>(convert<Acc>(in[first + k]) * (kept ? scale : none));
      }
    }
  }
}
