// Loops over dense memory for operands that are not: elements go through dense buffers. Built once
// per ISA.
#include <algorithm>
#include <cstring>

#include "cpu/loop.h"

namespace facula::FACULA_ISA {
namespace {

struct alignas(8) Pair {
  uint64_t words[2];
};

// The vector that ends a fill may write some elements twice.
template <class T>
void fill(T* out, T value, int64_t n) {
  constexpr int64_t L = 64 / sizeof(T);
  if (n < L) {
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  typedef uint64_t Line __attribute__((vector_size(64)));
  alignas(64) T values[L];
  for (T& v : values) v = value;
  Line line;
  std::memcpy(&line, values, sizeof line);
  for (int64_t i = 0; i + L <= n; i += L) std::memcpy(out + i, &line, sizeof line);
  std::memcpy(out + n - L, &line, sizeof line);
}

// An element of complex128 need only be aligned as its parts are.
template <class T>
void gather(char* to, const char* from, int64_t stride, int64_t n) {
  T* out = reinterpret_cast<T*>(to);
  if (stride == 0) return fill(out, *reinterpret_cast<const T*>(from), n);
  if (stride == 2 * int64_t(sizeof(T))) {  // every other element: vectors are read and thinned out
    const T* in = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) out[i] = in[2 * i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(from + i * stride);
}

template <class T>
void scatter(char* to, int64_t stride, const char* from, int64_t n) {
  const T* in = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * stride) = in[i];
}

}  // namespace

void scatter_elements(char* to, int64_t stride, const char* from, int64_t n, int64_t item) {
  switch (item) {
    case 1: return scatter<uint8_t>(to, stride, from, n);
    case 2: return scatter<uint16_t>(to, stride, from, n);
    case 4: return scatter<uint32_t>(to, stride, from, n);
    case 8: return scatter<uint64_t>(to, stride, from, n);
    default: return scatter<Pair>(to, stride, from, n);
  }
}

void gather_elements(char* to, const char* from, int64_t stride, int64_t n, int64_t item) {
  switch (item) {
    case 1: return gather<uint8_t>(to, from, stride, n);
    case 2: return gather<uint16_t>(to, from, stride, n);
    case 4: return gather<uint32_t>(to, from, stride, n);
    case 8: return gather<uint64_t>(to, from, stride, n);
    default: return gather<Pair>(to, from, stride, n);
  }
}

void run_staged(DenseLoop loop, const void* formula, char* const* p, const int64_t* s, int64_t n,
                const int64_t* items, int operands) {
  constexpr int64_t kBytes = 2048;
  constexpr int kMost = 6;  // operands that elementwise work has, the result included
  alignas(64) char staged[kMost][kBytes];
  char* q[kMost];
  const int64_t step = kBytes / *std::max_element(items, items + operands);
  for (int64_t done = 0; done < n; done += step) {
    const int64_t m = std::min(step, n - done);
    q[0] = s[0] == items[0] ? p[0] + done * s[0] : staged[0];
    for (int o = 1; o < operands; ++o) {
      if (s[o] == items[o]) q[o] = p[o] + done * s[o];
      else if (s[o] != 0 || done == 0)
        gather_elements(q[o] = staged[o], p[o] + done * s[o], s[o], m, items[o]);
    }
    loop(q, m, formula);
    if (s[0] != items[0]) scatter_elements(p[0] + done * s[0], s[0], q[0], m, items[0]);
  }
}

}  // namespace facula::FACULA_ISA
