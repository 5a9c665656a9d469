// Parts of products by matrix tiles, which gemm_amx.cpp deals out to threads.
#pragma once
#include "cpu/gemm.h"

namespace facula {

constexpr int64_t kAmxSide = 32;   // rows and columns of a block of c, the unit of all cuts
constexpr int64_t kAmxDeep = 256;  // of a block of the depth: two of its strips fit a first cache

// Rows [row, row + rows) and columns [column, column + columns) of c, rounded, or as floats.
struct AmxPart {
  int64_t row, rows, column, columns;
  // Packed from `left_row` and `right_column` on; null if the part has to pack its own, block by
  // block of the depth, in `room`: rows first, then columns.
  const uint16_t *left, *right;
  int64_t left_row, right_column;
  int64_t right_columns;  // that are packed
  uint16_t* room;
  float* sums;    // room for the part, or for one block where k is not deeper than kAmxDeep
  float* floats;  // where sums go that are not rounded yet, dense, or null
};

struct AmxLoops {
  // Rows of a, (strip of 16, all of k); a multiple of 16 but for the last ones.
  void (*pack_left)(const Gemm&, int64_t row, int64_t rows, uint16_t* to);
  // Columns of b for the block of k from `k` on, (strip of 16, block of k); likewise.
  void (*pack_right)(const Gemm&, int64_t k, int64_t column, int64_t columns, uint16_t* to);
  void (*multiply)(const Gemm&, const AmxPart&);
  // c = the sum of `parts` matrices of floats, in order; for rows [row, row + rows).
  void (*finish)(const Gemm&, const float* sums, int64_t parts, int64_t row, int64_t rows);
};

// Built per ISA from gemm_amx_isa.cpp, null where it has no tiles.
#define FACULA_AMX_TABLE(isa)                 \
  namespace isa {                             \
  extern const AmxLoops* const gemm_of_tiles; \
  }
FACULA_AMX_TABLE(baseline)
#ifdef FACULA_X86
FACULA_AMX_TABLE(v3)
FACULA_AMX_TABLE(v4)
#endif
#undef FACULA_AMX_TABLE

}  // namespace facula
