// Built once per ISA.
#include "cpu/triangle.h"

#include "cpu/gemm_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/small_matrix_tables.h"
#include "cpu/turn_block.h"

namespace facula::FACULA_ISA {
namespace {

// A tile of kRows x kVectors sums leaves registers for a row of the panel and an element of a.
#if defined(__AVX512BW__) || defined(__aarch64__)
constexpr int kRows = 8, kVectors = 3;
#elif defined(__AVX2__)
constexpr int kRows = 4, kVectors = 3;
#else
constexpr int kRows = 4, kVectors = 2;
#endif
constexpr int kSquare = kRows * kRows;

// Where block r of a packed triangle begins.
constexpr int64_t block_at(int64_t r) {
  return kSquare * (r * (r + 1) / 2) + kRows * r;
}
constexpr int64_t blocks_of(int64_t n) {
  return (n + kRows - 1) / kRows;
}

// `rows` rows of a, from row i and column k on, as columns of kRows elements.
template <class T>
void pack_columns(int64_t i, int64_t k, int64_t rows, int64_t columns, Strided<const T> a, T* to) {
  const T* from = a.data + i * a.row + k * a.column;
  if (rows == kRows && a.row == 1) {
    for (int64_t c = 0; c < columns; ++c)
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) to[c * kRows + r] = from[c * a.column + r];
    return;
  }
  if (rows < kRows) std::memset(static_cast<void*>(to), 0, size_t(columns) * kRows * sizeof(T));
  if (a.column == 1) return turn_matrix<T>(to, kRows, from, a.row, columns, rows);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * kRows + r] = from[r * a.row + c * a.column];
}

template <class T>
void pack(bool upper, bool unit, int64_t n, Strided<const T> a, int64_t begin, int64_t end,
          T* packed) {
  const int64_t blocks = blocks_of(n);
  for (int64_t r = begin; r < end; ++r) {
    T* to = packed + block_at(r);
    const int64_t i = (upper ? blocks - 1 - r : r) * kRows, rows = std::min<int64_t>(kRows, n - i),
                  first = upper ? i + kRows : 0, before = r * kRows,
                  present = std::clamp<int64_t>(n - first, 0, before);
    pack_columns(i, first, rows, present, a, to);
    std::fill(to + present * kRows, to + before * kRows, T(0));
    to += before * kRows;
    std::fill_n(to, kSquare, T(0));
    const T* corner = a.data + i * (a.row + a.column);
    for (int64_t q = 0; q < rows; ++q)
      for (int64_t p = upper ? 0 : q + 1; p < (upper ? q : rows); ++p)
        to[q * kRows + p] = corner[p * a.row + q * a.column];
    for (int64_t q = 0; q < kRows; ++q) {
      const T diagonal = unit || q >= rows ? T(1) : corner[q * (a.row + a.column)],
              inverse = T(-1) / diagonal;
      to[q * kRows + q] = -diagonal;
      to[kSquare + q] = std::isnormal(inverse) ? inverse : T(0);
    }
  }
}

