// Weights and biases of normalised rows; see norm_rows.cuh for the macros.
#pragma once
#include "line.cuh"

namespace facula {

// Written by write_parameters in csrc/cuda/normalization.cpp.
struct Parameters {
  const char* weight;
  const char* bias;
  int64 groups, channels, inner;  // channels per group, elements per channel
};

// Those of one line. Where lines are read again, they are read ahead with the line's elements.
struct LineParameters {
  const Parameters& of;
  int64 first = 0;  // the channel that the line begins with
  static constexpr bool kReadAhead = kItems == 0 && !FACULA_GROUPED;
  struct Some {
    Vector<FACULA_PARAMETER, V> weight, bias;
  };
  Some next[kReadAhead ? kAhead : 1];

  __device__ __forceinline__ LineParameters(const Line& line, const Parameters& parameters)
      : of(parameters) {
#if FACULA_GROUPED
    first = quotient_and_rest(line.number, of.groups).rest * of.channels;
#endif
  }
  __device__ __forceinline__ void read([[maybe_unused]] const Line& line, int ahead, int64 load) {
    if constexpr (kReadAhead) fetch(load, next[ahead]);
  }
  __device__ __forceinline__ void move_up() {
    if constexpr (kReadAhead) {
#pragma unroll
      for (int u = 1; u < kAhead; ++u) next[u - 1] = next[u];
    }
  }
  // The parameters of the V elements that line.over is at; without them 1 and 0.
  __device__ __forceinline__ void get(int64 load, T (&w)[V], T (&b)[V]) const {
#if FACULA_GROUPED
    const uint32 element = uint32(load * V), each = uint32(of.inner);
    uint32 channel = element / each;
    [[maybe_unused]] uint32 behind = element - channel * each;  // within its channel
#pragma unroll
    for (int v = 0; v < V; ++v) {
      [[maybe_unused]] const int64 at = first + channel;
      if (FACULA_GROUPED == 2 && v > 0) {
        w[v] = w[0];
        b[v] = b[0];
        continue;
      }
      w[v] = FACULA_WEIGHT ? one(of.weight, at) : T(1);
      b[v] = FACULA_BIAS ? one(of.bias, at) : T(0);
      if (FACULA_GROUPED == 1) {
        const bool last = ++behind == each;
        channel += last;
        behind = last ? 0 : behind;
      }
    }
#else
    Some some = next[0];
    if constexpr (!kReadAhead) fetch(load, some);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      w[v] = T(1);
      b[v] = T(0);
    }
    if (FACULA_WEIGHT) convert_all(some.weight, w);
    if (FACULA_BIAS) convert_all(some.bias, b);
#endif
  }
  __device__ __forceinline__ void fetch(int64 load, Some& to) const {
    const int64 at = load * V * int64(sizeof(FACULA_PARAMETER));
    if (FACULA_WEIGHT) facula::load(to.weight, of.weight + at);
    if (FACULA_BIAS) facula::load(to.bias, of.bias + at);
  }
  static __device__ __forceinline__ T one(const char* from, int64 at) {
    return convert<T>(reinterpret_cast<const FACULA_PARAMETER*>(from)[at]);
  }
};

}  // namespace facula
