// The conversion loops from some element types to all; each cast_*_isa.cpp instantiates a part, so
// that no translation unit takes long.
#pragma once
#include "core/dtype.h"
#include "cpu/cast.h"

namespace facula::FACULA_ISA {

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
        convert<To>(*reinterpret_cast<const From*>(from + i * fs));
}

template <class To, class From>
void cast(char* to, int64_t ts, const char* from, int64_t fs, int64_t n) {
  constexpr bool rare = std::is_same_v<To, Float8E4M3> || std::is_same_v<To, Float8E5M2> ||
                        std::is_same_v<From, Float8E4M3> || std::is_same_v<From, Float8E5M2>;
  if constexpr (!rare) {
    if (ts == sizeof(To) && fs == sizeof(From)) {
      To* o = reinterpret_cast<To*>(to);
      const From* a = reinterpret_cast<const From*>(from);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) o[i] = convert<To>(a[i]);
      return;
    }
    if constexpr (std::is_same_v<To, From>) {
      if (ts == sizeof(To) && fs == 0) {  // a fill
        To* o = reinterpret_cast<To*>(to);
        const To v = *reinterpret_cast<const To*>(from);
        for (int64_t i = 0; i < n; ++i) o[i] = v;
        return;
      }
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
