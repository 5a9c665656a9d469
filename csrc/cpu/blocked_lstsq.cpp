#include "cpu/blocked_lstsq.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/column_products.h"
#include "cpu/lapack.h"

namespace facula {
namespace {

// How many columns of a triangle, whose diagonal falls, count: as long as estimates of the least
// and the largest singular value of the first columns are less than 1 / rcond apart.
template <class T>
int estimate_rank(int n, const T* r, int64_t ld, T rcond) {
  const HostArray<T> least(n), most(n);
  T smallest = std::abs(r[0]), largest = smallest;
  if (smallest == 0) return 0;
  least[0] = most[0] = 1;
  for (int rank = 1; rank < n; ++rank) {
    const T *column = r + rank * ld, diagonal = column[rank];
    T next_smallest, next_largest, s1, c1, s2, c2;
    lapack::laic1(2, rank, least.data(), smallest, column, diagonal, &next_smallest, &s1, &c1);
    lapack::laic1(1, rank, most.data(), largest, column, diagonal, &next_largest, &s2, &c2);
    if (!(next_largest * rcond <= next_smallest)) return rank;
    for (int i = 0; i < rank; ++i) {
      least[i] *= s1;
      most[i] *= s2;
    }
    least[rank] = c1;
    most[rank] = c2;
    smallest = next_smallest;
    largest = next_largest;
  }
  return n;
}

// With exchanged columns. a has columns lda apart.
template <class T>
int solve_pivoted(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T rcond) {
  T best[3] = {};
  lapack::geqp3<T>(m, n, nullptr, lda, nullptr, nullptr, best, -1);
  lapack::tzrzf<T>(n, n, nullptr, lda, nullptr, best + 1, -1);
  lapack::ormrz<T>('L', 'T', n, nrhs, n, 0, nullptr, lda, nullptr, nullptr, ldb, best + 2, -1);
  const int work_size = std::max({3 * n + 1, int(best[0]), int(best[1]), int(best[2])});
  const HostArray<T> tau(n), work(work_size);
  const HostArray<int> place(n);
  std::fill_n(place.data(), n, 0);
  lapack::geqp3(m, n, a, lda, place.data(), tau.data(), work.data(), work_size);
  blocked_multiply_by_q(true, m, nrhs, n, a, lda, tau.data(), b, ldb);
  const int rank = estimate_rank(n, a, lda, rcond);
  const bool full = rank == n;
  if (rank > 0 && !full) lapack::tzrzf(rank, n, a, lda, tau.data(), work.data(), work_size);
  if (rank > 0) blocked_solve_upper(rank, nrhs, a, lda, b, ldb);
  for (int64_t j = 0; j < nrhs; ++j) std::fill(b + j * ldb + rank, b + j * ldb + n, T(0));
  if (rank > 0 && !full)
    lapack::ormrz('L', 'T', n, nrhs, rank, n - rank, a, lda, tau.data(), b, ldb, work.data(),
                  work_size);
  for_columns(nrhs, [&](int64_t begin, int64_t end) {
    const HostArray<T> solution(n);
    for (int64_t j = begin; j < end; ++j) {
      T* column = b + j * ldb;
      for (int i = 0; i < n; ++i) solution[place[i] - 1] = column[i];
      std::copy_n(solution.data(), n, column);
    }
  });
  return rank;
}

}  // namespace

// Columns are exchanged for the sake of the rank. It is judged by estimates that lie between the
// singular values, so it is full wherever rcond times the condition number is below 1; then
// R x = Q^T b has one solution, in whatever order of columns.
template <class T>
int blocked_lstsq(int m, int n, int nrhs, T* a, T* b, int ldb, T rcond) {
  const bool tall = m >= 2 * n;
  const HostArray<T> tau(n), kept(tall ? 0 : int64_t(m) * (n + nrhs));
  T* const kept_b = kept.data() + int64_t(m) * n;
  if (!tall) {
    std::copy_n(a, int64_t(m) * n, kept.data());
    for (int64_t j = 0; j < nrhs; ++j) std::copy_n(b + j * ldb, m, kept_b + j * m);
  }
  blocked_qr_of_system(m, n, a, m, tau.data(), nrhs, b, ldb);
  const double most = 1 / std::max(double(rcond), double(std::numeric_limits<T>::epsilon()));
  const bool certain = blocked_is_well_conditioned(n, a, m, 0.8 * most);  // with room for rounding
  if (!certain && !tall) {
    for (int64_t j = 0; j < nrhs; ++j) std::copy_n(kept_b + j * m, m, b + j * ldb);
    return solve_pivoted(m, n, nrhs, kept.data(), m, b, ldb, rcond);
  }
  if (certain) {
    blocked_solve_upper(n, nrhs, a, m, b, ldb);
    return n;
  }
  // R has the singular values and the lengths of the columns of a.
  for (int64_t j = 0; j < n; ++j) std::fill(a + j * m + j + 1, a + j * m + n, T(0));
  return solve_pivoted(n, n, nrhs, a, m, b, ldb, rcond);
}

template int blocked_lstsq<float>(int, int, int, float*, float*, int, float);
template int blocked_lstsq<double>(int, int, int, double*, double*, int, double);

}  // namespace facula
