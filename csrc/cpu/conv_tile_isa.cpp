// The register tiles of conv_tile.h.
#include "cpu/conv_tile.h"

namespace facula::FACULA_ISA {
namespace {

// Rounding errors grow with the length of a sum: partial sums of so many products are added up.
constexpr int64_t kChain = 96;

template <class A, int R, int V>
void tile(TileDepth k, const A* a, int64_t a_row, int64_t a_col, const A* b, int64_t b_row, A* c,
          int64_t c_row, const A* start, int64_t start_row) {
  // Rows in groups of four: one pointer for each group and three distances fit the registers.
  constexpr int groups = (R + 3) / 4;
  const A* four[groups];
#pragma GCC unroll 4
  for (int i = 0; i < groups; ++i) four[i] = a + 4 * i * a_row;
  const int64_t a_next = k.a_span - k.span * a_col, b_next = k.b_span - k.span * b_row;
  int64_t rest = k.span;  // of the span
  do {
    Vector<A> sum[R][V] = {};
    int64_t length = 0;  // of the partial sum; no short rest is left
    do {
      const int64_t piece = rest < kChain + kChain / 2 ? rest : kChain;
      for (int64_t p = 0; p < piece; ++p) {
        Vector<A> row[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          row[v] = load(b + v * kLanes<A>);
          keep_in_register<A>(row[v]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
          const A x = four[i / 4][i % 4 * a_row];
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(x, row[v], sum[i][v]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < groups; ++i) four[i] += a_col;
        b += b_row;
      }
      length += piece;
      rest -= piece;
      if (rest == 0 && --k.spans > 0) {
        rest = k.span;
        b += b_next;
#pragma GCC unroll 4
        for (int i = 0; i < groups; ++i) four[i] += a_next;
      }
    } while (rest > 0 && length + rest < kChain + kChain / 2);
    if (start) {
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[i][v] += load(start + i * start_row + v * kLanes<A>);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store(c + i * c_row + v * kLanes<A>, sum[i][v]);
    }
    start = c;
    start_row = c_row;
  } while (rest > 0);
}

template <class A>
struct Tiles : ConvTiles<A> {
  constexpr Tiles() : ConvTiles<A>{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    this->of[0][R - 1] = tile<A, R, 1>;
    this->of[1][R - 1] = tile<A, R, 2>;
    if constexpr (R < kTileRows) fill<R + 1>();
  }
};

}  // namespace

constexpr ConvTiles<float> conv_tiles_float = Tiles<float>();
constexpr ConvTiles<double> conv_tiles_double = Tiles<double>();
constexpr ConvTiles<uint32_t> conv_tiles_uint32 = Tiles<uint32_t>();
constexpr ConvTiles<uint64_t> conv_tiles_uint64 = Tiles<uint64_t>();

}  // namespace facula::FACULA_ISA
