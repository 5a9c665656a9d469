// What gemm_panels.h declares, for one element type of one ISA: packing by transposes in registers,
// and register tiles. Include it before anything else.
#pragma once
#include "cpu/gemm_block.h"

#include "cpu/gemm_panels.h"

#if defined(__AVX2__) && defined(__FMA__)
#define FACULA_PANELS

namespace facula::FACULA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kPanelRows = 14;  // 28 of 32 registers accumulate, two hold b, one a
constexpr int kLeftPanels = 1;  // of a, packed at a time: they stay in the nearest cache
#else
constexpr int kPanelRows = 6;    // 12 of 16
constexpr int kLeftPanels = 16;  // in the second-level cache; a panel of b is in the nearest
#endif
template <class A>
constexpr int64_t kPanelK = sizeof(A) == 4 ? 384 : 256;
template <class A>
constexpr int kPanelColumns = 2 * kLanes<A>;
// Panels of b up to which a is not worth a packed copy.
constexpr int64_t kFewPanels = 3;

// ---- vectors of which only the first `count` elements exist

#if defined(__AVX512F__)
FACULA_INLINE __mmask16 first_lanes(int64_t count) {
  return __mmask16((1u << count) - 1);
}
FACULA_INLINE Vector<float> load_part(const float* p, int64_t count) {
  return (Vector<float>)_mm512_maskz_loadu_ps(first_lanes(count), p);
}
FACULA_INLINE Vector<double> load_part(const double* p, int64_t count) {
  return (Vector<double>)_mm512_maskz_loadu_pd(__mmask8(first_lanes(count)), p);
}
FACULA_INLINE void store_part(float* p, Vector<float> v, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), (__m512)v);
}
FACULA_INLINE void store_part(double* p, Vector<double> v, int64_t count) {
  _mm512_mask_storeu_pd(p, __mmask8(first_lanes(count)), (__m512d)v);
}
#else
template <class A>
FACULA_INLINE Vector<A> load_part(const A* p, int64_t count) {
  alignas(32) A lanes[kLanes<A>] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
template <class A>
FACULA_INLINE void store_part(A* p, Vector<A> v, int64_t count) {
  alignas(32) A lanes[kLanes<A>];
  store(lanes, v);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
}
#endif

// ---- transposes of as many vectors as a vector has lanes

#if defined(__AVX512F__)
FACULA_INLINE void turn(Vector<float>* x) {
  __m512 r[16], t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps((__m512)x[i], (__m512)x[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps((__m512)x[i], (__m512)x[i + 1]);
  }
  auto both = [](__m512 a, __m512 b, bool high) {
    const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
    return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(c, d) : _mm512_unpacklo_pd(c, d));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = both(t[i], t[i + 2], false);
    r[i + 1] = both(t[i], t[i + 2], true);
    r[i + 2] = both(t[i + 1], t[i + 3], false);
    r[i + 3] = both(t[i + 1], t[i + 3], true);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // r[i + 4g]: columns i, 4+i, 8+i, 12+i of rows 4g .. 4g+3
    const __m512 a = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    x[i] = (Vector<float>)_mm512_shuffle_f32x4(a, b, 0x88);
    x[i + 8] = (Vector<float>)_mm512_shuffle_f32x4(a, b, 0xdd);
    x[i + 4] = (Vector<float>)_mm512_shuffle_f32x4(c, d, 0x88);
    x[i + 12] = (Vector<float>)_mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

FACULA_INLINE void turn(Vector<double>* x) {
  __m512d r[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    r[i] = _mm512_unpacklo_pd((__m512d)x[i], (__m512d)x[i + 1]);
    r[i + 1] = _mm512_unpackhi_pd((__m512d)x[i], (__m512d)x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {  // r[i + 2g]: columns i, 2+i, 4+i, 6+i of rows 2g, 2g+1
    const __m512d a = _mm512_shuffle_f64x2(r[i], r[i + 2], 0x88);
    const __m512d b = _mm512_shuffle_f64x2(r[i + 4], r[i + 6], 0x88);
    const __m512d c = _mm512_shuffle_f64x2(r[i], r[i + 2], 0xdd);
    const __m512d d = _mm512_shuffle_f64x2(r[i + 4], r[i + 6], 0xdd);
    x[i] = (Vector<double>)_mm512_shuffle_f64x2(a, b, 0x88);
    x[i + 4] = (Vector<double>)_mm512_shuffle_f64x2(a, b, 0xdd);
    x[i + 2] = (Vector<double>)_mm512_shuffle_f64x2(c, d, 0x88);
    x[i + 6] = (Vector<double>)_mm512_shuffle_f64x2(c, d, 0xdd);
  }
}
#else
FACULA_INLINE void turn(Vector<float>* x) {
  __m256 r[8], t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps((__m256)x[i], (__m256)x[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps((__m256)x[i], (__m256)x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    x[i] = (Vector<float>)_mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    x[i + 4] = (Vector<float>)_mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
}

FACULA_INLINE void turn(Vector<double>* x) {
  const __m256d a = _mm256_unpacklo_pd((__m256d)x[0], (__m256d)x[1]);
  const __m256d b = _mm256_unpackhi_pd((__m256d)x[0], (__m256d)x[1]);
  const __m256d c = _mm256_unpacklo_pd((__m256d)x[2], (__m256d)x[3]);
  const __m256d d = _mm256_unpackhi_pd((__m256d)x[2], (__m256d)x[3]);
  x[0] = (Vector<double>)_mm256_permute2f128_pd(a, c, 0x20);
  x[1] = (Vector<double>)_mm256_permute2f128_pd(b, d, 0x20);
  x[2] = (Vector<double>)_mm256_permute2f128_pd(a, c, 0x31);
  x[3] = (Vector<double>)_mm256_permute2f128_pd(b, d, 0x31);
}
#endif

// ---- packing

template <int W, class A>
constexpr int kGroups = (W + kLanes<A> - 1) / kLanes<A>;  // vectors that hold a row of a panel

// The vectors of one row of a panel. The last one reaches into the next row, which is written
// later: rows are written in order, and the buffer has room for a vector after the last.
template <int W, class A>
FACULA_INLINE void store_row(A* to, const Vector<A>* row, int64_t apart) {
#pragma GCC unroll 4
  for (int v = 0; v < kGroups<W, A>; ++v) store(to + v * kLanes<A>, row[v * apart]);
}

// Rows of a panel are contiguous, `step` apart; `count` <= W elements of each exist.
template <int W, class A>
void pack_rows(const A* from, int64_t step, int64_t k, int64_t count, A* to) {
  constexpr int groups = kGroups<W, A>, lanes = kLanes<A>;
  int64_t parts[groups];
  for (int v = 0; v < groups; ++v) {
    const int64_t left = count - v * lanes;
    parts[v] = left < 0 ? 0 : left > lanes ? lanes : left;
  }
  if (parts[groups - 1] == lanes) {
    for (int64_t p = 0; p < k; ++p, from += step, to += W) {
      Vector<A> row[groups];
#pragma GCC unroll 4
      for (int v = 0; v < groups; ++v) row[v] = load(from + v * lanes);
      store_row<W, A>(to, row, 1);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, from += step, to += W) {
    Vector<A> row[groups];
#pragma GCC unroll 4
    for (int v = 0; v < groups; ++v) row[v] = load_part(from + v * lanes, parts[v]);
    store_row<W, A>(to, row, 1);
  }
}

// Columns of a panel are contiguous along k, `apart`.
template <int W, class A>
void pack_turned(const A* from, int64_t apart, int64_t k, int64_t count, A* to) {
  constexpr int groups = kGroups<W, A>, lanes = kLanes<A>;
  Vector<A> x[groups * lanes];
  for (int64_t p = 0; p < k; p += lanes, from += lanes, to += W * lanes) {
    const int64_t steps = k - p < lanes ? k - p : lanes;
    if (steps == lanes && count == W) {
#pragma GCC unroll 32
      for (int j = 0; j < groups * lanes; ++j) {
        x[j] = j < W ? load(from + j * apart) : Vector<A>{};
      }
    } else {
      for (int j = 0; j < groups * lanes; ++j) {
        x[j] = j < count ? load_part(from + j * apart, steps) : Vector<A>{};
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < groups; ++v) turn(x + v * lanes);
    if (steps == lanes) {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) store_row<W, A>(to + i * W, x + i, lanes);
    } else {
      for (int i = 0; i < steps; ++i) store_row<W, A>(to + i * W, x + i, lanes);
    }
  }
}

// One panel: element (p, j) comes from from[p * step + j * apart], zeros where j >= count.
template <int W, class A>
void pack_panel(const A* from, int64_t step, int64_t apart, int64_t k, int64_t count, A* to) {
  if (apart == 1) return pack_rows<W, A>(from, step, k, count, to);
  if (step == 1) return pack_turned<W, A>(from, apart, k, count, to);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < W; ++j) {
      to[p * W + j] = j < count ? from[p * step + j * apart] : A(0);
    }
  }
}

template <class A>
void pack_columns(const A* from, int64_t step, int64_t apart, int64_t k, int64_t count, A* to) {
  constexpr int64_t wide = kPanelColumns<A>;
  int64_t j = 0;
  if (apart == 1) {  // across all full panels, so that rows are read to their end
    const int64_t full = count / wide;
    for (int64_t p = 0; p < k; ++p) {
      const A* row = from + p * step;
      A* out = to + p * wide;
      for (int64_t i = 0; i < full; ++i, row += wide, out += k * wide) {
        const Vector<A> x = load(row), y = load(row + kLanes<A>);
        store(out, x);
        store(out + kLanes<A>, y);
      }
    }
    j = full * wide;
  }
  for (; j < count; j += wide) {
    pack_panel<kPanelColumns<A>, A>(from + j * apart, step, apart, k,
                                    count - j < wide ? count - j : wide, to + j * k);
  }
}

// ---- register tiles

// c = alpha * a @ b + beta * c for R rows and V vectors. Packed: a is a panel of kPanelRows rows.
template <class A, int R, int V, bool Packed>
void panel_tile(int64_t k, const A* a, int64_t a_row, int64_t a_col, const A* b, A* c,
                int64_t c_row, A alpha, A beta) {
  constexpr int lanes = kLanes<A>;
  constexpr int64_t kAhead = 8;  // rows of b fetched before their use
  if constexpr (Packed) a_row = 1, a_col = kPanelRows;
  Vector<A> sum[R][V] = {};
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * c_row, 1);
    if constexpr (V == 2) __builtin_prefetch(c + i * c_row + 2 * lanes - 1, 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector<A> row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      row[v] = load(b + v * lanes);
      if (kVectorBytes == 64 || v == 0) __builtin_prefetch(b + kAhead * 2 * lanes + v * lanes);
    }
    if constexpr (Packed) __builtin_prefetch(a + 16 * kPanelRows);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const A x = a[i * a_row];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] += x * row[v];
    }
    a += a_col;
    b += 2 * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      A* out = c + i * c_row + v * lanes;
      Vector<A> value = alpha * sum[i][v];
      if (beta != A(0)) value += beta * load(out);
      store(out, value);
    }
  }
}

template <class A>
using PanelTile = void (*)(int64_t, const A*, int64_t, int64_t, const A*, A*, int64_t, A, A);

template <class A, bool Packed>
struct PanelTiles {
  PanelTile<A> of[2][kPanelRows];  // by vectors - 1 and rows - 1
  constexpr PanelTiles() : of{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    of[0][R - 1] = panel_tile<A, R, 1, Packed>;
    of[1][R - 1] = panel_tile<A, R, 2, Packed>;
    if constexpr (R < kPanelRows) fill<R + 1>();
  }
};
template <class A, bool Packed>
constexpr PanelTiles<A, Packed> kPanelTiles;

// c = alpha * sum + beta * c for a tile of sums, rows kPanelColumns apart.
template <class A>
void finish_tile(const A* sum, int64_t rows, int64_t columns, A* c, int64_t c_row, int64_t c_col,
                 A alpha, A beta) {
  constexpr int64_t wide = kPanelColumns<A>, lanes = kLanes<A>;
  if (c_col == 1) {
    for (int64_t i = 0; i < rows; ++i, sum += wide, c += c_row) {
      for (int64_t j = 0; j < columns; j += lanes) {
        const int64_t count = columns - j < lanes ? columns - j : lanes;
        Vector<A> value = alpha * load(sum + j);
        if (beta != A(0)) value += beta * load_part(c + j, count);
        store_part(c + j, value, count);
      }
    }
    return;
  }
  if (c_row == 1) {  // columns of c are contiguous: the tile is transposed in registers
    for (int64_t j = 0; j < columns; j += lanes) {
      const int64_t width = columns - j < lanes ? columns - j : lanes;
      for (int64_t i = 0; i < rows; i += lanes) {
        const int64_t count = rows - i < lanes ? rows - i : lanes;
        Vector<A> x[lanes];
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r) {
          x[r] = r < count ? load(sum + (i + r) * wide + j) : Vector<A>{};
        }
        turn(x);
        for (int64_t q = 0; q < width; ++q) {
          A* out = c + (j + q) * c_col + i;
          Vector<A> value = alpha * x[q];
          if (beta != A(0)) value += beta * load_part(out, count);
          store_part(out, value, count);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      A& out = c[i * c_row + j * c_col];
      const A value = alpha * sum[i * wide + j];
      out = beta == A(0) ? value : value + beta * out;
    }
  }
}

// Whether a's elements can be read where they lie: its rows must not all fall into one set of the
// nearest cache, and its columns must be near each other.
template <class A>
bool readable_in_place(const PanelProduct<A>& g) {
  if (g.a_col != 1) return g.a_row == 1 && g.n <= kPanelColumns<A>;
  return g.n <= kFewPanels * kPanelColumns<A> &&
         (g.m <= 8 || g.a_row * int64_t(sizeof(A)) % 2048 != 0);
}

template <class A>
void multiply(const PanelProduct<A>& g) {
  constexpr int64_t wide = kPanelColumns<A>, lanes = kLanes<A>;
  alignas(64) A left[kLeftPanels * kPanelRows * kPanelK<A> + 2 * kLanes<A>];
  alignas(64) A sums[kPanelRows * wide];
  const bool packed = !readable_in_place(g);
  const int64_t row_tiles = (g.m + kPanelRows - 1) / kPanelRows;
  const int64_t tile_rows = (g.m + row_tiles - 1) / row_tiles;  // of equal height, or nearly
  const int64_t group_rows = packed ? kLeftPanels * tile_rows : g.m;
  for (int64_t i0 = 0; i0 < g.m; i0 += group_rows) {
    const int64_t m = g.m - i0 < group_rows ? g.m - i0 : group_rows;
    if (packed) {
      A* to = left;
      for (int64_t i = 0; i < m; i += tile_rows, to += g.k * kPanelRows) {
        pack_panel<kPanelRows, A>(g.a + (i0 + i) * g.a_row, g.a_col, g.a_row, g.k,
                                  m - i < tile_rows ? m - i : tile_rows, to);
      }
    }
    for (int64_t j = 0; j < g.n; j += wide) {
      const int64_t width = g.n - j < wide ? g.n - j : wide;
      const int vectors = width > lanes ? 2 : 1;
      const bool direct = width == vectors * lanes && g.c_col == 1;
      const A* b = g.b + j * g.k;
      for (int64_t i = 0; i < m; i += tile_rows) {
        const int64_t rows = m - i < tile_rows ? m - i : tile_rows;
        const PanelTile<A> tile = packed ? kPanelTiles<A, true>.of[vectors - 1][rows - 1]
                                         : kPanelTiles<A, false>.of[vectors - 1][rows - 1];
        const A* a = packed ? left + i / tile_rows * g.k * kPanelRows : g.a + (i0 + i) * g.a_row;
        A* c = g.c + (i0 + i) * g.c_row + j * g.c_col;
        if (direct) {
          tile(g.k, a, g.a_row, g.a_col, b, c, g.c_row, g.alpha, g.beta);
        } else {
          tile(g.k, a, g.a_row, g.a_col, b, sums, wide, A(1), A(0));
          finish_tile(sums, rows, width, c, g.c_row, g.c_col, g.alpha, g.beta);
        }
      }
    }
  }
}

template <class A>
constexpr PanelTable<A> kPanelTable{kPanelRows, kPanelColumns<A>, kPanelK<A>, pack_columns<A>,
                                    multiply<A>};

}  // namespace
}  // namespace facula::FACULA_ISA

#endif
