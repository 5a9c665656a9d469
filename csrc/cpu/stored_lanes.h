// Loops over values that are computed in another type than they are stored in: a vector of the
// computed type at a time, then what is left one by one.
#pragma once
#include "cpu/half_lanes.h"

namespace facula::FACULA_ISA {

template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
inline T sum_of_lanes(Wide<T> v) {
  return fold_lanes<SumOfLanes, kLanes<T> / 2>(v, std::make_index_sequence<kLanes<T>>{})[0];
}

struct AsWide {};
struct AsSingle {};
// Values are stored as S and computed as T: float for half precision, else the same.
template <class S>
using Computed = std::conditional_t<is_small_float_v<S>, float, S>;

template <class S>
FACULA_INLINE Wide<Computed<S>> read(const S* x, int64_t i, AsWide) {
  if constexpr (is_small_float_v<S>) return read_halves(x + i);
  else return wide_at(x + i);
}
template <class S>
FACULA_INLINE Computed<S> read(const S* x, int64_t i, AsSingle) {
  return x[i];
}
template <class S>
FACULA_INLINE void write(S* y, int64_t i, Wide<Computed<S>> v) {
  if constexpr (is_small_float_v<S>) write_halves(y + i, v);
  else __builtin_memcpy(y + i, &v, sizeof v);
}
template <class S>
FACULA_INLINE void write(S* y, int64_t i, Computed<S> v) {
  y[i] = v;
}
template <class V, class B, class C>
FACULA_INLINE V madd(V a, B b, C c) {
  if constexpr (std::is_floating_point_v<V>) {
    return math::madd(a, V(b), V(c));
  } else {
    const V wide_b = b - V{}, wide_c = c - V{};
    if constexpr (std::is_same_v<V, Floats>) return math::madd(a, wide_b, wide_c);
#if defined(__AVX512BW__)
    else return V(_mm512_fmadd_pd(__m512d(a), __m512d(wide_b), __m512d(wide_c)));
#elif defined(__AVX2__) && defined(__FMA__)
    else return V(_mm256_fmadd_pd(__m256d(a), __m256d(wide_b), __m256d(wide_c)));
#else
    else return a * wide_b + wide_c;
#endif
  }
}

// f(i, wide) for a vector of T at a time, f(i, single) for the rest.
template <class T, class F>
FACULA_INLINE void each(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i, AsWide{});
  for (; i < n; ++i) f(i, AsSingle{});
}

// y[i] = f(i, as), two vectors at a time, which are cheaper to round together.
template <class S, class F>
FACULA_INLINE void write_each(S* y, int64_t n, F&& f) {
  constexpr int L = kLanes<Computed<S>>;
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const auto v = f(i, AsWide{}), w = f(i + L, AsWide{});
    if constexpr (is_small_float_v<S>) write_halves(y + i, v, w);
    else write(y, i, v), write(y, i + L, w);
  }
  if (i + L <= n) write(y, i, f(i, AsWide{})), i += L;
  for (; i < n; ++i) write(y, i, f(i, AsSingle{}));
}

}  // namespace facula::FACULA_ISA
