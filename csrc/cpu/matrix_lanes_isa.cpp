// Many tiny matrices at once, one in each lane of a vector. Lanes that choose different pivots
// select instead of branching. Built once per ISA.
#include <limits>
#include <type_traits>

#include "cpu/lane_vector.h"
#include "cpu/small_matrix_tables.h"

namespace facula::FACULA_ISA {
namespace {

// One row of numbers for each element, to and from vectors.
template <class T, int Rows>
struct Buffer {
  static constexpr int W = kLanes<T>;
  alignas(64) T rows[Rows][W];

  template <class Vector>
  Vector load(int row) const {
    Vector v;
    std::memcpy(&v, rows[row], sizeof v);
    return v;
  }
  template <class Vector>
  void store(int row, Vector v) {
    std::memcpy(rows[row], &v, sizeof v);
  }
};

template <class T, int N>
struct Lanes {
  static constexpr int W = kLanes<T>;
  using Number = typename Wide<T>::Number;
  using Integer = typename Wide<T>::Integer;

  Number a[N][N];
  Integer pivots[N], order[N], info;

  // Lanes without a matrix get the identity.
  void load(int count, const typename MatrixLanes<T>::Source& from) {
    Buffer<T, N * N> buffer;
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
          buffer.rows[i * N + j][l] = from.at[l][i * from.row_stride + j * from.column_stride];
    for (int l = count; l < W; ++l)
      for (int i = 0; i < N * N; ++i) buffer.rows[i][l] = T(i % (N + 1) == 0);
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) a[i][j] = buffer.template load<Number>(i * N + j);
  }

  // order[i] is the row of the matrix that became row i.
  void factor() {
    info = Integer{};
    for (int i = 0; i < N; ++i) order[i] = Integer{} + i;
    for (int k = 0; k < N; ++k) {
      Number best = a[k][k] < 0 ? -a[k][k] : a[k][k];
      Integer row = Integer{} + k;
      for (int i = k + 1; i < N; ++i) {
        const Number size = a[i][k] < 0 ? -a[i][k] : a[i][k];
        const Integer better = size > best;
        best = better ? size : best;
        row = better ? Integer{} + i : row;
      }
      pivots[k] = row + 1;
      const Integer zero = best == 0;
      info = (info == 0) & zero ? Integer{} + (k + 1) : info;
      for (int i = k + 1; i < N; ++i) {
        const Integer swap = row == i;
        for (int j = 0; j < N; ++j) exchange(a[k][j], a[i][j], swap);
        exchange(order[k], order[i], swap);
      }
      for (int i = k + 1; i < N; ++i) {
        const Number factor = zero ? Number{} : a[i][k] / a[k][k];
        a[i][k] = factor;
        for (int j = k + 1; j < N; ++j) a[i][j] -= factor * a[k][j];
      }
    }
  }

  template <class Vector>
  static void exchange(Vector& x, Vector& y, Integer swap) {
    const Vector kept = x;
    x = swap ? y : kept;
    y = swap ? kept : y;
  }

