#include "cpu/blocked_eigh.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/column_products.h"
#include "cpu/lapack.h"
#include "cpu/matrix_panels.h"
#include "cpu/tridiagonal.h"

namespace facula {
namespace {

constexpr int kLeaf = 64;    // pieces of up to twice as many rows are not cut
constexpr int kFused = 400;  // rows up to which the matrix stays in the second-level cache

// The eigenvalues of a tridiagonal matrix, ascending, in d, and the columns of z, turned alike, in
// `vectors`, whose columns are ld apart. The columns of z end with zeros. LAPACK's info.
template <class T>
int solve_tridiagonal(int n, T* d, T* e, T* z, T* vectors, int64_t ld) {
  const HostArray<T> room(2 * n);
  if (!tridiagonal<T>().solve(n, d, e, z, room.data())) return 1;
  const HostArray<int> order(n);
  for (int i = 0; i < n; ++i) order[i] = i;
  std::copy_n(d, n, room.data());
  std::sort(order.data(), order.data() + n, [&](int x, int y) { return room[x] < room[y]; });
  for (int i = 0; i < n; ++i) {
    d[i] = room[order[i]];
    std::copy_n(z + order[i] * panel_stride<T>(n), n, vectors + i * ld);
  }
  return 0;
}

// A tridiagonal matrix with the diagonal d and e beside it, cut into 2^levels pieces.
template <class T>
class DivideAndConquer {
 public:
  DivideAndConquer(int n, T* d, T* e, T* z) : n_(n), d_(d), e_(e), z_(z), order_(size_t(n)) {
    for (int pieces = 1;; pieces *= 2) {
      cuts_.emplace_back();
      for (int i = 0; i <= pieces; ++i) cuts_.back().push_back(int(int64_t(n) * i / pieces));
      if (n / pieces < 2 * kLeaf) break;
    }
  }

  int run() {
    std::fill_n(z_, int64_t(n_) * n_, T(0));
    // Each cut takes a matrix of rank one away: |e| from both sides of the diagonal.
    const std::vector<int>& leaves = cuts_.back();
    for (size_t i = 1; i + 1 < leaves.size(); ++i) {
      const int row = leaves[i];
      d_[row - 1] -= std::abs(e_[row - 1]);
      d_[row] -= std::abs(e_[row - 1]);
    }
    for_pieces(leaves.size() - 1, [&](int64_t i) { return solve(leaves[i], leaves[i + 1]); });
    for (size_t level = cuts_.size() - 1; level-- > 0;) {
      const std::vector<int>&whole = cuts_[level], &half = cuts_[level + 1];
      for_pieces(whole.size() - 1,
                 [&](int64_t i) { return join(whole[i], half[2 * i + 1], whole[i + 1]); });
    }
    return info_;
  }
  // The columns of z as their eigenvalues ascend.
  std::vector<int> order() const {
    std::vector<int> columns(order_);
    for (int& column : columns) --column;
    return columns;
  }

 private:
  T* block(int row) const { return z_ + row + int64_t(row) * n_; }

