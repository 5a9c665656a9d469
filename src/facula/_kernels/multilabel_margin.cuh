// The margin loss of several labels (FACULA_KIND 0), or its derivative (1), a block for each row.
// The labels of a row end with the first -1. The host defines FACULA_NAME and
//   FACULA_COMPUTE  the type T of all arithmetic
//   FACULA_ITEM     type of the input and of its gradient
#pragma once
#include "fault.cuh"

namespace facula {

using T = FACULA_COMPUTE;
using Item = FACULA_ITEM;
constexpr int kThreads = 128;

// Written by multilabel_margin in csrc/cuda/losses.cpp.
struct Arguments {
  FaultSite site;
  const Item* in;
  const int64* labels;
  T* loss;        // the derivative reads it: the gradient of each row
  Item* out;
  int64 classes;
};

struct Row {
  const Item* in;
  const int64* labels;
  int64 classes, count;

  __device__ __forceinline__ T value(int64 c) const { return convert<T>(in[c]); }
  __device__ __forceinline__ int64 times(int64 c) const {  // that a class is among the labels
    int64 found = 0;
#pragma unroll 1
    for (int64 k = 0; k < count; ++k) found += labels[k] == c;
    return found;
  }
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(128)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  Row row{a.in + blockIdx.x * a.classes, a.labels + blockIdx.x * a.classes, a.classes, 0};
  while (row.count < a.classes && row.labels[row.count] >= 0) ++row.count;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int64 k = 0; k < a.classes; ++k) {
      int64 label = row.labels[k];
      if (label != -1) good_index(a.site, label, blockIdx.x * a.classes + k);
    }
  }
#if FACULA_KIND == 0
  T sum = T(0);
#pragma unroll 1
  for (int64 c = threadIdx.x; c < a.classes; c += kThreads) {
    if (row.times(c) > 0) continue;
#pragma unroll 1
    for (int64 k = 0; k < row.count; ++k) {
      if (row.labels[k] >= a.classes) continue;
      const T margin = T(1) - row.value(row.labels[k]) + row.value(c);
      sum += margin > T(0) ? margin : T(0);
    }
  }
  __shared__ T parts[kThreads];
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll 4
  for (int i = 1; i < kThreads; ++i) sum += parts[i];
  a.loss[blockIdx.x] = sum / T(a.classes);
#else
  const T step = a.loss[blockIdx.x] / T(a.classes);
#pragma unroll 1
  for (int64 c = threadIdx.x; c < a.classes; c += kThreads) {
    const int64 times = row.times(c);
    int64 count = 0;
    if (times == 0) {
#pragma unroll 1
      for (int64 k = 0; k < row.count; ++k) {
        if (row.labels[k] >= a.classes) continue;
        count += T(1) - row.value(row.labels[k]) + row.value(c) > T(0);
      }
    } else {
#pragma unroll 1
      for (int64 other = 0; other < a.classes; ++other) {
        if (T(1) - row.value(c) + row.value(other) > T(0) && row.times(other) == 0) --count;
      }
      count *= times;
    }
    a.out[blockIdx.x * a.classes + c] = convert<Item>(step * T(count));
  }
#endif
}
