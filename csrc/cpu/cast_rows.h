// The conversion loops from some element types to all; each cast_*_isa.cpp instantiates a part, so
// that no translation unit takes long.
#pragma once
#include "core/dtype.h"
#include "cpu/cast.h"
#include "cpu/cast_vectors.h"
#include "cpu/copy_dense.h"

namespace facula::FACULA_ISA {

template <class T>
constexpr bool is_eight_bit_float_v =
    std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;
template <class T>
constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Dense elements by way of another type, which gives the same results: `convert` says what 16-bit
// floats go through. Where there is none, it is `To` itself.
template <class To, class From>
constexpr auto between() {
  constexpr bool to_half = is_half_v<To> && !std::is_same_v<From, float>,
                 from_half = is_half_v<From> && !std::is_same_v<To, float>;
  if constexpr (std::is_same_v<To, From>) {
    return To();
  } else if constexpr (to_half || from_half) {
    return float();
  } else if constexpr (kIntegersInSteps && std::is_floating_point_v<From> &&
                       std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<To, uint32_t> ||
                  (std::is_same_v<To, uint8_t> && std::is_same_v<From, double>))
      return int64_t();
    else if constexpr (sizeof(To) < 4) return int32_t();
    else return To();
  } else {
    return To();
  }
}

template <class To, class From>
[[gnu::noinline]] void cast_dense(To* to, const From* from, int64_t n) {
  using Between = decltype(between<To, From>());
  if constexpr (std::is_same_v<Between, To>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
  } else {
    constexpr int64_t kBlock = 256;
    alignas(64) Between block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = n - i < kBlock ? n - i : kBlock;
      cast_dense(static_cast<Between*>(block), from + i, m);
      cast_dense(to + i, static_cast<const Between*>(block), m);
    }
  }
}

// Elements that are apart are brought together first: the loop over dense ones is vectorised.
template <class To, class From>
void cast_strided(char* to, int64_t ts, const char* from, int64_t fs, int64_t n) {
  constexpr int64_t kBlock = 256;
  alignas(64) From in[kBlock];
  alignas(64) To out[kBlock];
  constexpr int64_t to_item = sizeof(To), from_item = sizeof(From);
  if (fs == 0) {
    const To value = convert<To>(*reinterpret_cast<const From*>(from));
    const char* one = reinterpret_cast<const char*>(&value);
    if (ts == to_item) return gather_elements(to, one, 0, n, to_item);
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * ts) = value;
    return;
  }
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    const From* dense = reinterpret_cast<const From*>(from + i * fs);
    if (fs != from_item) {
      gather_elements(reinterpret_cast<char*>(in), from + i * fs, fs, m, from_item);
      dense = in;
    }
    if (ts == to_item) {
      cast_dense(reinterpret_cast<To*>(to + i * ts), dense, m);
      continue;
    }
    cast_dense(static_cast<To*>(out), dense, m);
    scatter_elements(to + i * ts, ts, reinterpret_cast<const char*>(out), m, to_item);
  }
}

// Eight-bit floats are rare, and elements that stay what they are are moved: neither is worth the
// time it takes to build more than this.
template <class To, class From>
__attribute__((optimize("no-tree-vectorize"))) void cast_singly(char* to, int64_t ts,
                                                                const char* from, int64_t fs,
                                                                int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<To*>(to + i * ts) =
        convert<To>(*reinterpret_cast<const From*>(from + i * fs));
}

template <class To, class From>
void cast(char* to, int64_t ts, const char* from, int64_t fs, int64_t n) {
  if constexpr (is_eight_bit_float_v<To> || is_eight_bit_float_v<From>) {
    cast_singly<To, From>(to, ts, from, fs, n);
  } else if constexpr (std::is_same_v<To, From>) {
    if (ts == sizeof(To) && fs == sizeof(From)) copy_dense(to, from, n * int64_t(sizeof(To)));
    else if (ts == sizeof(To)) gather_elements(to, from, fs, n, sizeof(To));
    else cast_singly<To, From>(to, ts, from, fs, n);
  } else {
    if (ts == sizeof(To) && fs == sizeof(From))
      cast_dense(reinterpret_cast<To*>(to), reinterpret_cast<const From*>(from), n);
    else cast_strided<To, From>(to, ts, from, fs, n);
  }
}

template <class From>
constexpr CastRow cast_row() {
  return {{
#define X(e, t, n, c) cast<t, From>,
      FACULA_DTYPES(X)
#undef X
  }};
}

}  // namespace facula::FACULA_ISA
