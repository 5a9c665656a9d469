// Distances of rows and their derivatives; built once per ISA. Each norm is a struct with the terms
// of some differences, how they are folded, what the total becomes, and the derivative by one
// difference, given what is `prepared` of the distance.
#include <algorithm>

#include "cpu/distances.h"
#include "cpu/reduce_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
using Vector = typename WideOf<T>::type;
template <class T>
using Bits = typename WideOf<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::type;

template <class T>
FACULA_INLINE Vector<T> size_of(Vector<T> v) {
  constexpr auto without_sign =
      std::numeric_limits<std::remove_cvref_t<decltype(Bits<T>{}[0])>>::max();
  return Vector<T>(Bits<T>(v) & without_sign);
}
// g with the sign of d, 0 where d is 0.
template <class T>
FACULA_INLINE Vector<T> along(Vector<T> g, Vector<T> d) {
  const Vector<T> none{};
  return (d > none ? g : none) - (d < none ? g : none);
}
// 0 for 0; finite for distances that are not normal numbers, since 0 is multiplied by it.
template <class T>
FACULA_INLINE Vector<T> inverse_of(Vector<T> distance) {
  const Vector<T> none{}, inverse = 1 / distance, most = std::numeric_limits<T>::max() - none;
  return distance == none ? none : inverse > most ? most : inverse;
}
// Powers of the sizes of d.
template <class T>
FACULA_INLINE Vector<T> power_of_size(Vector<T> d, T p) {
  T lane[kLanes<T>];
  __builtin_memcpy(lane, &d, sizeof d);
  for (int k = 0; k < kLanes<T>; ++k) lane[k] = math::pow(math::abs(lane[k]), p);
  return wide_at(lane);
}

// Without the sign, numbers are in the order of their bits, and NaN comes last.
template <class T>
struct LargerSize {
  static FACULA_INLINE Vector<T> combine(Vector<T> a, Vector<T> b) {
    return Vector<T>(Bits<T>(a) > Bits<T>(b) ? Bits<T>(a) : Bits<T>(b));
  }
};

template <class T>
struct Count {  // p = 0
  using Fold = SumOfLanes;
  Vector<T> term(Vector<T> d) const { return d != Vector<T>{} ? T(1) - Vector<T>{} : Vector<T>{}; }
  T finish(T total) const { return total; }
  Vector<T> prepared(Vector<T> distance) const { return distance; }
  Vector<T> weight(Vector<T> grad, Vector<T>) const { return grad; }
  Vector<T> slope(Vector<T>, Vector<T>, Vector<T>) const { return Vector<T>{}; }
};
template <class T>
struct Manhattan {
  using Fold = SumOfLanes;
  Vector<T> term(Vector<T> d) const { return size_of<T>(d); }
  T finish(T total) const { return total; }
  Vector<T> prepared(Vector<T> distance) const { return distance; }
  Vector<T> weight(Vector<T> grad, Vector<T>) const { return grad; }
  Vector<T> slope(Vector<T> grad, Vector<T>, Vector<T> d) const { return along<T>(grad, d); }
};
template <class T>
struct Euclid {
  using Fold = SumOfLanes;
  Vector<T> term(Vector<T> d) const { return d * d; }
  T finish(T total) const { return math::sqrt(total); }
  Vector<T> prepared(Vector<T> distance) const { return inverse_of<T>(distance); }
  // Pairs in one place have no gradient even of infinity.
  Vector<T> weight(Vector<T> grad, Vector<T> distance) const {
    return distance == Vector<T>{} ? Vector<T>{} : grad;
  }
  Vector<T> slope(Vector<T> grad, Vector<T> inverse, Vector<T> d) const {
    return grad * (d * inverse);
  }
};
template <class T>
struct Largest {  // p = inf
  using Fold = LargerSize<T>;
  Vector<T> term(Vector<T> d) const { return size_of<T>(d); }
  T finish(T total) const { return total; }
  Vector<T> prepared(Vector<T> distance) const { return distance; }
  Vector<T> weight(Vector<T> grad, Vector<T>) const { return grad; }
  Vector<T> slope(Vector<T> grad, Vector<T> distance, Vector<T> d) const {
    return size_of<T>(d) == distance ? along<T>(grad, d) : Vector<T>{};
  }
};
template <class T>
struct Power {
  using Fold = SumOfLanes;
  T p;
  Vector<T> term(Vector<T> d) const { return power_of_size<T>(d, p); }
  T finish(T total) const { return math::pow(total, 1 / p); }
  Vector<T> prepared(Vector<T> distance) const { return inverse_of<T>(distance); }
  Vector<T> weight(Vector<T> grad, Vector<T>) const { return grad; }
  Vector<T> slope(Vector<T> grad, Vector<T> inverse, Vector<T> d) const {
    const Vector<T> value = along<T>(grad, d) * power_of_size<T>(d * inverse, p - 1);
    return d == Vector<T>{} ? Vector<T>{} : value;
  }
};

