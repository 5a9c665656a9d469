// bfloat16 products by AVX512_BF16: one instruction multiplies 16 pairs and adds each pair's sum to
// a float. Operands are packed so that the two elements of a pair, neighbours along k, share a
// word.
#include "cpu/gemm_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#ifndef __clang__  // its intrinsics start from "undefined" vectors, which it then warns about
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/cast.h"

// Compiled for the baseline otherwise; every function here needs this to use or inline intrinsics.
#define FACULA_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace facula {

namespace {

constexpr int kRows = 12;  // of a register tile; it has two vectors of 16 columns
constexpr int kLanes = 16;
constexpr int64_t kBlockK = 1024;
constexpr int64_t kBlockRows = 384;
// Elements of b that are packed once for all rows of a, and the least and most columns of them.
constexpr int64_t kKept = 1 << 20;
constexpr int64_t kLeastColumns = 256, kMostColumns = 2048;

// A strip holds 16 rows of a (12 of them in use) or 16 columns of b: word [p][lane] has elements
// 2p and 2p + 1 of that lane. The extra line keeps strips from meeting in one set of a cache.
int64_t strip_words(int64_t k) {
  return (((k < kBlockK ? k : kBlockK) + 1) / 2 + 1) * kLanes;
}

// To nearest even; a NaN stays one.
FACULA_BF16 inline __m256i rounded(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}

FACULA_BF16 inline __m512 widened(const uint16_t* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

constexpr int64_t kAhead = 8;  // rows of a block fetched before their use

// Pair p of row i of a is at a + i * a_row + p * a_pair. The sums go on from those in c, or start
// from zero; they end in c, or rounded in `result` where that is given, plus the bias where that
// is.
template <int R, int V>
FACULA_BF16 void tile(int64_t pairs, const uint16_t* a, int64_t a_row, int64_t a_pair,
                      const uint32_t* b, int64_t strip, float* c, int64_t c_row, bool accumulate,
                      uint16_t* result, int64_t result_row, const uint16_t* bias) {
  __m512 sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if (result) __builtin_prefetch(result + i * result_row, 1);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sum[i][v] = accumulate ? _mm512_loadu_ps(c + i * c_row + v * kLanes) : _mm512_setzero_ps();
    }
  }
  for (int64_t p = 0; p < pairs; ++p) {
    __m512bh row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      row[v] = (__m512bh)_mm512_loadu_si512(b + v * strip + p * kLanes);
      __builtin_prefetch(b + v * strip + (p + kAhead) * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      int pair;
      std::memcpy(&pair, a + i * a_row, sizeof pair);
      const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, row[v]);
    }
    a += a_pair;
  }
  if (result) {
    __m512 start[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      start[v] = bias ? widened(bias + v * kLanes) : _mm512_setzero_ps();
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        const __m256i value = bias ? rounded(_mm512_add_ps(sum[i][v], start[v]))
                                   : (__m256i)_mm512_cvtneps_pbh(sum[i][v]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(result + i * result_row + v * kLanes),
                            value);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      _mm512_storeu_ps(c + i * c_row + v * kLanes, sum[i][v]);
    }
  }
}

using Tile = void (*)(int64_t, const uint16_t*, int64_t, int64_t, const uint32_t*, int64_t, float*,
                      int64_t, bool, uint16_t*, int64_t, const uint16_t*);
struct Tiles {
  Tile of[2][kRows];  // by vectors - 1 and rows - 1
  constexpr Tiles() : of{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    of[0][R - 1] = tile<R, 1>;
    of[1][R - 1] = tile<R, 2>;
    if constexpr (R < kRows) fill<R + 1>();
  }
};
constexpr Tiles kTiles;

