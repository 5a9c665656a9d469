// Unblocked factorisations by columns, which the compiler vectorises. Built once per ISA.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "cpu/small_matrix_tables.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

// The size of a pivot, as LAPACK compares them.
template <class T>
real_of_t<T> pivot_size(T x) {
  if constexpr (is_complex_v<T>) return std::abs(x.re) + std::abs(x.im);
  else return std::abs(x);
}
template <class T>
real_of_t<T> real_part(T x) {
  if constexpr (is_complex_v<T>) return x.re;
  else return x;
}
template <class T>
T conjugate(T x) {
  if constexpr (is_complex_v<T>) return T(x.re, -x.im);
  else return x;
}

// y -= factor * x
template <class T>
void subtract_scaled(int n, T factor, const T* x, T* y) {
  for (int i = 0; i < n; ++i) y[i] -= factor * x[i];
}
// The sum of n terms f(i); long ones in lanes, so that it is a vector's.
template <class T, class F>
T sum_terms(int n, F&& f) {
  T sum(0);
  int i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int kLanes = 64 / sizeof(T);
    if (n >= 2 * kLanes) {
      T lane[kLanes] = {};
      for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) lane[k] += f(i + k);
      for (int k = 0; k < kLanes; ++k) sum += lane[k];
    }
  }
  for (; i < n; ++i) sum += f(i);
  return sum;
}
// conj(x) . y
template <class T>
T inner(int n, const T* x, const T* y) {
  return sum_terms<T>(n, [&](int i) { return conjugate(x[i]) * y[i]; });
}

// ---- LU

// The first of the largest elements; NaN is larger than nothing, and nothing larger than it.
template <class T>
int find_pivot(int n, const T* x) {
  using R = real_of_t<T>;
  constexpr int kLanes = 64 / sizeof(R);
  R largest = pivot_size(x[0]);
  if (n >= 2 * kLanes && largest == largest) {
    R lane[kLanes];
    for (int k = 0; k < kLanes; ++k) lane[k] = largest;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) {
        const R size = pivot_size(x[i + k]);
        lane[k] = size > lane[k] ? size : lane[k];
      }
    for (int k = 0; k < kLanes; ++k) largest = lane[k] > largest ? lane[k] : largest;
    for (; i < n; ++i) largest = pivot_size(x[i]) > largest ? pivot_size(x[i]) : largest;
    int at = 0;
    while (pivot_size(x[at]) != largest) ++at;
    return at;
  }
  int at = 0;
  for (int i = 1; i < n; ++i)
    if (pivot_size(x[i]) > pivot_size(x[at])) at = i;
  return at;
}

template <class T>
int factor_columns(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    T* column = a + k * lda;
    const int p = k + find_pivot(m - k, column + k);
    pivots[k] = p + 1;
    if (column[p] == T(0)) {
      if (info == 0) info = k + 1;
      continue;  // all below is zero as well
    }
    if (p != k)
      for (int j = 0; j < n; ++j) std::swap(a[k + j * lda], a[p + j * lda]);
    for (int i = k + 1; i < m; ++i) column[i] = column[i] / column[k];
    for (int j = k + 1; j < n; ++j)
      subtract_scaled(m - k - 1, a[k + j * lda], column + k + 1, a + k + 1 + j * lda);
  }
  return info;
}

// Columns taken together, so that those behind them are read and written once for all of them.
constexpr int kGroup = 8;

// y -= the sum of factors[q] * column q of x
template <class T>
void subtract_group(int n, const T* __restrict factors, const T* __restrict x, int64_t ldx,
                    T* __restrict y) {
  for (int i = 0; i < n; ++i) {
    T sum = y[i];
#pragma GCC unroll 8
    for (int q = 0; q < kGroup; ++q) sum -= factors[q] * x[i + q * ldx];
    y[i] = sum;
  }
}

template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  const int most = std::min(m, n);
  if (most < 2 * kGroup) return factor_columns(m, n, a, lda, pivots);
  int info = 0;
  for (int k = 0; k < most; k += kGroup) {
    const int width = std::min(kGroup, most - k), end = k + width;
    T* corner = a + k + k * lda;
    const int failed = factor_columns(m - k, width, corner, lda, pivots + k);
    if (failed && !info) info = k + failed;
    for (int i = k; i < end; ++i) pivots[i] += k;
    for (int j = 0; j < n; ++j) {
      if (j >= k && j < end) continue;
      T* column = a + j * lda;
      for (int i = k; i < end; ++i) std::swap(column[i], column[pivots[i] - 1]);
      if (j < k) continue;
      for (int q = 0; q + 1 < width; ++q)
        for (int i = q + 1; i < width; ++i) column[k + i] -= corner[i + q * lda] * column[k + q];
      if (width == kGroup) {
        T factors[kGroup];
        for (int q = 0; q < kGroup; ++q) factors[q] = column[k + q];
        subtract_group(m - end, factors, corner + width, lda, column + end);
      } else {
        for (int q = 0; q < width; ++q)
          subtract_scaled(m - end, column[k + q], corner + width + q * lda, column + end);
      }
    }
  }
  return info;
}

