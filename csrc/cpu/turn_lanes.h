// Transposes by vectors of the machine, for tiles of tensors that are copied into another order.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/lanes.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {

// Pieces of 16 bytes, `step` bytes apart, as one vector.
FACULA_INLINE auto load_pieces(const char* from, [[maybe_unused]] int64_t step) {
#if defined(__AVX2__)
  auto at = [&](int i) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step));
  };
  auto two = [&](int i) __attribute__((always_inline)) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(at(i)), at(i + 1), 1);
  };
#if defined(__AVX512BW__)
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(two(0)), two(2), 1);
#else
  return two(0);
#endif
#else
  typedef uint64_t Piece __attribute__((vector_size(16)));
  Piece x;
  __builtin_memcpy(&x, from, 16);
  return x;
#endif
}

template <class V>
FACULA_INLINE void store_past_cache(char* to, V v) {
#if defined(__AVX512BW__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __m512i(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __m256i(v));
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), __m128i(v));
#else
  __builtin_memcpy(to, &v, sizeof v);
#endif
}

// See LineLoops::turn. A vector of the target has one item of each of its lines.
template <class Item, bool kPastCache>
void turn_tile(char* to, int64_t to_bytes, const char* from, int64_t from_bytes, int64_t rows,
               int64_t columns) {
  constexpr int B = kTurned<Item>, kLines = kLanes<Item>;
  constexpr int64_t item = int64_t(sizeof(Item));
  using Bits = TurnedBits<Item>;
  typedef Bits Vector __attribute__((vector_size(kLaneBytes)));
  const int64_t whole = columns - columns % kLines;
  int64_t i = 0;
  for (; i + B <= rows; i += B) {
    for (int64_t j = 0; j < whole; j += kLines) {
      const char* lines = from + j * from_bytes + i * item;
      char* target = to + i * to_bytes + j * item;
      Vector r[B];
#pragma GCC unroll 16
      for (int k = 0; k < B; ++k)
        r[k] = Vector(load_pieces(lines + k * from_bytes, B * from_bytes));
      turn_groups<Bits>(r);
#pragma GCC unroll 16
      for (int k = 0; k < B; ++k) {
        if constexpr (kPastCache) store_past_cache(target + k * to_bytes, r[k]);
        else __builtin_memcpy(target + k * to_bytes, &r[k], kLaneBytes);
      }
    }
  }
  auto turn_rest = [&](int64_t row, int64_t column, int64_t m, int64_t n) {
    turn_matrix(reinterpret_cast<Item*>(to + row * to_bytes) + column, to_bytes / item,
                reinterpret_cast<const Item*>(from + column * from_bytes) + row, from_bytes / item,
                m, n);
  };
  if (i < rows) turn_rest(i, 0, rows - i, whole);
  if (whole < columns) turn_rest(0, whole, rows, columns - whole);
}

template <class Item>
void turn_items(char* to, int64_t to_bytes, const char* from, int64_t from_bytes, int64_t rows,
                int64_t columns, bool past_cache) {
  if constexpr (kTurned<Item> == 1)
    turn_matrix(reinterpret_cast<Item*>(to), to_bytes / int64_t(sizeof(Item)),
                reinterpret_cast<const Item*>(from), from_bytes / int64_t(sizeof(Item)), rows,
                columns);
  else
    (past_cache ? turn_tile<Item, true> : turn_tile<Item, false>)(to, to_bytes, from, from_bytes,
                                                                  rows, columns);
}

}  // namespace facula::FACULA_ISA
