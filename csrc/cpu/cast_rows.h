// The conversion loops from some element types to all; each cast_*_isa.cpp instantiates a part, so
// that no translation unit takes long.
#pragma once
#include "core/dtype.h"
#include "cpu/cast.h"
#include "cpu/half_lanes.h"

namespace facula::FACULA_ISA {

// One element, by the machine's own conversion where compilers would not find it.
template <class To, class From>
FACULA_INLINE To convert_one(From x) {
#if defined(__F16C__)
  if constexpr (std::is_same_v<From, Half> && !std::is_same_v<To, Half>)
    return convert<To>(_cvtsh_ss(x.bits));
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>)
    return Half::from_bits(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
  else
#endif
    return convert<To>(x);
}

// Strided elements are moved one by one: vectorising them buys nothing and costs build time.
template <class To, class From>
__attribute__((optimize("no-tree-vectorize"))) void cast_strided(char* to, int64_t ts,
                                                                 const char* from, int64_t fs,
                                                                 int64_t n) {
  if (fs == 0) {
    const To v = convert<To>(*reinterpret_cast<const From*>(from));
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * ts) = v;
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<To*>(to + i * ts) =
        convert_one<To>(*reinterpret_cast<const From*>(from + i * fs));
}

#if defined(__AVX2__)
inline void cast_dense(BFloat16* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + 2 * kFloats <= n; i += 2 * kFloats)
    write_halves(to + i, wide_at(from + i), wide_at(from + i + kFloats));
  for (; i < n; ++i) to[i] = from[i];
}
#endif
#if defined(__F16C__)
// The machine's own conversions; compilers do not find them in the arithmetic of bits.
inline void cast_dense(Half* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) write_halves(to + i, wide_at(from + i));
  for (; i < n; ++i) to[i] = convert_one<Half>(from[i]);
}
inline void cast_dense(float* to, const Half* from, int64_t n) {
  int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) {
    const Floats v = read_halves(from + i);
    __builtin_memcpy(to + i, &v, sizeof v);
  }
  for (; i < n; ++i) to[i] = convert_one<float>(from[i]);
}
#endif
template <class To, class From>
inline void cast_dense(To* to, const From* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

template <class To, class From>
void cast(char* to, int64_t ts, const char* from, int64_t fs, int64_t n) {
  constexpr bool rare = std::is_same_v<To, Float8E4M3> || std::is_same_v<To, Float8E5M2> ||
                        std::is_same_v<From, Float8E4M3> || std::is_same_v<From, Float8E5M2>;
  if constexpr (!rare) {
    if (ts == sizeof(To) && fs == sizeof(From)) {
      cast_dense(reinterpret_cast<To*>(to), reinterpret_cast<const From*>(from), n);
      return;
    }
    if constexpr (std::is_same_v<To, From>) {
      if (ts == sizeof(To) && fs == 0) return gather_elements(to, from, 0, n, sizeof(To));
    }
  }
  cast_strided<To, From>(to, ts, from, fs, n);
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
