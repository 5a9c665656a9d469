// The 1-d loops of elementwise work. A formula becomes a lambda, which `run` applies to dense,
// strided and repeated operands.
#pragma once
#include <algorithm>
#include <array>
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

// A formula is compiled once, as a loop over dense memory that the compiler vectorises, and not
// once for each combination of strides.
using DenseLoop = void (*)(char* const* p, int64_t n, const void* formula);
// Runs it over operands that are not all dense; these pass through small buffers. `items`: the item
// size of each operand, a power of two up to 16. A stride of 0 repeats one element.
void run_staged(DenseLoop loop, const void* formula, char* const* p, const int64_t* s, int64_t n,
                const int64_t* items, int operands);

// n elements of `item` bytes, one beside the other.
void gather_elements(char* to, const char* from, int64_t stride, int64_t n, int64_t item);
// As many dense elements, written `stride` bytes apart.
void scatter_elements(char* to, int64_t stride, const char* from, int64_t n, int64_t item);

// A bool is read as a byte: compilers do not vectorise loops that read bools.
template <class A>
FACULA_INLINE A element(const char* p, int64_t i) {
  if constexpr (std::is_same_v<A, bool>) return reinterpret_cast<const uint8_t*>(p)[i] != 0;
  else return reinterpret_cast<const A*>(p)[i];
}

template <class R, class... A, class F>
FACULA_INLINE void fill_dense(char* to, std::array<const char*, sizeof...(A)> in, int64_t n, F f) {
  R* out = reinterpret_cast<R*>(to);
  [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(element<A>(in[I], i)...);
  }(std::index_sequence_for<A...>{});
}
template <class R, class... A, class F>
FACULA_INLINE void fill_dense(char* const* p, int64_t n, F f) {
  std::array<const char*, sizeof...(A)> in;
  for (size_t o = 0; o < sizeof...(A); ++o) in[o] = p[o + 1];
  fill_dense<R, A...>(p[0], in, n, f);
}

// Rows of a large tensor come one at a time, and each store to the stack takes the place of one
// that waits for memory, so there is little between a call and the loop.
template <class R, class... A>
FACULA_INLINE void run_loop(DenseLoop loop, const void* formula, char* const* p, const int64_t* s,
                            int64_t n) {
  static constexpr int64_t items[] = {int64_t(sizeof(R)), int64_t(sizeof(A))...};
  constexpr int kOperands = int(sizeof...(A)) + 1;
  bool dense = true;
  for (int o = 0; o < kOperands; ++o) dense &= s[o] == items[o];
  if (dense) loop(p, n, formula);
  else run_staged(loop, formula, p, s, n, items, kOperands);
}

template <class F, class R, class... A>
[[gnu::noinline]] void run_dense(char* const* p, int64_t n, const void* formula) {
  const F f = *static_cast<const F*>(formula);
  fill_dense<R, A...>(p, n, f);
}
template <class R, class... A, class F>
inline void run(char* const* p, const int64_t* s, int64_t n, F f) {
  run_loop<R, A...>(run_dense<F, R, A...>, &f, p, s, n);
}

// Rows (see RowsLoop), of which there is at least one. A single one is a call whose arguments are
// in registers; more of floats are a loop without calls, whose return waits for the row's stores.
template <class A>
using Address = const char*;

template <class R, class... A, class F>
[[gnu::noinline]] void fill_row(char* out, int64_t n, F f, Address<A>... in) {
  fill_dense<R, A...>(out, {in...}, n, f);
}
template <class F, class R, class... A>
void run_dense_row(char* const* p, int64_t n, const void* formula) {
  [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    fill_row<R, A...>(p[0], n, *static_cast<const F*>(formula), p[I + 1]...);
  }(std::index_sequence_for<A...>{});
}
template <class R, class... A, class F, size_t... I>
FACULA_INLINE void run_dense_rows(char* const* p, const int64_t* steps, int64_t n, int64_t rows,
                                  F f, std::index_sequence<I...>) {
  if (rows == 1) return fill_row<R, A...>(p[0], n, f, p[I + 1]...);
  char* out = p[0];
  const int64_t out_step = steps[0];
  std::array<const char*, sizeof...(A)> in{p[I + 1]...};
  const std::array<int64_t, sizeof...(A)> in_steps{steps[I + 1]...};
  for (; rows > 0; --rows) {
    if constexpr (std::is_floating_point_v<R>) {
      // Some vectors at a time, so that what is loaded for the later ones is ahead of stores.
      R* to = reinterpret_cast<R*>(out);
#pragma GCC ivdep
#pragma GCC unroll 4
      for (int64_t i = 0; i < n; ++i) to[i] = f(element<A>(in[I], i)...);
    } else {
      fill_row<R, A...>(out, n, f, in[I]...);
    }
    out += out_step;
    ((in[I] += in_steps[I]), ...);
  }
}

