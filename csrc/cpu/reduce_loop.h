// The loops of reductions: many independent lanes, folded pairwise over blocks, which is both fast
// and far more accurate than one running sum.
#pragma once
#include <limits>
#include <utility>

#include "cpu/loop.h"
#include "cpu/vector_math.h"
#include "op/loop_types.h"

namespace facula::FACULA_ISA {

template <class T>
struct Lowest {
  static constexpr T value = std::numeric_limits<T>::has_infinity
                                 ? -std::numeric_limits<T>::infinity()
                                 : std::numeric_limits<T>::lowest();
};
template <class T>
struct Highest {
  static constexpr T value = std::numeric_limits<T>::has_infinity
                                 ? std::numeric_limits<T>::infinity()
                                 : std::numeric_limits<T>::max();
};

constexpr int64_t kReduceBlock = 4096;

// 64 bytes of T as one value: accumulators of this type stay in registers.
template <class T>
struct WideOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
inline constexpr bool has_wide = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

}  // namespace facula::FACULA_ISA

namespace facula::math {
template <class V>
FACULA_INLINE V wide_maximum(V a, V b) {
  return (a > b) | (a != a) ? a : b;
}
template <class V>
FACULA_INLINE V wide_minimum(V a, V b) {
  return (a < b) | (a != a) ? a : b;
}
#define FACULA_WIDE(T)                                                                  \
  FACULA_INLINE typename FACULA_ISA::WideOf<T>::type maximum(                           \
      typename FACULA_ISA::WideOf<T>::type a, typename FACULA_ISA::WideOf<T>::type b) { \
    return wide_maximum(a, b);                                                          \
  }                                                                                     \
  FACULA_INLINE typename FACULA_ISA::WideOf<T>::type minimum(                           \
      typename FACULA_ISA::WideOf<T>::type a, typename FACULA_ISA::WideOf<T>::type b) { \
    return wide_minimum(a, b);                                                          \
  }
FACULA_WIDE(float)
FACULA_WIDE(double)
FACULA_WIDE(int8_t)
FACULA_WIDE(int16_t)
FACULA_WIDE(int32_t)
FACULA_WIDE(int64_t)
FACULA_WIDE(uint8_t)
FACULA_WIDE(uint16_t)
FACULA_WIDE(uint32_t)
FACULA_WIDE(uint64_t)
#undef FACULA_WIDE
}  // namespace facula::math

