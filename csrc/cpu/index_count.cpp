#include "cpu/index_count.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "cpu/iterate.h"

namespace facula {
namespace {

// The comparisons are written so that NaN goes behind everything.
template <class T>
int64_t search(const T* sorted, const int64_t* sorter, int64_t n, T value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T at = sorted[sorter ? sorter[middle] : middle];
    if (right ? !(at > value) : !(at >= value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <class W>
void add_weights(const int64_t* values, int64_t n, const W* weights, W* counts) {
  for (int64_t i = 0; i < n; ++i) counts[values[i]] += weights[i];
}

}  // namespace

void cpu_searchsorted(const Tensor& boundaries, const Tensor& values, const Tensor& sorter,
                      bool right, const Tensor& counts) {
  const int64_t n = boundaries.sizes()[1], m = values.sizes()[1];
  const bool shared = boundaries.sizes()[0] == 1;
  const bool narrow = counts.dtype() == DType::Int32;
  dispatch_dtype(boundaries.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) {
      const int64_t* order = sorter.defined() ? sorter.data_as<int64_t>() : nullptr;
      parallel_for(0, values.numel(), kGrain / 16, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const int64_t row = shared ? 0 : i / m * n;
          const int64_t at = search(boundaries.data_as<T>() + row, order ? order + row : nullptr, n,
                                    values.data_as<T>()[i], right);
          if (narrow) counts.data_as<int32_t>()[i] = int32_t(at);
          else counts.data_as<int64_t>()[i] = at;
        }
      });
    }
  });
}

void cpu_bincount(const Tensor& values, const Tensor& weights, const Tensor& counts) {
  const int64_t* v = values.data_as<int64_t>();
  const int64_t n = values.numel();
  if (!weights.defined()) {
    int64_t* c = counts.data_as<int64_t>();
    for (int64_t i = 0; i < n; ++i) ++c[v[i]];
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
