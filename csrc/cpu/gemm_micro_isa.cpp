// Products by register tiles: kTileRows rows by two vectors of c are summed in registers over k,
// from b in panels as wide as the tile and a in panels as high. Built once per ISA; see
// gemm_kernels.h.
#include "cpu/gemm_block.h"

#include "core/dtype.h"
#include "core/host_allocator.h"
#include "cpu/gemm_kernels.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int kTileVectors = 2;
template <class A>
constexpr int kTileColumns = kTileVectors * kLanes<A>;

// Block sizes: one panel of b (kBlockK x tile columns) stays in the first-level cache, a packed
// block of a with the sums it makes in the second.
constexpr int64_t kBlockK = 256;
constexpr int64_t kBlockRows = (kLaneBytes == 64 ? 384 : 192) / kTileRows * kTileRows;
constexpr int64_t kBlockColumns = 256;

// c = alpha a@b + beta c for one tile of R rows and V vectors. b has its vectors contiguous.
template <class A, int R, int V>
void tile(int64_t k, const A* a, int64_t a_row, int64_t a_col, const A* b, int64_t b_row, A* c,
          int64_t c_row, A alpha, A beta) {
  Vector<A> sum[R][V] = {};
  for (int64_t p = 0; p < k; ++p) {
    Vector<A> row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = load(b + v * kLanes<A>);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const A x = a[i * a_row];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(x, row[v], sum[i][v]);
    }
    a += a_col;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      A* out = c + i * c_row + v * kLanes<A>;
      Vector<A> value = alpha * sum[i][v];
      if (beta != A(0)) value += beta * load(out);
      store(out, value);
    }
  }
}

template <class A>
using Tile = void (*)(int64_t, const A*, int64_t, int64_t, const A*, int64_t, A*, int64_t, A, A);

template <class A>
struct Tiles {
  Tile<A> of[kTileVectors][kTileRows];  // by vectors - 1 and rows - 1
  constexpr Tiles() : of{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    of[0][R - 1] = tile<A, R, 1>;
    of[1][R - 1] = tile<A, R, 2>;
    if constexpr (R < kTileRows) fill<R + 1>();
  }
};
template <class A>
constexpr Tiles<A> kTiles;

// Moves a 4 x 4 block: rows of four neighbours, `apart`, become columns of a panel `room` wide.
template <class A>
FACULA_INLINE void transpose_block(const A* from, int64_t apart, A* to, int64_t room) {
  typedef A Four __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
  const Four r0 = *reinterpret_cast<const Four*>(from);
  const Four r1 = *reinterpret_cast<const Four*>(from + apart);
  const Four r2 = *reinterpret_cast<const Four*>(from + 2 * apart);
  const Four r3 = *reinterpret_cast<const Four*>(from + 3 * apart);
  const Four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
  const Four low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Four high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(to) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + room) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(to + 2 * room) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + 3 * room) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

// Copies `width` vectors of length k, side by side, into a panel of `room` columns; the rest is
// zero. Element (p, j) comes from from[p * step + j * apart].
template <class S, class A>
void pack(const S* from, int64_t step, int64_t apart, int64_t k, int64_t width, int64_t room,
          A* to) {
  if (width < room) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = width; j < room; ++j) to[p * room + j] = A(0);
    }
  }
  if (apart == 1) {
    for (int64_t p = 0; p < k; ++p) {
      const S* row = from + p * step;
      A* out = to + p * room;
      int64_t j = 0;
      if constexpr (kLoadable<S>) {
        for (; j + kLanes<A> <= width; j += kLanes<A>) store(out + j, load_wide(row + j));
      }
      for (; j < width; ++j) out[j] = widen<A>(row[j]);
    }
    return;
  }
  int64_t j = 0;
  if constexpr (kInPlace<S>) {
    for (; step == 1 && j + 4 <= width; j += 4) {
      const A* rows = reinterpret_cast<const A*>(from + j * apart);
      int64_t p = 0;
      for (; p + 4 <= k; p += 4) transpose_block(rows + p, apart, to + p * room + j, room);
      for (; p < k; ++p) {
        for (int64_t i = 0; i < 4; ++i) to[p * room + j + i] = rows[i * apart + p];
      }
    }
  }
  for (; j < width; ++j) {
    const S* column = from + j * apart;
    for (int64_t p = 0; p < k; ++p) to[p * room + j] = widen<A>(column[p * step]);
  }
}

