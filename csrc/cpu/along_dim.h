// Walks the lines of a tensor along one dimension, over the pool.
#pragma once
#include <algorithm>

#include "core/tensor.h"
#include "core/thread_pool.h"
#include "cpu/iterate.h"

namespace facula {

// Calls f(byte offsets of the N tensors' lines, how many lines) for bundles of up to W lines along
// `dim`; the offsets of one line follow each other. The other tensors may lack the dimension's
// extent (size 1) but have the same rank.
template <int N, int W, class F>
void for_each_bundle(const Tensor* const (&tensors)[N], int64_t dim, int64_t line_cost, F&& f) {
  const Tensor& lead = *tensors[0];
  const int64_t rank = lead.dim();
  check_rank(rank);
  int64_t lines = 1;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) lines *= lead.sizes()[d];
  const int64_t grain = std::max({int64_t(1), std::min<int64_t>(W, lines / num_threads()),
                                  kGrain / std::max<int64_t>(1, line_cost)});
  parallel_for(0, lines, grain, [&](int64_t b, int64_t e) {
    int64_t at[kMaxDims] = {};
    int64_t offset[N] = {};
    int64_t rest = b;
    for (int64_t d = rank - 1; d >= 0; --d) {
      if (d == dim) continue;
      at[d] = rest % lead.sizes()[d];
      rest /= lead.sizes()[d];
      for (int k = 0; k < N; ++k)
        offset[k] += at[d] * tensors[k]->strides()[d] * int64_t(tensors[k]->item_size());
    }
    int64_t bundle[W][N];
    for (int count = 0; b < e; ++b) {
      for (int k = 0; k < N; ++k) bundle[count][k] = offset[k];
      if (++count == W || b + 1 == e) {
        f(bundle, count);
        count = 0;
      }
      for (int64_t d = rank - 1; d >= 0; --d) {
        if (d == dim) continue;
        for (int k = 0; k < N; ++k)
          offset[k] += tensors[k]->strides()[d] * int64_t(tensors[k]->item_size());
        if (++at[d] < lead.sizes()[d]) break;
        for (int k = 0; k < N; ++k)
          offset[k] -= at[d] * tensors[k]->strides()[d] * int64_t(tensors[k]->item_size());
        at[d] = 0;
      }
    }
  });
}

// Whether the lines of a bundle follow each other at a distance of one item in every tensor.
template <int N, int W>
bool are_neighbours(const int64_t (&at)[W][N], int count, const int64_t (&item)[N]) {
  for (int w = 1; w < count; ++w)
    for (int k = 0; k < N; ++k)
      if (at[w][k] != at[0][k] + w * item[k]) return false;
  return true;
}

// As for_each_bundle, line by line: f(byte offset of each of the N tensors' line).
template <int N, class F>
void for_each_line(const Tensor* const (&tensors)[N], int64_t dim, int64_t line_cost, F&& f) {
  for_each_bundle<N, 1>(tensors, dim, line_cost,
                        [&](const int64_t (&bundle)[1][N], int) { f(bundle[0]); });
}

}  // namespace facula
