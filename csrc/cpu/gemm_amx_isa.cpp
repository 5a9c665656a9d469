// Products of bfloat16 and half by matrix tiles. Both sides are packed into tiles; two strips of 16
// rows meet two of 16 columns over a block of the depth, for which all four stay in the first
// cache.
#include "cpu/amx_tiles.h"

#include "cpu/gemm_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kSteps = kAmxDeep / kTileDepth;
constexpr int64_t kBlockSums = kAmxSide * kAmxSide;

int64_t steps_of(int64_t k) {
  return (k + kTileDepth - 1) / kTileDepth;
}
int64_t up_to(int64_t most, int64_t n) {
  return n < most ? n : most;
}

void pack_left(const Gemm& g, int64_t row, int64_t rows, uint16_t* to) {
  pack_strips<false>(static_cast<const uint16_t*>(g.a) + row * g.a_row, g.a_col, g.a_row, g.k, rows,
                     steps_of(g.k), to);
}

void pack_right(const Gemm& g, int64_t k, int64_t column, int64_t columns, uint16_t* to) {
  pack_strips<true>(static_cast<const uint16_t*>(g.b) + k * g.b_row + column * g.b_col, g.b_row,
                    g.b_col, g.k - k, columns, up_to(kSteps, steps_of(g.k - k)), to);
}

FACULA_INLINE Floats read_some(const void* from, __mmask16 mask, BFloat16) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  return Floats(Words(_mm512_cvtepu16_epi32(bits)) << 16);
}
FACULA_INLINE Floats read_some(const void* from, __mmask16 mask, Half) {
  return Floats(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from)));
}

// c = alpha sum + beta c, or + bias, for a row of up to 16 columns.
template <class S>
struct Finish {
  const Gemm& g;
  S* const c;
  const S* const bias;
  const Floats alpha = lanes(float(g.alpha_re)), beta = lanes(float(g.beta_re));
  const bool plain = g.alpha_re == 1 && g.beta_re == 0 && !g.bias;

  explicit Finish(const Gemm& product)
      : g(product), c(static_cast<S*>(g.c)), bias(static_cast<const S*>(g.bias)) {}

  FACULA_INLINE void store(int64_t row, int64_t column, int64_t columns, Floats sum) const {
    const auto mask = __mmask16(columns >= kTileSide ? 0xffff : (1u << columns) - 1);
    S* const out = c + row * g.c_row + column * g.c_col;
    alignas(64) S few[kTileSide] = {};
    if (!plain) {
      sum = alpha * sum;
      if (bias) {
        sum = sum + read_some(bias + column, mask, S());
      } else if (g.beta_re != 0) {
        if (g.c_col != 1)
          for (int64_t j = 0; j < columns; ++j) few[j] = out[j * g.c_col];
        sum = sum + beta * (g.c_col == 1 ? read_some(out, mask, S()) : read_some(few, mask, S()));
      }
    }
    write_halves(few, sum);
    if (g.c_col == 1) {
      _mm256_mask_storeu_epi16(out, mask, _mm256_load_si256(reinterpret_cast<__m256i*>(few)));
    } else {
      for (int64_t j = 0; j < columns; ++j) out[j * g.c_col] = few[j];
    }
  }

  void block(int64_t row, int64_t rows, int64_t column, int64_t columns, const float* sums) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
      if (plain && columns == kAmxSide && g.c_col == 1) {
        write_halves(c + (row + i) * g.c_row + column, load(from), load(from + kTileSums));
        continue;
      }
      store(row + i, column, up_to(kTileSide, columns), load(from));
      if (columns > kTileSide)
        store(row + i, column + kTileSide, columns - kTileSide, load(from + kTileSums));
    }
  }
};

void store_floats(const Gemm& g, const AmxPart& part, int64_t i, int64_t j, int64_t rows,
                  int64_t columns, const float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = sums + r / kTileSide * 2 * kTileSums + r % kTileSide * kTileSide;
    float* to = part.floats + (part.row + i + r) * g.n + part.column + j;
    for (int64_t q = 0; q < columns; ++q) to[q] = from[q / kTileSide * kTileSums + q % kTileSide];
  }
}

