// Iteration over strided operands: dimensions are sorted by the result's strides and merged, the
// innermost one is handed to a 1-d loop, the rest is split over the pool.
#pragma once
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace facula {

constexpr int kMaxOperands = 6;
constexpr int64_t kGrain = 32768;  // elements below which threads cost more than they bring

struct Iteration {
  int ndim = 0;
  int operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];                  // those that are not 1
  int from_right[kMaxDims];                 // which dimension of the shape it was, before finish()
  int64_t strides[kMaxOperands][kMaxDims];  // bytes, [operand][dim], dim 0 fastest
  char* data[kMaxOperands];

  // Operand geometry is given on the broadcast shape; call once per operand, result first.
  void begin(IntSpan shape);
  void add(char* data, IntSpan sizes, IntSpan strides, int64_t item_size);
  void finish();  // sorts and merges dimensions

  // Runs body(pointers, inner byte strides, n) over the elements [from, to).
  template <class F>
  void run(int64_t from, int64_t to, F&& body) const {
    int64_t counter[kMaxDims];
    char* p[kMaxOperands];
    for (int o = 0; o < operands; ++o) p[o] = data[o];
    int64_t rest = from;
    for (int d = 0; d < ndim; ++d) {
      counter[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int o = 0; o < operands; ++o) p[o] += counter[d] * strides[o][d];
    }
    int64_t inner[kMaxOperands];
    for (int o = 0; o < operands; ++o) inner[o] = ndim ? strides[o][0] : 0;
    while (from < to) {
      int64_t n = ndim ? sizes[0] - counter[0] : 1;
      if (n > to - from) n = to - from;
      body(p, inner, n);
      from += n;
      if (from >= to) break;
      // The inner dimension is at its end here: carry into the outer ones.
      for (int o = 0; o < operands; ++o) p[o] -= counter[0] * strides[o][0];
      counter[0] = 0;
      for (int d = 1; d < ndim; ++d) {
        if (++counter[d] < sizes[d]) {
          for (int o = 0; o < operands; ++o) p[o] += strides[o][d];
          break;
        }
        for (int o = 0; o < operands; ++o) p[o] -= (sizes[d] - 1) * strides[o][d];
        counter[d] = 0;
      }
    }
  }

  template <class F>
  void run_parallel(F&& body, int64_t grain = kGrain) const {
    if (numel == 0) return;
    if (numel <= grain) return run(0, numel, body);
    parallel_for(0, numel, grain, [&](int64_t b, int64_t e) { run(b, e, body); });
  }
};

}  // namespace facula
