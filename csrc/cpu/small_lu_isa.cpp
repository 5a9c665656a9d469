// LU of matrices whose columns are a few vectors, two matrices at a time, since each step waits for
// the one before. Rows stay where they are until the end: those that have been pivots are masked.
// Built once per ISA.
#include "cpu/gemm_block.h"

#include <cmath>
#include <limits>
#include <utility>

#include "cpu/small_matrix_tables.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

template <int By, class V, size_t... I>
FACULA_INLINE V rotated(V v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, int((I + By) % sizeof...(I))...);
}
// The largest (smallest) lane, in all lanes.
template <int Lanes, class V>
FACULA_INLINE V largest_lane(V v) {
  const auto lanes = std::make_index_sequence<Lanes>();
  auto step = [&](V other) { v = other > v ? other : v; };
  if constexpr (Lanes > 8) step(rotated<8>(v, lanes));
  if constexpr (Lanes > 4) step(rotated<4>(v, lanes));
  if constexpr (Lanes > 2) step(rotated<2>(v, lanes));
  step(rotated<1>(v, lanes));
  return v;
}

template <int V>  // V vectors each
struct Columns {
  using T = float;
  static constexpr int W = kLanes<T>, kRows = V * W;
  using Number = Vector<T>;
  using Integer = Vector<int32_t>;

  alignas(64) T column[kSmallMatrix][kRows];
  Integer place[V];    // where a row stands by now
  Integer waiting[V];  // -1 for rows that have not been pivots
  int row_at[kRows];
  int info = 0;

  FACULA_INLINE static Integer lane_numbers(int v) {
    Integer numbers;
    for (int l = 0; l < W; ++l) numbers[l] = v * W + l;
    return numbers;
  }

  FACULA_INLINE void load_matrix(int n, const T* from, int64_t row_stride, int64_t column_stride) {
    for (int j = 0; j < n; ++j)
      for (int v = 0; v < V; ++v) store(column[j] + v * W, Number{});
    if (column_stride == 1) {
      turn_matrix<T>(column[0], kRows, from, row_stride, n, n);
    } else {
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) column[j][i] = from[i * row_stride + j * column_stride];
    }
    for (int v = 0; v < V; ++v) {
      place[v] = lane_numbers(v);
      waiting[v] = place[v] < n;
    }
    for (int i = 0; i < kRows; ++i) row_at[i] = i;
    info = 0;
  }

  FACULA_INLINE void step(int n, int k, int* pivots) {
    // NaN is smaller than any number, and a row that is done smaller than NaN.
    Number x[V], size[V], best = Number{} - 2;
    for (int v = 0; v < V; ++v) {
      x[v] = load(column[k] + v * W);
      const Number magnitude = x[v] < 0 ? -x[v] : x[v];
      size[v] = magnitude >= 0 ? magnitude : Number{} - 1;
      size[v] = waiting[v] ? size[v] : Number{} - 2;
      best = size[v] > best ? size[v] : best;
    }
    best = largest_lane<W>(best);
    Integer first = Integer{} - kSmallMatrix;  // of the largest, the one that stands first
    for (int v = 0; v < V; ++v) {
      const Integer found = size[v] == best ? -place[v] : Integer{} - kSmallMatrix;
      first = found > first ? found : first;
    }
    const int at = -int(largest_lane<W>(first)[0]), row = row_at[at], other = row_at[k];
    pivots[k] = at + 1;
    row_at[at] = other;
    row_at[k] = row;
    const T pivot = column[k][row];
    const bool zero = pivot == 0;
    if (zero && info == 0) info = k + 1;
    const T divisor = zero ? T(1) : pivot, scale = T(1) / divisor;
    const bool tiny = !zero && std::abs(pivot) < std::numeric_limits<T>::min();
    Number factor[V];
    for (int v = 0; v < V; ++v) {
      const Integer lanes = lane_numbers(v);
      place[v] = lanes == other ? Integer{} + at : place[v];
      place[v] = lanes == row ? Integer{} + k : place[v];
      waiting[v] = lanes == row ? Integer{} : waiting[v];
      factor[v] = tiny ? x[v] / divisor : x[v] * scale;  // the inverse may overflow
      store(column[k] + v * W, waiting[v] ? factor[v] : x[v]);
      factor[v] = waiting[v] ? factor[v] : Number{};
    }
    for (int j = k + 1; j < n; ++j) {
      const T u = column[j][row];
      for (int v = 0; v < V; ++v) {
        T* to = column[j] + v * W;
        store(to, load(to) - u * factor[v]);
      }
    }
  }

  FACULA_INLINE void store_matrix(int n, T* lu) const {
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) lu[j * n + i] = column[j][row_at[i]];
  }
};

template <int V>
void factor_columns(int n, int count, const MatrixLanes<float>::Source& from, float* lu,
                    int* pivots, int* info) {
  Columns<V> a, b;
  const int64_t size = int64_t(n) * n;
  for (int l = 0; l < count; l += 2) {
    const bool both = l + 1 < count;
    a.load_matrix(n, from.at[l], from.row_stride, from.column_stride);
    if (both) b.load_matrix(n, from.at[l + 1], from.row_stride, from.column_stride);
    for (int k = 0; k < n; ++k) {
      a.step(n, k, pivots + l * n);
      if (both) b.step(n, k, pivots + (l + 1) * n);
    }
    a.store_matrix(n, lu + l * size);
    info[l] = a.info;
    if (!both) break;
    b.store_matrix(n, lu + (l + 1) * size);
    info[l + 1] = b.info;
  }
}

void factor(int n, int count, const MatrixLanes<float>::Source& from, float* lu, int* pivots,
            int* info) {
  constexpr int lanes = kLanes<float>, most = kSmallMatrix / lanes;
  if (n <= lanes) return factor_columns<1>(n, count, from, lu, pivots, info);
  if constexpr (most > 2)
    if (n <= 2 * lanes) return factor_columns<2>(n, count, from, lu, pivots, info);
  factor_columns<most>(n, count, from, lu, pivots, info);
}

}  // namespace

const SmallLu small_lu_float = factor;

}  // namespace facula::FACULA_ISA
