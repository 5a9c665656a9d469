// Squares of 16 x 16 words that are turned in registers. Each ISA's files have their own copy.
#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>

#include "core/numeric.h"

namespace facula::FACULA_ISA {

// r[i][p] becomes r[p][i].
FACULA_INLINE void turn_registers(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {  // words of two rows
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // of four rows, one 128-bit quarter for each group of words
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // r[i + 4g]: words i, 4 + i, 8 + i, 12 + i of rows 4g .. 4g + 3
    const __m512i x = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    const __m512i y = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    const __m512i z = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    const __m512i w = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    t[i] = _mm512_shuffle_i32x4(x, y, 0x88);
    t[i + 8] = _mm512_shuffle_i32x4(x, y, 0xdd);
    t[i + 4] = _mm512_shuffle_i32x4(z, w, 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(z, w, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

}  // namespace facula::FACULA_ISA
#endif
