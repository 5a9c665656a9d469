#include "cpu/blocked_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/host_array.h"
#include "cpu/column_products.h"
#include "cpu/lapack.h"
#include "cpu/matrix_panels.h"
#include "cpu/triangle.h"

namespace facula {
namespace {

int panel_width(int size) {
  return size > 512 ? kWidestPanel : 32;
}

// What the exchanges of rows [from, to) do to columns of m rows: all elements that move are read
// before the first is written, since an exchange that waits for the one before takes its time.
class RowMoves {
 public:
  RowMoves(int m, const int* pivots, int from, int to) : order_(m) {
    for (int i = from; i < m; ++i) order_[i] = i;
    for (int i = from; i < to; ++i) std::swap(order_[i], order_[pivots[i] - 1]);
    for (int i = from; i < m; ++i)
      if (order_[i] != i) {
        target_.push_back(i);
        source_.push_back(order_[i]);
      }
  }
  template <class T>
  void apply(int64_t columns, T* a, int64_t lda, T* room) const {  // room: for m elements
    const size_t count = target_.size();
    const int *target = target_.data(), *source = source_.data();
    for (int64_t j = 0; j < columns; ++j, a += lda) {
      for (size_t i = 0; i < count; ++i) room[i] = a[source[i]];
      for (size_t i = 0; i < count; ++i) a[target[i]] = room[i];
    }
  }

 private:
  HostArray<int> order_;
  std::vector<int> target_, source_;
};

// Products of up to `width` reflectors, I - V T V^T, for matrices of up to m rows and n columns.
template <class T>
class BlockReflector {
 public:
  BlockReflector(int64_t m, int64_t n, int64_t width)
      : v_(m * width), t_(panel_scratch<T>(width, width)), along_(width * n), scaled_(width * n) {}

  // From a panel of k columns that holds them below its diagonal.
  void read(int64_t m, int64_t k, const T* panel, int64_t lda, const T* tau) {
    m_ = m;
    k_ = k;
    T *v = v_.data(), *products = along_.data();
    for (int64_t j = 0; j < k; ++j) {
      T* column = v + j * m;
      std::fill_n(column, j, T(0));
      column[j] = T(1);
      std::copy(panel + j * lda + j + 1, panel + j * lda + m, column + j + 1);
    }
    multiply<T>(k, k, m, 1, transposed(v, m), v, m, 0, products, k);  // V^T V
    matrix_panels<T>().reflector_factor(int(k), products, tau, t_.data());
  }

  // c = (I - V T V^T) c, or with the transpose of T, which undoes it.
  void apply(bool transpose, int64_t n, T* c, int64_t ldc) const {
    const T *v = v_.data(), *t = t_.data();
    const int64_t ldt = panel_stride<T>(k_);
    for_columns(n, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      T *along = along_.data() + begin * k_, *scaled = scaled_.data() + begin * k_;
      T* columns = c + begin * ldc;
      multiply<T>(k_, count, m_, 1, transposed(v, m_), columns, ldc, 0, along, k_);
      multiply<T>(k_, count, k_, 1, transpose ? transposed(t, ldt) : plain(t, ldt), along, k_, 0,
                  scaled, k_);
      multiply<T>(m_, count, k_, -1, plain(v, m_), scaled, k_, 1, columns, ldc);
    });
  }

 private:
  int64_t m_ = 0, k_ = 0;
  HostArray<T> v_, t_, along_, scaled_;
};

}  // namespace

