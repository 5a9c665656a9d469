// The cross entropy of every sample, a line of logits, with its label. The host defines
// FACULA_NAME, what line.cuh wants, and
//   FACULA_ITEM      type of the logits
//   FACULA_WEIGHTED  1: classes have weights, of type T
//   FACULA_SMOOTH    1: labels are smoothed
#pragma once
#include "fault.cuh"
#include "line.cuh"

namespace facula {

// Written by cross_entropy in csrc/cuda/losses.cpp.
struct Arguments {
  FaultSite site;
  LineShape shape;
  const char* in;
  const int64* labels;
  const T* weight;
  T* loss;
  T* largest;
  T* log_sum;
  T* counted;  // the weight of each sample's label; 0: it is ignored
  int64 ignored;
  double smoothing;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(FACULA_LANES* FACULA_BESIDE)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Line line(arguments.shape);
  Held<FACULA_ITEM> x(line, arguments.in, minus_infinity());
  ExponentialSum found;
  found.read(line, x);
  const T log_sum = log_of(found.sum);
#if FACULA_SMOOTH
  T weighted = T(0), all = T(0);
  x.each(line, [&](T value, int64 c) {
    const T w = FACULA_WEIGHTED ? arguments.weight[c] : T(1);
    weighted += w * value;
    all += w;
  });
  weighted = across(weighted, Sum());
  all = across(all, Sum());
#endif
  if (!line.exists || line.lane != 0) return;
  int64 label = arguments.labels[line.number];
  T loss = T(0), own = T(0);
  if (label != arguments.ignored && good_index(arguments.site, label, line.number)) {
    own = FACULA_WEIGHTED ? arguments.weight[label] : T(1);
    const T logit = convert<T>(reinterpret_cast<const FACULA_ITEM*>(arguments.in)[line.at(label)]);
    // In this order: a confident sample's loss is the small log_sum alone.
    loss = own * ((found.largest - logit) + log_sum);
#if FACULA_SMOOTH
    const T smooth = T(arguments.smoothing);
    const T uniform = all * (found.largest + log_sum) - weighted;
    loss = (T(1) - smooth) * loss + over_length(arguments.shape, smooth) * uniform;
#endif
  }
  arguments.loss[line.number] = loss;
  arguments.largest[line.number] = found.largest;
  arguments.log_sum[line.number] = log_sum;
  arguments.counted[line.number] = own;
}
