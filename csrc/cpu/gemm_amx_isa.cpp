// Products of bfloat16 and half by matrix tiles. The right side is packed into tiles, rows of the
// left one are read where they lie if they can be; 32 rows stay in the first cache while they meet
// all columns of a part.
#include "cpu/amx_tiles.h"

#include "cpu/gemm_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kBlockSums = kAmxSide * kAmxSide;

int64_t steps_of(int64_t k) {
  return (k + kTileDepth - 1) / kTileDepth;
}
int64_t up_to(int64_t most, int64_t n) {
  return n < most ? n : most;
}

void pack_right(const Gemm& g, int64_t k, int64_t deep, int64_t column, int64_t columns,
                uint16_t* to) {
  pack_strips<true>(static_cast<const uint16_t*>(g.b) + k * g.b_row + column * g.b_col, g.b_row,
                    g.b_col, g.k - k, columns, steps_of(up_to(deep, g.k - k)), to);
}

// The sums of a square, turned.
void turn_sums(const float* from, float* to) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * kTileSide);
  turn_registers(r);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kTileSide, r[i]);
}

// c = alpha sum + beta c, or + bias, for a row of up to 16 columns; or floats.
template <class S>
struct Finish {
  const AmxProduct& product;
  const Gemm& g = product.out;
  S* const c;
  const S* const bias = static_cast<const S*>(g.bias);
  const Floats alpha = lanes(float(g.alpha_re)), beta = lanes(float(g.beta_re));
  const bool plain = g.alpha_re == 1 && g.beta_re == 0 && !g.bias;

  Finish(const AmxProduct& p, int64_t matrix)
      : product(p), c(static_cast<S*>(p.out.c) + matrix * p.out.c_batch) {}

  FACULA_INLINE void store(int64_t row, int64_t column, int64_t columns, Floats sum) const {
    const __mmask16 mask = first_lanes(columns);
    S* const out = c + row * g.c_row + column * g.c_col;
    alignas(64) S few[kTileSide] = {};
    if (!plain) {
      sum = alpha * sum;
      if (bias) {
        sum = sum + some_halves<S>(bias + column, mask);
      } else if (g.beta_re != 0) {
        if (g.c_col != 1)
          for (int64_t j = 0; j < columns; ++j) few[j] = out[j * g.c_col];
        sum = sum + beta * (g.c_col == 1 ? some_halves<S>(out, mask) : some_halves<S>(few, mask));
      }
    }
    write_halves(few, sum);
    if (g.c_col == 1) {
      _mm256_mask_storeu_epi16(out, mask, _mm256_load_si256(reinterpret_cast<__m256i*>(few)));
    } else {
      for (int64_t j = 0; j < columns; ++j) out[j * g.c_col] = few[j];
    }
  }

  // A block of g, as sum_of_tiles leaves it.
  void block(int64_t row, int64_t rows, int64_t column, int64_t columns, const float* sums) const {
    if (!product.turned) return rows_of(row, rows, column, columns, sums);
    alignas(64) float turned[kBlockSums];
    for (int64_t i = 0; i < rows; i += kTileSide)
      for (int64_t j = 0; j < columns; j += kTileSide)
        turn_sums(sums + (i / kTileSide * 2 + j / kTileSide) * kTileSums,
                  turned + (j / kTileSide * 2 + i / kTileSide) * kTileSums);
    rows_of(column, columns, row, rows, turned);
  }

  FACULA_INLINE void rows_of(int64_t row, int64_t rows, int64_t column, int64_t columns,
                             const float* sums) const {
    if (plain && columns == kAmxSide && g.c_col == 1 && !product.floats) {
      S* out = c + row * g.c_row + column;
      for (int64_t i = 0; i < rows; i += kTileSide, sums += 2 * kTileSums)
        for (int64_t r = 0; r < up_to(kTileSide, rows - i); ++r, out += g.c_row)
          write_halves(out, load(sums + r * kTileSide), load(sums + kTileSums + r * kTileSide));
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
      if (product.floats) {
        float* const to = product.floats + (row + i) * product.floats_row + column;
        _mm512_mask_storeu_ps(to, first_lanes(columns), __m512(load(from)));
        if (columns > kTileSide)
          _mm512_mask_storeu_ps(to + kTileSide, first_lanes(columns - kTileSide),
                                __m512(load(from + kTileSums)));
        continue;
      }
      store(row + i, column, up_to(kTileSide, columns), load(from));
      if (columns > kTileSide)
        store(row + i, column + kTileSide, columns - kTileSide, load(from + kTileSums));
    }
  }
};

