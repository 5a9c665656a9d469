// Products of halves that are packed as for matrix tiles (amx_tiles.h), by the tiles or, of
// bfloat16, by AVX512_BF16: the layout suits both, since both multiply pairs of elements.
#pragma once
#include "cpu/amx_tiles.h"

#ifdef FACULA_HAS_TILES

namespace facula::FACULA_ISA {
namespace {

// Sums of up to 32 x 32, as sum_of_tiles has them, where the two sides lie as tiles read them; or
// of packed tiles that follow each other, with the second strips of 16 rows and columns so many
// bytes behind the first. What is behind the last row is read up to a whole tile, and counts for
// nothing.
template <class S>
struct TileProducts {
  using Element = S;
  TilesInUse in_use;
  explicit TileProducts(int64_t = kTileDepth) {}
  template <class Left, class Right>
  void sum(int64_t rows, int64_t columns, int64_t steps, const TileSource<Left>& left,
           const TileSource<Right>& right, float* sums, bool go_on) const {
    sum_of_tiles<S>(rows, columns, steps, left, right, sums, go_on);
  }
  void sum(int64_t rows, int64_t columns, int64_t steps, const uint16_t* left, int64_t left_strip,
           const uint16_t* right, int64_t right_strip, float* sums, bool go_on) const {
    sum(rows, columns, steps, packed_tiles(left, left_strip), packed_tiles(right, right_strip),
        sums, go_on);
  }
};

struct DotProducts {
  using Element = BFloat16;
  static constexpr int kRows = 8;  // times two vectors of columns in registers
  int64_t pairs;
  // The depth of a tile that is not zero.
  explicit DotProducts(int64_t depth = kTileDepth) : pairs((depth + 1) / 2) {}

  // R rows, `offset` bytes behind the first one of the left side, times V strips of the right one;
  // rows of the results are sum_row apart, strips sum_strip.
  template <int R, int V, class Left, class Right>
  __attribute__((target("avx512bf16"))) void add_rows(int64_t steps, const TileSource<Left>& left,
                                                      int64_t offset,
                                                      const TileSource<Right>& right, float* sums,
                                                      int64_t sum_row, int64_t sum_strip,
                                                      bool go_on) const {
    __m512 sum[R][V];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        sum[i][v] =
            go_on ? _mm512_loadu_ps(sums + v * sum_strip + i * sum_row) : _mm512_setzero_ps();
    for (int64_t s = 0; s < steps; ++s) {
      const char* a = left.at(s) + offset;
      const char* b = right.at(s);
      for (int64_t p = 0; p < pairs; ++p, a += 4, b += right.apart) {
        __m512bh row[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) row[v] = (__m512bh)_mm512_loadu_si512(b + v * right.strip);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          int pair;
          __builtin_memcpy(&pair, a + i * left.apart, sizeof pair);
          const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, row[v]);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) _mm512_storeu_ps(sums + v * sum_strip + i * sum_row, sum[i][v]);
  }

  template <class Left, class Right>
  void sum(int64_t rows, int64_t columns, int64_t steps, const TileSource<Left>& left,
           const TileSource<Right>& right, float* sums, bool go_on) const {
    for (int64_t i = 0; i < rows && i < 2 * kTileSide; i += kRows) {
      const int64_t offset = i / kTileSide * left.strip + i % kTileSide * left.apart;
      float* const c = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
      if (columns > kTileSide)
        add_rows<kRows, 2>(steps, left, offset, right, c, kTileSide, kTileSums, go_on);
      else add_rows<kRows, 1>(steps, left, offset, right, c, kTileSide, kTileSums, go_on);
    }
  }
  void sum(int64_t rows, int64_t columns, int64_t steps, const uint16_t* left, int64_t left_strip,
           const uint16_t* right, int64_t right_strip, float* sums, bool go_on) const {
    sum(rows, columns, steps, packed_tiles(left, left_strip), packed_tiles(right, right_strip),
        sums, go_on);
  }
};

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
