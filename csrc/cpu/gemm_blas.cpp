// Products by OpenBLAS. It addresses a matrix whose rows or columns are contiguous; other operands
// are first copied.
#include <algorithm>
#include <climits>
#include <utility>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace {

// A copy of `batch` matrices that lives as long as the product.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { host_free(block_, bytes_); }
  void* allocate(size_t bytes) {
    block_ = host_allocate(bytes);
    bytes_ = bytes;
    return block_;
  }

 private:
  void* block_ = nullptr;
  size_t bytes_ = 0;
};

struct Strides {
  int64_t batch, row, column;
};

template <class Word>
void copy_rows(char* to, Strides ts, const char* from, Strides fs, int64_t rows, int64_t columns,
               int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t matrix = i / rows, row = i % rows;
    Word* out = reinterpret_cast<Word*>(to) + matrix * ts.batch + row * ts.row;
    const Word* in = reinterpret_cast<const Word*>(from) + matrix * fs.batch + row * fs.row;
    for (int64_t j = 0; j < columns; ++j) out[j * ts.column] = in[j * fs.column];
  }
}

struct Word16 {
  uint64_t low, high;
};

void copy(void* to, Strides ts, const void* from, Strides fs, int64_t batch, int64_t rows,
          int64_t columns, size_t item) {
  const auto work = item == 4   ? copy_rows<uint32_t>
                    : item == 8 ? copy_rows<uint64_t>
                                : copy_rows<Word16>;
  parallel_for(0, batch * rows, std::max<int64_t>(1, 16384 / columns), [&](int64_t b, int64_t e) {
    work(static_cast<char*>(to), ts, static_cast<const char*>(from), fs, rows, columns, b, e);
  });
}

// Whether `rows` rows of `columns` contiguous elements, `stride` apart, are a matrix to BLAS.
bool addressable(int64_t rows, int64_t columns, int64_t stride, int64_t step) {
  return (step == 1 || columns == 1) && (rows == 1 || (stride >= columns && stride <= INT_MAX));
}
int leading(int64_t rows, int64_t columns, int64_t stride) {
  return int(rows == 1 ? columns : stride);
}

// One operand of one call: which of its two directions is contiguous, and the distance of the
// other.
struct Side {
  BlasTranspose transpose;
  int distance;

  Side(int64_t rows, int64_t columns, int64_t row, int64_t column) {
    const bool by_rows = addressable(rows, columns, row, column);
    transpose = by_rows ? BlasTranspose::No : BlasTranspose::Yes;
    distance = by_rows ? leading(rows, columns, row) : leading(columns, rows, column);
  }
};

bool usable(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return addressable(rows, columns, row, column) || addressable(columns, rows, column, row);
}

template <class T>
void multiply(const Gemm& g, const void* a, Side left, const void* b, Side right, void* c, int ldc,
              double beta_re, double beta_im) {
  const int m = int(g.m), n = int(g.n), k = int(g.k);
  constexpr BlasOrder order = BlasOrder::RowMajor;
  if constexpr (is_complex_v<T>) {
    using R = real_of_t<T>;
    const T alpha(R(g.alpha_re), R(g.alpha_im)), beta{R(beta_re), R(beta_im)};
    const auto call = sizeof(R) == 4 ? blas().cgemm : blas().zgemm;
    call(order, left.transpose, right.transpose, m, n, k, &alpha, a, left.distance, b,
         right.distance, &beta, c, ldc);
  } else {
    const auto call = [] {
      if constexpr (sizeof(T) == 4) return blas().sgemm;
      else return blas().dgemm;
    }();
    call(order, left.transpose, right.transpose, m, n, k, T(g.alpha_re), static_cast<const T*>(a),
         left.distance, static_cast<const T*>(b), right.distance, T(beta_re), static_cast<T*>(c),
         ldc);
  }
}

