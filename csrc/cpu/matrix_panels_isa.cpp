// Panels by vectors along the columns, several columns at a time, so that what is read is used more
// than once. Built once per ISA.
#include "cpu/gemm_block.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/reflector.h"
#include "cpu/small_matrix_tables.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
using IndexOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T>
Vector<T> magnitude(Vector<T> x) {
  return x < 0 ? -x : x;
}

// From a matrix to columns with zeros behind them, and back.
template <class T>
void load_panel(int m, int n, const T* a, int64_t lda, T* to, int64_t ld) {
  for (int j = 0; j < n; ++j) {
    std::memcpy(to + j * ld, a + j * lda, size_t(m) * sizeof(T));
    std::memset(static_cast<void*>(to + j * ld + m), 0, size_t(ld - m) * sizeof(T));
  }
}
template <class T>
void store_panel(int m, int n, const T* from, int64_t ld, T* a, int64_t lda) {
  for (int j = 0; j < n; ++j) std::memcpy(a + j * lda, from + j * ld, size_t(m) * sizeof(T));
}

// ---- LU

// The first of the largest elements, lane by lane.
template <class T>
struct PivotSearch {
  using Index = Vector<IndexOf<T>>;
  Vector<T> best = Vector<T>{} - 1;
  Index at{}, here{};

  PivotSearch() {
    for (int l = 0; l < kLanes<T>; ++l) here[l] = IndexOf<T>(l);
  }
  void look(Vector<T> x) {
    const Vector<T> size = magnitude<T>(x);
    const Index better = size > best;
    best = better ? size : best;
    at = better ? here : at;
    here += kLanes<T>;
  }
  int row(int rows) const {
    T largest = best[0];
    IndexOf<T> found = at[0];
    for (int l = 1; l < kLanes<T>; ++l)
      if (best[l] > largest || (best[l] == largest && at[l] < found)) {
        largest = best[l];
        found = at[l];
      }
    return found < rows ? int(found) : 0;  // padding wins over nothing but NaN
  }
};

template <class T>
int find_pivot(int rows, const T* x) {
  PivotSearch<T> search;
  for (int i = 0; i < rows; i += kLanes<T>) search.look(load(x + i));
  return search.row(rows);
}

// x *= scale; column j of y -= factors[j] * x for N columns. Returns the pivot of the first.
template <int N, class T>
int eliminate(int rows, T scale, T* x, const T* factors, T* y, int64_t ld) {
  PivotSearch<T> search;
  for (int i = 0; i < rows; i += kLanes<T>) {
    const Vector<T> scaled = scale * load(x + i);
    store(x + i, scaled);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      T* to = y + j * ld + i;
      const Vector<T> rest = load(to) - factors[j] * scaled;
      store(to, rest);
      if (j == 0) search.look(rest);
    }
  }
  return N ? search.row(rows) : 0;
}

// Columns taken together, so that those behind them are read and written once for all of them.
constexpr int kGroup = 8;

template <class T>
int eliminate_columns(int n, int rows, T scale, T* x, const T* factors, T* y, int64_t ld) {
  switch (n) {
    case 0: return eliminate<0>(rows, scale, x, factors, y, ld);
    case 1: return eliminate<1>(rows, scale, x, factors, y, ld);
    case 2: return eliminate<2>(rows, scale, x, factors, y, ld);
    case 3: return eliminate<3>(rows, scale, x, factors, y, ld);
    case 4: return eliminate<4>(rows, scale, x, factors, y, ld);
    case 5: return eliminate<5>(rows, scale, x, factors, y, ld);
    case 6: return eliminate<6>(rows, scale, x, factors, y, ld);
    default: return eliminate<7>(rows, scale, x, factors, y, ld);
  }
}

// Up to kGroup columns of m rows.
template <class T>
int factor_group(int m, int n, T* a, int64_t ld, int* pivots) {
  int info = 0, next = find_pivot(m, a);
  for (int k = 0; k < n; ++k) {
    T* column = a + k * ld;
    const int p = k + next, rest = n - k - 1;
    pivots[k] = p + 1;
    T pivot = column[p], factors[kGroup] = {};
    if (pivot == T(0)) {  // all below is zero as well
      if (info == 0) info = k + 1;
      pivot = T(1);
    } else if (p != k) {
      for (int j = 0; j < n; ++j) std::swap(a[k + j * ld], a[p + j * ld]);
    }
    for (int j = 0; j < rest; ++j) factors[j] = column[k + (j + 1) * ld];
    T scale = T(1) / pivot;
    if (std::abs(pivot) < std::numeric_limits<T>::min()) {  // its inverse may overflow
      for (int i = k + 1; i < m; ++i) column[i] /= pivot;
      scale = T(1);
    }
    next =
        eliminate_columns(rest, m - k - 1, scale, column + k + 1, factors, column + ld + k + 1, ld);
  }
  return info;
}

