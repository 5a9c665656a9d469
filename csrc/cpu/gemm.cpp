// Chooses how a product is computed and cuts it into parts for the thread pool:
//   many tiny matrices            -> one in each lane (gemm_micro_isa.cpp)
//   few rows or columns           -> gemm_vector_isa.cpp; one long dot product in parts
//   float and double, large       -> packed panels, on CPUs with AVX2 or AVX-512 (gemm_packed.cpp)
//   the same elsewhere, complex   -> OpenBLAS, single-threaded, on each part (gemm_blas.cpp)
//   bfloat16 and half, by tiles   -> AMX, on CPUs that have it (gemm_amx.cpp)
//   bfloat16 on CPUs that have it -> AVX512_BF16 (gemm_bf16.cpp)
//   everything else               -> register tiles in the accumulator type (gemm_micro_isa.cpp)
// Results do not depend on the number of threads.
#include "cpu/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/cast.h"
#include "cpu/gemm_kernels.h"

namespace facula {

Gemm transposed(const Gemm& g) {
  Gemm t = g;
  std::swap(t.m, t.n);
  t.a = g.b, t.a_batch = g.b_batch, t.a_row = g.b_col, t.a_col = g.b_row;
  t.b = g.a, t.b_batch = g.a_batch, t.b_row = g.a_col, t.b_col = g.a_row;
  std::swap(t.c_row, t.c_col);
  return t;
}

namespace {

// Multiplications below which waking a thread costs more than it saves, and the least for a part.
constexpr double kParallelWork = 1 << 19;
constexpr double kPartWork = 1 << 17;
constexpr double kSmallWork = 48 * 48 * 48;  // up to this, preparations cost more than they save
constexpr int64_t kVectorPart = 1 << 15;     // matrix elements per part of a matrix-vector product
constexpr int64_t kStretch = 256;            // columns of such a part, where there are enough
constexpr int64_t kDotPart = 1 << 16;        // elements per partial dot; fixed, so sums never vary
constexpr int kPartsPerThread = 4;           // lets the pool even out threads of different speed
constexpr int64_t kPartSide = 256;           // rows and columns of a part worth its packing
constexpr int64_t kBlasParts = 16;           // of a product by OpenBLAS, on any number of threads

const GemmTable& products() {
#ifdef FACULA_X86
  static const GemmTable* const tables[] = {baseline::gemm_table, v3::gemm_table, v4::gemm_table};
  return *tables[isa_level()];
#else
  return *baseline::gemm_table;
#endif
}

const GemmVectorTable& vector_products() {
#ifdef FACULA_X86
  static const GemmVectorTable* const tables[] = {baseline::gemm_vector_table,
                                                  v3::gemm_vector_table, v4::gemm_vector_table};
  return *tables[isa_level()];
#else
  return *baseline::gemm_vector_table;
#endif
}

const void* advance(const Gemm& g, const void* p, int64_t elements) {
  return static_cast<const char*>(p) + elements * int64_t(item_size(g.dtype));
}
void* advance(const Gemm& g, void* p, int64_t elements) {
  return static_cast<char*>(p) + elements * int64_t(item_size(g.dtype));
}

// Rows [row, row + rows) and columns [column, column + columns) of matrices [first, first + count).
Gemm part_of(const Gemm& g, int64_t first, int64_t count, int64_t row, int64_t rows, int64_t column,
             int64_t columns) {
  Gemm part = g;
  part.batch = count;
  part.m = rows;
  part.n = columns;
  part.a = advance(g, g.a, first * g.a_batch + row * g.a_row);
  part.b = advance(g, g.b, first * g.b_batch + column * g.b_col);
  part.c = advance(g, g.c, first * g.c_batch + row * g.c_row + column * g.c_col);
  if (g.bias) part.bias = advance(g, g.bias, column);
  return part;
}

// A batch that shares one operand is one product with more rows (or columns).
Gemm with_batch_merged(Gemm g) {
  if (g.batch == 1) return g;
  if (g.b_batch == 0) {
    if (g.m == 1) g.a_row = g.a_batch, g.c_row = g.c_batch;
    if (g.a_batch == g.m * g.a_row && g.c_batch == g.m * g.c_row) g.m *= g.batch, g.batch = 1;
  } else if (g.a_batch == 0) {
    if (g.n == 1) g.b_col = g.b_batch, g.c_col = g.c_batch;
    if (g.b_batch == g.n * g.b_col && g.c_batch == g.n * g.c_col) g.n *= g.batch, g.batch = 1;
  }
  return g;
}

template <class T>
void scale(const Gemm& g, T beta) {
  const bool clear = g.beta_re == 0 && g.beta_im == 0;
  for (int64_t i = 0; i < g.batch; ++i) {
    for (int64_t r = 0; r < g.m; ++r) {
      T* c = static_cast<T*>(g.c) + i * g.c_batch + r * g.c_row;
      for (int64_t j = 0; j < g.n; ++j) {
        T& x = c[j * g.c_col];
        if constexpr (std::is_integral_v<T>) {
          x = T(uint64_t(x) * uint64_t(beta));
        } else {
          x = clear ? T(0) : T(x * beta);
        }
      }
    }
  }
}

// c = beta c, for products over nothing.
void scale(const Gemm& g) {
  dispatch_dtype(g.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) {
      using R = real_of_t<T>;
      scale<T>(g, T(R(g.beta_re), R(g.beta_im)));
    } else {
      scale<T>(g, convert<T>(g.beta_re));
    }
  });
}

