// Distances of rows and their derivatives; built once per ISA. Each norm is a struct with what is
// added up, what the total becomes and the derivative by one difference.
#include "cpu/distances.h"
#include "cpu/reduce_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
T sign(T a) {
  return T((a > 0) - (a < 0));
}

template <class T>
struct Count {  // p = 0
  T add(T total, T difference) const { return total + T(difference != 0); }
  T finish(T total) const { return total; }
  T slope(T, T, T) const { return 0; }
};
template <class T>
struct Manhattan {
  T add(T total, T difference) const { return total + math::abs(difference); }
  T finish(T total) const { return total; }
  T slope(T grad, T, T difference) const { return grad * sign(difference); }
};
template <class T>
struct Euclid {
  T add(T total, T difference) const { return total + difference * difference; }
  T finish(T total) const { return math::sqrt(total); }
  T slope(T grad, T distance, T difference) const {
    return distance == 0 ? T(0) : grad * difference / distance;
  }
};
template <class T>
struct Largest {  // p = inf
  T add(T total, T difference) const { return math::maximum(total, math::abs(difference)); }
  T finish(T total) const { return total; }
  T slope(T grad, T distance, T difference) const {
    return math::abs(difference) == distance ? grad * sign(difference) : T(0);
  }
};
template <class T>
struct Power {
  T p;
  T add(T total, T difference) const { return total + math::pow(math::abs(difference), p); }
  T finish(T total) const { return math::pow(total, 1 / p); }
  T slope(T grad, T distance, T difference) const {
    const T size = math::abs(difference);
    const T value = grad * sign(difference) * math::pow(size / distance, p - 1);
    return size == 0 || distance == 0 ? T(0) : value;
  }
};

template <class T>
constexpr auto kWithoutSign =
    std::numeric_limits<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::max();

// Independent lanes, so that the sum is a vector's; folded at the end.
template <class T, class Norm>
T distance(const T* a, const T* b, int64_t width, Norm norm) {
  constexpr int kLanes = 64 / sizeof(T);
  T lane[kLanes] = {};
  int64_t m = 0;
  if constexpr (std::is_same_v<Norm, Largest<T>>) {
    // Without the sign, numbers are in the order of their bits, and NaN comes last.
    using Bits = typename WideOf<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::type;
    Bits most{};
    for (; m + kLanes <= width; m += kLanes) {
      const Bits size = Bits(wide_at(a + m) - wide_at(b + m)) & kWithoutSign<T>;
      most = size > most ? size : most;
    }
    __builtin_memcpy(lane, &most, sizeof lane);
  }
  for (; m + kLanes <= width; m += kLanes)
    for (int k = 0; k < kLanes; ++k) lane[k] = norm.add(lane[k], a[m + k] - b[m + k]);
  for (int k = 0; m + k < width; ++k) lane[k] = norm.add(lane[k], a[m + k] - b[m + k]);
  if constexpr (std::is_same_v<Norm, Largest<T>>) {
    auto most = math::bits_of(lane[0]);
    for (int k = 1; k < kLanes; ++k) most = std::max(most, math::bits_of(lane[k]));
    return std::bit_cast<T>(most);
  }
  T total = lane[0];
  for (int k = 1; k < kLanes; ++k) total += lane[k];
  return norm.finish(total);
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
  constexpr int kTile = 64;
  alignas(64) T turned[kNarrow<T>][kTile] = {}, total[kTile];
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t count = std::min<int64_t>(kTile, columns - first);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t m = 0; m < width; ++m) turned[m][j] = x2[(first + j) * width + m];
    for (int64_t i = 0; i < rows; ++i) {
      for (T& t : total) t = 0;
      for (int64_t m = 0; m < width; ++m) {
        const T a = x1[i * width + m];
        for (int j = 0; j < kTile; ++j) total[j] = norm.add(total[j], a - turned[m][j]);
      }
      for (T& t : total) t = norm.finish(t);
      std::copy_n(total, count, out + i * columns + first);
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

template <class T>
void slopes(const T* grad, const T* distances, const T* x1, const T* x2, T* out, int64_t rows,
            int64_t columns, int64_t width, double p) {
  with_norm<T>(p, [&](auto norm) {
    for (int64_t i = 0; i < rows; ++i) {
      T* to = out + i * width;
      const T* a = x1 + i * width;
      for (int64_t m = 0; m < width; ++m) to[m] = 0;
      for (int64_t j = 0; j < columns; ++j) {
        const T g = grad[i * columns + j], d = distances[i * columns + j];
        const T* b = x2 + j * width;
#pragma GCC ivdep
        for (int64_t m = 0; m < width; ++m) to[m] += norm.slope(g, d, a[m] - b[m]);
      }
    }
  });
}

}  // namespace

extern const DistanceLoops distance_loops = {rows<float>, rows<double>, slopes<float>,
                                             slopes<double>};

}  // namespace facula::FACULA_ISA