template <class T, class Norm>
T distance(const T* a, const T* b, int64_t width, Norm norm) {
  constexpr auto lanes = std::make_index_sequence<kLanes<T>>{};
  using Fold = typename Norm::Fold;
  Vector<T> total{};
  int64_t m = 0;
  for (; m + kLanes<T> <= width; m += kLanes<T>)
    total = Fold::combine(total, norm.term(wide_at(a + m) - wide_at(b + m)));
  if (m < width) {  // lanes that are not there, or were there before, differ by 0
    Vector<T> d{};
    if (width >= kLanes<T>) {
      d = wide_at(a + width - kLanes<T>) - wide_at(b + width - kLanes<T>);
      d = is_lane_from(kLanes<T> - (width - m), d, lanes) ? d : Vector<T>{};
    } else {
      T rest[kLanes<T>] = {};
      for (int64_t k = 0; k < width; ++k) rest[k] = a[k] - b[k];
      d = wide_at(rest);
    }
    total = Fold::combine(total, norm.term(d));
  }
  return norm.finish(fold_lanes<Fold, kLanes<T> / 2>(total, lanes)[0]);
}

template <class T, class F>
void with_norm(double p, F run) {
  if (p == 0) run(Count<T>{});
  else if (p == 1) run(Manhattan<T>{});
  else if (p == 2) run(Euclid<T>{});
  else if (p == __builtin_inf()) run(Largest<T>{});
  else run(Power<T>{T(p)});
}

// Rows shorter than a vector: many columns at a time, with their numbers turned.
template <class T>
constexpr int64_t kNarrow = kLanes<T>;
template <class T, class Norm>
void narrow_rows(const T* x1, const T* x2, T* out, int64_t rows, int64_t columns, int64_t width,
                 Norm norm) {
  constexpr int kVectors = 4, kTile = kLanes<T> * kVectors;
  alignas(64) T turned[kNarrow<T>][kTile] = {}, finished[kTile];
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t count = std::min<int64_t>(kTile, columns - first);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t m = 0; m < width; ++m) turned[m][j] = x2[(first + j) * width + m];
    for (int64_t i = 0; i < rows; ++i) {
      Vector<T> total[kVectors] = {};
      for (int64_t m = 0; m < width; ++m) {
        const T a = x1[i * width + m];
        for (int v = 0; v < kVectors; ++v)
          total[v] =
              Norm::Fold::combine(total[v], norm.term(a - wide_at(turned[m] + v * kLanes<T>)));
      }
      __builtin_memcpy(finished, total, sizeof finished);
      for (T& t : finished) t = norm.finish(t);
      std::copy_n(finished, count, out + i * columns + first);
    }
  }
}

template <class T>
void rows(const T* x1, const T* x2, T* out, int64_t rows, int64_t columns, int64_t width,
          double p) {
  with_norm<T>(p, [&](auto norm) {
    if (width < kNarrow<T> && columns >= 8)
      return narrow_rows(x1, x2, out, rows, columns, width, norm);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        out[i * columns + j] = distance(x1 + i * width, x2 + j * width, width, norm);
  });
}

// Columns whose numbers are prepared, or turned, together.
template <class T>
constexpr int64_t kSlopeTile = 256;