// Rows of a, `step` of the depth after step.
FACULA_INLINE auto rows_in_place(const uint16_t* first, int64_t row) {
  const char* const from = reinterpret_cast<const char*>(first);
  auto at = [from](int64_t p) __attribute__((always_inline)) { return from + p * 2 * kTileDepth; };
  return TileSource<decltype(at)>{at, row * 2, kTileSide * row * 2};
}

template <class S>
void multiply_one(const AmxProduct& product, const AmxPart& part, int64_t matrix) {
  Gemm g = product.g;
  g.a = static_cast<const uint16_t*>(g.a) + matrix * g.a_batch;
  g.b = static_cast<const uint16_t*>(g.b) + matrix * g.b_batch;
  const Finish<S> finish(product, matrix);
  const int64_t blocks_across = (part.columns + kAmxSide - 1) / kAmxSide;
  for (int64_t k = 0; k < g.k; k += part.deep) {
    const int64_t deep = up_to(part.deep, g.k - k), steps = steps_of(deep);
    const int64_t strip = steps * kTileElements;
    const bool last = k + deep == g.k, single = part.deep >= g.k;
    const uint16_t* strips = part.right_room;
    if (part.right)
      strips = part.right + k * part.right_columns +
               (part.column - part.right_column) * steps * kTileDepth;
    else pack_right(g, k, part.deep, part.column, part.columns, part.right_room);
    const uint16_t* const left =
        static_cast<const uint16_t*>(g.a) + part.row * g.a_row + k * g.a_col;
    const int64_t whole = part.in_place ? part.rows / kAmxSide * kAmxSide : 0;
    if (whole < part.rows)
      pack_strips<false>(left + whole * g.a_row, g.a_col, g.a_row, g.k - k, part.rows - whole,
                         steps, part.left_room);
    for (int64_t i = 0; i < part.rows; i += kAmxSide) {
      const int64_t rows = up_to(kAmxSide, part.rows - i);
      for (int64_t j = 0; j < part.columns; j += kAmxSide) {
        const int64_t columns = up_to(kAmxSide, part.columns - j);
        const auto right = packed_tiles(strips + j / kTileSide * strip, strip * 2);
        float* const sums =
            part.sums + (single ? 0 : (i / kAmxSide * blocks_across + j / kAmxSide) * kBlockSums);
        if (i < whole)
          sum_of_tiles<S>(rows, columns, steps, rows_in_place(left + i * g.a_row, g.a_row), right,
                          sums, k > 0);
        else
          sum_of_tiles<S>(rows, columns, steps,
                          packed_tiles(part.left_room + (i - whole) / kTileSide * strip, strip * 2),
                          right, sums, k > 0);
        if (last) finish.block(part.row + i, rows, part.column + j, columns, sums);
      }
    }
  }
}

void multiply(const AmxProduct& product, const AmxPart& part) {
  const TilesInUse tiles;
  for (int64_t i = 0; i < product.g.batch; ++i)
    if (product.g.dtype == DType::BFloat16) multiply_one<BFloat16>(product, part, i);
    else multiply_one<Half>(product, part, i);
}

template <class S>
void finish_as(const AmxProduct& product, const float* sums, int64_t parts, int64_t row,
               int64_t rows) {
  const Finish<S> finish(product, 0);
  const Gemm& g = product.out;
  for (int64_t i = row; i < row + rows; ++i)
    for (int64_t j = 0; j < g.n; j += kTileSide) {
      const int64_t columns = up_to(kTileSide, g.n - j);
      const float* from = sums + i * g.n + j;
      Floats sum = {};
      for (int64_t q = 0; q < parts; ++q, from += g.m * g.n)
        sum += Floats(_mm512_maskz_loadu_ps(first_lanes(columns), from));
      finish.store(i, j, columns, sum);
    }
}

void finish(const AmxProduct& product, const float* sums, int64_t parts, int64_t row,
            int64_t rows) {
  if (product.g.dtype == DType::BFloat16) finish_as<BFloat16>(product, sums, parts, row, rows);
  else finish_as<Half>(product, sums, parts, row, rows);
}

constexpr AmxLoops loops = {pack_right, multiply, finish};

}  // namespace

const AmxLoops* const gemm_of_tiles = &loops;
#else
const AmxLoops* const gemm_of_tiles = nullptr;
#endif

}  // namespace facula::FACULA_ISA
