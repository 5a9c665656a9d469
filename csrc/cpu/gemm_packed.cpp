// Large products of float and double on all threads: b is packed once and shared, then pieces of c
// are dealt out. How c is cut depends on the number of threads, how sums are taken does not.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/cast.h"
#include "cpu/gemm_kernels.h"
#include "cpu/gemm_panels.h"

namespace facula {

namespace {

constexpr int64_t kPackedBytes = 8 << 20;  // of b at a time: stays in the last-level cache
constexpr int64_t kBlocksOfK = 8;          // packed at a time
constexpr int64_t kPackPanels = 8;         // of b in one go, at most
constexpr int64_t kFewPackedRows = 48;
constexpr double kTaskWork = 1 << 17;  // the least number of multiplications for a task

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

// b while it is packed: (block of k, panel, k, columns).
template <class T>
class PackedRight {
 public:
  PackedRight(const PanelTable<T>& t, int64_t deep, int64_t most_k, int64_t most_n)
      : table_(t),
        deep_(deep),
        bytes_(size_t(most_k) * size_t(ceil_div(most_n, t.columns) * t.columns) * sizeof(T)),
        data_(static_cast<T*>(host_allocate(bytes_))) {}
  PackedRight(const PackedRight&) = delete;
  PackedRight& operator=(const PackedRight&) = delete;
  ~PackedRight() { host_free(data_, bytes_); }

  void pack(const T* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n) {
    k_ = k;
    room_ = ceil_div(n, table_.columns) * table_.columns;
    const int64_t blocks = ceil_div(k, deep_), panels = ceil_div(n, table_.columns);
    const int64_t pieces = in_parallel_region() ? 1 : 2 * num_threads();
    const int64_t at_once = std::clamp<int64_t>(blocks * panels / pieces, 1, kPackPanels);
    const int64_t wide = at_once * table_.columns, groups = ceil_div(n, wide);
    const int64_t grain = std::max<int64_t>(1, 32768 / (std::min(k, deep_) * std::min(n, wide)));
    parallel_for(0, blocks * groups, grain, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t p = i / groups * deep_, j = i % groups * wide, depth = std::min(deep_, k - p);
        table_.pack(b + p * b_row + j * b_col, b_row, b_col, depth, std::min(wide, n - j),
                    data_ + p * room_ + j * depth);
      }
    });
  }
  // Column `column`, the first of a panel, in the block of k that starts at p.
  const T* at(int64_t p, int64_t column) const {
    return data_ + p * room_ + column * std::min(deep_, k_ - p);
  }
  int64_t deep() const { return deep_; }

 private:
  const PanelTable<T>& table_;
  int64_t deep_;
  size_t bytes_;
  T* data_;
  int64_t k_ = 0, room_ = 0;
};

// How c is cut: into pieces of whole register tiles, of which none has two more than another.
struct Cut {
  int64_t m, n, tile_rows, tile_columns, tiles_down, tiles_across, down, across;

  template <class T>
  Cut(const PanelTable<T>& t, int64_t rows, int64_t columns, int64_t k)
      : m(rows),
        n(columns),
        tile_rows(t.rows),
        tile_columns(t.columns),
        tiles_down(ceil_div(m, t.rows)),
        tiles_across(ceil_div(n, t.columns)) {
    const int threads = in_parallel_region() ? 1 : num_threads();
    const double work = double(m) * double(n) * double(k);
    const auto tasks = double(threads * t.tasks_per_thread);
    const int64_t wanted = threads == 1 ? 1 : int64_t(std::min(tasks, work / kTaskWork));
    // Rows of a are packed again for each column of pieces, so pieces are wide.
    down = std::max<int64_t>(1, std::min(wanted, tiles_down / t.tall_tiles));
    if (down > threads) down -= down % threads;
    across = std::clamp<int64_t>(wanted / down, 1, std::max<int64_t>(1, tiles_across / 4));
  }
  // Where a piece begins, and the one after the last ends.
  int64_t row(int64_t i) const { return std::min(m, i * tiles_down / down * tile_rows); }
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

template <class T>
void multiply(const PanelTable<T>& t, const Gemm& g, const T* a, const T* b, T* c, Bias<T> bias,
              PackedRight<T>& right, int64_t most_k, int64_t most_n) {
  for (int64_t j0 = 0; j0 < g.n; j0 += most_n) {
    const int64_t n = std::min(most_n, g.n - j0);
    for (int64_t k0 = 0; k0 < g.k; k0 += most_k) {
      const int64_t k = std::min(most_k, g.k - k0);
      right.pack(b + k0 * g.b_row + j0 * g.b_col, g.b_row, g.b_col, k, n);
      const Cut cut(t, g.m, n, k);
      parallel_for(0, cut.down * cut.across, 1, [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          const int64_t down = i / cut.across, across = i % cut.across;
          const int64_t row = cut.row(down), column = cut.column(across);
          for (int64_t p = 0; p < k; p += right.deep()) {
            PanelProduct<T> part = part_of(g, a, c, bias, row, j0 + column, k0 + p);
            part.m = cut.row(down + 1) - row;
            part.n = cut.column(across + 1) - column;
            part.k = std::min(right.deep(), k - p);
            part.b = right.at(p, column);
            t.multiply(part);
          }
        }
      });
    }
  }
}

