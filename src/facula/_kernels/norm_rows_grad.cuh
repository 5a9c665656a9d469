// The derivative of normalised rows by the input. The host defines the macros of norm_rows.cuh, and
// FACULA_GRAD, the type of the gradient.
#pragma once
#include "norm_parameters.cuh"

namespace facula {

// Written by norm_rows_grad in csrc/cuda/normalization.cpp.
struct Arguments {
  LineShape shape;
  Parameters parameters;
  const char* in;
  const char* grad;
  const T* mean;
  const T* rstd;
  char* out;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> input(line, arguments.in);
  Held<FACULA_GRAD> grad(line, arguments.grad);
  LineParameters parameters(line, arguments.parameters);
  const T mean = FACULA_CENTRED && line.exists ? arguments.mean[line.number] : T(0);
  const T rstd = line.exists ? arguments.rstd[line.number] : T(0);
  // With h the normalised input and g the gradient times the weight:
  // rstd (g - mean(g) - h mean(g h)).
  T sum = T(0), product = T(0);
  auto visit = [&](int pass, int slot, int64 load) {
    T x[V], g[V], weight[V], bias[V];
    input.get(slot, x);
    grad.get(slot, g);
    parameters.get(load, weight, bias);
    if (pass == 0) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        sum += g[v] * weight[v];
        product += g[v] * weight[v] * ((x[v] - mean) * rstd);
      }
      return;
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      x[v] = rstd * (g[v] * weight[v] - sum - (x[v] - mean) * rstd * product);
    }
    put<FACULA_ITEM>(line, load, x, arguments.out);
  };
  auto after = [&](int) {
    sum = FACULA_CENTRED ? over_length(arguments.shape, across(sum, Sum())) : T(0);
    product = over_length(arguments.shape, across(product, Sum()));
  };
  line.passes<2>(visit, after, input, grad, parameters);
}