  // x, in the order of the factors, becomes the solution.
  void substitute(Number (&x)[N]) const {
    for (int i = 1; i < N; ++i)
      for (int j = 0; j < i; ++j) x[i] -= a[i][j] * x[j];
    for (int i = N - 1; i >= 0; --i) {
      for (int j = i + 1; j < N; ++j) x[i] -= a[i][j] * x[j];
      x[i] = x[i] / a[i][i];
    }
  }
};

template <class T>
using IndexOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// A vector of integers to every `stride`-th int.
template <class T>
void store_integers(typename Wide<T>::Integer v, int count, int* to, int stride) {
  IndexOf<T> items[kLanes<T>];
  std::memcpy(items, &v, sizeof v);
  for (int l = 0; l < count; ++l) to[l * stride] = int(items[l]);
}

template <int N, class T>
void factor(int count, const typename MatrixLanes<T>::Source& from, T* lu, int* pivots, int* info) {
  Lanes<T, N> m;
  m.load(count, from);
  m.factor();
  Buffer<T, N * N> buffer;
  for (int j = 0; j < N; ++j)
    for (int i = 0; i < N; ++i) buffer.store(j * N + i, m.a[i][j]);
  for (int l = 0; l < count; ++l)
    for (int e = 0; e < N * N; ++e) lu[l * N * N + e] = buffer.rows[e][l];
  for (int i = 0; i < N; ++i) store_integers<T>(m.pivots[i], count, pivots + i, N);
  store_integers<T>(m.info, count, info, 1);
}

template <int N, class T>
void invert(int count, const typename MatrixLanes<T>::Source& from, T* inverse, int* info) {
  using Number = typename Wide<T>::Number;
  Lanes<T, N> m;
  m.load(count, from);
  m.factor();
  Buffer<T, N * N> buffer;
  for (int c = 0; c < N; ++c) {
    Number x[N];
    for (int i = 0; i < N; ++i) x[i] = m.order[i] == c ? Number{} + 1 : Number{};
    m.substitute(x);
    for (int i = 0; i < N; ++i)
      buffer.store(c * N + i, m.info == 0 ? x[i] : Number{} + std::numeric_limits<T>::quiet_NaN());
  }
  for (int l = 0; l < count; ++l)
    for (int e = 0; e < N * N; ++e) inverse[l * N * N + e] = buffer.rows[e][l];
  store_integers<T>(m.info, count, info, 1);
}

template <int N, class T>
void solve(int nrhs, int count, const T* const* lu, const int* const* pivots,
           const typename MatrixLanes<T>::Source& b, T* x) {
  using Number = typename Wide<T>::Number;
  using Integer = typename Wide<T>::Integer;
  Lanes<T, N> m;
  typename MatrixLanes<T>::Source from{{}, 1, N};
  for (int l = 0; l < count; ++l) from.at[l] = lu[l];
  m.load(count, from);
  Buffer<IndexOf<T>, N> rows{};
  for (int l = 0; l < count; ++l)
    for (int i = 0; i < N; ++i) rows.rows[i][l] = pivots[l][i] - 1;
  for (int i = 0; i < N; ++i) m.pivots[i] = rows.template load<Integer>(i);
  for (int c = 0; c < nrhs; ++c) {
    Buffer<T, N> buffer{};
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < N; ++i)
        buffer.rows[i][l] = b.at[l][i * b.row_stride + c * b.column_stride];
    Number y[N];
    for (int i = 0; i < N; ++i) y[i] = buffer.template load<Number>(i);
    for (int k = 0; k < N; ++k)
      for (int i = k + 1; i < N; ++i) Lanes<T, N>::exchange(y[k], y[i], m.pivots[k] == i);
    m.substitute(y);
    for (int i = 0; i < N; ++i) buffer.store(i, y[i]);
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < N; ++i) x[(int64_t(l) * nrhs + c) * N + i] = buffer.rows[i][l];
  }
}

template <class T>
constexpr MatrixLanes<T> table() {
  using Source = typename MatrixLanes<T>::Source;
  return {
      kLanes<T>,
      [](int n, int count, const Source& from, T* lu, int* pivots, int* info) {
        switch (n) {
          case 1: return factor<1, T>(count, from, lu, pivots, info);
          case 2: return factor<2, T>(count, from, lu, pivots, info);
          case 3: return factor<3, T>(count, from, lu, pivots, info);
          default: return factor<4, T>(count, from, lu, pivots, info);
        }
      },
      [](int n, int count, const Source& from, T* inverse, int* info) {
        switch (n) {
          case 1: return invert<1, T>(count, from, inverse, info);
          case 2: return invert<2, T>(count, from, inverse, info);
          case 3: return invert<3, T>(count, from, inverse, info);
          default: return invert<4, T>(count, from, inverse, info);
        }
      },
      [](int n, int nrhs, int count, const T* const* lu, const int* const* pivots, const Source& b,
         T* x) {
        switch (n) {
          case 1: return solve<1, T>(nrhs, count, lu, pivots, b, x);
          case 2: return solve<2, T>(nrhs, count, lu, pivots, b, x);
          case 3: return solve<3, T>(nrhs, count, lu, pivots, b, x);
          default: return solve<4, T>(nrhs, count, lu, pivots, b, x);
        }
      },
  };
}

}  // namespace

const MatrixLanes<float> lanes_float = table<float>();
const MatrixLanes<double> lanes_double = table<double>();

}  // namespace facula::FACULA_ISA
