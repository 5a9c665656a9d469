// The 1-d loops of elementwise work. A formula becomes a lambda, which `run` applies to dense,
// strided and repeated operands.
#pragma once
#include <algorithm>
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

// Operands that are not dense pass through buffers of this many bytes, so that a formula is
// compiled once, as a loop over dense memory that the compiler vectorises, and not once for each
// combination of strides.
constexpr size_t kStagedBytes = 2048;
// n elements of `item` bytes, a power of two up to 16; a stride of 0 repeats one of them.
void gather_elements(char* to, const char* from, int64_t stride, int64_t n, size_t item);
void scatter_elements(char* to, int64_t stride, const char* from, int64_t n, size_t item);

// A bool is read as a byte: compilers do not vectorise loops that read bools.
template <class A>
FACULA_INLINE A element(const char* p, int64_t i) {
  if constexpr (std::is_same_v<A, bool>) return reinterpret_cast<const uint8_t*>(p)[i] != 0;
  else return reinterpret_cast<const A*>(p)[i];
}

// Calls body(pointers, count) for stretches of at most `most` elements, dense in all operands.
template <class R, class... A, class B>
FACULA_INLINE void run_staged(char* const* p, const int64_t* s, int64_t n, int64_t most, B body) {
  constexpr int64_t item[] = {int64_t(sizeof(R)), int64_t(sizeof(A))...};
  constexpr size_t kOperands = sizeof...(A) + 1;
  constexpr int64_t kStaged = int64_t(kStagedBytes / std::max({sizeof(R), sizeof(A)...}));
  alignas(64) char staged[kOperands][kStagedBytes];
  char* q[kOperands];
  bool dense = true;
  for (size_t o = 0; o < kOperands; ++o) {
    q[o] = p[o];
    dense &= s[o] == item[o];
  }
  const int64_t step = dense ? most : std::min(most, kStaged);
  for (int64_t done = 0; done < n; done += step) {
    const int64_t m = n - done < step ? n - done : step;
    q[0] = s[0] == item[0] ? p[0] + done * s[0] : staged[0];
    for (size_t o = 1; o < kOperands; ++o) {
      if (s[o] == item[o]) q[o] = p[o] + done * s[o];
      else if (s[o] != 0 || done == 0)
        gather_elements(q[o] = staged[o], p[o] + done * s[o], s[o], m, item[o]);
    }
    body(q, m);
    if (s[0] != item[0]) scatter_elements(p[0] + done * s[0], s[0], q[0], m, item[0]);
  }
}

template <class R, class... A, class F, size_t... I>
FACULA_INLINE void fill_dense(char* const* q, int64_t n, F f, std::index_sequence<I...>) {
  R* out = reinterpret_cast<R*>(q[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(element<A>(q[I + 1], i)...);
}

template <class R, class... A, class F>
inline void run(char* const* p, const int64_t* s, int64_t n, F f) {
  run_staged<R, A...>(p, s, n, n, [&](char* const* q, int64_t m) __attribute__((always_inline)) {
    fill_dense<R, A...>(q, m, f, std::index_sequence_for<A...>{});
  });
}

// The same with loops of their own for a tensor that meets numbers, and for two operands also for a
// number that meets a tensor.
template <class R, class A, class... B, class F, size_t... I>
inline void run_with_numbers(char* const* p, const int64_t* s, int64_t n, F f,
                             std::index_sequence<I...>) {
  const bool dense = s[0] == int64_t(sizeof(R)), numbers = ((s[I + 2] == 0) && ...);
  R* out = reinterpret_cast<R*>(p[0]);
  if (dense && numbers && s[1] == int64_t(sizeof(A))) {
    const char* x = p[1];
    const std::tuple<B...> others{element<B>(p[I + 2], 0)...};
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(element<A>(x, i), std::get<I>(others)...);
    return;
  }
  if constexpr (sizeof...(B) == 1) {
    using Other = std::tuple_element_t<0, std::tuple<B...>>;
    if (dense && s[1] == 0 && s[2] == int64_t(sizeof(Other))) {
      const char* y = p[2];
      const A a = element<A>(p[1], 0);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a, element<Other>(y, i));
      return;
    }
  }
  run<R, A, B...>(p, s, n, f);
}
template <class R, class A, class... B, class F>
inline void run_with_numbers(char* const* p, const int64_t* s, int64_t n, F f) {
  run_with_numbers<R, A, B...>(p, s, n, f, std::index_sequence_for<B...>{});
}

// Whether `holds` is true for all of n elements. Answers are joined in integers as wide as the
// elements: compilers make slow vectors of bools.
template <class... A, class H, size_t... I>
FACULA_INLINE bool holds_for_all(char* const* q, int64_t n, H holds, std::index_sequence<I...>) {
  constexpr size_t kWidest = std::max({sizeof(A)...});
  using Answer = std::conditional_t<kWidest == 8, uint64_t,
                                    std::conditional_t<kWidest == 4, uint32_t, uint16_t>>;
  Answer fails = 0;
  for (int64_t i = 0; i < n; ++i) fails |= Answer(!holds(element<A>(q[I + 1], i)...));
  return fails == 0;
}

// A formula that does not hold for all values: `f` for blocks of elements where it `holds`, the
// slower `other` for the rest.
template <class R, class... A, class H, class F, class G>
inline void run_where(char* const* p, const int64_t* s, int64_t n, H holds, F f, G other) {
  constexpr int64_t kBlock = 1024;
  constexpr auto operands = std::index_sequence_for<A...>{};
  run_staged<R, A...>(p, s, n, kBlock,
                      [&](char* const* q, int64_t m) __attribute__((always_inline)) {
                        if (__builtin_expect(holds_for_all<A...>(q, m, holds, operands), 1))
                          fill_dense<R, A...>(q, m, f, operands);
                        else fill_dense<R, A...>(q, m, other, operands);
                      });
}

}  // namespace facula::FACULA_ISA
