#include "cpu/spectral.h"

#include <cmath>
#include <limits>
#include <optional>

#include "cpu/blocked_eigh.h"
#include "cpu/blocked_svd.h"
#include "cpu/hessenberg.h"
#include "cpu/magnitude.h"
#include "cpu/small_matrix.h"
#include "kernels/linalg_matrices.h"

namespace facula {
namespace {

// The size that a query left in work[0]; large ones were rounded to a floating-point number.
template <class T>
int asked_for(const T& work) {
  double size;
  if constexpr (is_complex_v<T>) size = double(work.re);
  else size = double(work);
  return lapack_int(int64_t(size * (1 + 1e-6)) + 1);
}

template <class T>
T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}

double cube(int64_t n) {
  return double(n) * double(n) * double(n);
}

// Whether matrices are taken one to a lane: tiny ones always, larger ones if they fill half of the
// lanes, from where on that is quicker.
template <class T>
bool suit_lanes(int64_t rows, int64_t columns, int64_t count) {
  if constexpr (is_complex_v<T>) return false;
  else
    return rows > 0 && columns > 0 && std::max(rows, columns) <= kMostInLanes &&
           (std::max(rows, columns) <= 2 * kTinyMatrix || 2 * count >= spectral_lanes<T>().lanes);
}

// in_lanes(first, count, scratch, outcome) over all matrices, then alone(begin, end) for those that
// it could not decide.
template <class T, class F, class G>
void decompose_in_lanes(int64_t total, double operations_each, int64_t scratch_size, int* info,
                        const F& in_lanes, const G& alone) {
  const int64_t lanes = spectral_lanes<T>().lanes;
  const auto grain = int64_t(32768 * 4 / operations_each);
  parallel_for(0, (total + lanes - 1) / lanes, std::max<int64_t>(grain / lanes, 1),
               [&](int64_t begin, int64_t end) {
                 const HostArray<T> scratch(scratch_size);
                 LaneOutcome outcome[MatrixLanes<T>::kMost];
                 for (int64_t first = begin * lanes; first < std::min(end * lanes, total);
                      first += lanes) {
                   const int count = int(std::min(lanes, total - first));
                   in_lanes(first, count, scratch.data(), outcome);
                   for (int l = 0; l < count; ++l) {
                     if (outcome[l] == LaneOutcome::Undecided) alone(first + l, first + l + 1);
                     else info[first + l] = outcome[l] == LaneOutcome::Done ? 0 : kNotFinite;
                   }
                 }
               });
}

// ---- singular values

// to is columns x rows, from rows x columns.
template <class T>
void transpose(int rows, int columns, const T* from, T* to) {
  copy_to_columns<T>(to, columns, from, rows, 1, columns, rows);
}

// The transpose of a wide matrix is tall and has the vectors of the other side.
template <class T>
int decompose_blocked(int m, int n, T* a, T* s, int columns, T* u, int rows, T* vh) {
  if (m >= n) {
    if (!u) return blocked_svdvals(m, n, a, s);
    const HostArray<T> v(int64_t(n) * n);
    const int info = blocked_svd(m, n, a, s, columns, u, v.data());
    transpose(n, n, v.data(), vh);
    return info;
  }
  const HostArray<T> turned(int64_t(m) * n), v(int64_t(n) * rows);
  transpose(m, n, a, turned.data());
  if (!u) return blocked_svdvals(n, m, turned.data(), s);
  const int info = blocked_svd(n, m, turned.data(), s, rows, v.data(), u);
  transpose(n, rows, v.data(), vh);
  return info;
}

template <class T>
void svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& info) {
  using R = real_of_t<T>;
  const MatrixBatch in(a);
  const int m = lapack_int(in.rows), n = lapack_int(in.columns), k = std::min(m, n);
  const int64_t larger = std::max(m, n), columns = u.defined() ? u.size(-1) : 0,
                rows = vh.defined() ? vh.size(-2) : 0;
  const char job = !u.defined() ? 'N' : columns == m && rows == n ? 'A' : 'S';
  T *const u_data = data_or_null<T>(u), *const vh_data = data_or_null<T>(vh);
  const bool blocked = !is_complex_v<T> && k > 0;
  const auto decompose_all = [&](int64_t begin, int64_t end) {
    HostArray<T> matrix(int64_t(m) * n);
    HostArray<int> iwork(8 * k);
    HostArray<R> rwork(!is_complex_v<T> ? 0
                       : job == 'N'     ? 7 * int64_t(k)
                                        : k * std::max<int64_t>(5 * k + 5, 2 * larger + 2 * k + 1));
    auto decompose = [&](int64_t i, T* work, int lwork) {
      return lapack::gesdd<T>(job, m, n, matrix.data(), m, s.data_as<R>() + i * k,
                              u_data ? u_data + i * m * columns : nullptr, m,
                              vh_data ? vh_data + i * rows * n : nullptr,
                              int(std::max<int64_t>(rows, 1)), work, lwork, rwork.data(),
                              iwork.data());
    };
    T best{};
    decompose(begin, &best, -1);
    const int lwork = asked_for(best);
    HostArray<T> work(lwork);
    for (int64_t i = begin; i < end; ++i) {
      copy_to_columns(matrix.data(), m, in, i);
      int& result = info.data_as<int>()[i];
      if (!is_finite(matrix.data(), int64_t(m) * n)) {
        result = kNotFinite;
        continue;
      }
      if constexpr (!is_complex_v<T>) {
        if (blocked && is_moderate(largest_magnitude(matrix.data(), int64_t(m) * n))) {
          result = decompose_blocked(m, n, matrix.data(), s.data_as<R>() + i * k, int(columns),
                                     u_data ? u_data + i * m * columns : nullptr, int(rows),
                                     vh_data ? vh_data + i * rows * n : nullptr);
          continue;
        }
      }
      result = decompose(i, work.data(), lwork);
    }
  };
  if constexpr (!is_complex_v<T>) {
    // Tall matrices and the transposes of wide ones, unless more than k vectors are asked for.
    if (suit_lanes<T>(m, n, in.count()) && larger <= 4 * k &&
        (!u_data || columns + rows == 2 * k)) {
      using Place = typename SpectralLanes<T>::Place;
      const auto in_lanes = [&](int64_t first, int count, T* scratch, LaneOutcome* outcome) {
        auto from = lanes_of<T>(in, first, count);
        Place left{}, right{};
        if (u_data) left = {u_data + first * m * k, 1, m, int64_t(m) * k};
        if (u_data) right = {vh_data + first * k * n, k, 1, int64_t(k) * n};
        if (m < n) std::swap(from.row_stride, from.column_stride), std::swap(left, right);
        spectral_lanes<T>().svd(int(larger), k, count, from, s.data_as<T>() + first * k, left,
                                right, scratch, outcome);
      };
      return decompose_in_lanes<T>(in.count(), 20 * cube(k),
                                   spectral_lanes<T>().svd_scratch(larger, k), info.data_as<int>(),
                                   in_lanes, decompose_all);
    }
  }
  for_matrices(in.count(), 20 * cube(k), decompose_all, blocked);
}

