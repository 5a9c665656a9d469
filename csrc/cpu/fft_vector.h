// Vectors for the transforms: arithmetic on complex lanes and the shuffles between rows of lanes
// and numbers in memory. Everything is in the ISA's namespace, so that no build can end up with
// another one's code. Include it first: the pragmas hold for the functions after them.
#pragma once
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")  // sums of products are fused where the machine can
#endif

#include <cstdint>
#include <cstring>
#include <utility>

#include "cpu/lanes.h"

namespace facula::FACULA_ISA {

template <class T>
constexpr int64_t kFftRow = 2 * kLanes<T>;  // of a row, real and imaginary parts

template <class T>
struct FftVectorOf {
  typedef T type __attribute__((vector_size(kLaneBytes)));
};
template <class T>
using FftVector = typename FftVectorOf<T>::type;

template <class T>
inline FftVector<T> load_vector(const T* from) {
  FftVector<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
inline void store_vector(T* to, FftVector<T> v) {
  std::memcpy(to, &v, sizeof v);
}

// V complex numbers.
template <class T>
struct Lanes {
  FftVector<T> re, im;

  static Lanes load(const T* row) { return {load_vector(row), load_vector(row + kLanes<T>)}; }
  void store(T* row) const {
    store_vector(row, re);
    store_vector(row + kLanes<T>, im);
  }
  Lanes operator+(const Lanes& o) const { return {re + o.re, im + o.im}; }
  Lanes operator-(const Lanes& o) const { return {re - o.re, im - o.im}; }
  Lanes operator*(FftVector<T> s) const { return {re * s, im * s}; }
  Lanes operator*(T s) const { return {re * s, im * s}; }
  Lanes operator*(const Lanes& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  Lanes times(T c, T s) const { return {re * c - im * s, re * s + im * c}; }  // by c + i s
  Lanes times_minus_i() const { return {im, -re}; }
  Lanes conjugate() const { return {re, -im}; }
  Lanes swapped(bool swap) const { return swap ? Lanes{im, re} : *this; }
};

// ---- shuffles

template <class T, class F, int... I>
inline FftVector<T> shuffled(FftVector<T> a, FftVector<T> b, F, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, F::from(I)...);
}
template <class T, class F>
inline FftVector<T> shuffled(FftVector<T> a, FftVector<T> b, F f) {
  return shuffled<T>(a, b, f, std::make_integer_sequence<int, kLanes<T>>{});
}

template <int V, int D>
struct ExchangeLow {
  static constexpr int from(int i) { return i & D ? V + i - D : i; }
};
template <int V, int D>
struct ExchangeHigh {
  static constexpr int from(int i) { return i & D ? V + i : i + D; }
};
struct Evens {
  static constexpr int from(int i) { return 2 * i; }
};
struct Odds {
  static constexpr int from(int i) { return 2 * i + 1; }
};
template <int First, int V>
struct Alternate {
  static constexpr int from(int i) { return (i & 1 ? V : 0) + First + i / 2; }
};
template <int V>
struct Backwards {
  static constexpr int from(int i) { return V - 1 - i; }
};

// Transposes the K by K matrices side by side in K vectors, by exchanging ever larger blocks off
// the diagonal.
template <class T, int K = kLanes<T>, int D = 1>
inline void transpose(FftVector<T>* v) {
  constexpr int V = kLanes<T>;
  if constexpr (D < K) {
#pragma GCC unroll 16
    for (int i = 0; i < K; ++i) {
      if (i & D) continue;
      const FftVector<T> a = v[i], b = v[i + D];
      v[i] = shuffled<T>(a, b, ExchangeLow<V, D>{});
      v[i + D] = shuffled<T>(a, b, ExchangeHigh<V, D>{});
    }
    transpose<T, K, 2 * D>(v);
  }
}

// ---- parts of vectors

template <class T, int K>
struct FftPartOf {
  typedef T type __attribute__((vector_size(K * sizeof(T))));
};
template <class T, int K>
using FftPart = typename FftPartOf<T, K>::type;

template <class P, int... I>
inline auto joined(P a, P b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
// W numbers: K from each of the lines 0, K, 2 K ... of `lines`, from place `at` on.
template <class T, int K, int W = kLanes<T>>
inline FftPart<T, W> load_parts(const T* const* lines, int64_t at) {
  if constexpr (W == K) {
    FftPart<T, K> part;
    std::memcpy(&part, lines[0] + at, sizeof part);
    return part;
  } else {
    return joined(load_parts<T, K, W / 2>(lines, at), load_parts<T, K, W / 2>(lines + W / 2, at),
                  std::make_integer_sequence<int, W>{});
  }
}
template <class T, int First, int... I>
inline auto part_from(FftVector<T> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (First + I)...);
}
template <class T, int K, int First>
inline void store_part(T* to, FftVector<T> v) {
  const FftPart<T, K> part = part_from<T, First>(v, std::make_integer_sequence<int, K>{});
  std::memcpy(to, &part, sizeof part);
}

// V complex numbers side by side in memory.
template <class T>
inline Lanes<T> load_numbers(const T* from) {
  const FftVector<T> a = load_vector(from), b = load_vector(from + kLanes<T>);
  return {shuffled<T>(a, b, Evens{}), shuffled<T>(a, b, Odds{})};
}
template <class T>
inline void store_numbers(T* to, const Lanes<T>& x) {
  constexpr int V = kLanes<T>;
  store_vector(to, shuffled<T>(x.re, x.im, Alternate<0, V>{}));
  store_vector(to + V, shuffled<T>(x.re, x.im, Alternate<V / 2, V>{}));
}
template <class T>
inline Lanes<T> reversed(const Lanes<T>& x) {
  constexpr int V = kLanes<T>;
  return {shuffled<T>(x.re, x.re, Backwards<V>{}), shuffled<T>(x.im, x.im, Backwards<V>{})};
}

}  // namespace facula::FACULA_ISA
