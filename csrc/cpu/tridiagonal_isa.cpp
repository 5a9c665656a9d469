// Built once per ISA.
#include "cpu/reflector.h"

#include <algorithm>

#include "cpu/small_matrix_tables.h"

namespace facula::FACULA_ISA {
namespace {

// What a reflection leaves to do, a -= v w' + w v', and the product of the result and `next`.
template <class T>
struct Pass {
  const T *v, *w, *next;
  T* product;
  bool pending;

  // Element (i, j) below the diagonal, or on it.
  void take(int i, int j, T& a) const {
    if (pending) a -= v[i] * w[j] + w[i] * v[j];
    product[i] += a * next[j];
    if (i != j) product[j] += a * next[i];
  }
  // C columns from j on, from the diagonal down.
  template <int C, bool Pending>
  void take_columns(int n, int j, T* a, int64_t ld) const {
    using V = Vector<T>;
    for (int c = 0; c < C; ++c)
      for (int i = j + c; i < j + C; ++i) take(i, j + c, a[i + (j + c) * ld]);
    V sums[C] = {}, vs[C], ws[C], nexts[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      vs[c] = V{} + v[j + c], ws[c] = V{} + w[j + c];
      nexts[c] = V{} + next[j + c];
    }
    for (int i = j + C; i < n; i += kLanes<T>) {
      const V own_v = load(v + i), own_w = load(w + i), own_next = load(next + i);
      V product_here = load(product + i);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        T* at = a + i + (j + c) * ld;
        V x = load(at);
        if constexpr (Pending) {
          x -= own_v * ws[c];
          x -= own_w * vs[c];
          store(at, x);
        }
        product_here += x * nexts[c];
        sums[c] += x * own_next;
      }
      store(product + i, product_here);
    }
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) product[j + c] += sum_lanes<T>(sums[c]);
  }
  template <bool Pending>
  void take_all(int n, int begin, T* a, int64_t ld) const {
    int j = begin;
    for (; j + 4 <= n; j += 4) take_columns<4, Pending>(n, j, a, ld);
    for (; j < n; ++j) take_columns<1, Pending>(n, j, a, ld);
  }
};

template <class T>
void reduce(int n, T* a, T* d, T* e, T* tau, T* room) {
  const int64_t ld = panel_stride<T>(n);
  T *v = room, *w = v + ld, *product = w + ld;
  std::fill_n(room, 3 * ld, T(0));
  for (int k = 0; k < n; ++k) {
    T* column = a + k * ld;
    if (k > 0) {
      const T own_v = v[k], own_w = w[k];
      for (int i = k; i < n; ++i) column[i] -= v[i] * own_w + w[i] * own_v;
    }
    d[k] = column[k];
    if (k + 1 == n) break;
    T* below = column + k + 1;
    tau[k] = make_reflector(n - k - 1, below);
    e[k] = below[0];
    below[0] = 1;
    std::fill_n(product, ld, T(0));
    const Pass<T> pass{v, w, column, product, k > 0};
    if (k > 0) pass.template take_all<true>(n, k + 1, a, ld);
    else pass.template take_all<false>(n, k + 1, a, ld);
    // w = tau a v - (tau ** 2 v.a v / 2) v
    Vector<T> sum{};
    for (int i = k + 1; i < n; i += kLanes<T>) sum += load(column + i) * load(product + i);
    const T factor = tau[k], inner = factor * factor * sum_lanes<T>(sum) / 2;
    for (int i = k + 1; i < n; i += kLanes<T>) {
      const Vector<T> own = load(column + i);
      store(v + i, own);
      store(w + i, factor * load(product + i) - inner * own);
    }
  }
}

template <class T>
void expand(int n, const T* a, const T* tau, T* q) {
  const int64_t ld = panel_stride<T>(n);
  for (int j = 0; j < n; ++j) q[j + j * ld] = 1;
  for (int k = n - 2; k >= 0; --k) {
    if (tau[k] == 0) continue;
    const T* v = a + k + 1 + k * ld;
    T* y = q + k + 1 + (k + 1) * ld;
    int j = k + 1;
    for (; j + 8 <= n; j += 8, y += 8 * ld) reflect<8>(n - k - 1, v, tau[k], y, ld);
    for (; j + 2 <= n; j += 2, y += 2 * ld) reflect<2>(n - k - 1, v, tau[k], y, ld);
    if (j < n) reflect<1>(n - k - 1, v, tau[k], y, ld);
  }
}

// U vectors of rows: columns k and k + 1 are turned by c[k] and s[k].
template <int U, class T>
void turn_strip(int begin, int end, const T* c, const T* s, T* z, int64_t ld) {
  using V = Vector<T>;
  constexpr int W = kLanes<T>;
  V x[U];
  T* column = z + begin * ld;
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) x[u] = load(column + u * W);
  for (int k = begin; k < end; ++k, column += ld) {
    const T cosine = c[k], sine = s[k];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      const V y = load(column + ld + u * W);
      store(column + u * W, cosine * x[u] + sine * y);
      x[u] = cosine * y - sine * x[u];
    }
  }
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) store(column + u * W, x[u]);
}

// Squares of numbers below its root lose digits; beside a largest element of 1 they do not count.
template <class T>
constexpr T kLeastSquare = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();

