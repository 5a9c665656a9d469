// Products with few rows of a, a single one for a vector: b is by far the larger operand and is
// used once or a few times, so it is read in the order it lies in memory and never copied. Built
// once per ISA; see gemm_kernels.h.
#include "cpu/gemm_lanes.h"

#include "core/dtype.h"
#include "cpu/gemm_kernels.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int kColumns = kColumnsOfDots;  // of b, taken at once
constexpr int64_t kChunk = 512;           // of k, converted at a time
constexpr int64_t kDeep = 2048;           // of k, at a time: columns of b stay in the nearest cache
constexpr int64_t kSums = 4096;           // kept in the nearest cache
constexpr int64_t kConverted = 512;       // columns of b converted at a time
static_assert(kColumnsOfRows % kLanes<float> == 0);
template <class A>
constexpr int kRows = std::is_integral_v<A> ? 1
                      : kLaneBytes == 32    ? 3   // of 16 registers
                                            : 4;  // of a, taken at once

template <class A>
[[gnu::noinline]] A lane_sum(A* lanes) {
  for (int width = kLanes<A> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// to[i] = the sum of x[i]'s lanes: halves are added to each other until one lane is left.
template <int Count, class A>
FACULA_INLINE void lane_sums(const Vector<A>* x, A* to) {
  constexpr int lanes = kLanes<A>;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (std::is_floating_point_v<A> && Count >= 4) {
#pragma GCC unroll 4
    for (int from = 0; from < Count; from += lanes) {
      Vector<A> t[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) t[i] = from + i < Count ? x[from + i] : Vector<A>{};
      turn(t);
#pragma GCC unroll 4
      for (int width = lanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < width; ++i) t[i] += t[i + width];
      }
      alignas(64) A sums[lanes];
      store(sums, t[0]);
      for (int i = 0; i < lanes && from + i < Count; ++i) to[from + i] = sums[i];
    }
    return;
  }
#endif
  alignas(64) A parts[lanes];
  for (int i = 0; i < Count; ++i) {
    store(parts, x[i]);
    to[i] = lane_sum(parts);
  }
}

// sum[i][j] += a[i] . b[j] for M rows of a and N columns of b, both contiguous along k.
template <class S, class A, int M, int N, class L = A>
void add_dots(int64_t k, const L* a, int64_t a_row, const S* b, int64_t b_col, A* sum,
              int64_t sum_row) {
  constexpr int64_t lanes = kLanes<A>;
  constexpr int chains = M * N < 8 ? 2 : 1;  // independent sums hide the latency of the additions
  Vector<A> total[chains][M][N] = {};
  int64_t p = 0;
  for (; p + chains * lanes <= k; p += chains * lanes) {
#pragma GCC unroll 2
    for (int c = 0; c < chains; ++c) {
      Vector<A> x[M];
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) x[i] = load_wide(a + i * a_row + p + c * lanes);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        const Vector<A> y = load_wide(b + j * b_col + p + c * lanes);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) total[c][i][j] += x[i] * y;
      }
    }
  }
  Vector<A> both[M * N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      both[i * N + j] = total[0][i][j];
      if constexpr (chains == 2) both[i * N + j] += total[1][i][j];
    }
  }
  A sums[M * N];
  lane_sums<M * N, A>(both, sums);
#pragma GCC unroll 1
  for (int at = 0; at < M * N; ++at) {
    const int i = at / N, j = at % N;
    sum[i * sum_row + j] += sums[at];
#pragma GCC unroll 1
    for (int64_t q = p; q < k; ++q) {
      sum[i * sum_row + j] += widen<A>(a[i * a_row + q]) * widen<A>(b[j * b_col + q]);
    }
  }
}

// sum[i] += a[i][0..3] times four rows of b, for M rows of a.
template <class S, class A, int M>
void add_rows(int64_t n, const A* a, int64_t a_row, const S* b, int64_t b_row, A* sum,
              int64_t sum_row) {
  constexpr int64_t lanes = kLanes<A>;
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    Vector<A> y[4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) y[p] = load_wide(b + p * b_row + j);
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
      const A* x = a + i * a_row;
      store(sum + i * sum_row + j, load(sum + i * sum_row + j) + (x[0] * y[0] + x[1] * y[1]) +
                                       (x[2] * y[2] + x[3] * y[3]));
    }
  }
#pragma GCC unroll 1
  for (; j < n; ++j) {
#pragma GCC unroll 1
    for (int i = 0; i < M; ++i) {
      for (int p = 0; p < 4; ++p) {
        sum[i * sum_row + j] += a[i * a_row + p] * widen<A>(b[p * b_row + j]);
      }
    }
  }
}

