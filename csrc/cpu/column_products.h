// Products of column-major matrices, shared by the thread pool by their columns.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/thread_pool.h"
#include "cpu/blas.h"

namespace facula {

constexpr int64_t kColumns = 64;  // columns that a thread takes at a time

// f(begin, end) over pieces of the columns that do not depend on the number of threads: how a
// product is cut decides how it is rounded.
template <class F>
void for_columns(int64_t columns, F&& f, int64_t at_a_time = kColumns) {
  parallel_for(0, (columns + at_a_time - 1) / at_a_time, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) f(b * at_a_time, std::min(columns, (b + 1) * at_a_time));
  });
}

template <class T>
struct Operand {  // a column-major matrix, or the transpose of one
  const T* data;
  int64_t ld;
  BlasTranspose transpose;
};
template <class T>
Operand<T> plain(const T* data, int64_t ld) {
  return {data, ld, BlasTranspose::No};
}
template <class T>
Operand<T> transposed(const T* data, int64_t ld) {
  return {data, ld, BlasTranspose::Yes};
}

// c = alpha * a @ b + beta * c; c is m x n, and b, like c, column-major. On one thread.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, const T* b, int64_t ldb,
              T beta, T* c, int64_t ldc) {
  if (m == 0) return;
  const auto product = [] {
    if constexpr (std::is_same_v<T, float>) return blas().sgemm;
    else return blas().dgemm;
  }();
  product(BlasOrder::ColumnMajor, a.transpose, BlasTranspose::No, int(m), int(n), int(k), alpha,
          a.data, int(a.ld), b, int(ldb), beta, c, int(ldc));
}

}  // namespace facula