// A step on the rows begin .. end with Wilkinson's shift. The rotations are written to c and s.
template <class T>
void step(int begin, int end, T* d, T* e, T* c, T* s) {
  const T delta = (d[end - 1] - d[end]) / 2, last = e[end - 1],
          length = std::sqrt(delta * delta + last * last),
          shift = d[end] - last * (last / (delta + std::copysign(length, delta)));
  T x = d[begin] - shift, z = e[begin], own = d[begin], beside = z;
  for (int k = begin; k < end; ++k) {
    const T square = x * x + z * z, size = std::sqrt(square), inverse = 1 / size;
    const bool turns = square > kLeastSquare<T>;
    const T cosine = turns ? x * inverse : T(1), sine = turns ? z * inverse : T(0);
    c[k] = cosine, s[k] = sine;
    if (k > begin) e[k - 1] = turns ? size : x;
    const T next = d[k + 1], h = (next - own) * sine + 2 * cosine * beside;
    d[k] = own + sine * h;
    own = next - sine * h;
    x = cosine * h - beside;
    e[k] = x;
    if (k + 1 == end) break;
    z = sine * e[k + 1];
    beside = e[k + 1] = cosine * e[k + 1];
  }
  d[end] = own;
}

template <class T>
bool solve(int n, T* d, T* e, T* z, T* room) {
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
  constexpr int W = kLanes<T>, kStepsEach = 30;
  const int64_t ld = panel_stride<T>(n);
  T *c = room, *s = room + n;
  const auto negligible = [&](int k) {
    return e[k] * e[k] <=
           kEpsilon * std::abs(d[k]) * (kEpsilon * std::abs(d[k + 1])) + kLeastSquare<T>;
  };
  int steps = 0;
  for (int end = n - 1; end > 0;) {
    if (negligible(end - 1)) {
      e[--end] = 0;
      continue;
    }
    int begin = end - 1;
    while (begin > 0 && !negligible(begin - 1)) --begin;
    if (begin > 0) e[begin - 1] = 0;
    if (steps++ == kStepsEach * n) return false;
    step(begin, end, d, e, c, s);
    int row = 0;
    for (; row + 4 * W <= n; row += 4 * W) turn_strip<4>(begin, end, c, s, z + row, ld);
    for (; row + W < n; row += 2 * W) turn_strip<2>(begin, end, c, s, z + row, ld);
    if (row < n) turn_strip<1>(begin, end, c, s, z + row, ld);
  }
  return true;
}

// w += C columns times their numbers, then the columns -= w times other ones.
template <int C, class T>
void add_columns(int begin, int end, const T* y, int64_t ld, const T* factors, T* w) {
  for (int i = begin; i < end; i += kLanes<T>) {
    Vector<T> sum = load(w + i);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum += factors[c] * load(y + i + c * ld);
    store(w + i, sum);
  }
}
template <int C, class T>
void subtract_from_columns(int begin, int end, T* y, int64_t ld, const T* factors, const T* w) {
  for (int i = begin; i < end; i += kLanes<T>) {
    const Vector<T> own = load(w + i);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(y + i + c * ld, load(y + i + c * ld) - factors[c] * own);
  }
}

template <class T>
void reduce_both(int m, int n, T* a, T* d, T* e, T* left, T* right, T* room) {
  const int64_t ld = panel_stride<T>(m), width = panel_stride<T>(n);
  T *w = room, *u = w + ld, *scaled = u + width;
  std::fill_n(room, ld + 2 * width, T(0));
  for (int k = 0; k < n; ++k) {
    T *v = a + k + k * ld, *y = v + ld;
    const int count = n - k - 1;
    left[k] = make_reflector(m - k, v);
    d[k] = v[0];
    int j = left[k] == 0 ? count : 0;
    for (; j + 8 <= count; j += 8) reflect<8>(m - k, v, left[k], y + j * ld, ld);
    for (; j + 2 <= count; j += 2) reflect<2>(m - k, v, left[k], y + j * ld, ld);
    if (j < count) reflect<1>(m - k, v, left[k], y + j * ld, ld);
    right[k] = 0;
    if (count == 0) break;
    for (j = 0; j < count; ++j) u[j] = y[j * ld];
    u[count] = 0;  // there was one more in the row before
    right[k] = make_reflector(count, u);
    e[k] = u[0];
    for (j = 0; j < count; ++j) y[j * ld] = u[j];
    if (right[k] == 0) continue;
    u[0] = 1;
    for (j = 0; j < count; ++j) scaled[j] = right[k] * u[j];
    std::fill(w + k + 1, w + m, T(0));
    T* columns = a + (k + 1) * ld;
    for (j = 0; j + 4 <= count; j += 4) add_columns<4>(k + 1, m, columns + j * ld, ld, u + j, w);
    for (; j < count; ++j) add_columns<1>(k + 1, m, columns + j * ld, ld, u + j, w);
    for (j = 0; j + 4 <= count; j += 4)
      subtract_from_columns<4>(k + 1, m, columns + j * ld, ld, scaled + j, w);
    for (; j < count; ++j) subtract_from_columns<1>(k + 1, m, columns + j * ld, ld, scaled + j, w);
  }
}

template <class T>
constexpr Tridiagonal<T> table() {
  return {reduce<T>, expand<T>, solve<T>, reduce_both<T>};
}

}  // namespace

const Tridiagonal<float> tridiagonal_float = table<float>();
const Tridiagonal<double> tridiagonal_double = table<double>();

}  // namespace facula::FACULA_ISA
