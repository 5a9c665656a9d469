// Parts of products by matrix tiles, which gemm_amx.cpp deals out to threads.
#pragma once
#include "cpu/gemm.h"

namespace facula {

constexpr int64_t kAmxSide = 32;  // rows and columns of a block of c, the unit of all cuts

// A product, maybe of the transposes: g is what is multiplied, `out` how its result is stored.
struct AmxProduct {
  Gemm g, out;
  bool turned;  // out.c is the transpose of g.c
  // Sums that are not rounded yet go here, rows of out `floats_row` apart, without alpha, beta and
  // bias; null: to out.c.
  float* floats = nullptr;
  int64_t floats_row = 0;
};

// Rows [row, row + rows) and columns [column, column + columns) of g.c, of all matrices.
struct AmxPart {
  int64_t row, rows, column, columns;
  int64_t deep;   // a block of the depth, a multiple of 32
  bool in_place;  // rows of a are read where they lie, whole blocks of them
  // Columns that are packed already, from `right_column` on, in all `right_columns` of them; null
  // if the part has to pack its own, block by block of the depth.
  const uint16_t* right;
  int64_t right_column, right_columns;
  uint16_t *left_room, *right_room;  // for a block of the depth
  float* sums;  // room for the part, or for a block of c where the depth is one block
};

struct AmxLoops {
  // Columns of b for the block of k from `k` on, (strip of 16, block of k); a multiple of 32
  // columns but for the last ones.
  void (*pack_right)(const Gemm&, int64_t k, int64_t deep, int64_t column, int64_t columns,
                     uint16_t* to);
  void (*multiply)(const AmxProduct&, const AmxPart&);
  // out.c = the sum of `parts` matrices of floats, in order; for rows [row, row + rows).
  void (*finish)(const AmxProduct&, const float* sums, int64_t parts, int64_t row, int64_t rows);
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
