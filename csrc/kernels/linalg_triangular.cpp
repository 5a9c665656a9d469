// Triangular systems.
#include "cpu/small_matrix.h"
#include "cpu/triangle.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/copying.h"
#include "op/ops/linalg_solve.h"

namespace facula::kernels {

// Row-major matrices are read as the transposes of column-major ones, without a copy.
static bool is_row_major(const MatrixBatch& a) {
  return a.column_stride == 1 && a.row_stride >= a.rows && a.row_stride <= INT_MAX;
}

Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left,
                               bool unitriangular) {
  require_lapack_dtype(self, "A", ErrorKind::NotImplemented);
  require_system(self, "A", B, "B", left);
  const Dims batch = broadcast_batches(self, B);
  Tensor x = empty_columns(batch, B.size(-2), B.size(-1), B.dtype(), B.device());
  if (x.is_meta() || x.numel() == 0) return x;
  if (B.is_cuda()) {
    GradGuard off(false);
    op::copy_(x, B);
    device_linalg.triangular_solve(columns_of(self, batch), x, left, upper, 'N', unitriangular);
    return x;
  }
  const MatrixBatch factors(self, batch), rhs(B, batch), out(x);
  const int64_t n = self.size(-1);
  const int rows = lapack_int(x.size(-2)), columns = lapack_int(x.size(-1));
  dispatch_lapack(x.dtype(), [&]<class T> {
    if constexpr (!is_complex_v<T>) {
      // x A = b is A^T x^T = b^T.
      const auto oriented = [&](auto* data, const MatrixBatch& m) {
        return left ? Strided{data, m.row_stride, m.column_stride}
                    : Strided{data, m.column_stride, m.row_stride};
      };
      const int64_t count = left ? columns : rows;
      for_matrices(
          out.count(), double(n) * n * count,
          [&](int64_t begin, int64_t end) {
            Triangle<T> triangle(count > 1 ? n : 0);
            for (int64_t i = begin; i < end; ++i) {
              const Strided<const T> a = oriented(factors.at<const T>(i), factors);
              if (count == 1) {
                copy_to_columns(out.at<T>(i), rows, rhs, i);
                triangle_table<T>().substitute(upper == left, unitriangular, n, a, out.at<T>(i));
              } else {
                triangle.pack(upper == left, unitriangular, n, a);
                solve_triangles({&triangle}, n, count, oriented(rhs.at<const T>(i), rhs),
                                oriented(out.at<T>(i), out));
              }
            }
          },
          true);
    } else {
      const bool turned = !factors.column_major() && is_row_major(factors);
      const char side = left ? 'L' : 'R', uplo = upper != turned ? 'U' : 'L',
                 trans = turned ? 'T' : 'N', diag = unitriangular ? 'U' : 'N';
      for_matrices(out.count(), double(n) * rows * columns, [&](int64_t begin, int64_t end) {
        MatrixBatch readable = factors;
        if (turned) std::swap(readable.row_stride, readable.column_stride);
        const ReadableMatrices<T> a(readable);
        for (int64_t i = begin; i < end; ++i) {
          copy_to_columns(out.at<T>(i), rows, rhs, i);
          lapack::trsm(side, uplo, trans, diag, rows, columns, a.at(i), a.leading(), out.at<T>(i),
                       rows);
        }
      });
    }
  });
  return x;
}

Tensor _adjoint(const Tensor& self) {
  return adjoint(self);
}

// Only one triangle of A is read; its diagonal is not when it counts as 1.
Tensor _solve_triangular_grad(const Tensor& grad, const Tensor& A, const Tensor& X, bool upper,
                              bool left, bool unitriangular) {
  Tensor gB = op::linalg_solve_triangular(adjoint(A), grad, !upper, left, unitriangular);
  Tensor gA = -(left ? op::matmul(gB, adjoint(X)) : op::matmul(adjoint(X), gB));
  const int64_t from = unitriangular ? 1 : 0;
  return upper ? op::triu(gA, from) : op::tril(gA, -from);
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  require_lapack_dtype(A, "A", ErrorKind::NotImplemented);
  require_system(A, "A", self, "self", true);
  Tensor x = op::linalg_solve_triangular(transpose ? transposed(A) : A, self, upper != transpose,
                                         true, unitriangular);
  // A copy in LAPACK's order, for every solution.
  Dims shape(batch_of(x));
  for (int64_t size : A.sizes().last(2)) shape.push_back(size);
  Tensor copy = transposed(op::clone(transposed(op::expand(A, shape)), MemoryFormat::Contiguous));
  return {x, copy};
}

}  // namespace facula::kernels
