// Rows brought to mean 0 and variance 1, or to a mean square of 1 (RMS). The host defines
// FACULA_NAME, what line.cuh wants, and
//   FACULA_ITEM       type of the input and the result
//   FACULA_PARAMETER  type of weight and bias
//   FACULA_WEIGHT, FACULA_BIAS   1: given
//   FACULA_CENTRED    0: RMS norm
//   FACULA_GROUPED    0: parameters belong to columns; 1: to channels, which make up groups; 2: and
//                     loads do not cross from one channel to the next
#pragma once
#include "norm_parameters.cuh"

namespace facula {

// Written by norm_rows in csrc/cuda/normalization.cpp.
struct Arguments {
  LineShape shape;
  Parameters parameters;
  const char* in;
  char* out;
  T* mean;
  T* rstd;
  double eps;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> x(line, arguments.in);
  LineParameters parameters(line, arguments.parameters);
  T mean = T(0);
#if FACULA_CENTRED
  const T sum = across(x.sum_of(line, [](T value) { return value; }), Sum());
  mean = over_length(arguments.shape, sum);
#endif
  const T squares = x.sum_of(line, [&](T value) { return (value - mean) * (value - mean); });
  const T variance = over_length(arguments.shape, across(squares, Sum()));
  const T rstd = reciprocal(sqrt_of(variance + T(arguments.eps)));
  if (line.exists && line.lane == 0) {
    if (FACULA_CENTRED) arguments.mean[line.number] = mean;
    arguments.rstd[line.number] = rstd;
  }
  auto write = [&](int slot, int64 load) {
    T value[V], weight[V], bias[V];
    x.get(slot, value);
    parameters.get(load, weight, bias);
#pragma unroll
    for (int v = 0; v < V; ++v) value[v] = (value[v] - mean) * rstd * weight[v] + bias[v];
    put<FACULA_ITEM>(line, load, value, arguments.out);
  };
  line.finish(write, x, parameters);
}
