// What gemm_panels.h declares, for one element type of one ISA: packing and
// register tiles. Include it before anything else.
#pragma once
#include "cpu/gemm_lanes.h"

#include "cpu/gemm_panels.h"

#if defined(__AVX2__) && defined(__FMA__)
#define FACULA_PANELS

namespace facula::FACULA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kPanelRows = 14;  // 28 of 32 registers accumulate, two hold b, one a
// Panels of a that are packed at a time: one, which stays in the nearest cache while all of b
// passes, or where memory holds elements of several panels side by side, those.
constexpr int kLeftPanels = 1, kLeftPanelsBeside = 8;
constexpr bool kPanelOfRightStays = false;
#else
constexpr int kPanelRows = 6;  // 12 of 16
// All of them stay in the second-level cache, a panel of b in the nearest.
constexpr int kLeftPanels = 32, kLeftPanelsBeside = 32;
constexpr bool kPanelOfRightStays = true;
#endif
// Of b, up to which a is not worth a packed copy; where a's rows conflict.
constexpr int64_t kFewPanels = 8, kFewConflictingPanels = 3;
template <class A>
constexpr int64_t kPanelK = sizeof(A) == 8     ? 256
                            : kLaneBytes == 64 ? 512
                                               : 384;
template <class A>
constexpr int kPanelColumns = 2 * kLanes<A>;
template <class A>
constexpr int64_t kLeftRoom = kLeftPanelsBeside * kPanelRows * kPanelK<A> + 2 * kLanes<A>;
// The least that a tile reads of a row of b.
template <class A>
constexpr int kHalfColumns = kLaneBytes == 64 ? kLanes<A> / 2 : kLanes<A>;
// Tiles that fetch the next panel of b while they use this one, which stays in the nearest cache;
// each fetches so many elements in a step of k.
constexpr int64_t kNextTiles = 4;
template <class A>
constexpr int64_t kNextStep = kPanelColumns<A> / kNextTiles;

// ---- packing

constexpr int64_t kRowsAhead = 8;  // fetched while rows are packed: they lie too far apart to guess

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

// `count` of W columns of a panel, contiguous along k and `apart`, as rows `room` apart.
template <int W, class A>
void pack_turned(const A* from, int64_t apart, int64_t k, int64_t count, A* to, int64_t room) {
  constexpr int groups = kGroups<W, A>, lanes = kLanes<A>;
  Vector<A> x[groups * lanes];
  for (int64_t p = 0; p < k; p += lanes, from += lanes, to += room * lanes) {
    const int64_t steps = k - p < lanes ? k - p : lanes;
    if (steps == lanes && count == W) {
#pragma GCC unroll 16
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
      for (int i = 0; i < lanes; ++i) store_row<W, A>(to + i * room, x + i, lanes);
    } else {
      for (int i = 0; i < steps; ++i) store_row<W, A>(to + i * room, x + i, lanes);
    }
  }
}

// One panel: element (p, j) comes from from[p * step + j * apart], zeros where j >= count.
template <int W, class A>
void pack_panel(const A* from, int64_t step, int64_t apart, int64_t k, int64_t count, A* to) {
  if (apart == 1) return pack_rows<W, A>(from, step, k, count, to);
  if (step == 1) {
    // As many columns at a time as registers hold; rows of them must not reach into each other.
    constexpr int at_once = W % kLanes<A> == 0 ? kLanes<A> : W;
    for (int64_t j = 0; j < W; j += at_once) {
      const int64_t left = count - j < 0 ? 0 : count - j < at_once ? count - j : at_once;
      pack_turned<at_once, A>(from + j * apart, apart, k, left, to + j, W);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < W; ++j) {
      to[p * W + j] = j < count ? from[p * step + j * apart] : A(0);
    }
  }
}

