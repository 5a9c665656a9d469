#include "cpu/histogram.h"

#include <algorithm>
#include <vector>

#include "core/thread_pool.h"

namespace facula {
namespace {

template <class T>
struct Axis {
  const T* edges;
  int64_t bins;

  // The cell of a value between the first and the last edge.
  int64_t search(T v) const {
    const int64_t above = std::upper_bound(edges, edges + bins + 1, v) - edges;
    return std::min(above - 1, bins - 1);
  }
  // The same where widths are equal: a guess, then a step or two for what rounding did to it.
  int64_t guess(T v) const {
    const T low = edges[0], high = edges[bins];
    int64_t at = std::min(int64_t((v - low) * T(bins) / (high - low)), bins - 1);
    while (at > 0 && v < edges[at]) --at;
    while (at + 1 < bins && v >= edges[at + 1]) ++at;
    return at;
  }
};

template <class T>
void count(const T* points, const T* weights, int64_t n, const std::vector<Axis<T>>& axes,
           bool equal, T* counts) {
  const size_t d = axes.size();
  for (int64_t i = 0; i < n; ++i, points += d) {
    int64_t cell = 0;
    bool inside = true;
    for (size_t k = 0; k < d && inside; ++k) {
      const Axis<T>& axis = axes[k];
      const T v = points[k];
      inside = v >= axis.edges[0] && v <= axis.edges[axis.bins];
      if (inside) cell = cell * axis.bins + (equal ? axis.guess(v) : axis.search(v));
    }
    if (inside) counts[cell] += weights ? weights[i] : T(1);
  }
}

}  // namespace

void cpu_histogram_grid(const Tensor& points, TensorSpan edges, bool equal, const Tensor& weights,
                        const Tensor& counts) {
  auto run = [&](auto zero) {
    using T = decltype(zero);
    std::vector<Axis<T>> axes;
    for (const Tensor& e : edges) axes.push_back({e.data_as<T>(), e.numel() - 1});
    const int64_t n = points.sizes()[0], d = points.sizes()[1], cells = counts.numel();
    const T* p = points.data_as<T>();
    const T* w = weights.defined() ? weights.data_as<T>() : nullptr;
    T* total = counts.data_as<T>();
    // Pieces have counts of their own, added up in order: their number does not depend on the
    // threads, so neither do the sums of weights.
    constexpr int64_t kPiece = 1 << 16, kMostPieces = 16;
    const int64_t pieces = cells > kPiece ? 1 : std::clamp<int64_t>(n / kPiece, 1, kMostPieces);
    if (pieces == 1) return count(p, w, n, axes, equal, total);
    std::vector<T> own(size_t(pieces * cells), T(0));
    parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        const int64_t from = n * k / pieces, to = n * (k + 1) / pieces;
        count(p + from * d, w ? w + from : nullptr, to - from, axes, equal, own.data() + k * cells);
      }
    });
    for (int64_t k = 0; k < pieces; ++k)
      for (int64_t c = 0; c < cells; ++c) total[c] += own[size_t(k * cells + c)];
  };
  if (counts.dtype() == DType::Float64) run(double(0));
  else run(float(0));
}

}  // namespace facula
