// Eigenvalues of symmetric matrices and singular values, one matrix in each lane of a vector. Lanes
// that are done turn by an angle of 0 until the others are, which changes nothing in them, so a
// matrix has the same results in any company. Built once per ISA.
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")  // sums of products are fused where the machine can
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/lane_vector.h"
#include "cpu/small_matrix_tables.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
using Number = typename Wide<T>::Number;
template <class T>
using Integer = typename Wide<T>::Integer;

template <class V>
V magnitude(V x) {
  return x < 0 ? -x : x;
}
template <class T>
Number<T> root(Number<T> x) {
  T parts[kLanes<T>];
  std::memcpy(parts, &x, sizeof x);
  for (T& part : parts) part = std::sqrt(part);
  std::memcpy(&x, parts, sizeof x);
  return x;
}
template <class V>
bool any(V mask) {
  decltype(mask[0] + 0) parts[sizeof(V) / sizeof(mask[0])], bits = 0;
  std::memcpy(parts, &mask, sizeof mask);
  for (auto part : parts) bits |= part;
  return bits != 0;
}

// Matrices are scaled so that their largest element is about 2**kExponent: squares and products of
// squares stay in range.
template <class T>
constexpr int kExponent = std::numeric_limits<T>::max_exponent / 8;
template <class T>
constexpr T kEpsilon = std::numeric_limits<T>::epsilon();

// The power of two that a matrix was multiplied by, as two factors, since one may be out of range.
template <class T>
struct Scaling {
  T up[2] = {1, 1}, down[2] = {1, 1};
  Scaling() = default;
  explicit Scaling(T largest) {
    if (largest == 0) return;
    int exponent;
    std::frexp(largest, &exponent);
    const int shift = kExponent<T> - exponent, half = shift / 2;
    up[0] = std::ldexp(T(1), half), up[1] = std::ldexp(T(1), shift - half);
    down[0] = std::ldexp(T(1), -half), down[1] = std::ldexp(T(1), half - shift);
  }
  T into(T x) const { return x * up[0] * up[1]; }
  T back(T x) const { return x * down[0] * down[1]; }
};

// Element (i, j) of lane l goes to to[(i * step_i + j * step_j) * W + l]; elements above the
// diagonal are left out, or taken in place of those below. Matrices that are not finite become 0.
enum class Part { All, Lower, Upper };
template <class T>
void load(int m, int n, int count, const typename MatrixLanes<T>::Source& from, Part part, T* to,
          int64_t step_i, int64_t step_j, Scaling<T>* scaling, LaneOutcome* outcome) {
  constexpr int W = kLanes<T>;
  for (int l = 0; l < W; ++l) {
    T largest = 0, check = 0;
    if (l < count) {
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          const T x = from.at[l][i * from.row_stride + j * from.column_stride];
          largest = std::max(largest, std::abs(x));
          check += x * 0;
        }
      outcome[l] = check == 0 ? LaneOutcome::Done : LaneOutcome::NotFinite;
    }
    const bool empty = l >= count || check != 0;
    const Scaling<T> scale = scaling[l] = Scaling<T>(empty ? T(0) : largest);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < (part == Part::All ? n : i + 1); ++j) {
        const int r = part == Part::Upper ? j : i, c = part == Part::Upper ? i : j;
        to[(i * step_i + j * step_j) * W + l] =
            empty ? T(0) : scale.into(from.at[l][r * from.row_stride + c * from.column_stride]);
      }
  }
}

// order[k]: which of the n values of a lane comes k-th.
template <class T, class Before>
void sort_lane(int n, const T* values, int* order, Before before) {
  constexpr int W = kLanes<T>;
  for (int i = 0; i < n; ++i) {
    int j = i;
    for (; j > 0 && before(values[i * W], values[order[j - 1] * W]); --j) order[j] = order[j - 1];
    order[j] = i;
  }
}

// ---- reflections and rotations

// Householder's reflection 1 - tau v v' that makes (alpha, rest) to (beta, 0): v is 1 and the rest
// times `factor`. `square` is the sum of the squares of the rest.
template <class T>
struct Reflection {
  Number<T> tau, beta, factor;
  Reflection(Number<T> alpha, Number<T> square, Number<T> tiny) {
    using N = Number<T>;
    const Integer<T> flat = square <= tiny * tiny;
    const N norm = root<T>(alpha * alpha + square), turned = alpha > 0 ? -norm : norm;
    tau = flat ? N{} : (turned - alpha) / turned;
    beta = flat ? alpha : turned;
    factor = flat ? N{} : 1 / (alpha - turned);
  }
};