// Rows of `panels` panels of a, `height` elements of each, that are contiguous: Count rows at once
// across all panels, so that memory is read to the end of what lies together.
template <int Count, class A>
FACULA_INLINE void pack_left_rows(const A* from, int64_t step, int64_t panels, int64_t height,
                                  A* to, int64_t room) {
  constexpr int groups = kGroups<kPanelRows, A>;
  for (int64_t i = 0; i < panels; ++i, from += height, to += room) {
    Vector<A> row[Count][groups];
#pragma GCC unroll 8
    for (int p = 0; p < Count; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < groups; ++v) row[p][v] = load(from + p * step + v * kLanes<A>);
      __builtin_prefetch(from + (p + kRowsAhead) * step);
    }
#pragma GCC unroll 8
    for (int p = 0; p < Count; ++p) store_row<kPanelRows, A>(to + p * kPanelRows, row[p], 1);
  }
}

// As many of the first `m` rows of a, neighbours in memory, as can be read a vector at a time.
// Returns the number of panels.
template <class A>
int64_t pack_left(const A* from, int64_t step, int64_t k, int64_t m, int64_t height, A* to) {
  constexpr int64_t reach = kGroups<kPanelRows, A> * kLanes<A>, at_once = 8;
  if (m < reach) return 0;
  const int64_t panels = (m - reach) / height + 1, room = k * kPanelRows;
  int64_t p = 0;
  for (; p + at_once < k; p += at_once) {
    pack_left_rows<at_once>(from + p * step, step, panels, height, to + p * kPanelRows, room);
  }
  for (; p + 1 < k; ++p) {
    pack_left_rows<1>(from + p * step, step, panels, height, to + p * kPanelRows, room);
  }
  // A vector would reach into the next panel, which is written already.
  for (int64_t i = 0; i < panels; ++i) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
      to[i * room + p * kPanelRows + r] = from[p * step + i * height + r];
    }
  }
  return panels;
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
        __builtin_prefetch(row + kRowsAhead * step);
        if constexpr (kLaneBytes == 64) __builtin_prefetch(row + kRowsAhead * step + kLanes<A>);
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

// Half a vector, for which 512-bit units do two products at once where a whole one takes two turns.
template <class A>
struct HalfOf {
  typedef A type __attribute__((vector_size(kLaneBytes / 2)));
  typedef A unaligned __attribute__((vector_size(kLaneBytes / 2), aligned(alignof(A)), may_alias));
};
template <class A>
using HalfLanes = typename HalfOf<A>::type;
template <class A>
FACULA_INLINE HalfLanes<A> load_half(const A* p) {
  return *reinterpret_cast<const typename HalfOf<A>::unaligned*>(p);
}
template <class A>
FACULA_INLINE void store_half(A* p, HalfLanes<A> v) {
  *reinterpret_cast<typename HalfOf<A>::unaligned*>(p) = v;
}

// c = alpha * a @ b + beta * start for R rows and H halves of vectors; rows of b are b_row apart.
// Packed: a is a panel of kPanelRows rows. What begins at `next` is fetched into the second-level
// cache where b is in the nearest one.
template <class A, int R, int H, bool Packed>
void panel_tile(int64_t k, const A* a, int64_t a_row, int64_t a_col, const A* b, int64_t b_row,
                const A* next, A* c, int64_t c_row, const A* start, int64_t start_row, A alpha,
                A beta) {
  constexpr int lanes = kLanes<A>, V = H / 2;
  constexpr bool odd = H % 2 != 0;
  constexpr int64_t kAhead = 8;  // rows of b fetched before their use
  if constexpr (Packed) a_row = 1, a_col = kPanelRows;
  Vector<A> sum[R][V + 1] = {};
  HalfLanes<A> half[R] = {};
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * c_row, 1);
    if constexpr (H > 2) __builtin_prefetch(c + i * c_row + H * lanes / 2 - 1, 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector<A> row[V + 1];
    HalfLanes<A> last;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      row[v] = load(b + v * lanes);
      if constexpr (kLaneBytes == 64) __builtin_prefetch(b + kAhead * b_row + v * lanes);
    }
    if constexpr (kLaneBytes == 32) {
      __builtin_prefetch(next, 0, 2);
      next += kNextStep<A>;
    }
    if constexpr (odd) {
      last = load_half(b + V * lanes);
      __builtin_prefetch(b + kAhead * b_row + V * lanes);
    }
    if constexpr (Packed) __builtin_prefetch(a + 16 * kPanelRows);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const A x = a[i * a_row];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {  // said each time: addresses would take its register
        keep_in_register<A>(row[v]);
        sum[i][v] = multiply_add(x, row[v], sum[i][v]);
      }
      if constexpr (odd) half[i] += x * last;
    }
    a += a_col;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      A* out = c + i * c_row + v * lanes;
      Vector<A> value = alpha * sum[i][v];
      if (beta != A(0)) value += beta * load(start + i * start_row + v * lanes);
      store(out, value);
    }
    if constexpr (odd) {
      A* out = c + i * c_row + V * lanes;
      HalfLanes<A> value = alpha * half[i];
      if (beta != A(0)) value += beta * load_half(start + i * start_row + V * lanes);
      store_half(out, value);
    }
  }
}