template <class S, class A>
void convert_row(const S* from, int64_t stride, int64_t n, A* to) {
  if (stride == 1) {
    int64_t i = 0;
    if constexpr (kLoadable<S>)
      for (; i + kLanes<A> <= n; i += kLanes<A>) store(to + i, load_wide(from + i));
    for (; i < n; ++i) to[i] = widen<A>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = widen<A>(from[i * stride]);
  }
}

template <class S, class A, int M = kRows<A>>
void add_dots_of(int64_t m, int64_t k, const A* a, int64_t a_row, const S* b, int64_t b_col, A* sum,
                 int64_t sum_row) {
  if (m == M) return add_dots<S, A, M, kColumns>(k, a, a_row, b, b_col, sum, sum_row);
  if constexpr (M > 1) add_dots_of<S, A, M - 1>(m, k, a, a_row, b, b_col, sum, sum_row);
}

template <class S, class A, int M = kRows<A>>
void add_rows_of(int64_t m, int64_t n, const A* a, int64_t a_row, const S* b, int64_t b_row, A* sum,
                 int64_t sum_row) {
  if (m == M) return add_rows<S, A, M>(n, a, a_row, b, b_row, sum, sum_row);
  if constexpr (M > 1) add_rows_of<S, A, M - 1>(m, n, a, a_row, b, b_row, sum, sum_row);
}

// One block of columns: sum (m rows, sum_row apart) += a@b for a chunk of k. x holds the rows of a
// as accumulators, x_row apart.
template <class S, class A>
void by_columns(const Gemm& g, int64_t k, int64_t n, const A* x, int64_t x_row, const S* b, A* sum,
                int64_t sum_row) {
  alignas(64) A column[kChunk];
  int64_t j = 0;
  if constexpr (kLoadable<S>) {
    for (; g.b_row == 1 && j + kColumns <= n; j += kColumns) {
      for (int64_t i = 0; i < g.m; i += kRows<A>) {
        const int64_t rows = g.m - i < kRows<A> ? g.m - i : kRows<A>;
        add_dots_of<S, A>(rows, k, x + i * x_row, x_row, b + j * g.b_col, g.b_col,
                          sum + i * sum_row + j, sum_row);
      }
    }
  }
  for (; j < n; ++j) {
    const A* right = column;
    if (kInPlace<S> && g.b_row == 1) {
      right = reinterpret_cast<const A*>(b + j * g.b_col);
    } else {
      convert_row(b + j * g.b_col, g.b_row, k, column);
    }
    for (int64_t i = 0; i < g.m; ++i) {
      add_dots<A, A, 1, 1>(k, x + i * x_row, 0, right, 0, sum + i * sum_row + j, 0);
    }
  }
}

template <class S, class A>
void by_rows(const Gemm& g, int64_t k, int64_t n, const A* x, int64_t x_row, const S* b, A* sum,
             int64_t sum_row) {
  alignas(64) A rows[4 * kConverted];
  const bool in_place = kLoadable<S> && g.b_col == 1;
  for (int64_t p = 0; p < k; p += 4) {
    const int64_t left = k - p < 4 ? k - p : 4;
    const int64_t width = in_place && left == 4 ? n : kConverted;
    for (int64_t j = 0; j < n; j += width) {
      const int64_t columns = n - j < width ? n - j : width;
      const S* block = b + p * g.b_row + j * g.b_col;
      if constexpr (kLoadable<S>) {
        if (in_place && left == 4) {
          for (int64_t i = 0; i < g.m; i += kRows<A>) {
            add_rows_of<S, A>(g.m - i < kRows<A> ? g.m - i : kRows<A>, columns, x + i * x_row + p,
                              x_row, block, g.b_row, sum + i * sum_row + j, sum_row);
          }
          continue;
        }
      }
      for (int64_t r = 0; r < 4; ++r) {
        A* to = rows + r * kConverted;
        if (r < left) {
          convert_row(block + r * g.b_row, g.b_col, columns, to);
        } else {
          for (int64_t q = 0; q < columns; ++q) to[q] = A(0);  // x is zero there too
        }
      }
      for (int64_t i = 0; i < g.m; i += kRows<A>) {
        add_rows_of<A, A>(g.m - i < kRows<A> ? g.m - i : kRows<A>, columns, x + i * x_row + p,
                          x_row, rows, kConverted, sum + i * sum_row + j, sum_row);
      }
    }
  }
}

int64_t magnitude(int64_t x) {
  return x < 0 ? -x : x;
}

