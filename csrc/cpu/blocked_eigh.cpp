#include "cpu/blocked_eigh.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/column_products.h"
#include "cpu/lapack.h"

namespace facula {
namespace {

constexpr int kLeaf = 64;  // about the size that LAPACK solves as well in one piece

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
    const int n = end - begin, work_size = 1 + 4 * n + n * n, integers = 3 + 5 * n;
    const HostArray<T> work(work_size);
    const HostArray<int> iwork(integers);
    for (int i = 0; i < n; ++i) order_[size_t(begin + i)] = i + 1;
    return lapack::stedc('I', n, d_ + begin, e_ + begin, block(begin), n_, work.data(), work_size,
                         iwork.data(), integers);
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

}  // namespace

template <class T>
int blocked_eigh(int n, T* a, T* values, T* vectors) {
  T best{};
  lapack::sytrd<T>('L', n, nullptr, n, nullptr, nullptr, nullptr, &best, -1);
  const int work_size = std::max(n, int(best));
  const HostArray<T> work(work_size), e(n), tau(n), z(int64_t(n) * n);
  if (const int info =
          lapack::sytrd('L', n, a, n, values, e.data(), tau.data(), work.data(), work_size))
    return info;
  T scale = 0;
  for (int i = 0; i < n; ++i) scale = std::max(scale, std::abs(values[i]));
  for (int i = 0; i + 1 < n; ++i) scale = std::max(scale, std::abs(e[i]));
  if (scale == 0) scale = 1;
  for (int i = 0; i < n; ++i) values[i] /= scale;
  for (int i = 0; i + 1 < n; ++i) e[i] /= scale;
  DivideAndConquer<T> tridiagonal(n, values, e.data(), z.data());
  if (const int info = tridiagonal.run()) return info;
  std::copy_n(values, n, work.data());
  std::vector<int> order = tridiagonal.order();
  // Pieces that were joined are sorted but for rounding.
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return work[x] < work[y]; });
  for (int i = 0; i < n; ++i) {
    const int column = order[size_t(i)];
    values[i] = work[column] * scale;
    std::copy_n(z.data() + int64_t(column) * n, n, vectors + int64_t(i) * n);
  }
  // The first row is as it was.
  blocked_multiply_by_q(false, n - 1, n, n - 1, a + 1, n, tau.data(), vectors + 1, n);
  return 0;
}

template int blocked_eigh<float>(int, float*, float*, float*);
template int blocked_eigh<double>(int, double*, double*, double*);

}  // namespace facula
