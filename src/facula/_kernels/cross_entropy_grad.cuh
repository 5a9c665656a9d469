// The derivative of cross entropy by the logits. The host defines the macros of cross_entropy.cuh.
#pragma once
#include "line.cuh"

namespace facula {

// Written by cross_entropy_grad in csrc/cuda/losses.cpp.
struct Arguments {
  LineShape shape;
  const char* in;
  const int64* labels;
  const T* weight;
  const T* grad;
  const T* largest;
  const T* log_sum;
  char* out;
  int64 ignored;
  double smoothing;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  const int64 classes = arguments.shape.n;
  const int64 label = line.exists ? arguments.labels[line.number] : -1;
  // Bad labels have been noted by the forward kernel.
  const bool counts = line.exists && label != arguments.ignored && uint64(label) < uint64(classes);
  const T smooth = T(arguments.smoothing), part = over_length(arguments.shape, smooth);
  const T grad = line.exists ? arguments.grad[line.number] : T(0);
  const T own = !counts ? T(0) : FACULA_WEIGHTED ? arguments.weight[label] : T(1);
  T all = T(0);
#if FACULA_SMOOTH && FACULA_WEIGHTED
  line.over([&](int, int64 load) {
#pragma unroll
    for (int v = 0; v < V; ++v) all += arguments.weight[load * V + v];
  });
  all = across(all, Sum());
#elif FACULA_SMOOTH
  all = T(classes);
#endif
  const T top = line.exists ? arguments.largest[line.number] : T(0);
  const T log_sum = line.exists ? arguments.log_sum[line.number] : T(0);
  const T scale = grad * ((T(1) - smooth) * own + part * all), share = grad * part;
  const T hit = grad * (T(1) - smooth) * own;
  Held<FACULA_ITEM> x(line, arguments.in);
  auto write = [&](int slot, int64 load) {
    T value[V];
    x.get(slot, value);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int64 c = load * V + v;
      T dx = scale * exp_of(value[v] - top - log_sum);
#if FACULA_SMOOTH
      dx -= share * (FACULA_WEIGHTED ? arguments.weight[c] : T(1));
#endif
      if (c == label) dx -= hit;
      value[v] = counts ? dx : T(0);  // also where the logits are not finite
    }
    put<FACULA_ITEM>(line, load, value, arguments.out);
  };
  line.over(write, x);
}