// A block of rows, given the `depth` rows of x that were solved before. The sums are those of what
// is to be subtracted, less the right-hand side.
template <bool Upper, int V, class T>
void solve_block(int64_t depth, const T* a, const T* x, T* own) {
  constexpr int W = kLanes<T>;
  using Number = Vector<T>;
  Number sum[kRows][V];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) sum[i][v] = -load(own + (i * V + v) * W);
  for (int64_t k = 0; k < depth; ++k, a += kRows, x += V * W) {
    Number row[V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) {
      row[v] = load(x + v * W);
      keep_in_register<T>(row[v]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(a[i], row[v], sum[i][v]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < kRows; ++t) {
    const int q = Upper ? kRows - 1 - t : t;
    const T inverse = a[kSquare + q], diagonal = a[q * kRows + q];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) {
      sum[q][v] = inverse != 0 ? sum[q][v] * inverse : sum[q][v] / diagonal;
      store(own + (q * V + v) * W, sum[q][v]);
    }
#pragma GCC unroll 8
    for (int i = Upper ? 0 : q + 1; i < (Upper ? q : kRows); ++i)
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(a[q * kRows + i], sum[q][v], sum[i][v]);
  }
}

template <int V, class T>
void solve_blocks(bool upper, int64_t n, int64_t known, int64_t begin, int64_t end, const T* packed,
                  T* panel) {
  constexpr int64_t step = int64_t(kRows) * V * kLanes<T>;
  const int64_t blocks = blocks_of(n);
  for (int64_t r = begin; r < end; ++r) {
    const T* a = packed + block_at(r);
    if (upper) {
      T* own = panel + (blocks - 1 - r) * step;
      solve_block<true, V>(r * kRows, a, own + step, own);
    } else {
      solve_block<false, V>((r - known) * kRows, a + known * kSquare, panel + known * step,
                            panel + r * step);
    }
  }
  // The rows beyond n are zero again for the triangle that follows: infinities made them NaN.
  if (!upper && end == blocks) std::fill(panel + n * V * kLanes<T>, panel + blocks * step, T(0));
}

template <class T>
void solve(bool upper, int64_t n, int64_t known, int64_t begin, int64_t end, int vectors,
           const T* packed, T* panel) {
  if (vectors == 1) return solve_blocks<1>(upper, n, known, begin, end, packed, panel);
  if (vectors == 2) return solve_blocks<2>(upper, n, known, begin, end, packed, panel);
  if constexpr (kVectors > 2) solve_blocks<3>(upper, n, known, begin, end, packed, panel);
}

template <class T>
T dot(int64_t n, const T* a, const T* x) {
  constexpr int64_t W = kLanes<T>, kSums = 4;  // sums hide how long an addition takes
  Vector<T> sum[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * W <= n; i += kSums * W)
#pragma GCC unroll 4
    for (int64_t s = 0; s < kSums; ++s) sum[s] += load(a + i + s * W) * load(x + i + s * W);
  for (; i + W <= n; i += W) sum[0] += load(a + i) * load(x + i);
  const Vector<T> lanes = sum[0] + sum[1] + (sum[2] + sum[3]);
  T total(0);
  for (int64_t l = 0; l < W; ++l) total += lanes[l];
  for (; i < n; ++i) total += a[i] * x[i];
  return total;
}

template <class T>
void substitute(bool upper, bool unit, int64_t n, Strided<const T> a, T* x) {
  const bool by_columns = a.row == 1;
  for (int64_t known = 0; known < n; ++known) {
    const int64_t i = upper ? n - 1 - known : known;
    const T* const row = a.data + i * a.row;
    if (!by_columns) {
      const int64_t first = upper ? i + 1 : 0;
      if (a.column == 1) x[i] -= dot(known, row + first, x + first);
      else
        for (int64_t k = first; k < first + known; ++k) x[i] -= row[k * a.column] * x[k];
    }
    if (!unit) x[i] /= row[i * a.column];
    if (by_columns) {
      const T* const column = a.data + i * a.column;
      const T solved = x[i];
      for (int64_t k = upper ? 0 : i + 1; k < (upper ? i : n); ++k) x[k] -= column[k] * solved;
    }
  }
}

template <class T>
void read(int64_t n, int64_t count, Strided<const T> b, int vectors, T* panel) {
  const int64_t width = int64_t(vectors) * kLanes<T>, rows = blocks_of(n) * kRows;
  if (count < width) std::memset(static_cast<void*>(panel), 0, size_t(n * width) * sizeof(T));
  std::memset(static_cast<void*>(panel + n * width), 0, size_t((rows - n) * width) * sizeof(T));
  if (b.column == 1) {
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(panel + i * width, b.data + i * b.row, size_t(count) * sizeof(T));
  } else if (b.row == 1) {
    turn_matrix<T>(panel, width, b.data, b.column, n, count);
  } else {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < count; ++j) panel[i * width + j] = b.data[i * b.row + j * b.column];
  }
}

template <class T>
void write(int64_t n, int64_t count, int vectors, const T* panel, Strided<T> x) {
  const int64_t width = int64_t(vectors) * kLanes<T>;
  if (x.column == 1) {
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(x.data + i * x.row, panel + i * width, size_t(count) * sizeof(T));
  } else if (x.row == 1) {
    turn_matrix<T>(x.data, x.column, panel, width, count, n);
  } else {
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = 0; i < n; ++i) x.data[i * x.row + j * x.column] = panel[i * width + j];
  }
}

template <class T>
constexpr TriangleTable<T> table() {
  return {kRows, kLanes<T>, kVectors, pack<T>, solve<T>, substitute<T>, read<T>, write<T>};
}

}  // namespace

const TriangleTable<float> triangles_float = table<float>();
const TriangleTable<double> triangles_double = table<double>();

}  // namespace facula::FACULA_ISA