// Calls run(part) for parts that cover g, on several threads when there is enough to do: about
// `wanted` parts, or `least` where more would become so small that packing them costs too much.
// Tiles have multiples of 12 rows and 64 columns, as register tiles have.
template <class F>
void for_each_part(const Gemm& g, int64_t least, int64_t wanted, F run) {
  const double work = double(g.m) * double(g.n) * double(g.k);
  if (work * double(g.batch) < kParallelWork || wanted == 1) {
    run(g);
    return;
  }
  int64_t rows = g.m, columns = g.n, down = 1, across = 1;
  while (g.batch * down * across < wanted && work / double(down * across) > 2 * kPartWork) {
    if (g.batch * down * across >= least && rows <= kPartSide && columns <= kPartSide) break;
    // Columns divide more evenly than rows.
    const bool by_rows = columns <= 64 || (columns < 2 * kPartSide && rows > columns);
    if (by_rows && rows <= 12) break;
    if (by_rows) rows = (rows / 2 + 11) / 12 * 12;
    else columns = (columns / 2 + 63) / 64 * 64;
    down = (g.m + rows - 1) / rows;
    across = (g.n + columns - 1) / columns;
  }
  const int64_t tiles = down * across;
  if (tiles == 1) {
    const int64_t grain = std::max<int64_t>(1, int64_t(kPartWork / work));
    parallel_for(0, g.batch, grain,
                 [&](int64_t b, int64_t e) { run(part_of(g, b, e - b, 0, g.m, 0, g.n)); });
    return;
  }
  parallel_for(0, g.batch * tiles, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) {
      const int64_t row = b % tiles / across * rows, column = b % tiles % across * columns;
      run(part_of(g, b / tiles, 1, row, std::min(rows, g.m - row), column,
                  std::min(columns, g.n - column)));
    }
  });
}

// Parts for functions that round alike however a matrix is cut.
template <class F>
void for_each_part(const Gemm& g, F run) {
  const int threads = in_parallel_region() ? 1 : num_threads();
  for_each_part(g, threads, threads == 1 ? 1 : int64_t(threads) * kPartsPerThread, run);
}

// OpenBLAS rounds by the shape of a part, so that shape must not depend on the number of threads.
void for_each_blas_part(const Gemm& g, GemmFunction run) {
  for_each_part(g, kBlasParts, kBlasParts, run);
}