template <class S>
void multiply_as(const Gemm& g, const AmxPart& part) {
  const TilesInUse tiles;
  const Finish<S> finish(g);
  const int64_t all = steps_of(g.k);
  const int64_t blocks_across = (part.columns + kAmxSide - 1) / kAmxSide;
  uint16_t* const room_of_right = part.room + (part.left ? 0
                                                         : (part.rows + kTileSide - 1) / kTileSide *
                                                               up_to(kSteps, all) * kTileElements);
  for (int64_t p = 0; p < all; p += kSteps) {
    const int64_t steps = up_to(kSteps, all - p), k = p * kTileDepth;
    const bool last = p + steps == all, single = all <= kSteps;
    const int64_t left_strip = (part.left ? all : steps) * kTileElements;
    const uint16_t *left = part.room, *strips = room_of_right;
    if (part.left)
      left = part.left + (part.row - part.left_row) / kTileSide * left_strip + p * kTileElements;
    else
      pack_strips<false>(static_cast<const uint16_t*>(g.a) + part.row * g.a_row + k * g.a_col,
                         g.a_col, g.a_row, g.k - k, part.rows, steps, part.room);
    if (part.right)
      strips = part.right + k * part.right_columns +
               (part.column - part.right_column) * steps * kTileDepth;
    else pack_right(g, k, part.column, part.columns, room_of_right);
    for (int64_t j = 0; j < part.columns; j += kAmxSide) {
      const int64_t columns = up_to(kAmxSide, part.columns - j);
      const auto right =
          packed_tiles(strips + j / kTileSide * steps * kTileElements, steps * kTileElements * 2);
      for (int64_t i = 0; i < part.rows; i += kAmxSide) {
        const int64_t rows = up_to(kAmxSide, part.rows - i);
        float* const sums =
            part.sums + (single ? 0 : (i / kAmxSide * blocks_across + j / kAmxSide) * kBlockSums);
        sum_of_tiles<S>(rows, columns, steps,
                        packed_tiles(left + i / kTileSide * left_strip, left_strip * 2), right,
                        sums, p > 0);
        if (!last) continue;
        if (part.floats) store_floats(g, part, i, j, rows, columns, sums);
        else finish.block(part.row + i, rows, part.column + j, columns, sums);
      }
    }
  }
}

void multiply(const Gemm& g, const AmxPart& part) {
  if (g.dtype == DType::BFloat16) multiply_as<BFloat16>(g, part);
  else multiply_as<Half>(g, part);
}

template <class S>
void finish_as(const Gemm& g, const float* sums, int64_t parts, int64_t row, int64_t rows) {
  const Finish<S> finish(g);
  for (int64_t i = row; i < row + rows; ++i)
    for (int64_t j = 0; j < g.n; j += kTileSide) {
      const int64_t columns = up_to(kTileSide, g.n - j);
      const auto mask = __mmask16((1u << columns) - 1);
      const float* from = sums + i * g.n + j;
      Floats sum = {};
      for (int64_t q = 0; q < parts; ++q, from += g.m * g.n)
        sum += Floats(_mm512_maskz_loadu_ps(mask, from));
      finish.store(i, j, columns, sum);
    }
}

void finish(const Gemm& g, const float* sums, int64_t parts, int64_t row, int64_t rows) {
  if (g.dtype == DType::BFloat16) finish_as<BFloat16>(g, sums, parts, row, rows);
  else finish_as<Half>(g, sums, parts, row, rows);
}

constexpr AmxLoops loops = {pack_left, pack_right, multiply, finish};

}  // namespace

const AmxLoops* const gemm_of_tiles = &loops;
#else
const AmxLoops* const gemm_of_tiles = nullptr;
#endif

}  // namespace facula::FACULA_ISA