// Small products of elements that need no conversion: operands are read where they lie, and only
// panels of b that are not contiguous or not full are copied. k <= kBlockK.
template <class A>
void direct_product(const Gemm& g, const A* a, const A* b, A* c) {
  constexpr int64_t lanes = kLanes<A>, columns = kTileColumns<A>;
  alignas(64) A panel[kBlockK * columns];
  const A alpha = scalar<A>(g.alpha_re), beta = scalar<A>(g.beta_re);
  const int64_t row_tiles = (g.m + kTileRows - 1) / kTileRows;
  const int64_t tile_rows = (g.m + row_tiles - 1) / row_tiles;
  for (int64_t j = 0; j < g.n; j += columns) {
    const int64_t width = g.n - j < columns ? g.n - j : columns;
    const int vectors = width > lanes ? 2 : 1;
    const bool full = width == vectors * lanes;
    const A* right = b + j * g.b_col;
    int64_t right_row = g.b_row;
    if (!full || g.b_col != 1) {
      pack(right, g.b_row, g.b_col, g.k, width, vectors * lanes, panel);
      right = panel;
      right_row = vectors * lanes;
    }
    for (int64_t i = 0; i < g.m; i += tile_rows) {
      const int64_t rows = g.m - i < tile_rows ? g.m - i : tile_rows;
      const Tile<A> multiply = kTiles<A>.of[vectors - 1][rows - 1];
      const A* left = a + i * g.a_row;
      A* out = c + i * g.c_row + j * g.c_col;
      if (full && g.c_col == 1) {
        multiply(g.k, left, g.a_row, g.a_col, right, right_row, out, g.c_row, alpha, beta);
      } else {
        alignas(64) A sum[kTileRows * columns];
        multiply(g.k, left, g.a_row, g.a_col, right, right_row, sum, columns, A(1), A(0));
        for (int64_t r = 0; r < rows; ++r) {
          finish(out + r * g.c_row, g.c_col, sum + r * columns, width, alpha, beta);
        }
      }
    }
  }
}

// Products of any size: blocks of a and b are packed and converted, sums collect in a block of
// accumulators, so that the result is rounded once.
template <class S, class A>
void blocked_product(const Gemm& g, const S* a, const S* b, S* c, A* scratch) {
  constexpr int64_t columns = kTileColumns<A>;
  A* const left = scratch;
  A* const right = left + kBlockRows * kBlockK;
  A* const sums = right + kBlockK * kBlockColumns;
  const A alpha = scalar<A>(g.alpha_re), beta = scalar<A>(g.beta_re);
  for (int64_t j0 = 0; j0 < g.n; j0 += kBlockColumns) {
    const int64_t n = g.n - j0 < kBlockColumns ? g.n - j0 : kBlockColumns;
    for (int64_t i0 = 0; i0 < g.m; i0 += kBlockRows) {
      const int64_t m = g.m - i0 < kBlockRows ? g.m - i0 : kBlockRows;
      for (int64_t k0 = 0; k0 < g.k; k0 += kBlockK) {
        const int64_t k = g.k - k0 < kBlockK ? g.k - k0 : kBlockK;
        if (i0 == 0 || g.k > kBlockK) {
          for (int64_t j = 0; j < n; j += columns) {
            pack(b + k0 * g.b_row + (j0 + j) * g.b_col, g.b_row, g.b_col, k,
                 n - j < columns ? n - j : columns, columns, right + j * k);
          }
        }
        for (int64_t i = 0; i < m; i += kTileRows) {
          pack(a + (i0 + i) * g.a_row + k0 * g.a_col, g.a_col, g.a_row, k,
               m - i < kTileRows ? m - i : kTileRows, kTileRows, left + i * k);
        }
        for (int64_t j = 0; j < n; j += columns) {
          const int vectors = n - j > kLanes<A> ? 2 : 1;
          for (int64_t i = 0; i < m; i += kTileRows) {
            const int64_t rows = m - i < kTileRows ? m - i : kTileRows;
            kTiles<A>.of[vectors - 1][rows - 1](k, left + i * k, 1, kTileRows, right + j * k,
                                                columns, sums + i * kBlockColumns + j,
                                                kBlockColumns, A(1), A(k0 == 0 ? 0 : 1));
          }
        }
      }
      for (int64_t i = 0; i < m; ++i) {
        finish(c + (i0 + i) * g.c_row + j0 * g.c_col, g.c_col, sums + i * kBlockColumns, n, alpha,
               beta);
      }
    }
  }
}

// Whether the elements of a matrix fill a stretch of memory, rows or columns first.
bool is_dense(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return (column == 1 && row == columns) || (row == 1 && column == rows);
}

