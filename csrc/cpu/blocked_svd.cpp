#include "cpu/blocked_svd.h"

#include <algorithm>
#include <cstdint>

#include "core/host_array.h"
#include "cpu/blocked_matrix.h"
#include "cpu/lapack.h"
#include "cpu/matrix_panels.h"
#include "cpu/tridiagonal.h"
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

constexpr int kFused = 300;  // columns up to which one pass for a reflection is quicker

// The bidiagonal form of m x n, m >= n.
template <class T>
struct BidiagonalForm {
  int ld;
  HostArray<T> a, e, left, right;
  int info = 0;

  BidiagonalForm(int m, int n, const T* from, T* d)
      : ld(int(panel_stride<T>(m))), a(int64_t(ld) * n), e(n), left(n), right(n) {
    for (int64_t j = 0; j < n; ++j) {
      std::copy_n(from + j * m, m, a.data() + j * ld);
      std::fill_n(a.data() + j * ld + m, ld - m, T(0));
    }
    if (n <= kFused) {
      const HostArray<T> room(ld + 2 * panel_stride<T>(n));
      tridiagonal<T>().reduce_both(m, n, a.data(), d, e.data(), left.data(), right.data(),
                                   room.data());
      return;
    }
    T best{};
    lapack::gebrd<T>(m, n, nullptr, ld, nullptr, nullptr, nullptr, nullptr, &best, -1);
    const HostArray<T> work(std::max(m, int(best)));
    info = lapack::gebrd(m, n, a.data(), ld, d, e.data(), left.data(), right.data(), work.data(),
                         std::max(m, int(best)));
  }
};

template <class T>
int decompose(int m, int n, const T* a, T* s, int columns, T* u, T* v) {
  const BidiagonalForm<T> form(m, n, a, s);
  if (form.info) return form.info;
  const int64_t size = int64_t(n) * n;
  const HostArray<T> inner(size), turned(size), work(3 * size + 4 * n);
  const HostArray<int> iwork(8 * n);
  if (const int info = lapack::bdsdc('U', n, s, form.e.data(), inner.data(), n, turned.data(), n,
                                     work.data(), iwork.data()))
    return info;
  extend(m, columns, n, inner.data(), u);
  blocked_multiply_by_q(false, m, columns, n, form.a.data(), form.ld, form.left.data(), u, m);
  turn_matrix<T>(v, n, turned.data(), n, n, n);
  if (n == 1) return 0;
  // Reflectors of the right side lie in rows, from the second column on.
  turn_matrix<T>(inner.data(), n, form.a.data() + form.ld, form.ld, n - 1, n - 1);
  blocked_multiply_by_q(false, n - 1, n, n - 1, inner.data(), n, form.right.data(), v + 1, n);
  return 0;
}

template <class T>
int find_values(int m, int n, const T* a, T* s) {
  const BidiagonalForm<T> form(m, n, a, s);
  if (form.info) return form.info;
  const HostArray<T> work(4 * n);
  return lapack::lasq1(n, s, form.e.data(), work.data());
}

// The triangle of a tall matrix has its singular values.
bool is_tall(int m, int n) {
  return m >= n + n / 2;
}
template <class T>
void copy_triangle(int m, int n, const T* a, T* to) {
  for (int64_t j = 0; j < n; ++j) {
    T* column = to + j * n;
    std::copy_n(a + j * m, j + 1, column);
    std::fill(column + j + 1, column + n, T(0));
  }
}

}  // namespace

template <class T>
int blocked_svd(int m, int n, T* a, T* s, int columns, T* u, T* v) {
  if (!is_tall(m, n)) return decompose(m, n, a, s, columns, u, v);
  const int64_t size = int64_t(n) * n;
  const HostArray<T> tau(n), triangle(size), inner(size);
  blocked_qr(m, n, a, m, tau.data());
  copy_triangle(m, n, a, triangle.data());
  if (const int info = decompose(n, n, triangle.data(), s, n, inner.data(), v)) return info;
  extend(m, columns, n, inner.data(), u);
  blocked_multiply_by_q(false, m, columns, n, a, m, tau.data(), u, m);
  return 0;
}

template <class T>
int blocked_svdvals(int m, int n, T* a, T* s) {
  if (!is_tall(m, n)) return find_values(m, n, a, s);
  const HostArray<T> tau(n), triangle(int64_t(n) * n);
  blocked_qr(m, n, a, m, tau.data());
  copy_triangle(m, n, a, triangle.data());
  return find_values(n, n, triangle.data(), s);
}

template int blocked_svd<float>(int, int, float*, float*, int, float*, float*);
template int blocked_svd<double>(int, int, double*, double*, int, double*, double*);
template int blocked_svdvals<float>(int, int, float*, float*);
template int blocked_svdvals<double>(int, int, double*, double*);

}  // namespace facula
