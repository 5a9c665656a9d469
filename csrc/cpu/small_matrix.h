// Factorisations and solves of matrices so small that the calls into LAPACK cost more than the
// arithmetic: unrolled for the sizes 1 to 4, LAPACK beyond. Conventions are LAPACK's.
#pragma once
#include <cmath>
#include <utility>

#include "cpu/lapack.h"

namespace facula {

constexpr int kSmallMatrix = 4;

namespace detail {

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

template <int N, class T>
int small_getrf(T* a, int lda, int* pivots) {
  int info = 0;
  for (int k = 0; k < N; ++k) {
    int p = k;
    for (int i = k + 1; i < N; ++i)
      if (pivot_size(a[i + k * lda]) > pivot_size(a[p + k * lda])) p = i;
    pivots[k] = p + 1;
    if (a[p + k * lda] == T(0)) {
      if (info == 0) info = k + 1;
      continue;  // the column below is zero as well
    }
    if (p != k)
      for (int j = 0; j < N; ++j) std::swap(a[k + j * lda], a[p + j * lda]);
    for (int i = k + 1; i < N; ++i) {
      const T factor = a[i + k * lda] / a[k + k * lda];
      a[i + k * lda] = factor;
      for (int j = k + 1; j < N; ++j) a[i + j * lda] -= factor * a[k + j * lda];
    }
  }
  return info;
}

// One right-hand side of L U x = P^T b.
template <int N, class T>
void small_solve(const T* a, int lda, const int* pivots, T* b) {
  for (int i = 0; i < N; ++i) std::swap(b[i], b[pivots[i] - 1]);
  for (int i = 1; i < N; ++i)
    for (int j = 0; j < i; ++j) b[i] -= a[i + j * lda] * b[j];
  for (int i = N - 1; i >= 0; --i) {
    for (int j = i + 1; j < N; ++j) b[i] -= a[i + j * lda] * b[j];
    b[i] = b[i] / a[i + i * lda];
  }
}

// One right-hand side of U^T L^T P^T x = b, or with conjugated factors.
template <int N, bool Conjugated, class T>
void small_solve_transposed(const T* a, int lda, const int* pivots, T* b) {
  auto element = [&](int i, int j) {
    return Conjugated ? conjugate(a[i + j * lda]) : a[i + j * lda];
  };
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < i; ++j) b[i] -= element(j, i) * b[j];
    b[i] = b[i] / element(i, i);
  }
  for (int i = N - 2; i >= 0; --i)
    for (int j = i + 1; j < N; ++j) b[i] -= element(j, i) * b[j];
  for (int i = N - 1; i >= 0; --i) std::swap(b[i], b[pivots[i] - 1]);
}

template <int N, class T>
void small_getrs(char trans, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  for (int j = 0; j < nrhs; ++j, b += ldb) {
    if (trans == 'N') small_solve<N>(a, lda, pivots, b);
    else if (trans == 'T') small_solve_transposed<N, false>(a, lda, pivots, b);
    else small_solve_transposed<N, true>(a, lda, pivots, b);
  }
}

template <int N, class T>
int small_potrf_lower(T* a, int lda) {
  for (int j = 0; j < N; ++j) {
    auto d = real_part(a[j + j * lda]);
    for (int k = 0; k < j; ++k) d -= real_part(a[j + k * lda] * conjugate(a[j + k * lda]));
    if (!(d > 0)) {  // NaN too
      a[j + j * lda] = T(d);
      return j + 1;
    }
    d = std::sqrt(d);
    a[j + j * lda] = T(d);
    for (int i = j + 1; i < N; ++i) {
      T x = a[i + j * lda];
      for (int k = 0; k < j; ++k) x -= a[i + k * lda] * conjugate(a[j + k * lda]);
      a[i + j * lda] = x / T(d);
    }
  }
  return 0;
}

// f<N>() for the size n, which is at most kSmallMatrix.
template <class F>
auto with_size(int n, F&& f) {
  switch (n) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return f.template operator()<4>();
  }
}

}  // namespace detail

template <class T>
int factor_lu(int m, int n, T* a, int lda, int* pivots) {
  if (m == 0 || n == 0) return 0;
  if (m == n && n <= kSmallMatrix)
    return detail::with_size(n, [&]<int N> { return detail::small_getrf<N>(a, lda, pivots); });
  return lapack::getrf(m, n, a, lda, pivots);
}

template <class T>
void solve_lu(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  if (n == 0 || nrhs == 0) return;
  if (n <= kSmallMatrix)
    return detail::with_size(
        n, [&]<int N> { detail::small_getrs<N>(trans, nrhs, a, lda, pivots, b, ldb); });
  lapack::getrs(trans, n, nrhs, a, lda, pivots, b, ldb);
}

template <class T>
int factor_cholesky(char uplo, int n, T* a, int lda) {
  if (n == 0) return 0;
  if (uplo == 'L' && n <= kSmallMatrix)
    return detail::with_size(n, [&]<int N> { return detail::small_potrf_lower<N>(a, lda); });
  const int info = lapack::potrf(uplo, n, a, lda);
  for (int i = 0; info == 0 && i < n; ++i)  // OpenBLAS lets NaN pass
    if (!(detail::real_part(a[i + int64_t(i) * lda]) > 0)) return i + 1;
  return info;
}

}  // namespace facula