// Many tiny products: each lane has a matrix of its own, so none of the loops is short, and a
// product has the same result in any company.
template <class A>
void products_in_lanes(const Gemm& g) {
  constexpr int64_t L = kLanes<A>;
  alignas(64) A left[kTinyElements * L], right[kTinyElements * L], sums[kTinyElements * L];
  const A alpha = scalar<A>(g.alpha_re), beta = scalar<A>(g.beta_re);
  // Turns `count` matrices into lanes; returns the steps between rows and between columns there.
  struct Steps {
    int64_t row, column;
  };
  auto load_lanes = [](const void* from, int64_t batch, int64_t rows, int64_t columns, int64_t row,
                       int64_t column, int64_t count, A* to) -> Steps {
    const A* x = static_cast<const A*>(from);
    if (is_dense(rows, columns, row, column)) {
      turn_matrix(to, L, x, batch, rows * columns, count);
      return {row * L, column * L};
    }
    for (int64_t w = 0; w < count; ++w)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t q = 0; q < columns; ++q)
          to[(r * columns + q) * L + w] = x[w * batch + r * row + q * column];
    return {columns * L, L};
  };
  const bool direct = beta == A(0) && g.c_col == 1 && g.c_row == g.n;
  for (int64_t i = 0; i < g.batch; i += L) {
    const int64_t count = g.batch - i < L ? g.batch - i : L;
    if (count < L) {
      for (A& x : left) x = A(0);
      for (A& x : right) x = A(0);
    }
    const Steps a = load_lanes(static_cast<const A*>(g.a) + i * g.a_batch, g.a_batch, g.m, g.k,
                               g.a_row, g.a_col, count, left),
                b = load_lanes(static_cast<const A*>(g.b) + i * g.b_batch, g.b_batch, g.k, g.n,
                               g.b_row, g.b_col, count, right);
    for (int64_t r = 0; r < g.m; ++r)
      for (int64_t q = 0; q < g.n; ++q) {
        Vector<A> sum = {};
        for (int64_t p = 0; p < g.k; ++p)
          sum += load(left + r * a.row + p * a.column) * load(right + p * b.row + q * b.column);
        store(sums + (r * g.n + q) * L, alpha * sum);
      }
    A* c = static_cast<A*>(g.c) + i * g.c_batch;
    if (direct) {
      turn_matrix(c, g.c_batch, sums, L, count, g.m * g.n);
      continue;
    }
    for (int64_t w = 0; w < count; ++w)
      for (int64_t r = 0; r < g.m; ++r)
        for (int64_t q = 0; q < g.n; ++q) {
          A& to = c[w * g.c_batch + r * g.c_row + q * g.c_col];
          const A sum = sums[(r * g.n + q) * L + w];
          to = beta == A(0) ? sum : sum + beta * to;
        }
  }
}

// c = a@b with rows of c contiguous if possible: transposes the problem where its columns are.
Gemm with_contiguous_rows(Gemm g) {
  if (g.c_col == 1 || (g.c_row != 1 && g.n != 1)) return g;
  Gemm t = g;
  t.m = g.n, t.n = g.m;
  t.a = g.b, t.a_batch = g.b_batch, t.a_row = g.b_col, t.a_col = g.b_row;
  t.b = g.a, t.b_batch = g.a_batch, t.b_row = g.a_col, t.b_col = g.a_row;
  t.c_row = g.c_col, t.c_col = g.c_row;
  return t;
}

template <class S>
void product(const Gemm& problem) {
  using A = Accumulator<S>;
  const Gemm g = with_contiguous_rows(problem);
  const S* a = static_cast<const S*>(g.a);
  const S* b = static_cast<const S*>(g.b);
  S* c = static_cast<S*>(g.c);
  if constexpr (kInPlace<S>) {
    if (g.k <= kBlockK && g.m * g.n <= 256 * 256) {
      for (int64_t i = 0; i < g.batch; ++i) {
        direct_product(g, reinterpret_cast<const A*>(a + i * g.a_batch),
                       reinterpret_cast<const A*>(b + i * g.b_batch),
                       reinterpret_cast<A*>(c + i * g.c_batch));
      }
      return;
    }
  }
  constexpr size_t bytes = sizeof(A) * (kBlockRows * kBlockK + kBlockK * kBlockColumns +
                                        (kBlockRows + kTileRows) * kBlockColumns);
  A* scratch = static_cast<A*>(host_allocate(bytes));
  for (int64_t i = 0; i < g.batch; ++i) {
    blocked_product(g, a + i * g.a_batch, b + i * g.b_batch, c + i * g.c_batch, scratch);
  }
  host_free(scratch, bytes);
}

struct Table : GemmTable {
  constexpr Table() : GemmTable{} {
#define X(e, t, name, c)                                                                \
  if constexpr (c != 0 && c != 3) {                                                     \
    using S = Storage<t>;                                                               \
    product[int(DType::e)] = FACULA_ISA::product<S>;                                    \
    if constexpr (kInPlace<S>) tiny[int(DType::e)] = products_in_lanes<Accumulator<S>>; \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const GemmTable* const gemm_table = &table;

}  // namespace facula::FACULA_ISA
