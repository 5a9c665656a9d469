// Products of matrices that stay packed over many uses, by the register tiles of conv_tile.h. Each
// ISA's files have their own copy: include it before anything else.
#pragma once
#include "cpu/conv_tile.h"

#include "core/host_allocator.h"
#include "cpu/turn_registers.h"

namespace facula::FACULA_ISA {
namespace {

template <class A>
constexpr int64_t padded(int64_t n) {
  return (n + kLanes<A> - 1) / kLanes<A> * kLanes<A>;
}
template <class A>
constexpr int64_t panels(int64_t n) {
  return (n + kTileColumns<A> - 1) / kTileColumns<A>;
}

// Memory for one part of a problem, cut into pieces that start on cache lines.
template <class A>
class Scratch {
 public:
  explicit Scratch(int64_t elements)
      : bytes_(size_t(elements) * sizeof(A)), block_(static_cast<A*>(host_allocate(bytes_))) {
    next_ = block_;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { host_free(block_, bytes_); }
  static constexpr int64_t room(int64_t elements) { return (elements + 15) / 16 * 16; }
  A* take(int64_t elements) {
    A* piece = next_;
    next_ += room(elements);
    return piece;
  }

 private:
  size_t bytes_;
  A *block_, *next_;
};

// Rows times `scale`, `room` apart, with zeros behind their end.
template <class S, class A>
void copy_rows(const S* from, int64_t apart, int64_t rows, int64_t width, A scale, A* to,
               int64_t room) {
  for (int64_t i = 0; i < rows; ++i, from += apart, to += room) {
    int64_t j = 0;
    if constexpr (kLoadable<S>)
      for (; j + kLanes<A> <= width; j += kLanes<A>) store(to + j, scale * load_wide(from + j));
    for (; j < width; ++j) to[j] = scale * A(from[j]);
    for (; j < room; ++j) to[j] = 0;
  }
}

#if defined(__AVX512F__)
// One panel of pack_transposed, by squares of 16 x 16.
template <class S>
void pack_turned(const S* from, int64_t apart, int64_t rows, int64_t width, float* to) {
  constexpr int64_t kSide = kLanes<float>, kWide = kTileColumns<float>;
  for (int64_t r = 0; r < kWide; r += kSide)
    for (int64_t j = 0; j < width; j += kSide) {
      const int64_t columns = width - j < kSide ? width - j : kSide;
      __m512i square[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        S few[kSide] = {};
        const S* row = from + (r + i) * apart + j;
        if (r + i < rows && columns < kSide) {
          for (int64_t c = 0; c < columns; ++c) few[c] = row[c];
          row = few;
        }
        square[i] = r + i < rows ? __m512i(load_wide(row)) : _mm512_setzero_si512();
      }
      turn_registers(square);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        if (i < columns) _mm512_storeu_si512(to + (j + i) * kWide + r, square[i]);
    }
}
#endif

// The transpose as panels of kTileColumns rows each, (panel, width, kTileColumns); rows beyond the
// end are zero.
template <class S, class A>
void pack_transposed(const S* from, int64_t apart, int64_t rows, int64_t width, A* to) {
  constexpr int64_t kWide = kTileColumns<A>;
  for (int64_t r = 0; r < rows; r += kWide, to += width * kWide) {
    const int64_t n = rows - r < kWide ? rows - r : kWide;
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<A, float> && kLoadable<S>) {
      pack_turned(from + r * apart, apart, n, width, to);
      continue;
    }
#endif
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = n; i < kWide; ++i) to[j * kWide + i] = 0;
    for (int64_t j0 = 0; j0 < width; j0 += 16) {  // a few lines of both sides at a time
      const int64_t j1 = width - j0 < 16 ? width : j0 + 16;
      for (int64_t i = 0; i < n; ++i) {
        const S* row = from + (r + i) * apart;
        for (int64_t j = j0; j < j1; ++j) to[j * kWide + i] = A(row[j]);
      }
    }
  }
}

// Rows of tiles of equal height, or nearly: a last one of few rows takes as long as a whole one.
inline int64_t rows_of_tiles(int64_t m) {
  const int64_t tiles = (m + kTileRows - 1) / kTileRows;
  return tiles > 1 ? (m + tiles - 1) / tiles : kTileRows;
}

// c = a @ panels + start, (m, columns); rows of c and start have room for whole vectors.
template <class A>
void times_panels(const A* a, int64_t a_row, int64_t m, int64_t k, const A* panel, int64_t columns,
                  A* c, int64_t c_row, const A* start = nullptr, int64_t start_row = 0) {
  const int64_t height = rows_of_tiles(m);
  for (int64_t j = 0; j < columns; j += kTileColumns<A>, panel += k * kTileColumns<A>) {
    const int vectors = columns - j > kLanes<A> ? 2 : 1;
    for (int64_t i = 0; i < m; i += height) {
      const int64_t rows = m - i < height ? m - i : height;
      conv_tile<A>(vectors, rows)(k, a + i * a_row, a_row, 1, panel, kTileColumns<A>,
                                  c + i * c_row + j, c_row,
                                  start ? start + i * start_row + j : nullptr, start_row);
    }
  }
}

// c += a @ b, or c = a @ b; rows of b and c are whole vectors, `width` elements of them.
template <class A>
void add_product(const A* a, int64_t a_row, int64_t a_col, int64_t m, int64_t k, const A* b,
                 int64_t b_row, int64_t width, A* c, int64_t c_row, bool add = true) {
  const int64_t height = rows_of_tiles(m);
  for (int64_t i = 0; i < m; i += height) {
    const int64_t rows = m - i < height ? m - i : height;
    for (int64_t j = 0; j < width; j += kTileColumns<A>) {
      const int vectors = width - j > kLanes<A> ? 2 : 1;
      A* out = c + i * c_row + j;
      conv_tile<A>(vectors, rows)(k, a + i * a_row, a_row, a_col, b + j, b_row, out, c_row,
                                  add ? out : nullptr, c_row);
    }
  }
}

}  // namespace
}  // namespace facula::FACULA_ISA