template <class A>
using PanelTile = void (*)(int64_t, const A*, int64_t, int64_t, const A*, int64_t, const A*, A*,
                           int64_t, const A*, int64_t, A, A);

template <class A, bool Packed>
struct PanelTiles {
  PanelTile<A> of[4][kPanelRows];  // by halves of vectors - 1 and rows - 1
  constexpr PanelTiles() : of{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    constexpr bool halves = kLaneBytes == 64;
    of[0][R - 1] = panel_tile < A, R, halves ? 1 : 2, Packed > ;
    of[1][R - 1] = panel_tile<A, R, 2, Packed>;
    of[2][R - 1] = panel_tile < A, R, halves ? 3 : 4, Packed > ;
    of[3][R - 1] = panel_tile<A, R, 4, Packed>;
    if constexpr (R < kPanelRows) fill<R + 1>();
  }
};
template <class A, bool Packed>
constexpr PanelTiles<A, Packed> kPanelTiles;

// Writes a part of g: c = alpha * sum + beta * start for sums whose rows are kPanelColumns apart.
template <class A>
void finish_tile(const PanelProduct<A>& g, const A* sum, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) {
  constexpr int64_t wide = kPanelColumns<A>, lanes = kLanes<A>;
  A* c = g.c + row * g.c_row + column * g.c_col;
  const A* start = g.start + row * g.start_row + column * g.start_col;
  const bool adds = g.beta != A(0);
  if (g.c_col == 1 && (!adds || g.start_col == 1)) {
    for (int64_t i = 0; i < rows; ++i, sum += wide, c += g.c_row, start += g.start_row) {
      for (int64_t j = 0; j < columns; j += lanes) {
        const int64_t count = columns - j < lanes ? columns - j : lanes;
        Vector<A> value = g.alpha * load(sum + j);
        if (adds) value += g.beta * load_part(start + j, count);
        store_part(c + j, value, count);
      }
    }
    return;
  }
  if (g.c_row == 1 && (!adds || g.start_row == 1)) {  // transposed in registers
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
        for (int64_t q = j; q < j + width; ++q) {
          Vector<A> value = g.alpha * x[q - j];
          if (adds) value += g.beta * load_part(start + q * g.start_col + i, count);
          store_part(c + q * g.c_col + i, value, count);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      A value = g.alpha * sum[i * wide + j];
      if (adds) value += g.beta * start[i * g.start_row + j * g.start_col];
      c[i * g.c_row + j * g.c_col] = value;
    }
  }
}

// Whether a tile's rows of a lie at the same place of their pages: a set of the nearest cache has
// room for 8 lines or a few more.
template <class A>
bool rows_conflict(const PanelProduct<A>& g) {
  return kPanelRows > 8 && g.a_row * int64_t(sizeof(A)) % 4096 == 0;
}

// Whether a's elements are read where they lie: not often enough to pay for a packed copy.
template <class A>
bool readable_in_place(const PanelProduct<A>& g) {
  const int64_t few = rows_conflict(g) ? kFewConflictingPanels : kFewPanels;
  return g.a_col == 1 ? g.n <= few * kPanelColumns<A> : g.a_row == 1 && g.n <= kPanelColumns<A>;
}

