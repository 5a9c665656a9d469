// Transposes, in pieces that lie in registers. Always inlined, so that loops of every instruction
// set may use them.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/numeric.h"

namespace facula {

// Items in 16 bytes: as many lines are turned at a time.
template <class T>
constexpr int kTurned = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;

// An integer with the bits of an item of less than 16 bytes.
template <class T>
using TurnedBits =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// r[i][g][k] becomes r[k][g][i], for vectors of groups of 16 bytes: lines are shuffled into each
// other like halves of a deck of cards, as often as a line can be halved.
template <class T, class V, int B = kTurned<T>>
FACULA_INLINE void turn_groups(V (&r)[B]) {
  auto zip = []<size_t... L>(V a, V b, V& low, V& high,
                             std::index_sequence<L...>) __attribute__((always_inline)) {
    constexpr int N = int(sizeof...(L));
    low = __builtin_shufflevector(a, b, (int(L) / B * B + int(L) % B / 2 + int(L) % 2 * N)...);
    high = __builtin_shufflevector(a, b,
                                   (int(L) / B * B + int(L) % B / 2 + B / 2 + int(L) % 2 * N)...);
  };
  constexpr auto lanes = std::make_index_sequence<sizeof(V) / sizeof(T)>{};
#pragma GCC unroll 4
  for (int left = B; left > 1; left /= 2) {
    V t[B];
#pragma GCC unroll 8
    for (int i = 0; i < B / 2; ++i) zip(r[i], r[i + B / 2], t[2 * i], t[2 * i + 1], lanes);
#pragma GCC unroll 16
    for (int i = 0; i < B; ++i) r[i] = t[i];
  }
}

template <class T>
FACULA_INLINE void turn_block(T* to, int64_t to_step, const T* from, int64_t from_step) {
  constexpr int B = kTurned<T>;
  if constexpr (B == 1) {
    *to = *from;
  } else {
    typedef TurnedBits<T> Group __attribute__((vector_size(16)));
    Group r[B];
#pragma GCC unroll 16
    for (int j = 0; j < B; ++j) std::memcpy(&r[j], from + j * from_step, 16);
    turn_groups<TurnedBits<T>>(r);
#pragma GCC unroll 16
    for (int i = 0; i < B; ++i) std::memcpy(static_cast<void*>(to + i * to_step), &r[i], 16);
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
