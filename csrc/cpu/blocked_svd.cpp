#include "cpu/blocked_svd.h"

#include <algorithm>
#include <cstdint>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/lapack.h"
#include "cpu/turn_block.h"

namespace facula {
namespace {

// The n x n matrix `from`, and below and beside it the identity.
template <class T>
void extend(int m, int columns, int n, const T* from, T* to) {
  for (int64_t j = 0; j < columns; ++j) {
    T* column = to + j * m;
    if (j < n) std::copy_n(from + j * n, n, column);
    std::fill(column + (j < n ? n : 0), column + m, T(0));
    if (j >= n) column[j] = T(1);
  }
}

// m >= n, by the bidiagonal form.
template <class T>
int decompose(int m, int n, T* a, T* s, int columns, T* u, T* v) {
  T best{};
  lapack::gebrd<T>(m, n, nullptr, m, nullptr, nullptr, nullptr, nullptr, &best, -1);
  const int work_size = std::max(m, int(best));
  const int64_t size = int64_t(n) * n;
  const HostArray<T> e(n), left(n), right(n), inner(size), turned(size),
      work(std::max<int64_t>(work_size, 3 * size + 4 * n));
  const HostArray<int> iwork(8 * n);
  if (const int info =
          lapack::gebrd(m, n, a, m, s, e.data(), left.data(), right.data(), work.data(), work_size))
    return info;
  if (const int info = lapack::bdsdc('U', n, s, e.data(), inner.data(), n, turned.data(), n,
                                     work.data(), iwork.data()))
    return info;
  extend(m, columns, n, inner.data(), u);
  blocked_multiply_by_q(false, m, columns, n, a, m, left.data(), u, m);
  turn_matrix<T>(v, n, turned.data(), n, n, n);
  // Reflectors of the right side lie in rows, from the second column on.
  turn_matrix<T>(inner.data(), n, a + m, m, n - 1, n - 1);
  blocked_multiply_by_q(false, n - 1, n, n - 1, inner.data(), n, right.data(), v + 1, n);
  return 0;
}

}  // namespace

template <class T>
int blocked_svd(int m, int n, T* a, T* s, int columns, T* u, T* v) {
  if (m < n + n / 2) return decompose(m, n, a, s, columns, u, v);
  // The triangle of a tall matrix has its singular values.
  const int64_t size = int64_t(n) * n;
  const HostArray<T> tau(n), triangle(size), inner(size);
  blocked_qr(m, n, a, m, tau.data());
  for (int64_t j = 0; j < n; ++j) {
    T* column = triangle.data() + j * n;
    std::copy_n(a + j * m, j + 1, column);
    std::fill(column + j + 1, column + n, T(0));
  }
  if (const int info = decompose(n, n, triangle.data(), s, n, inner.data(), v)) return info;
  extend(m, columns, n, inner.data(), u);
  blocked_multiply_by_q(false, m, columns, n, a, m, tau.data(), u, m);
  return 0;
}

template int blocked_svd<float>(int, int, float*, float*, int, float*, float*);
template int blocked_svd<double>(int, int, double*, double*, int, double*, double*);

}  // namespace facula