// A dot product of elements that are dense on both sides, without a copy of either.
template <class S>
bool dense_dot(const Gemm& g, const S* a, const S* b, Accumulator<S>* sum) {
  if constexpr (kLoadable<S>) {
    if (g.a_col != 1 || g.b_row != 1) return false;
    using A = Accumulator<S>;
    using L = std::conditional_t<kInPlace<S>, A, S>;  // signs of integers do not matter
    *sum = 0;
    add_dots<S, A, 1, 1, L>(g.k, reinterpret_cast<const L*>(a), 0, b, 0, sum, 0);
    return true;
  }
  return false;
}

template <class S>
void few_rows(const Gemm& g) {
  using A = Accumulator<S>;
  alignas(64) A x[kFewRows * kChunk];
  alignas(64) A sum[kSums];
  // Blocks that start at the same columns however the matrix was cut.
  const int64_t block = kSums / g.m / kColumnsOfRows * kColumnsOfRows;
  const A alpha = scalar<A>(g.alpha_re), beta = scalar<A>(g.beta_re);
  const bool dots = g.n == 1 || magnitude(g.b_row) < magnitude(g.b_col);
  // Rows of a that are accumulators already are read where they lie.
  const bool a_in_place = dots && kInPlace<S> && g.a_col == 1 && g.b_row == 1;
  const int64_t chunk = !a_in_place ? kChunk : g.m <= kRows<A> ? g.k : kDeep;
  for (int64_t i = 0; i < g.batch; ++i) {
    const S* a = static_cast<const S*>(g.a) + i * g.a_batch;
    const S* b = static_cast<const S*>(g.b) + i * g.b_batch;
    S* c = static_cast<S*>(g.c) + i * g.c_batch;
    if (g.m == 1 && g.n == 1 && dense_dot(g, a, b, sum)) {
      finish(c, g.c_col, sum, 1, alpha, beta);
      continue;
    }
    for (int64_t j = 0; j < g.n; j += block) {
      const int64_t n = g.n - j < block ? g.n - j : block;
      for (int64_t r = 0; r < g.m; ++r) {
        for (int64_t q = 0; q < n; ++q) sum[r * block + q] = A(0);
      }
      for (int64_t p = 0; p < g.k; p += chunk) {
        const int64_t k = g.k - p < chunk ? g.k - p : chunk;
        const A* left = x;
        int64_t left_row = kChunk;
        if (a_in_place) {
          left = reinterpret_cast<const A*>(a) + p;
          left_row = g.a_row;
        } else {
          for (int64_t r = 0; r < g.m; ++r) {
            convert_row(a + r * g.a_row + p * g.a_col, g.a_col, k, x + r * kChunk);
            for (int64_t q = k; q % 4 != 0; ++q) x[r * kChunk + q] = A(0);
          }
        }
        const S* right = b + p * g.b_row + j * g.b_col;
        (dots ? by_columns<S, A> : by_rows<S, A>)(g, k, n, left, left_row, right, sum, block);
      }
      for (int64_t r = 0; r < g.m; ++r) {
        finish(c + r * g.c_row + j * g.c_col, g.c_col, sum + r * block, n, alpha, beta);
      }
    }
  }
}

template <class S>
void partial_dot(const Gemm& g) {
  using A = Accumulator<S>;
  alignas(64) A x[kChunk], y[kChunk];
  const S* a = static_cast<const S*>(g.a);
  const S* b = static_cast<const S*>(g.b);
  A sum = 0;
  if (dense_dot(g, a, b, &sum)) {
    *static_cast<A*>(g.c) = sum;
    return;
  }
  for (int64_t p = 0; p < g.k; p += kChunk) {
    const int64_t k = g.k - p < kChunk ? g.k - p : kChunk;
    convert_row(a + p * g.a_col, g.a_col, k, x);
    convert_row(b + p * g.b_row, g.b_row, k, y);
    add_dots<A, A, 1, 1>(k, x, 0, y, 0, &sum, 0);
  }
  *static_cast<A*>(g.c) = sum;
}

struct Table : GemmVectorTable {
  constexpr Table() : GemmVectorTable{} {
#define X(e, t, name, c)                                              \
  if constexpr (c != 0 && c != 3) {                                   \
    few_rows[int(DType::e)] = FACULA_ISA::few_rows<Storage<t>>;       \
    partial_dot[int(DType::e)] = FACULA_ISA::partial_dot<Storage<t>>; \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const GemmVectorTable* const gemm_vector_table = &table;

}  // namespace facula::FACULA_ISA