// L U x = P^T b
template <class T>
void solve_forward(int n, const T* a, int lda, const int* pivots, T* b) {
  for (int i = 0; i < n; ++i) std::swap(b[i], b[pivots[i] - 1]);
  for (int j = 0; j < n; ++j) subtract_scaled(n - j - 1, b[j], a + j + 1 + j * lda, b + j + 1);
  for (int j = n - 1; j >= 0; --j) {
    b[j] = b[j] / a[j + j * lda];
    subtract_scaled(j, b[j], a + j * lda, b);
  }
}

// U^T L^T P^T x = b, or with conjugated factors.
template <bool Conjugated, class T>
void solve_transposed(int n, const T* a, int lda, const int* pivots, T* b) {
  auto dot = [](int n, const T* x, const T* y) {
    T sum(0);
    for (int i = 0; i < n; ++i) sum += (Conjugated ? conjugate(x[i]) : x[i]) * y[i];
    return sum;
  };
  for (int i = 0; i < n; ++i) {
    const T pivot = Conjugated ? conjugate(a[i + i * lda]) : a[i + i * lda];
    b[i] = (b[i] - dot(i, a + i * lda, b)) / pivot;
  }
  for (int i = n - 2; i >= 0; --i) b[i] -= dot(n - i - 1, a + i + 1 + i * lda, b + i + 1);
  for (int i = n - 1; i >= 0; --i) std::swap(b[i], b[pivots[i] - 1]);
}

// Several right-hand sides as the rows of a small matrix, so that a vector goes across them.
constexpr int kAcross = 16;
template <class T>
struct Across {
  T rows[kSmallMatrix][kAcross];

  void load(int n, int columns, const T* b, int ldb) {
    if (columns < kAcross)
      for (int i = 0; i < n; ++i) std::fill_n(rows[i], kAcross, T(0));
    turn_matrix<T>(rows[0], kAcross, b, ldb, n, columns);
  }
  void store(int n, int columns, T* b, int ldb) const {
    turn_matrix<T>(b, ldb, rows[0], kAcross, columns, n);
  }
  // row i -= a[i, j] * row j, i in [from, to); they do not wait for each other.
  void eliminate(int j, int from, int to, const T* a, int lda) {
    T row[kAcross];
    for (int c = 0; c < kAcross; ++c) row[c] = rows[j][c];
    const T* factors = a + j * lda;
    for (int i = from; i < to; ++i)
      for (int c = 0; c < kAcross; ++c) rows[i][c] -= factors[i] * row[c];
  }
};

template <class T>
void solve_lower_rows(int n, const T* a, int lda, Across<T>& x) {
  for (int j = 0; j < n - 1; ++j) x.eliminate(j, j + 1, n, a, lda);
}
template <class T>
void solve_upper_rows(int n, const T* a, int lda, Across<T>& x) {
  for (int j = n - 1; j >= 0; --j) {
    for (int k = 0; k < kAcross; ++k) x.rows[j][k] = x.rows[j][k] / a[j + j * lda];
    x.eliminate(j, 0, j, a, lda);
  }
}

// solve(x) for pieces of the columns of b.
template <class T, class F>
void for_pieces(int n, int nrhs, T* b, int ldb, F&& solve) {
  Across<T> x;
  for (int c = 0; c < nrhs; c += kAcross, b += kAcross * int64_t(ldb)) {
    const int columns = std::min(kAcross, nrhs - c);
    x.load(n, columns, b, ldb);
    solve(x);
    x.store(n, columns, b, ldb);
  }
}

// L U x = P^T b for many columns.
template <class T>
void solve_across(int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  for_pieces(n, nrhs, b, ldb, [&](Across<T>& x) {
    for (int i = 0; i < n; ++i)
      if (pivots[i] != i + 1) std::swap(x.rows[i], x.rows[pivots[i] - 1]);
    solve_lower_rows(n, a, lda, x);
    solve_upper_rows(n, a, lda, x);
  });
}