// The first columns of the product of reflections. Number k acts on the rows from k + first on; its
// vector's elements behind that are vectors[i * step_i + k * step_k].
template <class T>
void expand_reflections(int rows, int columns, int count, int first, const Number<T>* vectors,
                        int step_i, int step_k, const Number<T>* tau, Number<T>* w, Number<T>* q) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) q[i * columns + j] = Number<T>{} + T(i == j);
  for (int k = count - 1; k >= 0; --k) {
    const int top = k + first;
    const Number<T>* v = vectors + k * step_k;
    Number<T>* row = q + top * columns;
    for (int j = top; j < columns; ++j) w[j] = row[j];
    for (int i = top + 1; i < rows; ++i)
      for (int j = top; j < columns; ++j) w[j] += v[i * step_i] * q[i * columns + j];
    for (int j = top; j < columns; ++j) row[j] -= w[j] *= tau[k];
    for (int i = top + 1; i < rows; ++i)
      for (int j = top; j < columns; ++j) q[i * columns + j] -= v[i * step_i] * w[j];
  }
}

// The rotation that makes (x, z) to (r, 0); none where both are tiny or a lane is not active.
template <class T>
struct Rotation {
  Number<T> c, s, r;
  Rotation(Number<T> x, Number<T> z, Integer<T> active, Number<T> tiny) {
    const Number<T> length = root<T>(x * x + z * z);
    const Integer<T> turns = active & (length > tiny);
    c = turns ? x / length : Number<T>{} + 1;
    s = turns ? z / length : Number<T>{};
    r = turns ? length : x;
  }
};

// Columns k and k + 1 of q are turned by c[k] and s[k], k in [begin, end). Some rows at a time go
// through all rotations, so that an element is read and written once.
template <class T, int Rows>
void turn_rows(int columns, Number<T>* row, int begin, int end, const Number<T>* c,
               const Number<T>* s) {
  Number<T> x[Rows];
  for (int i = 0; i < Rows; ++i) x[i] = row[i * columns + begin];
  for (int k = begin; k < end; ++k) {
    const Number<T> cosine = c[k], sine = s[k];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      const Number<T> y = row[i * columns + k + 1];
      row[i * columns + k] = cosine * x[i] + sine * y;
      x[i] = cosine * y - sine * x[i];
    }
  }
  for (int i = 0; i < Rows; ++i) row[i * columns + end] = x[i];
}
template <class T>
void turn_columns(int rows, int columns, Number<T>* q, int begin, int end, const Number<T>* c,
                  const Number<T>* s) {
  int i = 0;
  for (; i + 4 <= rows; i += 4) turn_rows<T, 4>(columns, q + i * columns, begin, end, c, s);
  for (; i < rows; ++i) turn_rows<T, 1>(columns, q + i * columns, begin, end, c, s);
}

// Sets what is negligible beside the diagonal to 0 and calls step(begin, hi, lo, active) until all
// of it is: rows lo .. hi of each lane hang together, and `begin` is the least lo of the active
// lanes. The lanes in which it does not converge.
template <class T, class F>
Integer<T> deflate(int n, const Number<T>* d, Number<T>* e, Number<T> negligible, const F& step) {
  using N = Number<T>;
  using I = Integer<T>;
  constexpr int kMostSteps = 60;
  I failed{};
  for (int hi = n - 1, steps = 0; hi > 0;) {
    I lo{};
    for (int k = 0; k < hi; ++k) {
      const N limit = kEpsilon<T> * (magnitude(d[k]) + magnitude(d[k + 1])) + negligible;
      const I small = magnitude(e[k]) <= limit;
      e[k] = small ? N{} : e[k];
      lo = small ? I{} + (k + 1) : lo;
    }
    const I active = lo != hi;
    if (!any(active) || steps == kMostSteps) {
      failed |= active;
      --hi, steps = 0;
      continue;
    }
    ++steps;
    int begin = 0;
    while (!any((lo <= begin) & active)) ++begin;
    step(begin, hi, lo, active);
  }
  return failed;
}

