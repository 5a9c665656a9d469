// softmax (FACULA_KIND 0) or log_softmax (1) of every line. The host defines FACULA_NAME, what
// line.cuh wants, and FACULA_ITEM, the elements' type.
#pragma once
#include "line.cuh"

namespace facula {

// Written by softmax in csrc/cuda/softmax.cpp.
struct Arguments {
  LineShape shape;
  const char* in;
  char* out;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> x(line, arguments.in, minus_infinity());
#if FACULA_KIND == 0 && FACULA_ITEMS > 0
  // What is held becomes its exponentials, each of which is computed once.
  T largest = minus_infinity(), sum = T(0);
  x.each_or_missing(line, [&](T value) { largest = Larger()(largest, value); });
  largest = across(largest, Larger());
  x.replace([&](T value) {
    const T power = exp_of(value - largest);
    sum += power;
    return power;
  });
  const T factor = reciprocal(across(sum, Sum()));
  auto result = [&](T power) { return power * factor; };
#else
  ExponentialSum found;
  T factor;
  auto begin = [&] { factor = FACULA_KIND == 0 ? reciprocal(found.sum) : log_of(found.sum); };
  auto result = [&](T value) {
    const T from_top = value - found.largest;
    return FACULA_KIND == 0 ? exp_of(from_top) * factor : from_top - factor;
  };
#endif
  auto write = [&](int slot, int64 load) {
    T value[V];
    x.get(slot, value);
#pragma unroll
    for (int v = 0; v < V; ++v) value[v] = result(value[v]);
    put<FACULA_ITEM>(line, load, value, arguments.out);
  };
#if FACULA_ITEMS > 0
#if FACULA_KIND == 1
  found.read(line, x);
  begin();
#endif
  line.over(write, x);
#else
  auto visit = [&](int pass, int slot, int64 load) {
    if (pass == 1) return write(slot, load);
    T value[V];
    x.get(slot, value);
    found.add(value);
  };
  auto after = [&](int) {
    found.gather();
    begin();
  };
  line.passes<2>(visit, after, x);
#endif
}