// Every operand is addressable and rows of c are contiguous. Sizes beyond int are cut.
template <class T>
void run(const Gemm& g) {
  constexpr int64_t kMost = int64_t(1) << 30;
  const Side left(g.m, g.k, g.a_row, g.a_col), right(g.k, g.n, g.b_row, g.b_col);
  const int ldc = leading(g.m, g.n, g.c_row);
  for (int64_t i = 0; i < g.batch; ++i) {
    const T* a = static_cast<const T*>(g.a) + i * g.a_batch;
    const T* b = static_cast<const T*>(g.b) + i * g.b_batch;
    T* c = static_cast<T*>(g.c) + i * g.c_batch;
    for (int64_t row = 0; row < g.m; row += kMost) {
      for (int64_t column = 0; column < g.n; column += kMost) {
        for (int64_t p = 0; p < g.k; p += kMost) {
          Gemm part = g;
          part.m = std::min(kMost, g.m - row);
          part.n = std::min(kMost, g.n - column);
          part.k = std::min(kMost, g.k - p);
          multiply<T>(part, a + row * g.a_row + p * g.a_col, left,
                      b + p * g.b_row + column * g.b_col, right, c + row * g.c_row + column, ldc,
                      p == 0 ? g.beta_re : 1, p == 0 ? g.beta_im : 0);
        }
      }
    }
  }
}

GemmFunction run_of(DType d) {
  switch (d) {
    case DType::Float32: return run<float>;
    case DType::Float64: return run<double>;
    case DType::Complex64: return run<Complex<float>>;
    default: return run<Complex<double>>;
  }
}

// Replaces an operand by a contiguous copy when BLAS cannot address it.
void make_usable(const void*& data, Strides& s, int64_t batch, int64_t rows, int64_t columns,
                 size_t item, Scratch& scratch) {
  if (usable(rows, columns, s.row, s.column)) return;
  const int64_t copies = s.batch == 0 ? 1 : batch;
  void* block = scratch.allocate(size_t(copies) * size_t(rows) * size_t(columns) * item);
  const Strides contiguous{s.batch == 0 ? 0 : rows * columns, columns, 1};
  copy(block, contiguous, data, s, copies, rows, columns, item);
  data = block;
  s = contiguous;
}

}  // namespace

void blas_product(const Gemm& problem, void (*share)(const Gemm&, GemmFunction)) {
  Gemm g = problem;
  const size_t item = item_size(g.dtype);
  if (!addressable(g.m, g.n, g.c_row, g.c_col) && addressable(g.n, g.m, g.c_col, g.c_row)) {
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.a_batch, g.b_batch);
    g.a_row = problem.b_col, g.a_col = problem.b_row;
    g.b_row = problem.a_col, g.b_col = problem.a_row;
    std::swap(g.c_row, g.c_col);
  }
  Scratch a_copy, b_copy, c_copy;
  Strides a{g.a_batch, g.a_row, g.a_col}, b{g.b_batch, g.b_row, g.b_col};
  make_usable(g.a, a, g.batch, g.m, g.k, item, a_copy);
  make_usable(g.b, b, g.batch, g.k, g.n, item, b_copy);
  g.a_batch = a.batch, g.a_row = a.row, g.a_col = a.column;
  g.b_batch = b.batch, g.b_row = b.row, g.b_col = b.column;

  const GemmFunction function = run_of(g.dtype);
  if (addressable(g.m, g.n, g.c_row, g.c_col)) return share(g, function);
  const Strides c{g.c_batch, g.c_row, g.c_col}, contiguous{g.m * g.n, g.n, 1};
  void* const result = g.c;
  g.c = c_copy.allocate(size_t(g.batch) * size_t(g.m) * size_t(g.n) * item);
  g.c_batch = contiguous.batch, g.c_row = contiguous.row, g.c_col = contiguous.column;
  if (g.beta_re != 0 || g.beta_im != 0) {
    copy(g.c, contiguous, result, c, g.batch, g.m, g.n, item);
  }
  share(g, function);
  copy(result, c, g.c, contiguous, g.batch, g.m, g.n, item);
}

}  // namespace facula
