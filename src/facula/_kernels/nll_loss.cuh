// The negative log likelihood of every sample (FACULA_KIND 0), or its derivative (1), of which only
// the labels' elements are written. The host defines FACULA_NAME and
//   FACULA_COMPUTE   the type T of all arithmetic
//   FACULA_ITEM      type of the log probabilities, or of their gradient
//   FACULA_WEIGHTED  1: classes have weights, of type T
#pragma once
#include "fault.cuh"

namespace facula {

using T = FACULA_COMPUTE;

// Written by nll_loss in csrc/cuda/losses.cpp.
struct Arguments {
  FaultSite site;
  int64 count, inner;
  char* items;  // (batch, classes, inner)
  const int64* labels;
  const T* weight;
  T* loss;      // read by the derivative: the gradient of each sample
  T* counted;
  int64 ignored;
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 label = arguments.labels[i];
  const bool counts = label != arguments.ignored && good_index(arguments.site, label, i);
  const int64 image = i / arguments.inner, place = i % arguments.inner;
  const T own = !counts ? T(0) : FACULA_WEIGHTED ? arguments.weight[label] : T(1);
  auto* item = reinterpret_cast<FACULA_ITEM*>(arguments.items) +
               ((image * arguments.site.limit + (counts ? label : 0)) * arguments.inner + place);
#if FACULA_KIND == 0
  arguments.loss[i] = counts ? -own * convert<T>(*item) : T(0);
  arguments.counted[i] = own;
#else
  if (counts) *item = convert<FACULA_ITEM>(-arguments.loss[i] * own);
#endif
}