  template <class F>
  void for_pieces(size_t count, F&& f) {
    parallel_for(0, int64_t(count), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (const int info = f(i)) info_ = info;
    });
  }
  int solve(int begin, int end) {
    const int n = end - begin;
    const int64_t ld = panel_stride<T>(n);
    const HostArray<T> own(ld * n);
    std::fill_n(own.data(), ld * n, T(0));
    for (int i = 0; i < n; ++i) {
      own[i + i * ld] = 1;
      order_[size_t(begin + i)] = i + 1;
    }
    return solve_tridiagonal(n, d_ + begin, e_ + begin, own.data(), block(begin), n_);
  }
  // As LAPACK's laed1 and laed3 do, with roots, vectors and products shared by the pool.
  int join(int begin, int cut, int end) {
    const int n = end - begin, n1 = cut - begin, n2 = end - cut;
    T *q = block(begin), *d = d_ + begin;
    int* order = order_.data() + begin;
    const HostArray<T> numbers(4 * int64_t(n)), q2(int64_t(n) * n);
    const HostArray<int> integers(4 * int64_t(n));
    T *z = numbers.data(), *poles = z + n, *w = poles + n, *signs = w + n;
    int *indx = integers.data(), *place = indx + n, *types = place + n, *indxp = types + n;
    for (int j = 0; j < n1; ++j) z[j] = q[n1 - 1 + int64_t(j) * n_];
    for (int j = n1; j < n; ++j) z[j] = q[n1 + int64_t(j) * n_];
    T rho = e_[cut - 1];
    int k = 0;
    if (const int info = lapack::laed2(&k, n, n1, d, q, n_, order, &rho, z, poles, w, q2.data(),
                                       indx, place, indxp, types))
      return info;
    if (k == 0) {
      for (int i = 0; i < n; ++i) order[i] = i + 1;
      return 0;
    }
    std::atomic<int> failed{0};
    for_columns(k, [&](int64_t b, int64_t e) {
      for (int64_t j = b; j < e; ++j)
        if (const int info = lapack::laed4(k, int(j) + 1, poles, w, q + j * n_, rho, d + j))
          failed = info;
    });
    if (failed) return failed;
    if (k > 2) find_vectors(k, q, poles, w, signs);
    // The first rows of the vectors go with columns of the first half, the last ones with the
    // second half; some go with both.
    const int n12 = types[0] + types[1], n23 = types[1] + types[2];
    const HostArray<T> s(int64_t(k) * k);
    for_columns(k, [&](int64_t b, int64_t e) {
      for (int64_t j = b; j < e; ++j) {
        T *to = s.data() + j * k, *from = q + j * n_;
        T length = 1;
        if (k > 2) {
          for (int i = 0; i < k; ++i) from[i] = w[i] / from[i];
          length = norm(k, from);
        }
        for (int i = 0; i < k; ++i) to[i] = k == 1 ? from[i] : from[place[i] - 1] / length;
      }
      T* columns = q + b * n_;
      const T *upper = q2.data(), *lower = upper + int64_t(n1) * n12, *part = s.data() + b * k;
      multiply<T>(n1, e - b, n12, 1, plain(upper, n1), part, k, 0, columns, n_);
      multiply<T>(n2, e - b, n23, 1, plain(lower, n2), part + types[0], k, 0, columns + n1, n_);
    });
    lapack::lamrg(k, n - k, d, 1, -1, order);
    return 0;
  }

  // The z for which the roots that were found are exact: with its vectors are orthogonal. Columns
  // of q hold the distances of poles and roots.
  void find_vectors(int k, const T* q, const T* poles, T* w, T* signs) const {
    std::copy_n(w, k, signs);
    parallel_for(0, k, 32, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) w[i] = q[i + i * n_];
      for (int64_t j = 0; j < k; ++j) {
        const T *column = q + j * n_, pole = poles[j];
        for (int64_t i = begin; i < end; ++i)
          if (i != j) w[i] *= column[i] / (poles[i] - pole);
      }
      for (int64_t i = begin; i < end; ++i) w[i] = std::copysign(std::sqrt(-w[i]), signs[i]);
    });
  }
  static T norm(int n, const T* x) {
    constexpr int kSums = 8;
    double sums[kSums] = {};
    int i = 0;
    for (; i + kSums <= n; i += kSums)
      for (int k = 0; k < kSums; ++k) sums[k] += double(x[i + k]) * double(x[i + k]);
    for (; i < n; ++i) sums[0] += double(x[i]) * double(x[i]);
    for (int k = 1; k < kSums; ++k) sums[0] += sums[k];
    return T(std::sqrt(sums[0]));
  }

  int n_;
  T *d_, *e_, *z_;
  std::vector<std::vector<int>> cuts_;  // where pieces begin and end, from the whole to the leaves
  std::vector<int> order_;
  std::atomic<int> info_{0};
};