// A few long dot products: each is cut, and the sums of its parts are added in order.
template <class T>
void long_dots(const Gemm& g) {
  using A = std::conditional_t<std::is_integral_v<T>,
                               std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>,
                               std::conditional_t<std::is_same_v<T, double>, double, float>>;
  const int64_t parts = (g.k - 1) / kDotPart + 1, per_matrix = g.m * g.n;
  const size_t bytes = size_t(g.batch * per_matrix * parts) * sizeof(A);
  A* const sums = static_cast<A*>(host_allocate(bytes));
  const GemmFunction run = vector_products().partial_dot[int(g.dtype)];
  auto element = [&](int64_t dot) {  // the product that makes one element of c
    const int64_t at = dot % per_matrix;
    return part_of(g, dot / per_matrix, 1, at / g.n, 1, at % g.n, 1);
  };
  parallel_for(0, g.batch * per_matrix * parts, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) {
      Gemm part = element(b / parts);
      const int64_t from = b % parts * kDotPart;
      part.a = advance(g, part.a, from * g.a_col);
      part.b = advance(g, part.b, from * g.b_row);
      part.k = std::min(kDotPart, g.k - from);
      part.c = sums + b;
      run(part);
    }
  });
  const A alpha = std::is_integral_v<A> ? A(int64_t(g.alpha_re)) : A(g.alpha_re);
  const A beta = std::is_integral_v<A> ? A(int64_t(g.beta_re)) : A(g.beta_re);
  for (int64_t dot = 0; dot < g.batch * per_matrix; ++dot) {
    A sum = 0;
    for (int64_t i = 0; i < parts; ++i) sum += sums[dot * parts + i];
    T& c = *static_cast<T*>(element(dot).c);
    c = T(beta == A(0) ? alpha * sum : alpha * sum + beta * A(c));
  }
  host_free(sums, bytes);
}

void few_rows(const Gemm& g) {  // m <= kFewRows
  const GemmFunction run = vector_products().few_rows[int(g.dtype)];
  const double elements = double(g.batch) * double(g.n) * double(g.k);  // of b
  if (g.batch * g.m * g.n <= 8 && g.k >= 2 * kDotPart) {
    dispatch_dtype(g.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!is_complex_v<T> && !std::is_same_v<T, bool>) long_dots<T>(g);
    });
  } else if (elements < 2.0 * kVectorPart) {
    run(g);
  } else {
    // Which columns are taken together decides how they are rounded: parts begin where they would
    // with any number of threads, and a last column is not left alone: it would be taken as a dot.
    const bool dots = std::abs(g.b_row) < std::abs(g.b_col);
    const int64_t unit = dots ? kColumnsOfDots : kColumnsOfRows;
    const int64_t blocks = std::max<int64_t>(1, (g.n + unit - 2) / unit);
    int64_t grain = std::max<int64_t>(1, kVectorPart / g.k / std::min(g.n, unit));
    if (!dots) {  // rows are read in stretches that are worth fetching ahead, equal ones
      const int64_t all = g.batch * blocks, threads = num_threads();
      const int64_t turns = std::max<int64_t>(1, all / (threads * kStretch / unit));
      grain = std::max(grain, (all - 1) / (threads * turns) + 1);
    }
    parallel_for(0, g.batch * blocks, grain, [&](int64_t b, int64_t e) {
      while (b < e) {
        const int64_t i = b / blocks, first = b % blocks;
        if (first == 0 && e - b >= blocks) {  // whole matrices
          const int64_t count = (e - b) / blocks;
          run(part_of(g, i, count, 0, g.m, 0, g.n));
          b += count * blocks;
        } else {
          const int64_t count = std::min(e - b, blocks - first), column = first * unit;
          const int64_t columns = first + count == blocks ? g.n - column : count * unit;
          run(part_of(g, i, 1, 0, g.m, column, columns));
          b += count;
        }
      }
    });
  }
}

bool is_large(const Gemm& g) {
  return double(g.m) * double(g.n) * double(g.k) > kSmallWork;
}