// ---- Hermitian matrices

template <class T>
void eigh(const Tensor& a, bool lower, const Tensor& values, const Tensor& vectors,
          const Tensor& info) {
  using R = real_of_t<T>;
  const MatrixBatch in(a);
  const int n = lapack_int(in.rows);
  const int64_t size = int64_t(n) * n;
  T* const v = data_or_null<T>(vectors);
  R* const w = values.data_as<R>();
  const auto by_lapack = [=](T* matrix, R* found) {
    const char job = v ? 'V' : 'N', uplo = lower ? 'L' : 'U';
    T best{};
    R best_real{};
    int best_int = 0;
    lapack::syevd<T>(job, uplo, n, matrix, n, found, &best, -1, &best_real, -1, &best_int, -1);
    const int lwork = asked_for(best), lrwork = is_complex_v<T> ? asked_for(best_real) : 1,
              liwork = std::max(1, best_int);
    const HostArray<T> work(lwork);
    const HostArray<R> rwork(lrwork);
    const HostArray<int> iwork(liwork);
    return lapack::syevd<T>(job, uplo, n, matrix, n, found, work.data(), lwork, rwork.data(),
                            lrwork, iwork.data(), liwork);
  };
  const bool blocked = !is_complex_v<T> && n > 1;
  const auto decompose = [&](int64_t begin, int64_t end) {
    const HostArray<T> copy(v && !blocked ? 0 : size);
    for (int64_t i = begin; i < end; ++i) {
      int& result = info.data_as<int>()[i];
      T* matrix = v ? v + i * size : copy.data();  // the vectors take the place of the matrix
      if constexpr (!is_complex_v<T>) {
        // The other triangle does not count but for being finite.
        copy_to_columns(copy.data(), n, in.at<T>(i), lower ? in.row_stride : in.column_stride,
                        lower ? in.column_stride : in.row_stride, n, n);
        if (is_moderate(largest_magnitude(copy.data(), size))) {
          result = v ? blocked_eigh(n, copy.data(), w + i * n, matrix)
                     : blocked_eigvalsh(n, copy.data(), w + i * n);
          continue;
        }
      }
      copy_to_columns(matrix, n, in, i);
      result = is_finite(matrix, size) ? by_lapack(matrix, w + i * n) : kNotFinite;
    }
  };
  if constexpr (!is_complex_v<T>) {
    if (suit_lanes<T>(n, n, in.count())) {
      const auto in_lanes = [&](int64_t first, int count, T* scratch, LaneOutcome* outcome) {
        spectral_lanes<T>().eigh(n, count, lanes_of<T>(in, first, count), lower, w + first * n,
                                 v ? v + first * size : nullptr, scratch, outcome);
      };
      return decompose_in_lanes<T>(in.count(), 10 * cube(n), spectral_lanes<T>().eigh_scratch(n),
                                   info.data_as<int>(), in_lanes, decompose);
    }
  }
  for_matrices(in.count(), 10 * cube(n), decompose, blocked);
}

