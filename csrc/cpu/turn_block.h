// Transposes, in pieces that lie in registers. Always inlined, so that loops of every instruction
// set may use them.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/numeric.h"

namespace facula {

// Blocks of 4 x 4 (2 x 2) items are turned in vectors of 16 bytes, others one by one.
template <class T>
constexpr int kTurned = sizeof(T) == 4   ? 4
                        : sizeof(T) == 8 ? 2
                                         : 1;

template <class T>
FACULA_INLINE void turn_block(T* to, int64_t to_step, const T* from, int64_t from_step) {
  if constexpr (sizeof(T) == 4) {
    typedef uint32_t Four __attribute__((vector_size(16)));
    auto load = [&](int j) {
      Four x;
      std::memcpy(&x, from + j * from_step, 16);
      return x;
    };
    auto store = [&](int i, Four y) { std::memcpy(static_cast<void*>(to + i * to_step), &y, 16); };
    const Four x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3);
    const Four a = __builtin_shufflevector(x0, x1, 0, 4, 1, 5),
               b = __builtin_shufflevector(x0, x1, 2, 6, 3, 7),
               c = __builtin_shufflevector(x2, x3, 0, 4, 1, 5),
               d = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
    store(0, __builtin_shufflevector(a, c, 0, 1, 4, 5));
    store(1, __builtin_shufflevector(a, c, 2, 3, 6, 7));
    store(2, __builtin_shufflevector(b, d, 0, 1, 4, 5));
    store(3, __builtin_shufflevector(b, d, 2, 3, 6, 7));
  } else if constexpr (sizeof(T) == 8) {
    typedef uint64_t Two __attribute__((vector_size(16)));
    Two x, y;
    std::memcpy(&x, from, 16);
    std::memcpy(&y, from + from_step, 16);
    const Two a = __builtin_shufflevector(x, y, 0, 2), b = __builtin_shufflevector(x, y, 1, 3);
    std::memcpy(static_cast<void*>(to), &a, 16);
    std::memcpy(static_cast<void*>(to + to_step), &b, 16);
  } else {
    *to = *from;
  }
}

// to[i * to_step + j] = from[j * from_step + i] for i < rows and j < columns
template <class T>
FACULA_INLINE void turn_matrix(T* to, int64_t to_step, const T* from, int64_t from_step,
                               int64_t rows, int64_t columns) {
  constexpr int B = kTurned<T>;
  int64_t i = 0;
  for (; i + B <= rows; i += B) {
    int64_t j = 0;
    for (; j + B <= columns; j += B)
      turn_block(to + i * to_step + j, to_step, from + j * from_step + i, from_step);
    for (; j < columns; ++j)
      for (int r = 0; r < B; ++r) to[(i + r) * to_step + j] = from[j * from_step + i + r];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * to_step + j] = from[j * from_step + i];
}

}  // namespace facula
