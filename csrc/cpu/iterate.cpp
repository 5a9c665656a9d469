#include "cpu/iterate.h"

#include <algorithm>

namespace facula {

void Iteration::begin(IntSpan shape) {
  ndim = operands = 0;
  numel = 1;
  const int rank = int(shape.size());
  for (int d = 0; d < rank; ++d) {
    const int64_t size = shape[rank - 1 - d];
    numel *= size;
    if (size == 1) continue;
    check_rank(ndim + 1);
    sizes[ndim] = size;
    from_right[ndim++] = d;
  }
}

void Iteration::add(char* ptr, IntSpan s, IntSpan st, int64_t item) {
  int o = operands++;
  data[o] = ptr;
  int k = int(s.size());
  for (int i = 0; i < ndim; ++i) {
    const int d = from_right[i];
    strides[o][i] = d < k && s[k - 1 - d] != 1 ? st[k - 1 - d] * item : 0;
  }
}

// Rows along dimension 1 follow each other with few stores in between: while a row waits for
// memory, each of them takes the place of one of its own.
void Iteration::walk(int64_t from, int64_t to, Body body, const void* context) const {
  if (from >= to) return;  // a size may be 0
  const int64_t length = ndim > 0 ? sizes[0] : 1, rows = ndim > 1 ? sizes[1] : 1;
  int64_t counter[kMaxDims], inner[kMaxOperands], step[kMaxOperands];
  char* p[kMaxOperands];
  int64_t rest = from / length, row = rest % rows;
  rest /= rows;
  for (int o = 0; o < operands; ++o) {
    inner[o] = ndim > 0 ? strides[o][0] : 0;
    step[o] = ndim > 1 ? strides[o][1] : 0;
    p[o] = data[o] + row * step[o];
  }
  for (int d = 2; d < ndim; ++d) {
    counter[d] = rest % sizes[d];
    rest /= sizes[d];
    for (int o = 0; o < operands; ++o) p[o] += counter[d] * strides[o][d];
  }
  if (const int64_t begun = from % length) {  // the first row is not a whole one
    for (int o = 0; o < operands; ++o) p[o] += begun * inner[o];
    const int64_t n = std::min(length - begun, to - from);
    body(context, p, inner, n);
    for (int o = 0; o < operands; ++o) p[o] += step[o] - begun * inner[o];
    from += n;
    ++row;
  }
  for (;; row = 0) {
    for (; row < rows && from < to; ++row, from += length) {
      body(context, p, inner, std::min(length, to - from));
      for (int o = 0; o < operands; ++o) p[o] += step[o];
    }
    if (from >= to) return;
    for (int o = 0; o < operands; ++o) p[o] -= rows * step[o];
    for (int d = 2; d < ndim; ++d) {
      if (++counter[d] < sizes[d]) {
        for (int o = 0; o < operands; ++o) p[o] += strides[o][d];
        break;
      }
      for (int o = 0; o < operands; ++o) p[o] -= (sizes[d] - 1) * strides[o][d];
      counter[d] = 0;
    }
  }
}

void Iteration::walk_parallel(int64_t grain, Body body, const void* context) const {
  if (numel == 0) return;
  if (numel <= grain) return walk(0, numel, body, context);
  parallel_for(0, numel, grain, [&](int64_t b, int64_t e) { walk(b, e, body, context); });
}

void Iteration::finish() {
  auto exchange = [&](int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int o = 0; o < operands; ++o) std::swap(strides[o][a], strides[o][b]);
  };
  int kept = 0;
  for (int d = 0; d < ndim; ++d)  // dimensions of size 1 are no steps
    if (sizes[d] != 1) {
      if (kept != d) exchange(kept, d);
      ++kept;
    }
  ndim = kept;
  // Insertion sort so that dimension 0 has the smallest stride of the first operand that decides;
  // a dimension for which nothing is decided (broadcast) does not end the search.
  auto order = [&](int a, int b) {
    for (int o = 0; o < operands; ++o) {
      const int64_t x = strides[o][a], y = strides[o][b];
      if (x != 0 && y != 0 && x != y) return x > y ? 1 : -1;
    }
    return 0;
  };
  for (int i = 1; i < ndim; ++i)
    for (int at = i, j = i - 1; j >= 0; --j) {
      const int decided = order(j, at);
      if (decided < 0) break;
      if (decided > 0) {
        exchange(j, at);
        at = j;
      }
    }
  // Merge neighbours that continue each other in every operand.
  int out = 0;
  for (int d = 0; d < ndim; ++d) {
    bool merge = out > 0;
    for (int o = 0; o < operands && merge; ++o)
      merge = strides[o][d] == strides[o][out - 1] * sizes[out - 1];
    if (merge) {
      sizes[out - 1] *= sizes[d];
      continue;
    }
    sizes[out] = sizes[d];
    for (int o = 0; o < operands; ++o) strides[o][out] = strides[o][d];
    ++out;
  }
  ndim = out;
}

}  // namespace facula
