// L D L^T factorisation of symmetric and Hermitian matrices (Bunch and Kaufman).
#include "cpu/small_matrix.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/copying.h"
#include "op/ops/linalg_solve.h"

namespace facula::kernels {

// The device's library knows symmetric matrices only.
static void require_symmetric(const Tensor& a, bool hermitian) {
  if (hermitian && a.is_complex())
    fail(ErrorKind::NotImplemented, "has no kernel for complex Hermitian matrices on ", a.device(),
         "; move the input with .cpu() to compute it on the host");
}

static std::string singular_block(int info) {
  return text(
      "The factorization is singular: D[", info, ",", info,
      "] is zero, and ldl_solve would divide by it. To factor the matrix all the same, call "
      "linalg.ldl_factor_ex(A)");
}

std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, bool hermitian,
                                                        bool check_errors) {
  require_square(self, "A");
  require_lapack_dtype(self, "A");
  const Dims batch(batch_of(self));
  const int64_t n = self.size(-1);
  Dims pivot_shape(batch);
  pivot_shape.push_back(n);
  Tensor LD = empty_columns(batch, n, n, self.dtype(), self.device());
  Tensor pivots = empty_tensor(pivot_shape, DType::Int32, self.device());
  Tensor info = empty_tensor(batch, DType::Int32, self.device());
  if (self.is_meta() || info.numel() == 0) return {LD, pivots, info};
  if (self.is_cuda()) {
    require_symmetric(self, hermitian);
    GradGuard off(false);
    op::copy_(LD, self);
    if (n) {
      device_linalg.ldl(LD, pivots, info);
      op::copy_(LD, op::tril(LD));
    } else {
      op::zero_(info);
    }
    if (check_errors) check_info(info, singular_block);
    return {LD, pivots, info};
  }
  const MatrixBatch in(self), out(LD);
  const int size = lapack_int(n), ld = std::max(size, 1);
  int *exchanges = pivots.data_as<int>(), *infos = info.data_as<int>();
  dispatch_lapack(self.dtype(), [&]<class T> {
    T best(1);
    lapack::sytrf<T>(hermitian, 'L', size, nullptr, ld, nullptr, &best, -1);
    const int work_size = std::max(1, int(detail::real_part(best)));
    for_matrices(in.count(), double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
      HostArray<T> work(work_size);
      for (int64_t i = begin; i < end; ++i) {
        T* a = out.at<T>(i);
        copy_to_columns(a, n, in, i);
        infos[i] =
            lapack::sytrf(hermitian, 'L', size, a, ld, exchanges + i * n, work.data(), work_size);
        for (int64_t j = 1; j < n; ++j) std::fill(a + j * n, a + j * n + j, T(0));
      }
    });
  });
  if (check_errors) check_info(info, singular_block);
  return {LD, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [LD, pivots, info] = op::linalg_ldl_factor_ex(self, hermitian, true);
  return {LD, pivots};
}

// A positive pivot is a row; two negative ones in turn are the rows of a 2 x 2 block.
static void check_ldl_pivots(const int* pivots, int n) {
  for (int i = 0; i < n; ++i) {
    const int row = pivots[i] < 0 ? -pivots[i] : pivots[i];
    const bool block = pivots[i] < 0;
    const bool in_range = row >= 1 && row <= n;
    if (!in_range || (block && (i + 1 == n || pivots[i + 1] >= 0 || pivots[i + 1] < -n)))
      runtime_error("pivot ", i, " is ", pivots[i], ", which no factorization of a matrix with ", n,
                    " rows gives. Did you properly pass the result of ldl_factor?");
    if (block) ++i;
  }
}

Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  require_square(LD, "LD");
  require_lapack_dtype(LD, "LD");
  if (B.dim() < 2)
    index_error(
        "B must have at least 2 dimensions, a matrix or a batch of matrices, but its shape "
        "is ",
        B.sizes());
  require_system(LD, "LD", B, "B", true);
  if (!is_integral(pivots.dtype()))
    runtime_error("Expected pivots to be integers. Got ", legacy_dtype_name(pivots.dtype()),
                  "; ldl_factor returns them");
  if (pivots.device() != LD.device()) device_error(LD.device(), pivots.device());
  const int64_t size = LD.size(-1);
  if (pivots.dim() == 0 || pivots.size(-1) != size)
    runtime_error(
        "Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ",
        pivots.sizes(), " instead: one for each of the ", size, " rows of LD is needed");
  const IntSpan pivot_batch = pivots.sizes().first(size_t(pivots.dim() - 1));
  if (!is_expandable(pivot_batch, batch_of(LD)) && !is_expandable(batch_of(LD), pivot_batch))
    runtime_error("LD of shape ", LD.sizes(), " and pivots of shape ", pivots.sizes(),
                  " must have the same batch dimensions");
  const Dims batch = broadcast_shapes(broadcast_batches(LD, B), pivot_batch);
  Tensor x = empty_columns(batch, B.size(-2), B.size(-1), B.dtype(), B.device());
  if (x.is_meta() || x.numel() == 0) return x;
  if (LD.is_cuda()) {
    require_symmetric(LD, hermitian);
    GradGuard off(false);
    op::copy_(x, B);
    const Tensor rows = dense_rows(op::_to_copy(pivots, DType::Int64, pivots.device()), batch);
    device_linalg.ldl_solve(columns_of(LD, batch), rows, x);
    return x;
  }
  const Tensor rows_of_32_bits =
      pivots.dtype() == DType::Int32 ? pivots : op::_to_copy(pivots, DType::Int32);
  const MatrixBatch factors(LD, batch), exchanges(as_columns(rows_of_32_bits), batch),
      rhs(B, batch), out(x);
  const int n = lapack_int(size), k = lapack_int(B.size(-1));
  dispatch_lapack(x.dtype(), [&]<class T> {
    for_matrices(out.count(), 2.0 * n * n * k, [&](int64_t begin, int64_t end) {
      const ReadableMatrices<T> a(factors);
      const ReadableMatrices<int> p(exchanges);
      for (int64_t i = begin; i < end; ++i) {
        const int* rows = p.at(i);
        check_ldl_pivots(rows, n);
        copy_to_columns(out.at<T>(i), n, rhs, i);
        lapack::sytrs(hermitian, 'L', n, k, a.at(i), a.leading(), rows, out.at<T>(i), n);
      }
    });
  });
  return x;
}

// A^-H grad, from the factors of A.
Tensor _ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian) {
  if (hermitian || !LD.is_complex()) return op::linalg_ldl_solve(LD, pivots, grad, hermitian);
  return op::conj(op::linalg_ldl_solve(LD, pivots, op::conj(grad), false));
}

Tensor _refuse_derivative(const Tensor&, std::string_view name, std::string_view advice) {
  fail(ErrorKind::NotImplemented, "the derivative for '", name, "' is not implemented; ", advice);
}

}  // namespace facula::kernels
