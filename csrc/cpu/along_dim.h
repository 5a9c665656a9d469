// Walks the lines of a tensor along one dimension, over the pool.
#pragma once
#include <algorithm>
#include <memory>
#include <type_traits>

#include "core/tensor.h"
#include "core/thread_pool.h"
#include "cpu/iterate.h"

namespace facula {

namespace detail {

// f(context, bundle, count). Not a template over what is done with the lines: it would be compiled
// for each dtype.
template <int N, int W>
void walk_bundles(const Tensor* const (&tensors)[N], int64_t dim, int64_t line_cost,
                  int64_t most_lines, void (*f)(const void*, const int64_t (&)[W][N], int),
                  const void* context) {
  const Tensor& lead = *tensors[0];
  check_rank(lead.dim());
  int64_t lines = 1;
  int64_t sizes[kMaxDims], steps[kMaxDims][N];  // of the other dimensions, the last one first
  int dims = 0;
  for (int64_t d = lead.dim() - 1; d >= 0; --d) {
    if (d == dim) continue;
    lines *= sizes[dims] = lead.sizes()[d];
    for (int k = 0; k < N; ++k)
      steps[dims][k] = tensors[k]->strides()[d] * int64_t(tensors[k]->item_size());
    ++dims;
  }
  const int64_t grain = std::max({int64_t(1), std::min(most_lines, lines / num_threads()),
                                  kGrain / std::max<int64_t>(1, line_cost)});
  parallel_for(0, lines, grain, [&](int64_t b, int64_t e) {
    int64_t at[kMaxDims];
    int64_t offset[N] = {};
    int64_t rest = b;
    for (int d = 0; d < dims; ++d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int k = 0; k < N; ++k) offset[k] += at[d] * steps[d][k];
    }
    int64_t bundle[W][N];
    int count = 0;
    while (b < e) {
      // Along the innermost of the other dimensions.
      const int64_t run =
          std::min({int64_t(W - count), e - b, dims ? sizes[0] - at[0] : int64_t(1)});
      for (int64_t i = 0; i < run; ++i)
        for (int k = 0; k < N; ++k) bundle[count + i][k] = offset[k] + (dims ? i * steps[0][k] : 0);
      count += int(run);
      b += run;
      if (count == W || b == e) {
        f(context, bundle, count);
        count = 0;
      }
      for (int d = 0; d < dims; ++d) {
        const int64_t step = d ? 1 : run;
        at[d] += step;
        for (int k = 0; k < N; ++k) offset[k] += step * steps[d][k];
        if (at[d] < sizes[d]) break;
        for (int k = 0; k < N; ++k) offset[k] -= at[d] * steps[d][k];
        at[d] = 0;
      }
    }
  });
}

}  // namespace detail

// Calls f(byte offsets of the N tensors' lines, how many lines) for bundles of up to W lines along
// `dim`; the offsets of one line follow each other. The other tensors may lack the dimension's
// extent (size 1) but have the same rank. Few lines are shared out `most_lines` at a time.
template <int N, int W, class F>
void for_each_bundle(const Tensor* const (&tensors)[N], int64_t dim, int64_t line_cost, F&& f,
                     int64_t most_lines = W) {
  using Body = std::remove_reference_t<F>;
  detail::walk_bundles<N, W>(
      tensors, dim, line_cost, most_lines,
      [](const void* body, const int64_t (&bundle)[W][N], int count) {
        (*static_cast<Body*>(const_cast<void*>(body)))(bundle, count);
      },
      std::addressof(f));
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
  for_each_bundle<N, 16>(
      tensors, dim, line_cost,
      [&](const int64_t (&bundle)[16][N], int count) {
        for (int w = 0; w < count; ++w) f(bundle[w]);
      },
      1);
}

}  // namespace facula