// C columns of y -= x @ factors, where x has kGroup columns and factors is kGroup x C.
template <int C, class T>
void subtract_group(int rows, const T (*factors)[C], const T* x, int64_t ldx, T* y, int64_t ldy) {
  for (int i = 0; i < rows; i += kLanes<T>) {
    Vector<T> sum[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[c] = load(y + c * ldy + i);
#pragma GCC unroll 8
    for (int q = 0; q < kGroup; ++q) {
      const Vector<T> column = load(x + q * ldx + i);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[c] -= factors[q][c] * column;
    }
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(y + c * ldy + i, sum[c]);
  }
}

// C columns behind a group that was factored from row k on.
template <int C, class T>
void follow_group(int m, int k, const T* group, int64_t ld, const int* pivots, T* y) {
  T factors[kGroup][C];
  for (int c = 0; c < C; ++c) {
    T* column = y + c * ld;
    for (int i = k; i < k + kGroup; ++i) std::swap(column[i], column[pivots[i] - 1]);
  }
  for (int i = 0; i < kGroup; ++i)
    for (int c = 0; c < C; ++c) factors[i][c] = y[k + i + c * ld];
  for (int q = 0; q < kGroup; ++q)
    for (int i = q + 1; i < kGroup; ++i)
      for (int c = 0; c < C; ++c) factors[i][c] -= group[i + q * ld] * factors[q][c];
  for (int i = 0; i < kGroup; ++i)
    for (int c = 0; c < C; ++c) y[k + i + c * ld] = factors[i][c];
  subtract_group<C>(m - k - kGroup, factors, group + kGroup, ld, y + k + kGroup, ld);
}

template <class T>
int lu_panel(int m, int n, T* a, int lda, int* pivots, T* scratch) {
  const int64_t ld = panel_stride<T>(m);
  load_panel(m, n, a, lda, scratch, ld);
  int info = 0;
  for (int k = 0; k < n; k += kGroup) {
    const int width = n - k < kGroup ? n - k : kGroup, end = k + width;
    T* group = scratch + k + k * ld;
    const int failed = factor_group(m - k, width, group, ld, pivots + k);
    if (failed && !info) info = k + failed;
    for (int i = k; i < end; ++i) pivots[i] += k;
    for (int j = 0; j < k; ++j) {
      T* column = scratch + j * ld;
      for (int i = k; i < end; ++i) std::swap(column[i], column[pivots[i] - 1]);
    }
    int j = end;
    for (; j + 4 <= n; j += 4) follow_group<4>(m, k, group, ld, pivots, scratch + j * ld);
    for (; j < n; ++j) follow_group<1>(m, k, group, ld, pivots, scratch + j * ld);
  }
  store_panel(m, n, scratch, ld, a, lda);
  return info;
}

// ---- QR

template <class T>
void qr_panel(int m, int n, T* a, int lda, T* tau, T* scratch) {
  const int64_t ld = panel_stride<T>(m);
  load_panel(m, n, a, lda, scratch, ld);
  for (int k = 0; k < n; ++k) {
    T *v = scratch + k + k * ld, *y = v + ld;
    tau[k] = make_reflector(m - k, v);
    if (tau[k] == T(0)) continue;
    int j = k + 1;
    for (; j + 8 <= n; j += 8, y += 8 * ld) reflect<8>(m - k, v, tau[k], y, ld);
    for (; j + 2 <= n; j += 2, y += 2 * ld) reflect<2>(m - k, v, tau[k], y, ld);
    if (j < n) reflect<1>(m - k, v, tau[k], y, ld);
  }
  store_panel(m, n, scratch, ld, a, lda);
}

// Column j is tau times the unit vector less the columns before it, times what they have along v.
template <class T>
void reflector_factor(int n, const T* products, const T* tau, T* t) {
  const int64_t ld = panel_stride<T>(n);
  std::memset(static_cast<void*>(t), 0, size_t(ld * n) * sizeof(T));
  for (int j = 0; j < n; ++j) {
    T* column = t + j * ld;
    for (int i = 0; i < j; i += kLanes<T>) {
      Vector<T> sum{};
      for (int l = i; l < j; ++l) sum += products[l + j * n] * load(t + l * ld + i);
      store(column + i, -tau[j] * sum);
    }
    column[j] = tau[j];
  }
}

template <class T>
constexpr MatrixPanels<T> table() {
  return {lu_panel<T>, qr_panel<T>, reflector_factor<T>};
}

}  // namespace

const MatrixPanels<float> panels_float = table<float>();
const MatrixPanels<double> panels_double = table<double>();

}  // namespace facula::FACULA_ISA
