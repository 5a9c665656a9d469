// Factorisations and solves of matrices so small that the calls into LAPACK cost more than the
// arithmetic. Up to kSmallMatrix rows and columns they are done here, one matrix at a time or, up
// to kTinyMatrix, one in each lane of a vector; larger ones by LAPACK or, if they are real, from
// kBlockedMatrix on (QR: above kSmallMatrix) by blocked_matrix.h. Conventions are LAPACK's.
#pragma once
#include <algorithm>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/lapack.h"
#include "cpu/matrix_panels.h"

namespace facula {

constexpr int kSmallMatrix = 16, kTinyMatrix = 4;
constexpr int kMostInLanes = 64;  // rows of the matrices that SpectralLanes takes

// Sizes are positive.
template <class T>
struct SmallMatrix {
  int (*getrf)(int m, int n, T* a, int lda, int* pivots);
  void (*getrs)(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb);
  int (*potrf_lower)(int n, T* a, int lda);
  void (*geqrf)(int m, int n, T* a, int lda, T* tau);
  void (*orgqr)(int m, int n, int k, T* a, int lda, const T* tau);
};

// n x n matrices with n <= kTinyMatrix, as many at a time as a vector has lanes, in any place.
// Results are dense, column-major and follow each other.
template <class T>
struct MatrixLanes {
  static constexpr int kMost = 64 / sizeof(T);
  struct Source {
    const T* at[kMost];
    int64_t row_stride, column_stride;
  };
  int lanes;  // at most kMost; the functions take `count` up to it
  void (*factor)(int n, int count, const Source& from, T* lu, int* pivots, int* info);
  void (*invert)(int n, int count, const Source& from, T* inverse, int* info);
  // lu is dense, with n pivots for each matrix; b has nrhs columns.
  void (*solve)(int n, int nrhs, int count, const T* const* lu, const int* const* pivots,
                const Source& b, T* x);
};

// Eigenvalues and singular values of up to `lanes` matrices, one in each lane. The results of a
// matrix do not depend on its neighbours. `outcome` says for each whether they are valid.
enum class LaneOutcome { Done, NotFinite, Undecided };
template <class T>
struct SpectralLanes {
  using Source = typename MatrixLanes<T>::Source;
  int lanes;
  // n x n; one triangle is read. Values ascend; v (column-major) may be null. The room is for
  // eigh_scratch(n) numbers.
  void (*eigh)(int n, int count, const Source& from, bool lower, T* w, T* v, T* scratch,
               LaneOutcome* outcome);
  // m x n with m >= n. Values descend; u (m x n) and v (n x n) may be null together. Their elements
  // (i, k) are at i * step_i + k * step_k; room is for svd_scratch(m, n) numbers.
  struct Place {
    T* at;
    int64_t step_i, step_k;
    int64_t matrix;  // from one matrix to the next
  };
  void (*svd)(int m, int n, int count, const Source& from, T* s, Place u, Place v, T* scratch,
              LaneOutcome* outcome);

  int64_t eigh_scratch(int64_t n) const { return (2 * n * n + 5 * n) * lanes; }
  int64_t svd_scratch(int64_t m, int64_t n) const { return (2 * m * n + n * n + 7 * n) * lanes; }
};

// Factors up to MatrixLanes::kMost matrices with n <= kSmallMatrix, in any place. Results are
// dense, column-major and follow each other.
using SmallLu = void (*)(int n, int count, const MatrixLanes<float>::Source& from, float* lu,
                         int* pivots, int* info);

// For the instruction set of this machine.
template <class T>
const SmallMatrix<T>& small_matrix();
template <class T>  // float and double
const MatrixLanes<T>& matrix_lanes();
template <class T>  // float and double
const SpectralLanes<T>& spectral_lanes();
SmallLu small_lu();

template <class T>
bool is_blocked(int m, int n) {
  return !is_complex_v<T> && std::min(m, n) >= kBlockedMatrix;
}

// The same of QR, whose panels are narrower.
template <class T>
bool is_qr_blocked(int m, int n) {
  return !is_complex_v<T> && std::min(m, n) > kSmallMatrix;
}

template <class T>
int factor_lu(int m, int n, T* a, int lda, int* pivots) {
  if (m == 0 || n == 0) return 0;
  if (std::max(m, n) <= kSmallMatrix) return small_matrix<T>().getrf(m, n, a, lda, pivots);
  if constexpr (!is_complex_v<T>) {
    if (is_blocked<T>(m, n)) return blocked_lu(m, n, a, lda, pivots);
    if (m >= n) {
      const HostArray<T> scratch(panel_scratch<T>(m, n));
      return matrix_panels<T>().lu(m, n, a, lda, pivots, scratch.data());
    }
  }
  return lapack::getrf(m, n, a, lda, pivots);
}

template <class T>
void solve_lu(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  if (n == 0 || nrhs == 0) return;
  if (n <= kSmallMatrix) return small_matrix<T>().getrs(trans, n, nrhs, a, lda, pivots, b, ldb);
  if constexpr (is_complex_v<T>) lapack::getrs(trans, n, nrhs, a, lda, pivots, b, ldb);
  else blocked_lu_solve(trans, n, nrhs, a, lda, pivots, b, ldb);
}

namespace detail {

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

}  // namespace detail

template <class T>
int factor_cholesky(char uplo, int n, T* a, int lda) {
  if (n == 0) return 0;
  if (uplo == 'L' && n <= kSmallMatrix) return small_matrix<T>().potrf_lower(n, a, lda);
  const int info = lapack::potrf(uplo, n, a, lda);
  for (int i = 0; info == 0 && i < n; ++i)  // OpenBLAS lets NaN pass
    if (!(detail::real_part(a[i + int64_t(i) * lda]) > 0)) return i + 1;
  return info;
}

template <class T>
void factor_qr(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {
  if (m == 0 || n == 0) return;
  if (std::max(m, n) <= kSmallMatrix) return small_matrix<T>().geqrf(m, n, a, lda, tau);
  if constexpr (!is_complex_v<T>)
    if (is_qr_blocked<T>(m, n)) return blocked_qr(m, n, a, lda, tau);
  lapack::geqrf(m, n, a, lda, tau, work, lwork);
}

template <class T>
void expand_qr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) {
  if (m == 0 || n == 0) return;
  if (m <= kSmallMatrix) return small_matrix<T>().orgqr(m, n, k, a, lda, tau);
  if constexpr (!is_complex_v<T>)
    if (is_qr_blocked<T>(m, k)) return blocked_q(m, n, k, a, lda, tau);
  lapack::orgqr(m, n, k, a, lda, tau, work, lwork);
}

}  // namespace facula
