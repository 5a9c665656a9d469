// The derivative of softmax (FACULA_KIND 0) or log_softmax (1), from its result. The host defines
// FACULA_NAME, what line.cuh wants, and FACULA_ITEM, the elements' type.
#pragma once
#include "line.cuh"

namespace facula {

// Written by softmax_grad in csrc/cuda/softmax.cpp.
struct Arguments {
  LineShape shape;
  const char* grad;
  const char* result;
  char* out;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> grad(line, arguments.grad), result(line, arguments.result);
  T sum = T(0);
  auto visit = [&](int pass, int slot, int64 load) {
    T g[V], y[V];
    grad.get(slot, g);
    result.get(slot, y);
    if (pass == 0) {
#pragma unroll
      for (int v = 0; v < V; ++v) sum += FACULA_KIND == 0 ? g[v] * y[v] : g[v];
      return;
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      g[v] = FACULA_KIND == 0 ? y[v] * (g[v] - sum) : g[v] - exp_of(y[v]) * sum;
    }
    put<FACULA_ITEM>(line, load, g, arguments.out);
  };
  line.passes<2>(visit, [&](int) { sum = across(sum, Sum()); }, grad, result);
}
