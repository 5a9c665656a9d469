#include "cpu/blocked_matrix.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/lapack.h"
#include "cpu/matrix_panels.h"

namespace facula {
namespace {

constexpr int kColumns = 64;  // columns that a thread takes at a time

int panel_width(int size) {
  return size > 512 ? kWidestPanel : 32;
}

// f(begin, end) over pieces of the columns that do not depend on the number of threads: how a
// product is cut decides how it is rounded.
template <class F>
void for_columns(int64_t columns, F&& f) {
  parallel_for(0, (columns + kColumns - 1) / kColumns, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) f(b * kColumns, std::min(columns, (b + 1) * kColumns));
  });
}

template <class T>
struct Operand {  // a column-major matrix, or the transpose of one
  const T* data;
  int64_t ld;
  BlasTranspose transpose;
};
template <class T>
Operand<T> plain(const T* data, int64_t ld) {
  return {data, ld, BlasTranspose::No};
}
template <class T>
Operand<T> transposed(const T* data, int64_t ld) {
  return {data, ld, BlasTranspose::Yes};
}

// c = alpha * a @ b + beta * c; c is m x n, and b, like c, column-major. On one thread.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, const T* b, int64_t ldb,
              T beta, T* c, int64_t ldc) {
  if (m == 0) return;
  const auto product = [] {
    if constexpr (std::is_same_v<T, float>) return blas().sgemm;
    else return blas().dgemm;
  }();
  product(BlasOrder::ColumnMajor, a.transpose, BlasTranspose::No, int(m), int(n), int(k), alpha,
          a.data, int(a.ld), b, int(ldb), beta, c, int(ldc));
}

// The exchanges of rows [from, to) in columns of a.
template <class T>
void exchange_rows(T* a, int64_t lda, int64_t columns, const int* pivots, int from, int to) {
  for (int64_t j = 0; j < columns; ++j, a += lda)
    for (int i = from; i < to; ++i) std::swap(a[i], a[pivots[i] - 1]);
}

// Products of up to `width` reflectors, I - V T V^T, for matrices of up to m rows and n columns.
template <class T>
class BlockReflector {
 public:
  BlockReflector(int64_t m, int64_t n, int64_t width)
      : v_(new T[size_t(m * width)]),
        t_(new T[size_t(width * width)]),
        along_(new T[size_t(width * n)]),
        scaled_(new T[size_t(width * n)]) {}

  // From a panel of k columns that holds them below its diagonal.
  void read(int64_t m, int64_t k, const T* panel, int64_t lda, const T* tau) {
    m_ = m;
    k_ = k;
    T *v = v_.get(), *t = t_.get(), *products = along_.get();
    for (int64_t j = 0; j < k; ++j) {
      T* column = v + j * m;
      std::fill_n(column, j, T(0));
      column[j] = T(1);
      std::copy(panel + j * lda + j + 1, panel + j * lda + m, column + j + 1);
    }
    multiply<T>(k, k, m, 1, transposed(v, m), v, m, 0, products, k);  // V^T V
    std::fill_n(t, k * k, T(0));
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t l = 0; l < j; ++l)  // T V^T v, column by column of T
        for (int64_t i = 0; i <= l; ++i) t[i + j * k] += t[i + l * k] * products[l + j * k];
      for (int64_t i = 0; i < j; ++i) t[i + j * k] *= -tau[j];
      t[j + j * k] = tau[j];
    }
  }

  // c = (I - V T V^T) c, or with the transpose of T, which undoes it.
  void apply(bool transpose, int64_t n, T* c, int64_t ldc) const {
    const T *v = v_.get(), *t = t_.get();
    for_columns(n, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      T *along = along_.get() + begin * k_, *scaled = scaled_.get() + begin * k_;
      T* columns = c + begin * ldc;
      multiply<T>(k_, count, m_, 1, transposed(v, m_), columns, ldc, 0, along, k_);
      multiply<T>(k_, count, k_, 1, transpose ? transposed(t, k_) : plain(t, k_), along, k_, 0,
                  scaled, k_);
      multiply<T>(m_, count, k_, -1, plain(v, m_), scaled, k_, 1, columns, ldc);
    });
  }

 private:
  int64_t m_ = 0, k_ = 0;
  std::unique_ptr<T[]> v_, t_, along_, scaled_;
};

}  // namespace