// Lanes are contiguous, elements of a lane `step` apart: interleaves two rows at a time, across all
// strips of Width lanes, so that rows are read to their end.
template <int Width>
FACULA_BF16 void pack_interleaved(const uint16_t* from, int64_t step, int64_t k, int64_t lanes,
                                  uint32_t* to, int64_t strip) {
  for (int64_t p = 0; p < k; p += 2, to += kLanes) {
    const uint16_t* row = from + p * step;
    for (int64_t j = 0; j < lanes; j += Width) {
      const __mmask16 mask = __mmask16((1u << (lanes - j < Width ? lanes - j : Width)) - 1);
      // Every row starts anew elsewhere, which the hardware does not foresee.
      _mm_prefetch(reinterpret_cast<const char*>(row + kAhead * step + j), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(row + (kAhead + 1) * step + j), _MM_HINT_T0);
      const __m256i low = _mm256_maskz_loadu_epi16(mask, row + j);
      const __m256i high =
          p + 1 < k ? _mm256_maskz_loadu_epi16(mask, row + step + j) : _mm256_setzero_si256();
      const __m512i words = _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                                            _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
      _mm512_storeu_si512(to + j / Width * strip, words);
    }
  }
}

// Elements of a lane are contiguous, lanes `apart`: transposes 16 lanes by 16 words.
FACULA_BF16 void pack_transposed(const uint16_t* from, int64_t apart, int64_t k, int64_t lanes,
                                 uint32_t* to) {
  for (int64_t p = 0; p < k; p += 2 * kLanes, to += kLanes * kLanes) {
    const int64_t left = k - p < 2 * kLanes ? k - p : 2 * kLanes;
    const __mmask32 mask = left == 32 ? ~0u : (1u << left) - 1;
    __m512i r[16], t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      r[i] =
          i < lanes ? _mm512_maskz_loadu_epi16(mask, from + i * apart + p) : _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {  // words of two lanes
      t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
      t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {  // of four lanes, one 128-bit quarter per group of words
      r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    const int64_t words = (left + 1) / 2;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // r[i + 4g]: words i, 4+i, 8+i, 12+i of lanes 4g .. 4g+3
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
    for (int i = 0; i < 16; ++i) {
      if (i < words) _mm512_storeu_si512(to + i * kLanes, t[i]);
    }
  }
}

// `lanes` rows of a or columns of b into strips of at most Width lanes each.
template <int Width>
void pack(const uint16_t* from, int64_t step, int64_t apart, int64_t k, int64_t lanes, uint32_t* to,
          int64_t strip) {
  if (apart == 1) return pack_interleaved<Width>(from, step, k, lanes, to, strip);
  for (int64_t j = 0; j < lanes; j += Width, to += strip, from += Width * apart) {
    const int64_t count = lanes - j < Width ? lanes - j : Width;
    if (step == 1) {
      pack_transposed(from, apart, k, count, to);
      continue;
    }
    for (int64_t p = 0; p < k; p += 2) {
      for (int64_t i = 0; i < kLanes; ++i) {
        const uint16_t* x = from + p * step + i * apart;
        uint32_t& word = to[p / 2 * kLanes + i];
        word = i < count ? x[0] | (p + 1 < k ? uint32_t(x[step]) << 16 : 0) : 0;
      }
    }
  }
}

// c = alpha sum + beta c, or + bias, for one tile of up to 32 columns.
FACULA_BF16 void finish(const Gemm& g, uint16_t* c, const float* sum, int64_t sum_row, int64_t rows,
                        int64_t columns, const uint16_t* bias) {
  const __m512 alpha = _mm512_set1_ps(float(g.alpha_re));
  const __m512 beta = _mm512_set1_ps(bias ? 1.f : float(g.beta_re));
  for (; rows > 0; --rows, c += g.c_row, sum += sum_row) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t left = columns - j < kLanes ? columns - j : kLanes;
      const __mmask16 mask = __mmask16((1u << left) - 1);
      uint16_t* out = c + j * g.c_col;
      alignas(32) uint16_t row[kLanes] = {};
      __m512 value = _mm512_mul_ps(alpha, _mm512_loadu_ps(sum + j));
      if (bias || g.beta_re != 0) {
        if (bias || g.c_col == 1) {
          const __m256i old = _mm256_maskz_loadu_epi16(mask, bias ? bias + j : out);
          _mm256_store_si256(reinterpret_cast<__m256i*>(row), old);
        } else {
          for (int64_t q = 0; q < left; ++q) row[q] = out[q * g.c_col];
        }
        value = _mm512_fmadd_ps(beta, widened(row), value);
      }
      if (g.c_col == 1) {
        _mm256_mask_storeu_epi16(out, mask, rounded(value));
      } else {
        _mm256_store_si256(reinterpret_cast<__m256i*>(row), rounded(value));
        for (int64_t q = 0; q < left; ++q) out[q * g.c_col] = row[q];
      }
    }
  }
}