namespace facula::FACULA_ISA {

// Folds that the machine has an instruction for, except that it does not keep NaN.
enum class Extreme : uint8_t { None, Largest, Smallest };

template <class T>
inline typename WideOf<T>::type wide_at(const T* x) {
  typename WideOf<T>::type v;
  __builtin_memcpy(&v, x, 64);
  return v;
}

// For each lane, whether its number is at least `first`.
template <class V, size_t... I>
inline auto is_lane_from(int64_t first, V, std::index_sequence<I...>) {
  using Mask = decltype(V{} == V{});
  using Lane = std::remove_cvref_t<decltype(Mask{}[0])>;
  return Mask{Lane(I)...} >= Lane(first) - Mask{};
}

// Folds the lanes of a vector with those `kWidth` to the right, then with half of that.
template <class F, int kWidth, class V, size_t... I>
inline V fold_lanes(V v, std::index_sequence<I...> lanes) {
  v = F::combine(v, __builtin_shufflevector(v, v, ((I + kWidth) % sizeof...(I))...));
  if constexpr (kWidth > 1) return fold_lanes<F, kWidth / 2>(v, lanes);
  else return v;
}

template <Extreme E>
struct PickExtreme {
  template <class V>
  static inline V combine(V a, V b) {
    return E == Extreme::Largest ? (a > b ? a : b) : (a < b ? a : b);
  }
};
struct AddLanes {
  template <class V>
  static inline V combine(V a, V b) {
    return a + b;
  }
};

// The largest or smallest of floats without a look at NaN; false when there may be one. Sums of
// differences stay finite unless an element is not (or, harmlessly, unless they overflow).
template <Extreme E, class T>
inline bool extreme_of_finite(const T* x, int64_t n, T& result) {
  using V = typename WideOf<T>::type;
  constexpr int L = 64 / sizeof(T);
  if (n < 4 * L) return false;
  auto pick = [](V a, V b) { return PickExtreme<E>::combine(a, b); };
  V a = wide_at(x), b = wide_at(x + L), c = wide_at(x + 2 * L), d = wide_at(x + 3 * L);
  V s = a - b, t = c - d;
  int64_t i = 4 * L;
  auto step = [&](int64_t at) {
    const V p = wide_at(x + at), q = wide_at(x + at + L), r = wide_at(x + at + 2 * L),
            u = wide_at(x + at + 3 * L);
    a = pick(a, p), b = pick(b, q), c = pick(c, r), d = pick(d, u);
    s += p - q, t += r - u;
  };
  for (; i + 4 * L <= n; i += 4 * L) step(i);
  if (i < n) step(n - 4 * L);  // some elements twice
  constexpr auto lanes = std::make_index_sequence<L>{};
  result = fold_lanes<PickExtreme<E>, L / 2>(pick(pick(a, b), pick(c, d)), lanes)[0];
  s += t;
  return fold_lanes<AddLanes, L / 2>(s - s, lanes)[0] == 0;
}

template <class F, class T>
inline T reduce_wide(const T* x, int64_t n) {
  using V = typename WideOf<T>::type;
  constexpr int L = 64 / sizeof(T);
  if constexpr (F::extreme != Extreme::None && std::is_floating_point_v<T>) {
    T result;
    if (extreme_of_finite<F::extreme>(x, n, result)) return result;
  }
  auto load = [&](int64_t i) { return wide_at(x + i); };
  V a = F::template init<T>() - V{}, b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = F::combine(a, load(i));
    b = F::combine(b, load(i + L));
    c = F::combine(c, load(i + 2 * L));
    d = F::combine(d, load(i + 3 * L));
  }
  for (; i + L <= n; i += L) a = F::combine(a, load(i));
  a = F::combine(F::combine(a, b), F::combine(c, d));
  constexpr auto lanes = std::make_index_sequence<L>{};
  if (i < n && n >= L) {  // the last vector, without the lanes that were folded already
    const V none = F::template init<T>() - V{};
    a = F::combine(a, is_lane_from(i - (n - L), none, lanes) ? load(n - L) : none);
  } else if (i < n) {
    T lane[L];
    for (int j = 0; j < L; ++j) lane[j] = i + j < n ? x[i + j] : F::template init<T>();
    a = F::combine(a, wide_at(lane));
  }
  return fold_lanes<F, L / 2>(a, lanes)[0];
}

template <class F, class T>
inline T reduce_block(const T* x, int64_t n) {
  if (n < 8) {  // in order: filling and folding the lanes would cost more
    T all = F::template init<T>();
    for (int64_t i = 0; i < n; ++i) all = F::combine(all, x[i]);
    return all;
  }
  if constexpr (has_wide<T>) return reduce_wide<F>(x, n);
  constexpr int L = 256 / sizeof(T);
  T lane[L];
  for (int j = 0; j < L; ++j) lane[j] = F::template init<T>();
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int j = 0; j < L; ++j) lane[j] = F::combine(lane[j], x[i + j]);
  for (int j = 0; i + j < n; ++j) lane[j] = F::combine(lane[j], x[i + j]);
  for (int width = L / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] = F::combine(lane[j], lane[j + width]);
  return lane[0];
}