// ---- any square matrices

// LAPACK gives the eigenvalues of a real matrix as real and imaginary parts, and in two columns the
// real and imaginary part of the vectors of a conjugate pair.
template <class R>
void unpack_pairs(int n, const R* values, const R* vectors, Complex<R>* w, Complex<R>* v) {
  using C = Complex<R>;
  for (int j = 0; j < n; ++j) w[j] = C(values[j], values[n + j]);
  for (int j = 0; v && j < n; ++j) {
    const R* re = vectors + int64_t(j) * n;
    C* column = v + int64_t(j) * n;
    if (values[n + j] == 0 || j + 1 == n) {
      for (int r = 0; r < n; ++r) column[r] = C(re[r], 0);
      continue;
    }
    const R* im = re + n;
    for (int r = 0; r < n; ++r) {
      column[r] = C(re[r], im[r]);
      column[n + r] = C(re[r], -im[r]);
    }
    ++j;
  }
}

template <class T>
void eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  using R = real_of_t<T>;
  using C = Complex<R>;
  const MatrixBatch in(a);
  const int n = lapack_int(in.rows);
  const int64_t size = int64_t(n) * n;
  C *const w = values.data_as<C>(), *const v = data_or_null<C>(vectors);
  const bool own = !is_complex_v<T> && n > 0 && n <= kMostHessenberg;
  const auto decompose_all = [&](int64_t begin, int64_t end) {
    HostArray<T> matrix(size), pairs(is_complex_v<T> ? 0 : 2 * n),
        columns(!is_complex_v<T> && v ? size : 0);
    HostArray<R> rwork(2 * n);
    int lwork = 0;
    const auto decompose = [&](int64_t i, T* work, int lwork) {
      T *own_w = pairs.data(), *own_v = columns.data();
      if constexpr (is_complex_v<T>) own_w = w + i * n, own_v = v ? v + i * size : nullptr;
      return lapack::geev<T>('N', v ? 'V' : 'N', n, matrix.data(), n, own_w, nullptr, 1, own_v,
                             v ? n : 1, work, lwork, rwork.data());
    };
    std::optional<HostArray<T>> work;
    const auto by_lapack = [&](int64_t i) {
      T best{};
      if (!work) {
        decompose(i, &best, -1);
        work.emplace(lwork = asked_for(best));
      }
      return decompose(i, work->data(), lwork);
    };
    for (int64_t i = begin; i < end; ++i) {
      copy_to_columns(matrix.data(), n, in, i);
      int& result = info.data_as<int>()[i];
      if (!is_finite(matrix.data(), size)) {
        result = kNotFinite;
      } else if constexpr (is_complex_v<T>) {
        result = by_lapack(i);
      } else {
        result = own && is_moderate(largest_magnitude(matrix.data(), size))
                     ? real_eig(n, matrix.data(), pairs.data(), v ? columns.data() : nullptr)
                     : by_lapack(i);
        if (result == 0)
          unpack_pairs(n, pairs.data(), columns.data(), w + i * n, v ? v + i * size : nullptr);
      }
    }
  };
  for_matrices(in.count(), 25 * cube(n), decompose_all, own);
}

}  // namespace

void cpu_svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
             const Tensor& info) {
  dispatch_lapack(a.dtype(), [&]<class T> { svd<T>(a, u, s, vh, info); });
}

void cpu_eigh(const Tensor& a, bool lower, const Tensor& values, const Tensor& vectors,
              const Tensor& info) {
  dispatch_lapack(a.dtype(), [&]<class T> { eigh<T>(a, lower, values, vectors, info); });
}

void cpu_eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  dispatch_lapack(a.dtype(), [&]<class T> { eig<T>(a, values, vectors, info); });
}

}  // namespace facula