// The tridiagonal form of a symmetric matrix, divided by its largest element.
template <class T>
class TridiagonalForm {
 public:
  // By the lower triangle of a, whose columns are ld apart.
  TridiagonalForm(int n, const T* a, int64_t ld, T* d)
      : n_(n), ld_(panel_stride<T>(n)), a_(ld_ * n), e_(n), tau_(n) {
    for (int j = 0; j < n; ++j) {
      std::copy_n(a + j * ld, n, at(j));
      std::fill(at(j) + n, at(j) + ld_, T(0));
    }
    if (n <= kFused) {
      const HostArray<T> room(3 * ld_);
      tridiagonal<T>().reduce(n, at(0), d, e_.data(), tau_.data(), room.data());
    } else {
      T best{};
      lapack::sytrd<T>('L', n, nullptr, int(ld_), nullptr, nullptr, nullptr, &best, -1);
      const HostArray<T> work(std::max(n, int(best)));
      lapack::sytrd('L', n, at(0), int(ld_), d, e(), tau_.data(), work.data(),
                    std::max(n, int(best)));
    }
    scale_ = 0;
    for (int i = 0; i < n; ++i) scale_ = std::max(scale_, std::abs(d[i]));
    for (int i = 0; i + 1 < n; ++i) scale_ = std::max(scale_, std::abs(e_[i]));
    if (scale_ == 0) scale_ = 1;
    for (int i = 0; i < n; ++i) d[i] /= scale_;
    for (int i = 0; i + 1 < n; ++i) e_[i] /= scale_;
  }
  T scale() const { return scale_; }
  T* e() { return e_.data(); }

  int solve_whole(T* d, T* vectors) {
    const HostArray<T> q(ld_ * n_);
    std::fill_n(q.data(), ld_ * n_, T(0));
    tridiagonal<T>().expand(n_, at(0), tau_.data(), q.data());
    return solve_tridiagonal(n_, d, e(), q.data(), vectors, n_);
  }
  void turn_back(T* vectors) {  // the first row stays as it is
    blocked_multiply_by_q(false, n_ - 1, n_, n_ - 1, at(0) + 1, int(ld_), tau_.data(), vectors + 1,
                          n_);
  }

 private:
  T* at(int column) const { return a_.data() + column * ld_; }

  int n_;
  int64_t ld_;
  HostArray<T> a_, e_, tau_;
  T scale_;
};

}  // namespace

template <class T>
int blocked_eigvalsh(int n, const T* a, T* values) {
  TridiagonalForm<T> form(n, a, n, values);
  const int info = lapack::sterf(n, values, form.e());
  for (int i = 0; i < n; ++i) values[i] *= form.scale();
  return info;
}

template <class T>
int blocked_eigh(int n, const T* a, T* values, T* vectors) {
  TridiagonalForm<T> form(n, a, n, values);
  if (n < 2 * kLeaf) {
    const int info = form.solve_whole(values, vectors);
    for (int i = 0; i < n; ++i) values[i] *= form.scale();
    return info;
  }
  const HostArray<T> z(int64_t(n) * n), unsorted(n);
  DivideAndConquer<T> divided(n, values, form.e(), z.data());
  if (const int info = divided.run()) return info;
  std::copy_n(values, n, unsorted.data());
  std::vector<int> order = divided.order();
  // Pieces that were joined are sorted but for rounding.
  std::stable_sort(order.begin(), order.end(),
                   [&](int x, int y) { return unsorted[x] < unsorted[y]; });
  for (int i = 0; i < n; ++i) {
    const int column = order[size_t(i)];
    values[i] = unsorted[column] * form.scale();
    std::copy_n(z.data() + int64_t(column) * n, n, vectors + int64_t(i) * n);
  }
  form.turn_back(vectors);
  return 0;
}

template int blocked_eigvalsh<float>(int, const float*, float*);
template int blocked_eigvalsh<double>(int, const double*, double*);
template int blocked_eigh<float>(int, const float*, float*, float*);
template int blocked_eigh<double>(int, const double*, double*, double*);

}  // namespace facula
