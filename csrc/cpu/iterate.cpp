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
