// Large products of float and double on all threads: pieces of c are dealt out, and each thread
// packs what its pieces need of a and b. How c is cut depends on the number of threads, how sums
// are taken does not.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/host_array.h"
#include "core/thread_pool.h"
#include "core/thread_scratch.h"
#include "cpu/cast.h"
#include "cpu/gemm_kernels.h"
#include "cpu/gemm_panels.h"

namespace facula {

namespace {

constexpr int64_t kPackPanels = 8;        // of b in one go, at most
constexpr int64_t kPackedColumns = 1024;  // of b at a time, at most
constexpr int64_t kFewPackedRows = 48;
constexpr int64_t kFewTiles = 3;          // of rows, for which a copy of b does not pay
constexpr int64_t kNearBytes = 32 << 10;  // of b, which the nearest cache holds without a copy
constexpr double kTaskWork = 1 << 17;     // the least number of multiplications for a task
// From so many multiplications on a thread has several pieces, which lets the pool even out threads
// of different speed.
constexpr double kTurnWork = 1 << 28, kMostTurns = 8;
constexpr double kPackingCost = 8;  // of an element, in multiplications

template <class T>
const PanelTable<T>* table() {
#define FACULA_OF(isa)                                         \
  [] {                                                         \
    if constexpr (sizeof(T) == 4) return isa::panels_of_float; \
    else return isa::panels_of_double;                         \
  }()
#ifdef FACULA_X86
  static const PanelTable<T>* const tables[] = {FACULA_OF(baseline), FACULA_OF(v3), FACULA_OF(v4)};
  return tables[isa_level()];
#else
  return FACULA_OF(baseline);
#endif
#undef FACULA_OF
}

constexpr int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

// The depth of the blocks that k is cut into: nearly equal ones, since a shallow block has as much
// of c to read and write as a deep one. Depends on k alone, as how sums are rounded does.
template <class T>
int64_t depth_of_blocks(const PanelTable<T>& t, int64_t k) {
  constexpr int64_t unit = 8;
  return std::min(t.block_k, ceil_div(ceil_div(k, ceil_div(k, t.block_k)), unit) * unit);
}

// What is packed of both sides, in the memory of the thread: room for rows of a, and columns of b
// in a block of k, as (panel, k, columns).
template <class T>
class PackedSides {
 public:
  PackedSides(const PanelTable<T>& t, int64_t most_k, int64_t most_n)
      : table_(t),
        memory_(size_t(t.left_room + most_k * ceil_div(most_n, t.columns) * t.columns) *
                sizeof(T)) {}
  T* left() const { return static_cast<T*>(memory_.data()); }
  const T* pack(const T* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n) {
    T* const to = left() + table_.left_room;
    const int64_t wide = kPackPanels * table_.columns;
    for (int64_t j = 0; j < n; j += wide)
      table_.pack(b + j * b_col, b_row, b_col, k, std::min(wide, n - j), to + j * k);
    return to;
  }

 private:
  const PanelTable<T>& table_;
  ThreadScratch memory_;
};

// How c is cut into pieces, a thread for each, which packs what it needs of both sides: what one
// core has packed would be slow to read for the others.
struct Cut {
  int64_t m, n, tile_columns, tiles_across, down = 1, across = 1;

  template <class T>
  Cut(const PanelTable<T>& t, int64_t rows, int64_t columns, int64_t k)
      : m(rows), n(columns), tile_columns(t.columns), tiles_across(ceil_div(n, t.columns)) {
    const int64_t threads = in_parallel_region() ? 1 : num_threads();
    const double work = double(m) * double(n) * double(k);
    if (threads == 1 || work < 2 * kTaskWork) return;
    const auto turns = int64_t(std::clamp(work / double(threads) / kTurnWork, 1.0, kMostTurns));
    const auto wanted = int64_t(std::min(work / kTaskWork, double(threads * turns)));
    const int64_t most_down = std::min(wanted, std::max<int64_t>(1, m / t.rows));
    double least = HUGE_VAL;  // multiplications that one thread has time for
    for (const int64_t first : {int64_t(1), threads}) {
      for (int64_t i = first; i <= most_down; i *= 2) {
        const int64_t j = std::clamp<int64_t>(wanted / i, 1, tiles_across);
        const auto height = double(ceil_div(m, i));
        const auto width = double(ceil_div(tiles_across, j) * tile_columns);
        const double cost =
            double(ceil_div(i * j, threads)) * (height * width + kPackingCost * (height + width));
        if (cost < least) least = cost, down = i, across = j;
      }
    }
  }
  // Where a piece begins, and the one after the last ends.
  int64_t row(int64_t i) const { return i * m / down; }
  int64_t column(int64_t i) const { return std::min(n, i * tiles_across / across * tile_columns); }
};

template <class T>
struct Bias {
  const T* data;
  int64_t row, col;  // strides; one of them is 0
};

// A piece of c and the block of k from `p` on, of matrices that begin at a and c.
template <class T>
PanelProduct<T> part_of(const Gemm& g, const T* a, T* c, Bias<T> bias, int64_t row, int64_t column,
                        int64_t p) {
  PanelProduct<T> part;
  part.a = a + row * g.a_row + p * g.a_col;
  part.a_row = g.a_row, part.a_col = g.a_col;
  part.c = c + row * g.c_row + column * g.c_col;
  part.c_row = g.c_row, part.c_col = g.c_col;
  part.alpha = T(g.alpha_re);
  part.beta = p == 0 && !bias.data ? T(g.beta_re) : T(1);
  part.start = part.c, part.start_row = g.c_row, part.start_col = g.c_col;
  if (p == 0 && bias.data) {
    part.start = bias.data + row * bias.row + column * bias.col;
    part.start_row = bias.row, part.start_col = bias.col;
  }
  return part;
}

// Whether b is read where it lies: not often enough to pay for a packed copy, or small enough to
// stay in the nearest cache without one.
template <class T>
bool right_in_place(const PanelTable<T>& t, const Gemm& g, int64_t rows) {
  if (g.b_col != 1 || g.n % t.least_columns != 0) return false;
  return rows <= kFewTiles * t.rows || g.k * std::abs(g.b_row) * int64_t(sizeof(T)) <= kNearBytes;
}

template <class T>
void multiply(const PanelTable<T>& t, const Gemm& g, const T* a, const T* b, T* c, Bias<T> bias) {
  const int64_t deep = depth_of_blocks(t, g.k);
  const Cut cut(t, g.m, g.n, g.k);
  parallel_for(0, cut.down * cut.across, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t down = i / cut.across, across = i % cut.across;
      const int64_t row = cut.row(down), rows = cut.row(down + 1) - row;
      const int64_t first = cut.column(across), stop = cut.column(across + 1);
      const int64_t chunks = ceil_div(stop - first, kPackedColumns);
      const int64_t wide = ceil_div(ceil_div(stop - first, chunks), t.columns) * t.columns;
      const bool in_place = right_in_place(t, g, rows);
      PackedSides<T> sides(t, in_place ? 0 : std::min(deep, g.k), wide);
      for (int64_t column = first; column < stop; column += wide) {
        for (int64_t p = 0; p < g.k; p += deep) {
          PanelProduct<T> part = part_of(g, a, c, bias, row, column, p);
          part.m = rows, part.n = std::min(wide, stop - column), part.k = std::min(deep, g.k - p);
          part.b = b + p * g.b_row + column * g.b_col;
          part.left = sides.left();
          if (in_place) {
            part.b_row = g.b_row, part.b_panel = t.columns;
          } else {
            part.b = sides.pack(part.b, g.b_row, g.b_col, part.k, part.n);
            part.b_row = t.columns, part.b_panel = part.k * t.columns;
          }
          t.multiply(part);
        }
      }
    }
  });
}