// Rows of a tensor, operand `dense`, that meets numbers, one of each other operand in each row.
template <class R, class A, class... B, class F>
[[gnu::noinline]] void fill_row_with_numbers(char* to, const char* x, int64_t n, F f, B... others) {
  R* out = reinterpret_cast<R*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(element<A>(x, i), others...);
}
template <class R, class A, class... B, class F, size_t... I>
FACULA_INLINE void run_rows_of_numbers(char* const* p, const int64_t* steps, int64_t n,
                                       int64_t rows, F f, size_t dense, std::index_sequence<I...>) {
  char* out = p[0];
  const char* x = p[dense];
  const int64_t out_step = steps[0], x_step = steps[dense];
  const size_t first = dense == 1 ? 2 : 1;
  std::array<const char*, sizeof...(B)> numbers{p[first + I]...};
  const std::array<int64_t, sizeof...(B)> number_steps{steps[first + I]...};
  for (;;) {
    fill_row_with_numbers<R, A>(out, x, n, f, element<B>(numbers[I], 0)...);
    if (--rows == 0) return;
    out += out_step;
    x += x_step;
    ((numbers[I] += number_steps[I]), ...);
  }
}

// Loops of their own for a tensor that meets numbers, and for two operands also for a number that
// meets a tensor.
template <class R, class A, class... B, class F, size_t... I>
inline void run_rows(char* const* p, const int64_t* s, const int64_t* steps, int64_t n,
                     int64_t rows, F f, std::index_sequence<I...>) {
  static constexpr int64_t items[] = {int64_t(sizeof(R)), int64_t(sizeof(A)),
                                      int64_t(sizeof(B))...};
  constexpr int kOperands = int(sizeof...(B)) + 2;
  const bool out_dense = s[0] == items[0], first_dense = s[1] == items[1];
  if (out_dense && first_dense && ((s[I + 2] == items[I + 2]) && ...))
    return run_dense_rows<R, A, B...>(p, steps, n, rows, f, std::index_sequence_for<A, B...>{});
  constexpr auto others = std::index_sequence_for<B...>{};
  if (out_dense && first_dense && ((s[I + 2] == 0) && ...))
    return run_rows_of_numbers<R, A, B...>(p, steps, n, rows, f, 1, others);
  if constexpr (sizeof...(B) == 1) {
    using Other = std::tuple_element_t<0, std::tuple<B...>>;
    const auto turned = [f](Other b, A a) __attribute__((always_inline)) { return f(a, b); };
    if (out_dense && s[1] == 0 && s[2] == items[2])
      return run_rows_of_numbers<R, Other, A>(p, steps, n, rows, turned, 2, others);
  }
  char* q[kOperands];
  std::copy(p, p + kOperands, q);
  for (; rows > 0; --rows) {
    run_staged(run_dense_row<F, R, A, B...>, &f, q, s, n, items, kOperands);
    for (int o = 0; o < kOperands; ++o) q[o] += steps[o];
  }
}
template <class R, class A, class... B, class F>
inline void run_rows(char* const* p, const int64_t* s, const int64_t* steps, int64_t n,
                     int64_t rows, F f) {
  run_rows<R, A, B...>(p, s, steps, n, rows, f, std::index_sequence_for<B...>{});
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
template <class H, class F, class G>
struct Guarded {
  H holds;
  F f;
  G other;
};
template <class F, class R, class... A>
[[gnu::noinline]] void run_dense_where(char* const* p, int64_t n, const void* formula) {
  constexpr int64_t kBlock = 1024, items[] = {int64_t(sizeof(R)), int64_t(sizeof(A))...};
  const F guarded = *static_cast<const F*>(formula);
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t m = std::min(kBlock, n - done);
    char* q[sizeof...(A) + 1];
    for (size_t o = 0; o <= sizeof...(A); ++o) q[o] = p[o] + done * items[o];
    constexpr auto operands = std::index_sequence_for<A...>{};
    if (__builtin_expect(holds_for_all<A...>(q, m, guarded.holds, operands), 1))
      fill_dense<R, A...>(q, m, guarded.f);
    else fill_dense<R, A...>(q, m, guarded.other);
  }
}
template <class R, class... A, class H, class F, class G>
inline void run_where(char* const* p, const int64_t* s, int64_t n, H holds, F f, G other) {
  const Guarded<H, F, G> guarded{holds, f, other};
  run_loop<R, A...>(run_dense_where<Guarded<H, F, G>, R, A...>, &guarded, p, s, n);
}

}  // namespace facula::FACULA_ISA