// Packs a's rows [row, row + m) as panels of `height` rows.
template <class A>
void pack_left_panels(const PanelProduct<A>& g, int64_t row, int64_t m, int64_t height, A* to) {
  const A* from = g.a + row * g.a_row;
  int64_t i = 0;
  if (g.a_row == 1) i = height * pack_left(from, g.a_col, g.k, m, height, to);
  for (; i < m; i += height) {
    pack_panel<kPanelRows, A>(from + i * g.a_row, g.a_col, g.a_row, g.k,
                              m - i < height ? m - i : height, to + i / height * g.k * kPanelRows);
  }
}

template <class A>
void multiply(const PanelProduct<A>& g) {
  constexpr int64_t wide = kPanelColumns<A>, lanes = kLanes<A>;
  A* const left = g.left;
  alignas(64) A sums[kPanelRows * wide];
  const bool packed = !readable_in_place(g);
  const int64_t most_rows =
      !packed && rows_conflict(g) ? (kPanelRows + 1) / 2 : int64_t(kPanelRows);
  const int64_t row_tiles = (g.m + most_rows - 1) / most_rows;
  const int64_t tile_rows = (g.m + row_tiles - 1) / row_tiles;  // of equal height, or nearly
  const int64_t group_rows =
      !packed ? g.m : tile_rows * (g.a_row == 1 ? kLeftPanelsBeside : kLeftPanels);
  for (int64_t i0 = 0; i0 < g.m; i0 += group_rows) {
    const int64_t m = g.m - i0 < group_rows ? g.m - i0 : group_rows;
    if (packed) pack_left_panels(g, i0, m, tile_rows, left);
    auto multiply_tile = [&](int64_t i, int64_t j) {
      const int64_t width = g.n - j < wide ? g.n - j : wide;
      const int64_t halves = (2 * width + lanes - 1) / lanes;
      const bool direct =
          width % lanes == 0 && g.c_col == 1 && (g.beta == A(0) || g.start_col == 1);
      const A* b = g.b + j / wide * g.b_panel;
      const int64_t rows = m - i < tile_rows ? m - i : tile_rows;
      const PanelTile<A> tile = packed ? kPanelTiles<A, true>.of[halves - 1][rows - 1]
                                       : kPanelTiles<A, false>.of[halves - 1][rows - 1];
      const A* a = packed ? left + i / tile_rows * g.k * kPanelRows : g.a + (i0 + i) * g.a_row;
      const A* next = b;
      if (const int64_t at = i / tile_rows; at < kNextTiles && j + wide < g.n)
        next += g.b_panel + at * g.k * kNextStep<A>;
      if (direct) {
        tile(g.k, a, g.a_row, g.a_col, b, g.b_row, next, g.c + (i0 + i) * g.c_row + j, g.c_row,
             g.start + (i0 + i) * g.start_row + j, g.start_row, g.alpha, g.beta);
      } else {
        tile(g.k, a, g.a_row, g.a_col, b, g.b_row, next, sums, wide, sums, wide, A(1), A(0));
        finish_tile(g, sums, i0 + i, rows, j, width);
      }
    };
    if constexpr (kPanelOfRightStays) {
      for (int64_t j = 0; j < g.n; j += wide)
        for (int64_t i = 0; i < m; i += tile_rows) multiply_tile(i, j);
    } else {
      for (int64_t i = 0; i < m; i += tile_rows)
        for (int64_t j = 0; j < g.n; j += wide) multiply_tile(i, j);
    }
  }
}

template <class A>
void add_parts(A* sums, int64_t parts, int64_t apart, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes<A>) {
    const int64_t count = n - j < kLanes<A> ? n - j : kLanes<A>;
    Vector<A> sum = load_part(sums + j, count);
    for (int64_t i = 1; i < parts; ++i) sum += load_part(sums + i * apart + j, count);
    store_part(sums + j, sum, count);
  }
}

template <class A>
constexpr PanelTable<A> kPanelTable{kPanelRows,   kPanelColumns<A>, kHalfColumns<A>, kPanelK<A>,
                                    kLeftRoom<A>, pack_columns<A>,  multiply<A>,     add_parts<A>};

}  // namespace
}  // namespace facula::FACULA_ISA

#endif