// Whether a block of a stays in the second-level cache. Then c is cut into pieces of whole columns,
// so that no columns of b are used by two of them and each packs its own.
template <class T>
bool is_low(const PanelTable<T>& t, const Gemm& g, int64_t deep) {
  const int64_t bytes = g.m * std::min(deep, g.k) * int64_t(sizeof(T));
  return bytes <= (g.a_col == 1 ? t.low_bytes : t.low_bytes * 2 / 3);  // or it is packed often
}
template <class T>
void multiply_low(const PanelTable<T>& t, const Gemm& g, const T* a, const T* b, T* c, Bias<T> bias,
                  int64_t deep) {
  // Panels of a piece, which stay in the second-level cache; wider where a has to be packed too.
  const int64_t most_panels = g.a_col == 1 ? t.low_panels : 16, panels = ceil_div(g.n, t.columns);
  const double work = double(g.m) * double(g.n) * double(g.k);
  const int threads = in_parallel_region() ? 1 : num_threads();
  const double most_tasks = threads == 1 ? 1 : threads * t.tasks_per_thread;
  const auto tasks = int64_t(std::min(most_tasks, work / kTaskWork));
  const int64_t pieces = std::max(ceil_div(panels, most_panels), std::min(tasks, panels));
  const int64_t room = ceil_div(panels, pieces) * t.columns;
  const auto grain = std::max<int64_t>(1, int64_t(kTaskWork / (work / double(pieces))));
  parallel_for(0, pieces, grain, [&](int64_t i, int64_t end) {
    PackedRight<T> right(t, deep, deep, room);
    for (; i < end; ++i) {
      const int64_t column = i * panels / pieces * t.columns;
      const int64_t stop = std::min(g.n, (i + 1) * panels / pieces * t.columns);
      for (int64_t p = 0; p < g.k; p += deep) {
        PanelProduct<T> part = part_of(g, a, c, bias, 0, column, p);
        part.m = g.m, part.n = stop - column, part.k = std::min(deep, g.k - p);
        right.pack(b + p * g.b_row + column * g.b_col, g.b_row, g.b_col, part.k, part.n);
        part.b = right.at(0, 0);
        t.multiply(part);
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
  const int64_t deep = depth_of_blocks(t, g.k), most_k = std::min(g.k, kBlocksOfK * deep);
  const int64_t fitting = kPackedBytes / int64_t(sizeof(T)) / most_k / t.columns * t.columns;
  const int64_t most_n = std::min(g.n, fitting);
  auto run = [&](int64_t begin, int64_t end) {
    std::optional<PackedRight<T>> right;
    if (!is_low(t, g, deep)) right.emplace(t, deep, most_k, most_n);
    for (int64_t i = begin; i < end; ++i) {
      const T* a = static_cast<const T*>(g.a) + i * g.a_batch;
      const T* b = static_cast<const T*>(g.b) + i * g.b_batch;
      T* c = static_cast<T*>(g.c) + i * g.c_batch;
      if (right) multiply(t, g, a, b, c, bias, *right, most_k, most_n);
      else multiply_low(t, g, a, b, c, bias, deep);
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
  const size_t bytes = size_t(parts * size) * sizeof(T);
  T* const sums = static_cast<T*>(host_allocate(bytes));
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
  host_free(sums, bytes);
}

template <class T>
void cut_product(const Gemm& g) {
  const int64_t parts = parts_of_depth(g);
  if (parts == 1) return product<T>(g);
  // Where both matrices lie across k, the one with longer rows should be b, which is packed by
  // whole rows; so is a where several of its panels are packed at a time.
  const bool turn =
      g.m > g.n && g.a_row == 1 && g.b_col == 1 && !g.bias && table<T>()->left_panels == 1;
  deep_product<T>(turn ? transposed(g) : g, parts);
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
