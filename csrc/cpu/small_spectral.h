// Jacobi's methods for real matrices so small that a call into LAPACK costs more than the
// arithmetic. They give up (false) where they do not suit, and LAPACK decides.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/small_matrix.h"

namespace facula {
namespace detail {

constexpr int kMostSweeps = 30;  // five or six are usual

// The rotation that makes an off-diagonal element 0: cosine, sine and tangent of its angle.
template <class T>
struct Rotation {
  T c, s, t;
  Rotation(T first, T second, T between) {
    const T cotangent = (second - first) / (2 * between);  // of twice the angle
    t = std::copysign(T(1), cotangent) /
        (std::abs(cotangent) + std::sqrt(1 + cotangent * cotangent));
    c = 1 / std::sqrt(1 + t * t);
    s = t * c;
  }
  void turn(T& x, T& y) const {
    const T old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  }
};

// Whether squares and sums of squares neither overflow nor vanish.
template <class T>
bool squares_are_safe(T largest) {
  const T limit = std::sqrt(std::sqrt(std::numeric_limits<T>::max()));
  return largest < limit && largest > 1 / limit;
}

template <int N, class T>
T largest_element(const T* a) {
  T largest = 0;
  for (int i = 0; i < N * N; ++i) largest = std::max(largest, std::abs(a[i]));
  return largest;
}

// order[k]: which of the values comes k-th.
template <int N, class T, class Before>
void sort_values(const T* values, int* order, Before before) {
  for (int i = 0; i < N; ++i) order[i] = i;
  for (int i = 1; i < N; ++i)
    for (int j = i; j > 0 && before(values[order[j]], values[order[j - 1]]); --j)
      std::swap(order[j], order[j - 1]);
}

// a: column-major, the triangle of `lower` or the other is read. v may be a itself or null.
template <int N, class T>
bool small_eigh(const T* a, bool lower, T* w, T* v) {
  T m[N][N], q[N][N] = {};
  T norm = 0;
  for (int i = 0; i < N; ++i) {
    q[i][i] = 1;
    for (int j = 0; j <= i; ++j) {
      m[i][j] = m[j][i] = lower ? a[i + j * N] : a[j + i * N];
      norm = std::max(norm, std::abs(m[i][j]));
    }
  }
  if (!squares_are_safe(norm)) return false;
  const T small = norm * std::numeric_limits<T>::epsilon() / 8;
  for (int sweep = 0;; ++sweep) {
    T off = 0;
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < i; ++j) off = std::max(off, std::abs(m[i][j]));
    if (off <= small) break;
    if (sweep == kMostSweeps) return false;
    for (int i = 0; i < N; ++i)
      for (int j = i + 1; j < N; ++j) {
        if (m[i][j] == 0) continue;
        const Rotation<T> r(m[i][i], m[j][j], m[i][j]);
        m[i][i] -= r.t * m[i][j];
        m[j][j] += r.t * m[i][j];
        m[i][j] = m[j][i] = 0;
        for (int k = 0; k < N; ++k) {
          r.turn(q[k][i], q[k][j]);
          if (k == i || k == j) continue;
          r.turn(m[k][i], m[k][j]);
          m[i][k] = m[k][i];
          m[j][k] = m[k][j];
        }
      }
  }
  T values[N];
  int order[N];
  for (int i = 0; i < N; ++i) values[i] = m[i][i];
  sort_values<N>(values, order, [](T x, T y) { return x < y; });
  for (int k = 0; k < N; ++k) {
    w[k] = values[order[k]];
    for (int i = 0; v && i < N; ++i) v[i + k * N] = q[i][order[k]];
  }
  return true;
}

// One-sided: the columns of a are turned until they are orthogonal. u and vh may be null.
template <int N, class T>
bool small_svd(const T* a, T* s, T* u, T* vh) {
  if (!squares_are_safe(largest_element<N>(a))) return false;
  T g[N][N], q[N][N] = {};  // g[j] is column j
  for (int j = 0; j < N; ++j) {
    q[j][j] = 1;
    for (int i = 0; i < N; ++i) g[j][i] = a[i + j * N];
  }
  auto dot = [](const T* x, const T* y) {
    T sum = 0;
    for (int i = 0; i < N; ++i) sum += x[i] * y[i];
    return sum;
  };
  bool turned = true;
  for (int sweep = 0; turned; ++sweep) {
    if (sweep == kMostSweeps) return false;
    turned = false;
    for (int i = 0; i < N; ++i)
      for (int j = i + 1; j < N; ++j) {
        const T first = dot(g[i], g[i]), second = dot(g[j], g[j]), between = dot(g[i], g[j]);
        if (!(std::abs(between) > std::numeric_limits<T>::epsilon() * std::sqrt(first * second)))
          continue;
        turned = true;
        const Rotation<T> r(first, second, between);
        for (int k = 0; k < N; ++k) {
          r.turn(g[i][k], g[j][k]);
          r.turn(q[k][i], q[k][j]);
        }
      }
  }
  T lengths[N];
  int order[N];
  for (int j = 0; j < N; ++j) lengths[j] = std::sqrt(dot(g[j], g[j]));
  sort_values<N>(lengths, order, [](T x, T y) { return x > y; });
  // Columns of rounding errors have no direction.
  const T least = lengths[order[0]] * std::numeric_limits<T>::epsilon() * N;
  if (u && !(lengths[order[N - 1]] > least)) return false;
  for (int k = 0; k < N; ++k) {
    const int j = order[k];
    s[k] = lengths[j];
    for (int i = 0; u && i < N; ++i) {
      u[i + k * N] = g[j][i] / lengths[j];
      vh[k + i * N] = q[i][j];
    }
  }
  return true;
}

// f<N>() for the size n, from 1 to kTinyMatrix.
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

// False where LAPACK has to do it: other sizes, complex numbers, extreme values.
template <class T>
bool jacobi_eigh(int n, const T* a, bool lower, T* w, T* v) {
  if (n > kTinyMatrix) return false;
  return detail::with_size(n, [&]<int N> { return detail::small_eigh<N>(a, lower, w, v); });
}
template <class T>
bool jacobi_svd(int m, int n, const T* a, T* s, T* u, T* vh) {
  if (m != n || n > kTinyMatrix) return false;
  return detail::with_size(n, [&]<int N> { return detail::small_svd<N>(a, s, u, vh); });
}

}  // namespace facula
