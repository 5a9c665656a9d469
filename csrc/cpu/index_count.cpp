#include "cpu/index_count.h"

#include <algorithm>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/iterate.h"

namespace facula {
namespace {

// Whether a boundary lies before a value; written so that NaN goes behind everything.
template <bool kRight, class T>
bool is_before(T boundary, T value) {
  return kRight ? !(boundary > value) : !(boundary >= value);
}

template <bool kRight, class T>
int64_t search(const T* sorted, const int64_t* sorter, int64_t n, T value) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_before<kRight>(sorted[sorter ? sorter[middle] : middle], value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Several searches side by side, without branches: their loads overlap.
template <bool kRight, int kCount, class T>
void search_together(const T* sorted, int64_t n, const T* values, int64_t* found) {
  const T* at[kCount];
  for (int k = 0; k < kCount; ++k) at[k] = sorted;
  for (; n > 1; n -= n / 2)
    for (int k = 0; k < kCount; ++k) {
      const T* middle = at[k] + n / 2;
      at[k] = is_before<kRight>(middle[-1], values[k]) ? middle : at[k];
    }
  for (int k = 0; k < kCount; ++k)
    found[k] = at[k] - sorted + (n == 1 && is_before<kRight>(*at[k], values[k]));
}

template <bool kRight, class T>
void search_all(const Tensor& boundaries, const Tensor& values, const Tensor& sorter,
                const Tensor& counts) {
  constexpr int kTogether = 8;
  const int64_t n = boundaries.sizes()[1], m = values.sizes()[1];
  const bool shared = boundaries.sizes()[0] == 1;
  const T* edges = boundaries.data_as<T>();
  const T* wanted = values.data_as<T>();
  const int64_t* order = sorter.defined() ? sorter.data_as<int64_t>() : nullptr;
  auto write = [&](int64_t i, int64_t at) {
    if (counts.dtype() == DType::Int32) counts.data_as<int32_t>()[i] = int32_t(at);
    else counts.data_as<int64_t>()[i] = at;
  };
  parallel_for(0, values.numel(), kGrain / 16, [&](int64_t b, int64_t e) {
    while (b < e) {
      const int64_t row = shared ? 0 : b / m * n;
      const int64_t end = shared ? e : std::min(e, (b / m + 1) * m);
      // NaN at the end of the boundaries is before every value, so halves cannot be left out.
      const bool plain = !order && n && edges[row + n - 1] == edges[row + n - 1];
      for (; plain && b + kTogether <= end; b += kTogether) {
        int64_t found[kTogether];
        search_together<kRight, kTogether>(edges + row, n, wanted + b, found);
        for (int k = 0; k < kTogether; ++k) write(b + k, found[k]);
      }
      for (int64_t found; plain && b < end; ++b) {
        search_together<kRight, 1>(edges + row, n, wanted + b, &found);
        write(b, found);
      }
      for (; b < end; ++b)
        write(b, search<kRight>(edges + row, order ? order + row : nullptr, n, wanted[b]));
    }
  });
}

template <class W>
void add_weights(const int64_t* values, int64_t n, const W* weights, W* counts) {
  for (int64_t i = 0; i < n; ++i) counts[values[i]] += weights[i];
}

// Neighbours are counted apart, since they often are equal and would wait for each other.
void count_pairs(const int64_t* values, int64_t n, int64_t* even, int64_t* odd) {
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    ++even[values[i]];
    ++odd[values[i + 1]];
  }
  if (i < n) ++even[values[i]];
}

void count_values(const int64_t* values, int64_t n, int64_t* counts, int64_t size) {
  constexpr int64_t kPiece = 1 << 16, kFewBins = 1 << 14;
  const int64_t pieces = size > kFewBins ? 1 : std::clamp<int64_t>(n / kPiece, 1, num_threads());
  if (n < 4 * size || size > kFewBins) {
    for (int64_t i = 0; i < n; ++i) ++counts[values[i]];
    return;
  }
  std::vector<int64_t> own(size_t(2 * pieces * size), 0);
  parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) {
      int64_t* c = own.data() + 2 * b * size;
      const int64_t from = n * b / pieces, to = n * (b + 1) / pieces;
      count_pairs(values + from, to - from, c, c + size);
    }
  });
  for (int64_t k = 0; k < 2 * pieces; ++k)
    for (int64_t c = 0; c < size; ++c) counts[c] += own[size_t(k * size + c)];
}

}  // namespace

void cpu_searchsorted(const Tensor& boundaries, const Tensor& values, const Tensor& sorter,
                      bool right, const Tensor& counts) {
  dispatch_dtype(boundaries.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) {
      if (right) search_all<true, T>(boundaries, values, sorter, counts);
      else search_all<false, T>(boundaries, values, sorter, counts);
    }
  });
}

void cpu_bincount(const Tensor& values, const Tensor& weights, const Tensor& counts) {
  const int64_t* v = values.data_as<int64_t>();
  const int64_t n = values.numel();
  if (!weights.defined()) {
    count_values(v, n, counts.data_as<int64_t>(), counts.numel());
  } else if (weights.dtype() == DType::Float32) {
    add_weights(v, n, weights.data_as<float>(), counts.data_as<float>());
  } else {
    add_weights(v, n, weights.data_as<double>(), counts.data_as<double>());
  }
}

void cpu_histogram(const Tensor& x, double low, double high, const Tensor& counts) {
  dispatch_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      const T first = T(low), last = T(high);
      const int64_t bins = counts.numel();
      T* c = counts.data_as<T>();
      for (int64_t i = 0; i < x.numel(); ++i) {
        const T v = x.data_as<T>()[i];
        if (!(v >= first && v <= last)) continue;
        const int64_t at = int64_t((v - first) * T(bins) / (last - first));
        c[std::min(at, bins - 1)] += 1;  // the last bin includes its upper end
      }
    }
  });
}

}  // namespace facula
