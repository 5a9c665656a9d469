// The loops of reductions: many independent lanes, folded pairwise over blocks, which is both fast
// and far more accurate than one running sum.
#pragma once
#include <limits>

#include "cpu/loop.h"
#include "cpu/vector_math.h"
#include "op/loop_types.h"

namespace facula::FACULA_ISA {

template <class T>
struct Lowest {
  static constexpr T value = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::lowest();
};
template <class T>
struct Highest {
  static constexpr T value = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::max();
};

constexpr int64_t kReduceBlock = 2048;

template <class F, class T>
inline T reduce_block(const T* x, int64_t n) {
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
  return F::combine(reduce_pairwise<F>(x, half), reduce_pairwise<F>(x + half, n - half));
}

template <class F, class T>
T reduce_strided(const char* x, int64_t stride, int64_t n) {
  if (n > 256) {
    int64_t half = n / 2;
    return F::combine(reduce_strided<F, T>(x, stride, half),
                      reduce_strided<F, T>(x + half * stride, stride, n - half));
  }
  T acc = F::template init<T>();
  for (int64_t i = 0; i < n; ++i) acc = F::combine(acc, *reinterpret_cast<const T*>(x + i * stride));
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

template <class F, class T>
void fold_run(char* const* p, const int64_t* s, int64_t n, const void*) {
  T* acc = reinterpret_cast<T*>(p[0]);
  if (s[1] == int64_t(sizeof(T))) {
    const T* x = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) acc[i] = F::combine(acc[i], x[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    acc[i] = F::combine(acc[i], *reinterpret_cast<const T*>(p[1] + i * s[1]));
}

}  // namespace facula::FACULA_ISA