template <class T>
int blocked_lu(int m, int n, T* a, int lda, int* pivots) {
  const int most = std::min(m, n), width = panel_width(most);
  const int64_t ld = lda;
  const std::unique_ptr<T[]> scratch(new T[size_t(panel_scratch<T>(m, width))]);
  int info = 0;
  for (int k = 0; k < most; k += width) {
    const int w = std::min(width, most - k), end = k + w, right = n - end;
    T* diagonal = a + k + k * ld;
    const int failed = matrix_panels<T>().lu(m - k, w, diagonal, lda, pivots + k, scratch.get());
    if (failed && !info) info = k + failed;
    for (int i = k; i < end; ++i) pivots[i] += k;
    for_columns(
        k, [&](int64_t b, int64_t e) { exchange_rows(a + b * ld, ld, e - b, pivots, k, end); });
    if (right == 0) continue;
    for_columns(right, [&](int64_t b, int64_t e) {
      T* columns = a + (end + b) * ld;
      exchange_rows(columns, ld, e - b, pivots, k, end);
      matrix_panels<T>().solve_unit_lower(w, int(e - b), diagonal, lda, columns + k, lda);
      multiply<T>(m - end, e - b, w, -1, plain<T>(diagonal + w, ld), columns + k, ld, 1,
                  columns + end, ld);
    });
  }
  return info;
}

template <class T>
void blocked_lu_solve(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
                      int ldb) {
  const int width = panel_width(n), last = (n - 1) / width * width;
  const int64_t ld = lda;
  for_columns(nrhs, [&](int64_t begin, int64_t end) {
    T* x = b + begin * ldb;
    const int count = int(end - begin);
    if (trans != 'N') {
      lapack::getrs(trans, n, count, a, lda, pivots, x, ldb);
      return;
    }
    exchange_rows(x, ldb, count, pivots, 0, n);
    for (int k = 0; k < n; k += width) {
      const int w = std::min(width, n - k);
      const T* diagonal = a + k + k * ld;
      matrix_panels<T>().solve_unit_lower(w, count, diagonal, lda, x + k, ldb);
      multiply<T>(n - k - w, count, w, -1, plain(diagonal + w, ld), x + k, ldb, 1, x + k + w, ldb);
    }
    for (int k = last; k >= 0; k -= width) {
      const int w = std::min(width, n - k);
      matrix_panels<T>().solve_upper(w, count, a + k + k * ld, lda, x + k, ldb);
      multiply<T>(k, count, w, -1, plain(a + k * ld, ld), x + k, ldb, 1, x, ldb);
    }
  });
}

template <class T>
void blocked_qr(int m, int n, T* a, int lda, T* tau) {
  const int most = std::min(m, n), width = panel_width(most);
  const int64_t ld = lda;
  const std::unique_ptr<T[]> scratch(new T[size_t(panel_scratch<T>(m, width))]);
  BlockReflector<T> reflector(m, std::max(n, width), width);
  for (int k = 0; k < most; k += width) {
    const int w = std::min(width, most - k), end = k + w;
    T* diagonal = a + k + k * ld;
    matrix_panels<T>().qr(m - k, w, diagonal, lda, tau + k, scratch.get());
    if (end == n) break;
    reflector.read(m - k, w, diagonal, ld, tau + k);
    reflector.apply(true, n - end, a + k + end * ld, ld);
  }
}

template <class T>
void blocked_q(int m, int n, int k, T* a, int lda, const T* tau) {
  const int width = panel_width(std::min(m, k));
  const int64_t ld = lda;
  auto unit_columns = [&](int begin, int end) {
    for (int j = begin; j < end; ++j) {
      std::fill_n(a + j * ld, m, T(0));
      a[j + j * ld] = T(1);
    }
  };
  unit_columns(k, n);
  BlockReflector<T> reflector(m, std::max(n, width), width);
  for (int first = (k - 1) / width * width; first >= 0; first -= width) {
    const int w = std::min(width, k - first);
    T* diagonal = a + first + first * ld;
    reflector.read(m - first, w, diagonal, ld, tau + first);
    unit_columns(first, first + w);
    reflector.apply(false, n - first, diagonal, ld);
  }
}

#define INSTANTIATE(T)                                                                   \
  template int blocked_lu<T>(int, int, T*, int, int*);                                   \
  template void blocked_lu_solve<T>(char, int, int, const T*, int, const int*, T*, int); \
  template void blocked_qr<T>(int, int, T*, int, T*);                                    \
  template void blocked_q<T>(int, int, int, T*, int, const T*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace facula