// What has no influence beside a largest element of 2**kExponent.
template <class T>
Number<T> tiny_number() {
  return Number<T>{} + std::ldexp(kEpsilon<T> * kEpsilon<T> * kEpsilon<T>, kExponent<T>);
}

// Vectors of scratch, one after the other.
template <class T>
struct Room {
  Number<T>* at;
  explicit Room(T* scratch) : at(reinterpret_cast<Number<T>*>(scratch)) {}
  Number<T>* take(int count) { return std::exchange(at, at + count); }
};

// ---- symmetric matrices: reflections to tridiagonal form, then implicit QR steps

// The lower triangle of a is read; the reflections' vectors take its place.
template <class T>
void to_tridiagonal(int n, Number<T>* a, Number<T>* d, Number<T>* e, Number<T>* tau, Number<T>* v,
                    Number<T>* w) {
  using N = Number<T>;
  for (int k = 0; k + 2 < n; ++k) {
    N square{}, inner{};
    for (int i = k + 2; i < n; ++i) square += a[i * n + k] * a[i * n + k];
    const Reflection<T> r(a[(k + 1) * n + k], square, tiny_number<T>());
    tau[k] = r.tau;
    e[k] = r.beta;
    v[k + 1] = N{} + 1;
    for (int i = k + 2; i < n; ++i) v[i] = a[i * n + k] *= r.factor;
    // w = tau a v - (tau ** 2 v.a v / 2) v;  a -= v w' + w v'
    for (int i = k + 1; i < n; ++i) {
      const N *row = a + i * n, own = v[i];
      N sum = row[i] * own;
      for (int j = k + 1; j < i; ++j) {
        sum += row[j] * v[j];
        w[j] += row[j] * own;
      }
      w[i] = sum;
    }
    for (int i = k + 1; i < n; ++i) inner += w[i] * v[i];
    inner *= r.tau * r.tau * T(0.5);
    for (int i = k + 1; i < n; ++i) w[i] = r.tau * w[i] - inner * v[i];
    for (int i = k + 1; i < n; ++i)
      for (int j = k + 1; j <= i; ++j) a[i * n + j] -= v[i] * w[j] + w[i] * v[j];
  }
  for (int i = 0; i < n; ++i) d[i] = a[i * n + i];
  if (n > 1) e[n - 2] = a[(n - 1) * n + n - 2];
  e[n - 1] = N{};
}

// One step with Wilkinson's shift; its rotations in c and s.
template <class T>
void step_tridiagonal(int begin, int hi, Integer<T> lo, Integer<T> active, Number<T>* d,
                      Number<T>* e, Number<T>* c, Number<T>* s) {
  using N = Number<T>;
  const N delta = (d[hi - 1] - d[hi]) * T(0.5), last = e[hi - 1],
          length = root<T>(delta * delta + last * last),
          shift = d[hi] - last * last / (delta < 0 ? delta - length : delta + length);
  N x{}, z{};
  for (int k = begin; k < hi; ++k) {
    const Integer<T> starts = lo == k, runs = (lo <= k) & active;
    x = starts ? d[k] - shift : x;
    z = starts ? e[k] : z;
    const Rotation<T> r(x, z, runs, tiny_number<T>());
    c[k] = r.c, s[k] = r.s;
    if (k > begin) e[k - 1] = runs & ~starts ? r.r : e[k - 1];
    const N h = (d[k + 1] - d[k]) * r.s + 2 * r.c * e[k];
    d[k] += r.s * h;
    d[k + 1] -= r.s * h;
    x = e[k] = r.c * h - e[k];
    z = r.s * e[k + 1];
    if (k + 1 < hi) e[k + 1] *= r.c;
  }
}

