// Products of halves that are packed as for matrix tiles (amx_tiles.h), by the tiles or, of
// bfloat16, by AVX512_BF16: the layout suits both, since both multiply pairs of elements.
#pragma once
#include "cpu/amx_tiles.h"

#ifdef FACULA_HAS_TILES

namespace facula::FACULA_ISA {
namespace {

// The first 32 x 32 sums, as sum_of_tiles has them, of `steps` packed tiles each side; the second
// strips of 16 rows and columns are `left_strip` and `right_strip` bytes behind the first.
template <class S>
struct TileProducts {
  using Element = S;
  TilesInUse in_use;
  void sum(int64_t rows, int64_t columns, int64_t steps, const uint16_t* left, int64_t left_strip,
           const uint16_t* right, int64_t right_strip, float* sums, bool go_on) const {
    sum_of_tiles<S>(rows, columns, steps, packed_tiles(left, left_strip),
                    packed_tiles(right, right_strip), sums, go_on);
  }
};

struct DotProducts {
  using Element = BFloat16;
  static constexpr int kRows = 8;  // times two vectors of columns in registers

  template <int V>
  __attribute__((target("avx512bf16"))) static void add_rows(int64_t steps, const uint16_t* left,
                                                             const char* right, int64_t strip,
                                                             float* sums, bool go_on) {
    __m512 sum[kRows][V];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[i][v] =
            go_on ? _mm512_loadu_ps(sums + v * kTileSums + i * kTileSide) : _mm512_setzero_ps();
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t p = 0; p < kTileSide; ++p) {
        __m512bh row[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v)
          row[v] = (__m512bh)_mm512_loadu_si512(right + v * strip + (s * kTileSide + p) * 64);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          int pair;
          __builtin_memcpy(&pair, left + s * kTileElements + i * kTileDepth + 2 * p, sizeof pair);
          const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, row[v]);
        }
      }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) _mm512_storeu_ps(sums + v * kTileSums + i * kTileSide, sum[i][v]);
  }

  void sum(int64_t rows, int64_t columns, int64_t steps, const uint16_t* left, int64_t left_strip,
           const uint16_t* right, int64_t right_strip, float* sums, bool go_on) const {
    for (int64_t i = 0; i < rows && i < 2 * kTileSide; i += kRows) {
      const uint16_t* const a =
          left + i / kTileSide * (left_strip / 2) + i % kTileSide * kTileDepth;
      const char* const b = reinterpret_cast<const char*>(right);
      float* const c = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
      if (columns > kTileSide) add_rows<2>(steps, a, b, right_strip, c, go_on);
      else add_rows<1>(steps, a, b, right_strip, c, go_on);
    }
  }
};

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
