// Distances of rows and their derivatives; built once per ISA. Each norm is a struct with the terms
// of some differences, how they are folded, what the total becomes, and the derivative by one
// difference, given what is `prepared` of the distance.
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
FACULA_INLINE Vector<T> along(T g, Vector<T> d) {
  const Vector<T> none{}, up = g - none;
  return (d > none ? up : none) - (d < none ? up : none);
}
// 0 for 0; finite for distances that are not normal numbers, since 0 is multiplied by it.
template <class T>
FACULA_INLINE T inverse_of(T distance) {
  const T inverse = 1 / distance, most = std::numeric_limits<T>::max();
  return distance == 0 ? T(0) : inverse > most ? most : inverse;
}
// Powers of the sizes of d.
template <class T>
FACULA_INLINE Vector<T> power_of_size(Vector<T> d, T p) {
  constexpr int kLanes = 64 / sizeof(T);
  T lane[kLanes];
  __builtin_memcpy(lane, &d, sizeof d);
  for (int k = 0; k < kLanes; ++k) lane[k] = math::pow(math::abs(lane[k]), p);
  return wide_at(lane);
}

struct Sum {
  template <class V>
  static FACULA_INLINE V combine(V a, V b) {
    return a + b;
  }
};
// Without the sign, numbers are in the order of their bits, and NaN comes last.
template <class T>
struct LargerSize {
  static FACULA_INLINE Vector<T> combine(Vector<T> a, Vector<T> b) {
    return Vector<T>(Bits<T>(a) > Bits<T>(b) ? Bits<T>(a) : Bits<T>(b));
  }
};

template <class T>
struct Count {  // p = 0
  using Fold = Sum;
  Vector<T> term(Vector<T> d) const { return d != Vector<T>{} ? T(1) - Vector<T>{} : Vector<T>{}; }
  T finish(T total) const { return total; }
  T prepared(T distance) const { return distance; }
  Vector<T> slope(T, T, Vector<T>) const { return Vector<T>{}; }
};
template <class T>
struct Manhattan {
  using Fold = Sum;
  Vector<T> term(Vector<T> d) const { return size_of<T>(d); }
  T finish(T total) const { return total; }
  T prepared(T distance) const { return distance; }
  Vector<T> slope(T grad, T, Vector<T> d) const { return along(grad, d); }
};
template <class T>
struct Euclid {
  using Fold = Sum;
  Vector<T> term(Vector<T> d) const { return d * d; }
  T finish(T total) const { return math::sqrt(total); }
  T prepared(T distance) const { return inverse_of(distance); }
  Vector<T> slope(T grad, T inverse, Vector<T> d) const { return grad * (d * inverse); }
};
template <class T>
struct Largest {  // p = inf
  using Fold = LargerSize<T>;
  Vector<T> term(Vector<T> d) const { return size_of<T>(d); }
  T finish(T total) const { return total; }
  T prepared(T distance) const { return distance; }
  Vector<T> slope(T grad, T distance, Vector<T> d) const {
    return size_of<T>(d) == distance - Vector<T>{} ? along(grad, d) : Vector<T>{};
  }
};
template <class T>
struct Power {
  using Fold = Sum;
  T p;
  Vector<T> term(Vector<T> d) const { return power_of_size<T>(d, p); }
  T finish(T total) const { return math::pow(total, 1 / p); }
  T prepared(T distance) const { return inverse_of(distance); }
  Vector<T> slope(T grad, T inverse, Vector<T> d) const {
    const Vector<T> value = along(grad, d) * power_of_size<T>(d * inverse, p - 1);
    return d == Vector<T>{} ? Vector<T>{} : value;
  }
};

template <class T, class Norm>
T distance(const T* a, const T* b, int64_t width, Norm norm) {
  constexpr int kLanes = 64 / sizeof(T);
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  using Fold = typename Norm::Fold;
  Vector<T> total{};
  int64_t m = 0;
  for (; m + kLanes <= width; m += kLanes)
    total = Fold::combine(total, norm.term(wide_at(a + m) - wide_at(b + m)));
  if (m < width) {  // lanes that are not there, or were there before, differ by 0
    Vector<T> d{};
    if (width >= kLanes) {
      d = wide_at(a + width - kLanes) - wide_at(b + width - kLanes);
      d = is_lane_from(kLanes - (width - m), d, lanes) ? d : Vector<T>{};
    } else {
      T rest[kLanes] = {};
      for (int64_t k = 0; k < width; ++k) rest[k] = a[k] - b[k];
      d = wide_at(rest);
    }
    total = Fold::combine(total, norm.term(d));
  }
  return norm.finish(fold_lanes<Fold, kLanes / 2>(total, lanes)[0]);
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
constexpr int64_t kNarrow = 64 / sizeof(T);
template <class T, class Norm>
void narrow_rows(const T* x1, const T* x2, T* out, int64_t rows, int64_t columns, int64_t width,
                 Norm norm) {
  constexpr int kLanes = 64 / sizeof(T), kVectors = 4, kTile = kLanes * kVectors;
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
          total[v] = Norm::Fold::combine(total[v], norm.term(a - wide_at(turned[m] + v * kLanes)));
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

// The slopes by as many coordinates as a vector has, of `a` with all rows of b.
template <class T, class Norm>
FACULA_INLINE Vector<T> slopes_of(const T* grad, const T* distances, Vector<T> a, const T* b,
                                  int64_t columns, int64_t width, Norm norm) {
  Vector<T> total{};
  for (int64_t j = 0; j < columns; ++j)
    total += norm.slope(grad[j], norm.prepared(distances[j]), a - wide_at(b + j * width));
  return total;
}

template <class T>
void slopes(const T* grad, const T* distances, const T* x1, const T* x2, T* out, int64_t rows,
            int64_t columns, int64_t width, double p) {
  with_norm<T>(p, [&](auto norm) {
    constexpr int64_t kLanes = 64 / sizeof(T);
    for (int64_t i = 0; i < rows; ++i, grad += columns, distances += columns) {
      T* to = out + i * width;
      const T* a = x1 + i * width;
      if (width >= kLanes) {  // the last vector may have some coordinates again
        for (int64_t m = 0; m < width; m += kLanes) {
          const int64_t at = std::min(m, width - kLanes);
          const Vector<T> v =
              slopes_of(grad, distances, wide_at(a + at), x2 + at, columns, width, norm);
          __builtin_memcpy(to + at, &v, sizeof v);
        }
        continue;
      }
      // Short rows: the other lanes read what follows, and mean nothing; where nothing follows, by
      // copies.
      T first[kLanes] = {}, row[kLanes] = {};
      for (int64_t m = 0; m < width; ++m) first[m] = a[m];
      const Vector<T> own = wide_at(first);
      const int64_t whole =
          std::max<int64_t>(0, (columns * width - kLanes) / std::max<int64_t>(width, 1));
      Vector<T> v = slopes_of(grad, distances, own, x2, whole, width, norm);
      for (int64_t j = whole; j < columns; ++j) {
        for (int64_t m = 0; m < width; ++m) row[m] = x2[j * width + m];
        v += slopes_of(grad + j, distances + j, own, row, 1, width, norm);
      }
      __builtin_memcpy(first, &v, sizeof v);
      for (int64_t m = 0; m < width; ++m) to[m] = first[m];
    }
  });
}

}  // namespace

extern const DistanceLoops distance_loops = {rows<float>, rows<double>, slopes<float>,
                                             slopes<double>};

}  // namespace facula::FACULA_ISA
