// Weights and biases of normalised rows; see norm_rows.cuh for the macros.
#pragma once
#include "line.cuh"

namespace facula {

// Written by write_parameters in csrc/cuda/normalization.cpp.
struct Parameters {
  const char* weight;
  const char* bias;
  int64 groups, channels, inner;  // channels per group, elements per channel

  // The channel that a line begins with.
  __device__ __forceinline__ int64 first_of(const Line& line) const {
    return FACULA_GROUPED ? divide(line.number, groups).rest * channels : 0;
  }
  // The parameters of V elements of a line; without them 1 and 0.
  __device__ __forceinline__ void get([[maybe_unused]] int64 first, int64 load, T (&w)[V],
                                      T (&b)[V]) const {
#if FACULA_GROUPED
    const uint32 element = uint32(load * V), each = uint32(inner);
    uint32 channel = element / each, behind = element - channel * each;  // within its channel
#pragma unroll
    for (int v = 0; v < V; ++v) {
      [[maybe_unused]] const int64 at = first + channel;
      w[v] = FACULA_WEIGHT ? read(weight, at) : T(1);
      b[v] = FACULA_BIAS ? read(bias, at) : T(0);
      const bool last = ++behind == each;
      channel += last;
      behind = last ? 0 : behind;
    }
#else
    many(FACULA_WEIGHT, weight, load, T(1), w);
    many(FACULA_BIAS, bias, load, T(0), b);
#endif
  }
  static __device__ __forceinline__ T read(const char* from, int64 at) {
    return convert<T>(reinterpret_cast<const FACULA_PARAMETER*>(from)[at]);
  }
  static __device__ __forceinline__ void many(bool given, const char* from, int64 load, T without,
                                              T (&to)[V]) {
    Vector<FACULA_PARAMETER, V> vector;
    if (given) facula::load(vector, from + load * V * int64(sizeof(FACULA_PARAMETER)));
#pragma unroll
    for (int v = 0; v < V; ++v) to[v] = given ? convert<T>(vector.at[v]) : without;
  }
};

}  // namespace facula
