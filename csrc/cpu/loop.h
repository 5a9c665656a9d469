// The 1-d loops of elementwise work. A formula becomes a lambda; `run` gives it the stride cases
// that matter (all dense, one operand a number, anything), which the compiler vectorises.
#pragma once
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/numeric.h"

namespace facula::FACULA_ISA {  // one copy per ISA: an inline function shared by the builds would
                                // be the linker's choice

template <class T>
inline T param(const void* params, int i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(params) + 16 * i);
}

template <class R, class... A, class F, size_t... I>
inline void run_indexed(char* const* p, const int64_t* s, int64_t n, F f,
                        std::index_sequence<I...>) {
  constexpr int64_t item[] = {int64_t(sizeof(A))...};
  if (s[0] == int64_t(sizeof(R))) {
    int scalar = -1, others = 0;
    bool dense = true;
    for (size_t i = 0; i < sizeof...(A); ++i) {
      if (s[i + 1] == item[i]) continue;
      if (s[i + 1] == 0) {
        scalar = int(i);
        ++others;
      } else dense = false;
    }
    R* out = reinterpret_cast<R*>(p[0]);
    if (dense && others == 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(reinterpret_cast<const A*>(p[I + 1])[i]...);
      return;
    }
    if constexpr (sizeof...(A) > 1 && sizeof...(A) <= 3) {
      if (dense && others == 1) {
        auto with_scalar = [&]<size_t K>(std::integral_constant<size_t, K>) {
          if (scalar != int(K)) return;
          // The number is read once; the other operands stay dense.
          using S = std::tuple_element_t<K, std::tuple<A...>>;
          const S value = *reinterpret_cast<const S*>(p[K + 1]);
          auto pick = [&]<size_t J>(std::integral_constant<size_t, J>, int64_t i) {
            if constexpr (J == K) return value;
            else
              return reinterpret_cast<const std::tuple_element_t<J, std::tuple<A...>>*>(
                  p[J + 1])[i];
          };
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i)
            out[i] = f(pick(std::integral_constant<size_t, I>{}, i)...);
        };
        (with_scalar(std::integral_constant<size_t, I>{}), ...);
        return;
      }
    }
  }
  const int64_t step[] = {s[I + 1]...};
  const char* in[] = {p[I + 1]...};
  char* out = p[0];
  const int64_t out_step = s[0];
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<R*>(out + i * out_step) =
        f(*reinterpret_cast<const A*>(in[I] + i * step[I])...);
}

template <class R, class... A, class F>
inline void run(char* const* p, const int64_t* s, int64_t n, F f) {
  run_indexed<R, A...>(p, s, n, f, std::index_sequence_for<A...>{});
}

// A formula that does not hold for all values: `f` for blocks of elements where it `holds`, the
// slower `other` for the rest.
template <class R, class A, class H, class F, class G>
inline void run_where(char* const* p, const int64_t* s, int64_t n, H holds, F f, G other) {
  constexpr int64_t kBlock = 1024;
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t m = n - done < kBlock ? n - done : kBlock;
    char* const q[] = {p[0] + done * s[0], p[1] + done * s[1]};
    int out_of_range = 0;  // a sum: a compiler vectorises it where an early exit would stop it
    if (s[1] == int64_t(sizeof(A))) {
      const A* a = reinterpret_cast<const A*>(q[1]);
      for (int64_t i = 0; i < m; ++i) out_of_range |= !holds(a[i]);
    } else {
      for (int64_t i = 0; i < m; ++i)
        out_of_range |= !holds(*reinterpret_cast<const A*>(q[1] + i * s[1]));
    }
    if (__builtin_expect(out_of_range, 0)) run<R, A>(q, s, m, other);
    else run<R, A>(q, s, m, f);
  }
}

}  // namespace facula::FACULA_ISA