template <class T>
void eigh(int n, int count, const typename MatrixLanes<T>::Source& from, bool lower, T* w, T* v,
          T* scratch, LaneOutcome* outcome) {
  constexpr int W = kLanes<T>;
  Room<T> room(scratch);
  Number<T>*a = room.take(n * n), *q = room.take(n * n), *d = room.take(n), *e = room.take(n),
  *tau = room.take(n), *c = room.take(n), *s = room.take(n);
  Scaling<T> scaling[W];
  load<T>(n, n, count, from, lower ? Part::Lower : Part::Upper, scratch, n, 1, scaling, outcome);
  to_tridiagonal<T>(n, a, d, e, tau, c, s);
  if (v) expand_reflections<T>(n, n, n - 2, 1, a, n, 1, tau, c, q);
  const Integer<T> failed = deflate<T>(n, d, e, tiny_number<T>(),
                                       [&](int begin, int hi, Integer<T> lo, Integer<T> active) {
                                         step_tridiagonal<T>(begin, hi, lo, active, d, e, c, s);
                                         if (v) turn_columns<T>(n, n, q, begin, hi, c, s);
                                       });
  const T *values = reinterpret_cast<const T*>(d), *vectors = reinterpret_cast<const T*>(q);
  int order[kMostInLanes];
  for (int l = 0; l < count; ++l) {
    if (failed[l] && outcome[l] == LaneOutcome::Done) outcome[l] = LaneOutcome::Undecided;
    sort_lane(n, values + l, order, [](T x, T y) { return x < y; });
    for (int k = 0; k < n; ++k) {
      w[l * n + k] = scaling[l].back(values[order[k] * W + l]);
      for (int i = 0; v && i < n; ++i) v[(l * n + k) * n + i] = vectors[(i * n + order[k]) * W + l];
    }
  }
}

// ---- singular values: reflections to bidiagonal form, then implicit QR steps

// a is m x n, m >= n. The vectors of the reflections from the left take the place of what was below
// the diagonal, those from the right of what was right of the element beside it.
template <class T>
void to_bidiagonal(int m, int n, Number<T>* a, Number<T>* d, Number<T>* e, Number<T>* left,
                   Number<T>* right, Number<T>* w) {
  using N = Number<T>;
  for (int k = 0; k < n; ++k) {
    N *own = a + k * n, square{};
    for (int i = k + 1; i < m; ++i) square += a[i * n + k] * a[i * n + k];
    const Reflection<T> down(own[k], square, tiny_number<T>());
    left[k] = down.tau;
    d[k] = down.beta;
    for (int j = k + 1; j < n; ++j) w[j] = own[j];
    for (int i = k + 1; i < m; ++i) {
      N* row = a + i * n;
      row[k] *= down.factor;
      for (int j = k + 1; j < n; ++j) w[j] += row[k] * row[j];
    }
    for (int j = k + 1; j < n; ++j) own[j] -= w[j] *= down.tau;
    for (int i = k + 1; i < m; ++i) {
      N* row = a + i * n;
      for (int j = k + 1; j < n; ++j) row[j] -= row[k] * w[j];
    }
    if (k + 1 == n) break;
    square = N{};
    for (int j = k + 2; j < n; ++j) square += own[j] * own[j];
    const Reflection<T> across(own[k + 1], square, tiny_number<T>());
    right[k] = across.tau;
    e[k] = across.beta;
    for (int j = k + 2; j < n; ++j) own[j] *= across.factor;
    for (int i = k + 1; i < m; ++i) {
      N *row = a + i * n, sum = row[k + 1];
      for (int j = k + 2; j < n; ++j) sum += row[j] * own[j];
      sum *= across.tau;
      row[k + 1] -= sum;
      for (int j = k + 2; j < n; ++j) row[j] -= sum * own[j];
    }
  }
  e[n - 1] = N{};
}