template <class T>
void getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  if (trans == 'N' && nrhs >= kAcross / 2 && n > 4)
    return solve_across(n, nrhs, a, lda, pivots, b, ldb);
  for (int j = 0; j < nrhs; ++j, b += ldb) {
    if (trans == 'N') solve_forward(n, a, lda, pivots, b);
    else if (trans == 'T') solve_transposed<false>(n, a, lda, pivots, b);
    else solve_transposed<true>(n, a, lda, pivots, b);
  }
}

// ---- Cholesky

template <class T>
int potrf_lower(int n, T* a, int lda) {
  for (int j = 0; j < n; ++j) {
    T* column = a + j * lda;
    for (int k = 0; k < j; ++k)
      subtract_scaled(n - j, conjugate(a[j + k * lda]), a + j + k * lda, column + j);
    const auto d = real_part(column[j]);
    if (!(d > 0)) return j + 1;  // NaN too
    const auto root = std::sqrt(d);
    column[j] = T(root);
    for (int i = j + 1; i < n; ++i) column[i] = column[i] / root;
  }
  return 0;
}

// ---- QR

// Without overflow and underflow on the way.
template <class T>
real_of_t<T> norm(int n, const T* x) {
  using R = real_of_t<T>;
  R largest = 0;
  for (int i = 0; i < n; ++i) {
    const R size = pivot_size(x[i]);
    largest = size > largest || size != size ? size : largest;
  }
  if (!(largest > 0) || std::isinf(largest)) return largest;
  const R sum = sum_terms<R>(n, [&](int i) {
    const T part = x[i] / largest;
    return real_part(conjugate(part) * part);
  });
  return largest * std::sqrt(sum);
}

// H = I - tau v v^H with v[0] = 1 and H^H x = (beta, 0, ...): beta replaces x[0], v the rest.
template <class T>
T make_reflector(int n, T* x) {
  using R = real_of_t<T>;
  const R below = norm(n - 1, x + 1);
  R imaginary = 0;
  if constexpr (is_complex_v<T>) imaginary = x[0].im;
  if (below == 0 && imaginary == 0) return T(0);
  const R alpha = real_part(x[0]);
  const R beta = -std::copysign(std::hypot(std::hypot(alpha, imaginary), below), alpha);
  const T pivot = x[0] - T(beta);
  for (int i = 1; i < n; ++i) x[i] = x[i] / pivot;
  T tau;
  if constexpr (is_complex_v<T>) tau = T((beta - alpha) / beta, -imaginary / beta);
  else tau = (beta - alpha) / beta;
  x[0] = T(beta);
  return tau;
}

// c -= factor * v (v^H c) for each column, where v[0] counts as 1.
template <class T>
void reflect(int m, int n, const T* v, T factor, T* c, int ldc) {
  for (int j = 0; j < n; ++j, c += ldc) {
    const T along = factor * (c[0] + inner(m - 1, v + 1, c + 1));
    c[0] -= along;
    subtract_scaled(m - 1, along, v + 1, c + 1);
  }
}

template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau) {
  for (int k = 0; k < std::min(m, n); ++k) {
    T* column = a + k + k * lda;
    tau[k] = make_reflector(m - k, column);
    reflect(m - k, n - k - 1, column, conjugate(tau[k]), column + lda, lda);
  }
}

template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau) {
  for (int j = k; j < n; ++j) {
    std::fill_n(a + j * lda, m, T(0));
    a[j + j * lda] = T(1);
  }
  for (int i = k - 1; i >= 0; --i) {
    T* column = a + i + i * lda;
    reflect(m - i, n - i - 1, column, tau[i], column + lda, lda);
    for (int r = 1; r < m - i; ++r) column[r] = -(tau[i] * column[r]);
    column[0] = T(1) - tau[i];
    std::fill_n(a + i * lda, i, T(0));
  }
}

template <class T>
constexpr SmallMatrix<T> table() {
  return {getrf<T>, getrs<T>, potrf_lower<T>, geqrf<T>, orgqr<T>};
}

}  // namespace

const SmallMatrix<float> small_float = table<float>();
const SmallMatrix<double> small_double = table<double>();
const SmallMatrix<Complex<float>> small_complex64 = table<Complex<float>>();
const SmallMatrix<Complex<double>> small_complex128 = table<Complex<double>>();

}  // namespace facula::FACULA_ISA