// Whether pairs of a can be read where they lie: they must be neighbours, none may reach beyond a
// row's end, and rows must not all fall into one set of the nearest cache.
bool readable_in_place(const Gemm& g) {
  return g.a_col == 1 && g.k % 2 == 0 && (g.m <= 8 || g.a_row * 2 % 4096 != 0);
}

// Whether b's columns, kLeastColumns of them, are packed whole and once; else block by block of k,
// again for each block of rows.
bool keeps_all(const Gemm& g) {
  return g.k <= kKept / kLeastColumns;
}

struct Buffers {
  uint32_t *left, *right;
  float* sums;
  int64_t rows, columns;  // of c, taken at a time
};

// Where sums go that are not rounded; null: to c.
struct Floats {
  float* data = nullptr;
  int64_t row = 0;
};

void multiply(const Gemm& g, const uint16_t* a, const uint16_t* b, uint16_t* c, Buffers buffers,
              Floats floats = {}) {
  constexpr int64_t columns = 2 * kLanes;
  const int64_t strip = strip_words(g.k), wide = buffers.columns;
  const int64_t right_words = wide / kLanes * strip;  // of one block of k
  const bool keep = keeps_all(g), in_place = readable_in_place(g);
  const bool single = g.k <= kBlockK;  // sums need not be kept between blocks
  const int64_t sum_row = floats.data ? floats.row : single ? columns : wide;
  const uint16_t* bias = static_cast<const uint16_t*>(g.bias);
  const bool plain = g.alpha_re == 1 && g.beta_re == 0 && g.c_col == 1;
  for (int64_t j0 = 0; j0 < g.n; j0 += wide) {
    const int64_t n = g.n - j0 < wide ? g.n - j0 : wide;
    for (int64_t i0 = 0; i0 < g.m; i0 += buffers.rows) {
      const int64_t m = g.m - i0 < buffers.rows ? g.m - i0 : buffers.rows;
      for (int64_t k0 = 0; k0 < g.k; k0 += kBlockK) {
        const int64_t k = g.k - k0 < kBlockK ? g.k - k0 : kBlockK;
        uint32_t* const right = buffers.right + (keep ? k0 / kBlockK * right_words : 0);
        if (i0 == 0 || !keep) {
          pack<kLanes>(b + k0 * g.b_row + j0 * g.b_col, g.b_row, g.b_col, k, n, right, strip);
        }
        const uint16_t* left = a + i0 * g.a_row + k0 * g.a_col;
        if (!in_place) {
          pack<kRows>(left, g.a_col, g.a_row, k, m, buffers.left, strip);
          left = reinterpret_cast<const uint16_t*>(buffers.left);
        }
        for (int64_t i = 0; i < m; i += kRows) {
          const int64_t rows = m - i < kRows ? m - i : kRows;
          const uint16_t* row = left + (in_place ? i * g.a_row : i / kRows * strip * 2);
          for (int64_t j = 0; j < n; j += columns) {
            const int64_t width = n - j < columns ? n - j : columns;
            float* const sums = floats.data ? floats.data + (i0 + i) * floats.row + j0 + j
                                            : buffers.sums + (single ? 0 : i * wide + j);
            uint16_t* const out =
                floats.data ? nullptr : c + (i0 + i) * g.c_row + (j0 + j) * g.c_col;
            const uint16_t* const added = bias ? bias + j0 + j : nullptr;
            const bool last = k0 + k == g.k && !floats.data,
                       direct = last && plain && width % kLanes == 0;
            kTiles.of[width > kLanes][rows - 1]((k + 1) / 2, row, in_place ? g.a_row : 2,
                                                in_place ? 2 : 2 * kLanes,
                                                right + j / kLanes * strip, strip, sums, sum_row,
                                                k0 != 0, direct ? out : nullptr, g.c_row, added);
            if (last && !direct) finish(g, out, sums, sum_row, rows, width, added);
          }
        }
      }
    }
  }
}

}  // namespace

