// A step of the QR iteration on a Hessenberg matrix. Some reflections at a time are found in a
// small window on the diagonal; the rows right of it and the columns above it, which do not wait
// for each other, follow by vectors. Built once per ISA.
#include "cpu/gemm_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/hessenberg.h"
#include "cpu/small_matrix_tables.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

// The reflection that makes (x, y, z) to (beta, 0, 0). Returns beta.
template <class T>
T make_reflection(T x, T y, T z, T& tau, T* v) {
  T square = y * y + z * z, scale = 1;
  if (!(square > std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon())) {
    if (y == 0 && z == 0) {
      tau = v[0] = v[1] = 0;
      return x;
    }
    scale = std::max({std::abs(x), std::abs(y), std::abs(z)});
    x /= scale, y /= scale, z /= scale;  // so that only squares that do not count vanish
    square = y * y + z * z;
  }
  const T beta = -std::copysign(std::sqrt(x * x + square), x), factor = 1 / (x - beta);
  tau = (beta - x) / beta;
  v[0] = y * factor;
  v[1] = z * factor;
  return beta * scale;
}

// Three numbers of a row or a column.
template <class V, class T>
FACULA_INLINE void reflect(V& x, V& y, V& z, V tau, const T* v) {
  const V along = tau * (x + v[0] * y + v[1] * z);
  x -= along;
  y -= along * v[0];
  z -= along * v[1];
}

// Rows at .. at + U vectors of columns that follow each other. Masked: of row r only those
// reflections whose first row is below it.
template <int U, bool Masked, class T>
void turn_strip(const Reflections<T>& r, T* column, int64_t ld, int row) {
  using V = Vector<T>;
  constexpr int W = kLanes<T>;
  V x[U], y[U], own[U];
#pragma GCC unroll 5
  for (int u = 0; u < U; ++u) {
    x[u] = load(column + u * W);
    y[u] = load(column + ld + u * W);
    if constexpr (Masked)
      for (int l = 0; l < W; ++l) own[u][l] = T(row + u * W + l);
  }
  for (int k = 0; k < r.count; ++k, column += ld) {
    const V tau = V{} + r.tau[k];
#pragma GCC unroll 5
    for (int u = 0; u < U; ++u) {
      V z = load(column + 2 * ld + u * W);
      if constexpr (Masked)
        reflect(x[u], y[u], z, own[u] < V{} + T(r.first + k) ? tau : V{}, r.v[k]);
      else reflect(x[u], y[u], z, tau, r.v[k]);
      store(column + u * W, x[u]);
      x[u] = y[u];
      y[u] = z;
    }
  }
#pragma GCC unroll 5
  for (int u = 0; u < U; ++u) {
    store(column + u * W, x[u]);
    store(column + ld + u * W, y[u]);
  }
}

// The rows from `top` on that lie above their reflections.
template <class T>
void turn_columns(const Reflections<T>& r, int top, T* h, int64_t ld) {
  constexpr int W = kLanes<T>;
  T* columns = h + r.first * ld;
  int end = r.first + r.count - 1;
  for (; end > r.first && end > top; end -= W)
    turn_strip<1, true>(r, columns + end - W, ld, end - W);
  for (; end - 4 * W >= top; end -= 4 * W) turn_strip<4, false>(r, columns + end - 4 * W, ld, 0);
  for (; end > top; end -= W) turn_strip<1, false>(r, columns + end - W, ld, 0);
}

// The columns from `begin` on, turned so that a vector goes across them.
template <class T>
void turn_rows(const Reflections<T>& r, int begin, int end, T* h, int64_t ld) {
  using V = Vector<T>;
  constexpr int W = kLanes<T>, U = 2;
  alignas(64) T across[(Reflections<T>::kMost + 2) * U * W];
  const int rows = r.count + 2;
  for (int j = begin; j < end; j += U * W) {
    T* block = h + r.first + j * ld;
    turn_matrix<T>(across, U * W, block, ld, rows, U * W);
    V x[U], y[U];
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      x[u] = load(across + u * W);
      y[u] = load(across + (U + u) * W);
    }
    for (int k = 0; k < r.count; ++k) {
      T* row = across + k * U * W;
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) {
        V z = load(row + (2 * U + u) * W);
        reflect(x[u], y[u], z, V{} + r.tau[k], r.v[k]);
        store(row + u * W, x[u]);
        x[u] = y[u];
        y[u] = z;
      }
    }
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      store(across + (r.count * U + u) * W, x[u]);
      store(across + (r.count * U + U + u) * W, y[u]);
    }
    turn_matrix<T>(block, ld, across, U * W, U * W, rows);
  }
}

template <class T>
int chase(int first, int last, bool is_inner, const T* start, int top, int end, T* h, int64_t ld,
          Reflections<T>* done) {
  constexpr int kWindow = Reflections<T>::kMost;
  Reflections<T> r, *group = done;
  for (int at = first; at < last; at += kWindow, ++group) {
    r.first = at;
    r.count = std::min(kWindow, last - at);
    const int right = std::min(at + r.count + 1, last);  // the last column of the window
    for (int i = 0; i < r.count; ++i) {
      const int k = at + i;
      // The last reflection has two rows; the third number of its v is 0.
      T *before = h + k + (k - 1) * ld, *v = r.v[i];
      if (k == first) {
        make_reflection(start[0], start[1], start[2], r.tau[i], v);
        if (is_inner) *before *= 1 - r.tau[i];
      } else {
        const bool short_one = k + 1 == last;
        const T beta =
            make_reflection(before[0], before[1], short_one ? T(0) : before[2], r.tau[i], v);
        before[0] = beta;
        before[1] = 0;
        if (!short_one) before[2] = 0;
      }
      T* own = h + k + k * ld;
      for (int64_t j = 0; j <= right - k; ++j) {
        T* column = own + j * ld;
        reflect(column[0], column[1], column[2], r.tau[i], v);
      }
      for (int64_t l = 0; l < 4; ++l) reflect(own[l], own[l + ld], own[l + 2 * ld], r.tau[i], v);
    }
    turn_rows(r, right + 1, end, h, ld);
    turn_columns(r, top, h, ld);
    *group = r;
  }
  return int(group - done);
}

template <class T>
void turn(const Reflections<T>* groups, int count, int begin, int end, T* z, int64_t ld) {
  constexpr int W = kLanes<T>, kMostVectors = 5;
  const auto turn_all = [&]<int U>() {
    for (int g = 0; g < count; ++g)
      turn_strip<U, false>(groups[g], z + begin + groups[g].first * ld, ld, 0);
    begin += U * W;
  };
  // Strips of about equal height: a low one takes as long, since its steps wait for each other.
  for (int left = (end - begin + W - 1) / W; begin < end; left = (end - begin + W - 1) / W) {
    const int strips = (left + kMostVectors - 1) / kMostVectors;
    switch ((left + strips - 1) / strips) {
      case 1: turn_all.template operator()<1>(); break;
      case 2: turn_all.template operator()<2>(); break;
      case 3: turn_all.template operator()<3>(); break;
      case 4: turn_all.template operator()<4>(); break;
      default: turn_all.template operator()<kMostVectors>(); break;
    }
  }
}

}  // namespace

const BulgeChase<float> chase_float = {chase<float>, turn<float>};
const BulgeChase<double> chase_double = {chase<double>, turn<double>};

}  // namespace facula::FACULA_ISA