template <class F, class T>
T reduce_pairwise(const T* x, int64_t n) {
  if (n <= kReduceBlock) return reduce_block<F>(x, n);
  int64_t half = (n / 2 + kReduceBlock - 1) / kReduceBlock * kReduceBlock;
  if (half >= n) half = kReduceBlock;
  const T left = reduce_pairwise<F>(x, half);  // first: prefetching works forwards
  return F::combine(left, reduce_pairwise<F>(x + half, n - half));
}

template <class F, class T>
T reduce_strided(const char* x, int64_t stride, int64_t n) {
  if (n > 256) {
    int64_t half = n / 2;
    const T left = reduce_strided<F, T>(x, stride, half);
    return F::combine(left, reduce_strided<F, T>(x + half * stride, stride, n - half));
  }
  T acc = F::template init<T>();
  for (int64_t i = 0; i < n; ++i)
    acc = F::combine(acc, *reinterpret_cast<const T*>(x + i * stride));
  return acc;
}

template <class F, class T>
void reduce_run(char* accumulator, const char* in, int64_t stride, int64_t n, bool first) {
  T& acc = *reinterpret_cast<T*>(accumulator);
  if (first) acc = F::template init<T>();
  if (n == 0) return;
  T part = stride == int64_t(sizeof(T)) ? reduce_pairwise<F>(reinterpret_cast<const T*>(in), n)
                                        : reduce_strided<F, T>(in, stride, n);
  acc = first ? part : F::combine(acc, part);
}

// acc[i] with x0[i] to x3[i], vectors first: compilers do not see that folds with NaN have no
// branches.
template <class F, class T>
inline void fold_four(T* acc, const T* x0, const T* x1, const T* x2, const T* x3, int64_t n) {
  auto fold = [](auto a, auto b, auto c, auto d, auto e) {
    return F::combine(F::combine(a, F::combine(b, c)), F::combine(d, e));
  };
  int64_t i = 0;
  if constexpr (has_wide<T>) {
    constexpr int L = 64 / sizeof(T);
    for (; i + L <= n; i += L) {
      const auto all = fold(wide_at(acc + i), wide_at(x0 + i), wide_at(x1 + i), wide_at(x2 + i),
                            wide_at(x3 + i));
      __builtin_memcpy(acc + i, &all, 64);
    }
  }
#pragma GCC ivdep
  for (; i < n; ++i) acc[i] = fold(acc[i], x0[i], x1[i], x2[i], x3[i]);
}

template <class F, class T>
inline void fold_one(T* acc, const T* x, int64_t n) {
  int64_t i = 0;
  if constexpr (has_wide<T>) {
    constexpr int L = 64 / sizeof(T);
    for (; i + L <= n; i += L) {
      const auto all = F::combine(wide_at(acc + i), wide_at(x + i));
      __builtin_memcpy(acc + i, &all, 64);
    }
  }
#pragma GCC ivdep
  for (; i < n; ++i) acc[i] = F::combine(acc[i], x[i]);
}

// Folds `rows` rows of n values (p[1], rows s[2] bytes apart) into the row of accumulators p[0].
template <class F, class T>
void fold_run(char* const* p, const int64_t* s, int64_t n, const void* params) {
  T* acc = reinterpret_cast<T*>(p[0]);
  const int64_t rows = *static_cast<const int64_t*>(params);
  const char* row = p[1];
  int64_t r = 0;
  auto at = [&](int64_t k) { return reinterpret_cast<const T*>(row + k * s[2]); };
  if (s[1] == int64_t(sizeof(T))) {
    for (; r + 4 <= rows; r += 4, row += 4 * s[2])  // the accumulators are read less
      fold_four<F>(acc, at(0), at(1), at(2), at(3), n);
    for (; r < rows; ++r, row += s[2]) fold_one<F>(acc, at(0), n);
    return;
  }
  for (; r < rows; ++r, row += s[2])
    for (int64_t i = 0; i < n; ++i)
      acc[i] = F::combine(acc[i], *reinterpret_cast<const T*>(row + i * s[1]));
}

}  // namespace facula::FACULA_ISA