// Whoever updates the first columns behind a panel factors them at once, as the next panel, while
// the other threads still update the rest.
template <class T>
int blocked_lu(int m, int n, T* a, int lda, int* pivots) {
  const int most = std::min(m, n), width = panel_width(most);
  const int64_t ld = lda;
  const HostArray<T> scratch(panel_scratch<T>(m, width));
  Triangle<T> triangle(width);
  int info = 0;
  const auto factor_panel = [&](int k) {
    const int w = std::min(width, most - k);
    const int failed =
        matrix_panels<T>().lu(m - k, w, a + k + k * ld, lda, pivots + k, scratch.data());
    if (failed && !info) info = k + failed;
    for (int i = k; i < k + w; ++i) pivots[i] += k;
  };
  factor_panel(0);
  for (int k = 0; k < most; k += width) {
    const int w = std::min(width, most - k), end = k + w;
    if (end == n) break;
    const T* diagonal = a + k + k * ld;
    triangle.pack(false, true, w, {diagonal, 1, ld});
    const RowMoves moves(m, pivots, k, end);
    for_columns(
        n - end,
        [&](int64_t b, int64_t e) {
          T* columns = a + (end + b) * ld;
          T room[2 * kWidestPanel];  // as many rows move at most
          moves.apply(e - b, columns, ld, room);
          solve_triangles<T>({&triangle}, w, e - b, {columns + k, 1, ld}, {columns + k, 1, ld});
          multiply<T>(m - end, e - b, w, -1, plain<T>(diagonal + w, ld), columns + k, ld, 1,
                      columns + end, ld);
          if (b == 0 && end < most) factor_panel(end);
        },
        width);
  }
  // The exchanges in panels that were factored before them.
  const int64_t before = (most - 1) / width * width;
  for_columns(
      before,
      [&](int64_t b, int64_t e) {
        const RowMoves moves(m, pivots, int(e), most);
        const HostArray<T> room(m);
        moves.apply(e - b, a + b * ld, ld, room.data());
      },
      width);
  return info;
}

template <class T>
void blocked_lu_solve(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
                      int ldb) {
  const Strided<const T> rhs{b, 1, ldb};
  const Strided<T> x{b, 1, ldb};
  if (trans == 'N') {
    const Strided<const T> factors{a, 1, lda};
    const Triangle<T> lower(false, true, n, factors), upper(true, false, n, factors);
    solve_triangles({&lower, &upper}, n, nrhs, rhs, x, {pivots, false});
  } else {
    const Strided<const T> factors{a, lda, 1};
    const Triangle<T> lower(false, false, n, factors), upper(true, true, n, factors);
    solve_triangles({&lower, &upper}, n, nrhs, rhs, x, {pivots, true});
  }
}

template <class T>
void blocked_solve_upper(int n, int nrhs, const T* a, int lda, T* b, int ldb) {
  const Triangle<T> upper(true, false, n, {a, 1, lda});
  solve_triangles<T>({&upper}, n, nrhs, {b, 1, ldb}, {b, 1, ldb});
}

namespace {

// In several sums, so that they do not wait for each other.
template <class T>
double sum_of_squares(int64_t n, const T* x) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t k = 0; k < kSums; ++k) sums[k] += double(x[i + k]) * double(x[i + k]);
  for (; i < n; ++i) sums[0] += double(x[i]) * double(x[i]);
  for (int64_t k = 1; k < kSums; ++k) sums[0] += sums[k];
  return sums[0];
}

// Numbers between -1 and 1, always the same.
class EvenNumbers {
 public:
  double next() {
    state_ = state_ * 1664525u + 1013904223u;
    return double(state_ >> 8) / (1 << 23) - 1;
  }

 private:
  uint32_t state_ = 1;
};

// An estimate of the Frobenius norm of the inverse of an upper triangle, from some solutions for
// even numbers, whose mean square is 1/3. That all of them miss a direction by so much that it is
// four times too small has a chance of one in millions.
template <class T>
double estimate_inverse_norm(int n, const T* a, int64_t lda) {
  constexpr int kSides = 16;
  EvenNumbers numbers;
  const HostArray<T> x(int64_t(n) * kSides);
  for (int64_t i = 0; i < int64_t(n) * kSides; ++i) x[i] = T(numbers.next());
  blocked_solve_upper(n, kSides, a, int(lda), x.data(), n);
  return std::sqrt(sum_of_squares(int64_t(n) * kSides, x.data()) * 3 / kSides);
}

// The Frobenius norm of the inverse of an upper triangle, piece by piece of its columns.
template <class T>
double inverse_norm(int n, const T* a, int64_t lda) {
  const int64_t pieces = (n + kColumns - 1) / kColumns;
  std::vector<double> squares(static_cast<size_t>(pieces));
  parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t piece = pieces - 1 - p;  // the longest columns first
      const int64_t begin = piece * kColumns, end = std::min<int64_t>(n, begin + kColumns),
                    count = end - begin;
      const HostArray<T> x(count * end);
      std::fill_n(x.data(), count * end, T(0));
      for (int64_t j = 0; j < count; ++j) x[j * end + begin + j] = T(1);
      blocked_solve_upper(int(end), int(count), a, int(lda), x.data(), int(end));
      squares[size_t(piece)] = sum_of_squares(count * end, x.data());
    }
  });
  double sum = 0;
  for (double piece : squares) sum += piece;
  return std::sqrt(sum);
}