// out += slopes of rows shorter than a vector: a lane has a column, which is turned.
template <class T, class Norm>
void narrow_slopes(const T* grad, const T* distances, const T* x1, const T* x2, T* out,
                   int64_t rows, int64_t columns, int64_t count, int64_t width, Norm norm) {
  constexpr auto lanes = std::make_index_sequence<kLanes<T>>{};
  alignas(64) T turned[kNarrow<T>][kSlopeTile<T>], last[2][kLanes<T>];
  const int64_t whole = count / kLanes<T> * kLanes<T>,
                end = (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  for (int64_t j = 0; j < end; ++j)  // beyond the last column: the first one, without a gradient
    for (int64_t m = 0; m < width; ++m) turned[m][j] = x2[(j < count ? j : 0) * width + m];
  for (int64_t i = 0; i < rows; ++i, grad += columns, distances += columns) {
    Vector<T> total[kNarrow<T>] = {};
    for (int64_t j = 0; j < end; j += kLanes<T>) {
      const T *g = grad + j, *d = distances + j;
      if (j == whole) {
        for (int64_t k = 0; k < kLanes<T>; ++k) {
          const bool is_there = j + k < count;
          last[0][k] = is_there ? g[k] : T(0);
          last[1][k] = is_there ? d[k] : distances[0];
        }
        g = last[0], d = last[1];
      }
      const Vector<T> weight = norm.weight(wide_at(g), wide_at(d)),
                      prepared = norm.prepared(wide_at(d));
      for (int64_t m = 0; m < width; ++m)
        total[m] += norm.slope(weight, prepared, x1[i * width + m] - wide_at(turned[m] + j));
    }
    for (int64_t m = 0; m < width; ++m)
      out[i * width + m] += fold_lanes<SumOfLanes, kLanes<T> / 2>(total[m], lanes)[0];
  }
}

// out += slopes of longer rows: a lane has a coordinate.
template <class T, class Norm>
void wide_slopes(const T* grad, const T* distances, const T* x1, const T* x2, T* out, int64_t rows,
                 int64_t columns, int64_t count, int64_t width, Norm norm) {
  alignas(64) T prepared[kSlopeTile<T>] = {}, weights[kSlopeTile<T>] = {};
  for (int64_t i = 0; i < rows; ++i, grad += columns, distances += columns) {
    std::copy_n(distances, count, prepared);
    std::copy_n(grad, count, weights);
    for (int64_t j = 0; j < count; j += kLanes<T>) {
      const Vector<T> d = wide_at(prepared + j), w = norm.weight(wide_at(weights + j), d),
                      v = norm.prepared(d);
      __builtin_memcpy(prepared + j, &v, sizeof v);
      __builtin_memcpy(weights + j, &w, sizeof w);
    }
    T* to = out + i * width;
    for (int64_t m = 0; m < width; m += kLanes<T>) {
      // The last vector has some coordinates again; they must not be added twice.
      const int64_t at = std::min(m, width - kLanes<T>);
      const Vector<T> a = wide_at(x1 + i * width + at), none{};
      Vector<T> total{};
      for (int64_t j = 0; j < count; ++j)
        total +=
            norm.slope(weights[j] - none, prepared[j] - none, a - wide_at(x2 + j * width + at));
      alignas(64) T sums[kLanes<T>];
      __builtin_memcpy(sums, &total, sizeof total);
      for (int64_t k = m - at; k < kLanes<T>; ++k) to[at + k] += sums[k];
    }
  }
}

template <class T>
void slopes(const T* grad, const T* distances, const T* x1, const T* x2, T* out, int64_t rows,
            int64_t columns, int64_t width, double p) {
  std::fill_n(out, rows * width, T(0));
  with_norm<T>(p, [&]<class Norm>(Norm norm) {
    const auto add = width < kNarrow<T> ? narrow_slopes<T, Norm> : wide_slopes<T, Norm>;
    for (int64_t j = 0; j < columns; j += kSlopeTile<T>)
      add(grad + j, distances + j, x1, x2 + j * width, out, rows, columns,
          std::min(kSlopeTile<T>, columns - j), width, norm);
  });
}

}  // namespace

extern const DistanceLoops distance_loops = {rows<float>, rows<double>, slopes<float>,
                                             slopes<double>};

}  // namespace facula::FACULA_ISA