// Whether the product is bound by reading b: then register tiles and packed copies do not pay.
bool suits_few_rows(const Gemm& g) {
  const bool dots = g.b_row == 1 && g.b_col != 1;
  int64_t most = kFewRows;
  if (dots && is_large(g) && packed_product_available(g.dtype)) most = 4;
  if (g.dtype == DType::BFloat16 && bf16_product_available()) most = 2;
  return g.m == 1 || (g.m <= most && g.m < g.n && (g.k * g.n >= 16384 || (dots && g.k >= 32)));
}

// Batches of matrices so small that what surrounds a product would cost more than the product.
bool is_tiny(const Gemm& g) {
  constexpr int64_t kLeastBatch = 8, kMostWork = 512, kMostSide = 16;
  static_assert(kMostSide * kMostSide <= kTinyElements);
  const bool vector = g.m == 1 || g.n == 1;
  return g.batch >= kLeastBatch && std::max({g.m, g.n, g.k}) <= kMostSide &&
         (vector || g.m * g.n * g.k <= kMostWork) && products().tiny[int(g.dtype)];
}

enum class Way { Tiny, FewRows, FewColumns, Packed, Blas, Amx, BFloat16, Tiles };

Way way_of(const Gemm& g) {
  if (is_complex(g.dtype)) return Way::Blas;
  if (is_tiny(g)) return Way::Tiny;
  if (suits_few_rows(g)) return Way::FewRows;
  if (suits_few_rows(transposed(g))) return Way::FewColumns;
  if (is_large(g)) {
    if (packed_product_available(g.dtype)) return Way::Packed;
    if (g.dtype == DType::Float32 || g.dtype == DType::Float64) return Way::Blas;
  }
  if (suits_amx(g)) return Way::Amx;
  return g.dtype == DType::BFloat16 && bf16_product_available() ? Way::BFloat16 : Way::Tiles;
}

// The same sum, with the bias as what c holds.
Gemm with_bias_in_c(Gemm g) {
  const size_t item = item_size(g.dtype);
  parallel_for(0, g.m, std::max<int64_t>(1, kVectorPart / g.n), [&](int64_t row, int64_t end) {
    for (; row < end; ++row) {
      char* c = static_cast<char*>(advance(g, g.c, row * g.c_row));
      if (g.c_col == 1) {
        std::memcpy(c, g.bias, size_t(g.n) * item);
      } else {
        for (int64_t j = 0; j < g.n; ++j) {
          std::memcpy(c + j * g.c_col * int64_t(item), advance(g, g.bias, j), item);
        }
      }
    }
  });
  g.bias = nullptr;
  g.beta_re = 1;
  return g;
}

}  // namespace

void gemm_in_floats(const Gemm& g, float* sums, int64_t apart) {
  if (amx_available(g.dtype)) amx_product(g, sums, apart);
  else bf16_sums(g, sums, apart);
}

void gemm(const Gemm& problem) {
  if (problem.batch <= 0 || problem.m <= 0 || problem.n <= 0) return;
  if (problem.dtype == DType::Bool || problem.dtype >= DType::Count) {
    throw std::invalid_argument(std::string("gemm: no product of dtype ") +
                                dtype_name(problem.dtype));
  }
  const bool nothing =
      problem.k <= 0 || (problem.alpha_re == 0 && problem.alpha_im == 0);  // to add to c
  Gemm g = with_batch_merged(problem);
  const Way way = nothing ? Way::Tiles : way_of(g);
  const bool adds_bias = way == Way::Packed || way == Way::Amx || way == Way::BFloat16;
  if (g.bias && !adds_bias) g = with_bias_in_c(g);
  if (nothing) return scale(g);
  switch (way) {
    case Way::Tiny: return for_each_part(g, products().tiny[int(g.dtype)]);
    case Way::FewRows: return few_rows(g);
    case Way::FewColumns: return few_rows(transposed(g));
    case Way::Packed: return packed_product(g);
    case Way::Blas: return blas_product(g, for_each_blas_part);
    case Way::Amx: return amx_product(g);
    case Way::BFloat16: return for_each_part(g, bf16_product);
    case Way::Tiles: return for_each_part(g, products().product[int(g.dtype)]);
  }
}

}  // namespace facula