// With few rows, b is read where it lies rather than packed: it takes the place of a.
Gemm with_few_columns(const Gemm& g) {
  const bool few = g.m <= kFewPackedRows && g.m < g.n && g.b_row == 1 && g.b_col != 1;
  return few ? transposed(g) : g;
}

template <class T>
void product(const Gemm& problem) {
  const Gemm g = with_few_columns(problem);
  const int64_t along = g.m == problem.m ? 0 : 1;
  const Bias<T> bias{static_cast<const T*>(g.bias), along, 1 - along};
  const PanelTable<T>& t = *table<T>();
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      multiply(t, g, static_cast<const T*>(g.a) + i * g.a_batch,
               static_cast<const T*>(g.b) + i * g.b_batch, static_cast<T*>(g.c) + i * g.c_batch,
               bias);
    }
  };
  const double work = double(g.m) * double(g.n) * double(g.k);
  if (g.batch >= 4 * num_threads() || (g.batch > 1 && work < 16 * kTaskWork)) {
    // a thread computes whole matrices
    parallel_for(0, g.batch, std::max<int64_t>(1, int64_t(kTaskWork / work)), run);
  } else {
    run(0, g.batch);
  }
}

// Parts that the depth of a product with a small result is cut into: c has too few pieces for
// threads. Depends on the shape alone, since it decides how sums are rounded.
int64_t parts_of_depth(const Gemm& g) {
  constexpr int64_t kSmallResult = 128 * 128, kDepth = 512, kMostParts = 8;
  if (g.batch > 1 || g.m * g.n > kSmallResult) return 1;
  const int64_t parts = std::min(g.k / kDepth, kMostParts);
  return parts < 4 ? 1 : parts;
}

template <class T>
void deep_product(const Gemm& g, int64_t parts) {
  const PanelTable<T>& t = *table<T>();
  const int64_t size = g.m * g.n, deep = ceil_div(ceil_div(g.k, parts), 8) * 8;
  const HostArray<T> memory(parts * size);
  T* const sums = memory.data();
  parallel_for(0, parts, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      Gemm part = g;
      part.a = static_cast<const T*>(g.a) + i * deep * g.a_col;
      part.b = static_cast<const T*>(g.b) + i * deep * g.b_row;
      part.k = std::min(deep, g.k - i * deep);
      part.c = sums + i * size, part.c_row = g.n, part.c_col = 1;
      part.alpha_re = 1, part.beta_re = 0, part.bias = nullptr;
      product<T>(part);
    }
  });
  const T alpha = T(g.alpha_re), beta = T(g.beta_re);
  const T* const bias = static_cast<const T*>(g.bias);
  parallel_for(0, g.m, std::max<int64_t>(1, 8192 / (g.n * parts)), [&](int64_t row, int64_t end) {
    t.add(sums + row * g.n, parts, size, (end - row) * g.n);
    for (; row < end; ++row) {
      T* c = static_cast<T*>(g.c) + row * g.c_row;
      for (int64_t j = 0; j < g.n; ++j, c += g.c_col) {
        const T sum = alpha * sums[row * g.n + j];
        *c = bias ? sum + bias[j] : beta != T(0) ? sum + beta * *c : sum;
      }
    }
  });
}

template <class T>
void cut_product(const Gemm& g) {
  const int64_t parts = parts_of_depth(g);
  parts == 1 ? product<T>(g) : deep_product<T>(g, parts);
}

}  // namespace

bool packed_product_available(DType dtype) {
  return (dtype == DType::Float32 && table<float>()) ||
         (dtype == DType::Float64 && table<double>());
}

void packed_product(const Gemm& g) {
  g.dtype == DType::Float32 ? cut_product<float>(g) : cut_product<double>(g);
}

}  // namespace facula
