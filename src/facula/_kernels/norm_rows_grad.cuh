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
  const Held<FACULA_ITEM> input(line, arguments.in);
  const Held<FACULA_GRAD> grad(line, arguments.grad);
  const T n = T(arguments.shape.n);
  const int64 first = arguments.parameters.first_of(line);
  const T mean = FACULA_CENTRED && line.exists ? arguments.mean[line.number] : T(0);
  const T rstd = line.exists ? arguments.rstd[line.number] : T(0);
  // With h the normalised input and g the gradient times the weight:
  // rstd (g - mean(g) - h mean(g h)).
  T sum = T(0), product = T(0);
  line.over([&](int slot, int64 load) {
    T x[V], g[V], weight[V], bias[V];
    input.get(line, slot, load, x);
    grad.get(line, slot, load, g);
    arguments.parameters.get(first, load, weight, bias);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sum += g[v] * weight[v];
      product += g[v] * weight[v] * ((x[v] - mean) * rstd);
    }
  });
  sum = FACULA_CENTRED ? across(sum, Sum()) / n : T(0);
  product = across(product, Sum()) / n;
  line.over([&](int slot, int64 load) {
    T x[V], g[V], weight[V], bias[V];
    input.get(line, slot, load, x);
    grad.get(line, slot, load, g);
    arguments.parameters.get(first, load, weight, bias);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      x[v] = rstd * (g[v] * weight[v] - sum - (x[v] - mean) * rstd * product);
    }
    put<FACULA_ITEM>(line, load, x, arguments.out);
  });
}
