// The sums of g and of g h over every line, with g the gradient and h the normalised input: the
// gradients of a group norm's parameters, for each image. The host defines FACULA_NAME, what
// line.cuh wants, and FACULA_ITEM, the type of input and gradient.
#pragma once
#include "line.cuh"

namespace facula {

// Written by norm_line_sums in csrc/cuda/normalization.cpp.
struct Arguments {
  LineShape shape;
  const char* in;
  const char* grad;
  const T* mean;
  const T* rstd;
  T* out;      // (2, lines)
  int64 each;  // lines with the same moments
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> input(line, arguments.in), grad(line, arguments.grad);
  const int64 group = quotient_and_rest(line.number, arguments.each).quotient;
  const T mean = line.exists ? arguments.mean[group] : T(0);
  const T rstd = line.exists ? arguments.rstd[group] : T(0);
  T sum = T(0), product = T(0);
  auto add = [&](int slot, int64) {
    T x[V], g[V];
    input.get(slot, x);
    grad.get(slot, g);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sum += g[v];
      product += g[v] * ((x[v] - mean) * rstd);
    }
  };
  line.over(add, input, grad);
  sum = across(sum, Sum());
  product = across(product, Sum());
  if (!line.exists || line.lane != 0) return;
  arguments.out[line.number] = sum;
  arguments.out[arguments.shape.lines + line.number] = product;
}