// An estimate from below of the largest singular value of an upper triangle: how much R^T R
// stretches a vector in a few steps. It is short by the 2 steps'th root of the part of the vector
// along that singular vector.
template <class T>
double estimate_norm(int n, const T* a, int lda, int steps) {
  std::vector<T> x(static_cast<size_t>(n));
  EvenNumbers numbers;
  for (T& value : x) value = T(numbers.next());
  double growth = 0;
  for (int k = 0; k < steps; ++k) {
    const double before = std::sqrt(sum_of_squares(n, x.data()));
    for (T& value : x) value = T(double(value) / before);
    lapack::trmv('U', 'N', 'N', n, a, lda, x.data());
    lapack::trmv('U', 'T', 'N', n, a, lda, x.data());
    growth += std::log(std::sqrt(sum_of_squares(n, x.data())));
  }
  return std::exp(growth / (2 * steps));
}

}  // namespace

template <class T>
bool blocked_is_well_conditioned(int n, const T* a, int lda, double limit) {
  double squares = 0;
  for (int64_t j = 0; j < n; ++j) squares += sum_of_squares(j + 1, a + j * lda);
  if (4 * estimate_inverse_norm(n, a, lda) * std::sqrt(squares) <= limit) return true;
  const double inverse = inverse_norm(n, a, lda);
  if (!std::isfinite(inverse)) return false;
  // The norm of all elements is up to sqrt(n) times too large. An estimate in 10 steps is hardly
  // half of the norm, one in 30 steps hardly less than 0.79 of it.
  if (std::sqrt(squares) * inverse <= limit) return true;
  const double estimate = estimate_norm(n, a, lda, 10) * inverse;
  return 2 * estimate <= limit ||
         (1.26 * estimate <= limit && 1.26 * estimate_norm(n, a, lda, 30) * inverse <= limit);
}

template <class T>
void blocked_qr_of_system(int m, int n, T* a, int lda, T* tau, int nrhs, T* b, int ldb) {
  const int most = std::min(m, n), width = panel_width(most);
  const int64_t ld = lda;
  const HostArray<T> scratch(panel_scratch<T>(m, width));
  BlockReflector<T> reflector(m, std::max({n, nrhs, width}), width);
  for (int k = 0; k < most; k += width) {
    const int w = std::min(width, most - k), end = k + w;
    T* diagonal = a + k + k * ld;
    matrix_panels<T>().qr(m - k, w, diagonal, lda, tau + k, scratch.data());
    if (end == n && nrhs == 0) break;
    reflector.read(m - k, w, diagonal, ld, tau + k);
    if (end < n) reflector.apply(true, n - end, a + k + end * ld, ld);
    if (nrhs) reflector.apply(true, nrhs, b + k, ldb);
  }
}

template <class T>
void blocked_qr(int m, int n, T* a, int lda, T* tau) {
  blocked_qr_of_system<T>(m, n, a, lda, tau, 0, nullptr, 0);
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

template <class T>
void blocked_multiply_by_q(bool transpose, int m, int n, int k, const T* a, int lda, const T* tau,
                           T* c, int ldc) {
  const int width = panel_width(k);
  const int64_t ld = lda;
  BlockReflector<T> reflector(m, std::max(n, width), width);
  const int panels = (k + width - 1) / width;
  for (int i = 0; i < panels; ++i) {  // Q^T undoes the first reflectors first
    const int first = (transpose ? i : panels - 1 - i) * width, w = std::min(width, k - first);
    reflector.read(m - first, w, a + first + first * ld, ld, tau + first);
    reflector.apply(transpose, n, c + first, ldc);
  }
}

#define INSTANTIATE(T)                                                                           \
  template int blocked_lu<T>(int, int, T*, int, int*);                                           \
  template void blocked_lu_solve<T>(char, int, int, const T*, int, const int*, T*, int);         \
  template void blocked_solve_upper<T>(int, int, const T*, int, T*, int);                        \
  template bool blocked_is_well_conditioned<T>(int, const T*, int, double);                      \
  template void blocked_multiply_by_q<T>(bool, int, int, int, const T*, int, const T*, T*, int); \
  template void blocked_qr<T>(int, int, T*, int, T*);                                            \
  template void blocked_qr_of_system<T>(int, int, T*, int, T*, int, T*, int);                    \
  template void blocked_q<T>(int, int, int, T*, int, const T*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace facula
