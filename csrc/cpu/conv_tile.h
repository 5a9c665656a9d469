// Register tiles for convolutions: up to kTileRows rows by two vectors are summed over k. Made once
// per ISA in conv_tile_isa.cpp; every product inside a convolution is cut into them, and those of
// attention and recurrent layers (tile_products.h).
#pragma once
#include "cpu/gemm_block.h"

namespace facula::FACULA_ISA {

constexpr int kTileVectors = 2;
template <class A>
constexpr int kTileColumns = kTileVectors * kLanes<A>;

// What is summed over: `spans` times `span` steps, of which each starts a_span behind the one
// before it in a and b_span in b.
struct TileDepth {
  TileDepth(int64_t k) : span(k) {}  // NOLINT: a plain number is one span
  TileDepth(int64_t steps, int64_t count, int64_t a, int64_t b)
      : span(steps), spans(count), a_span(a), b_span(b) {}
  int64_t span, spans = 1, a_span = 0, b_span = 0;
};

// c[i][j] = start[i][j] + sum over p < k of a[i * a_row + p * a_col] * b[p * b_row + j]; a null
// start is zero. Columns are contiguous in b, c and start; start may be c.
template <class A>
using ConvTile = void (*)(TileDepth k, const A* a, int64_t a_row, int64_t a_col, const A* b,
                          int64_t b_row, A* c, int64_t c_row, const A* start, int64_t start_row);

template <class A>
struct ConvTiles {
  ConvTile<A> of[kTileVectors][kTileRows];  // by vectors - 1 and rows - 1
};
extern const ConvTiles<float> conv_tiles_float;
extern const ConvTiles<double> conv_tiles_double;
extern const ConvTiles<uint32_t> conv_tiles_uint32;
extern const ConvTiles<uint64_t> conv_tiles_uint64;

template <class A>
FACULA_INLINE ConvTile<A> conv_tile(int vectors, int64_t rows) {
  if constexpr (std::is_same_v<A, float>) return conv_tiles_float.of[vectors - 1][rows - 1];
  else if constexpr (std::is_same_v<A, double>) return conv_tiles_double.of[vectors - 1][rows - 1];
  else if constexpr (std::is_same_v<A, uint32_t>)
    return conv_tiles_uint32.of[vectors - 1][rows - 1];
  else return conv_tiles_uint64.of[vectors - 1][rows - 1];
}

}  // namespace facula::FACULA_ISA
