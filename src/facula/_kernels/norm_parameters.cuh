// Weights and biases of normalised rows; see norm_rows.cuh for the macros.
#pragma once
#include "line.cuh"

namespace facula {

// Written by write_parameters in csrc/cuda/normalization.cpp.
struct Parameters {
  const char* weight;
  const char* bias;
  int64 groups, channels, inner;  // channels per group, elements per channel

  // The parameters of V elements; without them 1 and 0.
  __device__ __forceinline__ void get(const Line& line, int64 load, T (&w)[V], T (&b)[V]) const {
#if FACULA_GROUPED
    const int64 first = line.number % groups * channels;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      [[maybe_unused]] const int64 at = first + int64(uint32(load * V + v) / uint32(inner));
      w[v] = FACULA_WEIGHT ? read(weight, at) : T(1);
      b[v] = FACULA_BIAS ? read(bias, at) : T(0);
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