bool bf16_product_available() {
  static const bool available =
      __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return available;
}

bool fast_dots_available(DType dtype) {
  static const bool available =
      isa_level() == 2 && bf16_product_available() && !__builtin_cpu_is("intel");
  return available && dtype == DType::BFloat16;
}

static void product(const Gemm& g, Floats floats) {
  const int64_t strip = strip_words(g.k);
  int64_t columns = kKept / g.k / (2 * kLanes) * (2 * kLanes);
  if (columns > kMostColumns) columns = kMostColumns;
  if (columns < kLeastColumns) columns = kLeastColumns;
  if (columns > g.n) columns = (g.n + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
  // Sums that are kept between blocks of k should stay near, unless b would be packed more often.
  int64_t rows = g.k > kBlockK && keeps_all(g) ? kBlockRows / 2 : kBlockRows;
  if (rows > g.m) rows = (g.m + kRows - 1) / kRows * kRows;
  const int64_t blocks = keeps_all(g) ? (g.k + kBlockK - 1) / kBlockK : 1;
  const int64_t left = rows / kRows * strip, right = blocks * (columns / kLanes) * strip;
  const int64_t sums = g.k <= kBlockK ? kRows * 2 * kLanes : rows * columns;
  const size_t bytes = size_t(left + right + sums) * 4;
  uint32_t* scratch = static_cast<uint32_t*>(host_allocate(bytes));
  const Buffers buffers{scratch, scratch + left, reinterpret_cast<float*>(scratch + left + right),
                        rows, columns};
  for (int64_t i = 0; i < g.batch; ++i) {
    multiply(g, static_cast<const uint16_t*>(g.a) + i * g.a_batch,
             static_cast<const uint16_t*>(g.b) + i * g.b_batch,
             static_cast<uint16_t*>(g.c) + i * g.c_batch, buffers, floats);
  }
  host_free(scratch, bytes);
}

void bf16_product(const Gemm& g) {
  product(g, {});
}

void bf16_sums(const Gemm& g, float* sums, int64_t apart) {
  constexpr int64_t kStep = 2 * kLanes, kTaskWork = 1 << 17;
  const int64_t steps = (g.n + kStep - 1) / kStep;
  const int64_t grain = kTaskWork / (g.m * g.k * kStep) + 1;
  parallel_for(0, steps, std::max(grain, steps / num_threads()), [&](int64_t begin, int64_t end) {
    Gemm part = g;
    part.batch = 1;
    part.b = static_cast<const uint16_t*>(g.b) + begin * kStep * g.b_col;
    part.n = std::min(g.n, end * kStep) - begin * kStep;
    part.c = nullptr;
    product(part, {sums + begin * kStep, apart});
  });
}

}  // namespace facula

#else

namespace facula {

bool bf16_product_available() {
  return false;
}
bool fast_dots_available(DType) {
  return false;
}
void bf16_product(const Gemm&) {}
void bf16_sums(const Gemm&, float*, int64_t) {}

}  // namespace facula

#endif