// One step of Golub and Kahan; the rotations of columns in c and s, of rows in c2 and s2. The shift
// is 0 where the matrix is nearly singular, since a 0 on the diagonal would stop another one.
template <class T>
void step_bidiagonal(int begin, int hi, Integer<T> lo, Integer<T> active, Number<T> negligible,
                     Number<T>* d, Number<T>* e, Number<T>* c, Number<T>* s, Number<T>* c2,
                     Number<T>* s2) {
  using N = Number<T>;
  using I = Integer<T>;
  const N tiny = tiny_number<T>();
  N least = magnitude(d[hi]);
  for (int k = begin; k < hi; ++k) {
    const N size = magnitude(d[k]);
    least = (lo <= k) & (size < least) ? size : least;
  }
  // The eigenvalue of the last corner of b' b that is nearer to its last element.
  const N above = hi > 1 ? e[hi - 2] : N{}, off = d[hi - 1] * e[hi - 1],
          last = d[hi] * d[hi] + e[hi - 1] * e[hi - 1],
          delta = (d[hi - 1] * d[hi - 1] + above * above - last) * T(0.5),
          length = root<T>(delta * delta + off * off),
          square = last - off * off / (delta < 0 ? delta - length : delta + length);
  const N shift = (square > 0) & (least > negligible) ? root<T>(square) : N{};
  N x{}, z{};
  for (int k = begin; k < hi; ++k) {
    const I starts = lo == k, runs = (lo <= k) & active;
    const N size = magnitude(d[k]), ratio = shift / d[k];
    const N moved = (size - shift) * ((d[k] < 0 ? N{} - 1 : N{} + 1) + ratio);
    x = starts ? (shift > 0 ? moved : d[k]) : x;
    z = starts ? e[k] : z;
    const Rotation<T> right(x, z, runs, tiny);
    c[k] = right.c, s[k] = right.s;
    if (k > begin) e[k - 1] = runs & ~starts ? right.r : e[k - 1];
    x = right.c * d[k] + right.s * e[k];
    const N beside = right.c * e[k] - right.s * d[k];
    z = right.s * d[k + 1];
    const N below = right.c * d[k + 1];
    const Rotation<T> left(x, z, runs, tiny);
    c2[k] = left.c, s2[k] = left.s;
    d[k] = left.r;
    x = e[k] = left.c * beside + left.s * below;
    d[k + 1] = left.c * below - left.s * beside;
    z = left.s * e[k + 1];
    if (k + 1 < hi) e[k + 1] *= left.c;
  }
}

template <class T>
void svd(int m, int n, int count, const typename MatrixLanes<T>::Source& from, T* s,
         typename SpectralLanes<T>::Place u, typename SpectralLanes<T>::Place v, T* scratch,
         LaneOutcome* outcome) {
  constexpr int W = kLanes<T>;
  Room<T> room(scratch);
  Number<T>*a = room.take(m * n), *left = room.take(m * n), *right = room.take(n * n),
  *d = room.take(n), *e = room.take(n), *c = room.take(n), *sine = room.take(n), *c2 = room.take(n),
  *sine2 = room.take(n), *w = room.take(n);
  Scaling<T> scaling[W];
  load<T>(m, n, count, from, Part::All, scratch, n, 1, scaling, outcome);
  to_bidiagonal<T>(m, n, a, d, e, c, c2, w);
  if (u.at) {
    expand_reflections<T>(m, n, n, 0, a, n, 1, c, w, left);
    expand_reflections<T>(n, n, n - 1, 1, a, 1, n, c2, w, right);
  }
  const auto negligible = Number<T>{} + std::ldexp(kEpsilon<T>, kExponent<T> - 5);
  const Integer<T> failed =
      deflate<T>(n, d, e, negligible, [&](int begin, int hi, Integer<T> lo, Integer<T> active) {
        step_bidiagonal<T>(begin, hi, lo, active, negligible, d, e, c, sine, c2, sine2);
        if (!u.at) return;
        turn_columns<T>(m, n, left, begin, hi, c2, sine2);
        turn_columns<T>(n, n, right, begin, hi, c, sine);
      });
  for (int k = 0; k < n; ++k) e[k] = magnitude(d[k]);
  const T *signs = reinterpret_cast<const T*>(d), *values = reinterpret_cast<const T*>(e),
          *lefts = reinterpret_cast<const T*>(left), *rights = reinterpret_cast<const T*>(right);
  int order[kMostInLanes];
  for (int l = 0; l < count; ++l) {
    if (failed[l] && outcome[l] == LaneOutcome::Done) outcome[l] = LaneOutcome::Undecided;
    sort_lane(n, values + l, order, [](T x, T y) { return x > y; });
    for (int k = 0; k < n; ++k) {
      const int at = order[k];
      s[l * n + k] = scaling[l].back(values[at * W + l]);
      if (!u.at) continue;
      const T sign = std::copysign(T(1), signs[at * W + l]);
      T *to_u = u.at + l * u.matrix + k * u.step_k, *to_v = v.at + l * v.matrix + k * v.step_k;
      for (int i = 0; i < m; ++i) to_u[i * u.step_i] = lefts[(i * n + at) * W + l];
      for (int i = 0; i < n; ++i) to_v[i * v.step_i] = sign * rights[(i * n + at) * W + l];
    }
  }
}

}  // namespace

const SpectralLanes<float> spectral_float = {kLanes<float>, eigh<float>, svd<float>};
const SpectralLanes<double> spectral_double = {kLanes<double>, eigh<double>, svd<double>};

}  // namespace facula::FACULA_ISA
