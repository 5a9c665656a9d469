// Cholesky factorisation, and solving with its factor.
#include "cpu/small_matrix.h"
#include "cpu/triangle.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_solve.h"

namespace facula::kernels {

static std::string not_positive(int info) {
  return text(
      "The factorization could not be completed because the input is not positive-definite "
      "(the leading minor of order ",
      info, " is not positive-definite).");
}

namespace {

template <class T>
void clear_triangle(T* a, int64_t n, bool lower) {
  for (int64_t j = 0; j < n; ++j) {
    T* column = a + j * n;
    if (lower) std::fill(column + j + 1, column + n, T(0));
    else std::fill(column, column + j, T(0));
  }
}

// An upper factor is the adjoint of the lower one of the same matrix, whose lower triangle is the
// adjoint of the upper one that is read: small matrices are factored as lower ones.
template <class T>
void adjoint_in_place(T* a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    a[j + j * n] = detail::conjugate(a[j + j * n]);
    for (int64_t i = 0; i < j; ++i) {
      const T x = a[i + j * n];
      a[i + j * n] = detail::conjugate(a[j + i * n]);
      a[j + i * n] = detail::conjugate(x);
    }
  }
}

template <class T>
int factor(T* a, int n, bool upper) {
  const bool turned = upper && n <= kSmallMatrix;
  if (turned) adjoint_in_place(a, n);
  const int info = factor_cholesky(upper && !turned ? 'U' : 'L', n, a, std::max(n, 1));
  if (turned) adjoint_in_place(a, n);
  clear_triangle(a, n, upper);
  return info;
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  require_square(self, "A");
  require_lapack_dtype(self, "A");
  const Dims batch(batch_of(self));
  const int64_t n = self.size(-1);
  Tensor L = empty_columns(batch, n, n, self.dtype(), self.device());
  Tensor info = empty_tensor(batch, DType::Int32, self.device());
  if (self.is_meta() || info.numel() == 0) return {L, info};
  if (self.is_cuda()) {
    GradGuard off(false);
    op::copy_(L, self);
    if (n) {
      device_linalg.cholesky(L, upper, info);
      op::copy_(L, upper ? op::triu(L) : op::tril(L));
    } else {
      op::zero_(info);
    }
    if (check_errors) check_info(info, not_positive);
    return {L, info};
  }
  const MatrixBatch in(self), out(L);
  const int size = lapack_int(n);
  int* infos = info.data_as<int>();
  dispatch_lapack(self.dtype(), [&]<class T> {
    for_matrices(in.count(), double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        copy_to_columns(out.at<T>(i), n, in, i);
        infos[i] = factor(out.at<T>(i), size, upper);
      }
    });
  });
  if (check_errors) check_info(info, not_positive);
  return {L, info};
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  return std::get<0>(op::linalg_cholesky_ex(self, upper, true));
}

// A = L L^H gives dL = L phi(L^-1 dA L^-H), where phi takes the lower triangle and half the
// diagonal. The gradient is made Hermitian, as the matrices that are factored are.
Tensor _cholesky_grad(const Tensor& grad, const Tensor& L, bool upper) {
  Tensor lower = upper ? adjoint(L) : L, g = upper ? adjoint(grad) : grad;
  Tensor product = op::tril(op::matmul(adjoint(lower), g));
  Tensor hermitian = (product + adjoint(product)) * 0.5;
  Tensor inner = hermitian - op::tril(op::triu(hermitian)) * 0.5;
  Tensor right = op::linalg_solve_triangular(lower, inner, false, false);
  return op::linalg_solve_triangular(adjoint(lower), right, true, true);
}

// ---- solving with the factor

// A factor and its transpose, as the triangles of a system in the order in which they are solved.
template <class T>
static void pack_factor(bool upper, int64_t n, Strided<const T> factor, Triangle<T>& first,
                        Triangle<T>& second) {
  const Strided<const T> turned{factor.data, factor.column, factor.row};
  first.pack(false, false, n, upper ? turned : factor);
  second.pack(true, false, n, upper ? factor : turned);
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  require_lapack_dtype(input2, "input2", ErrorKind::NotImplemented);
  require_system(input2, "input2", self, "self", true);
  const Dims batch = broadcast_batches(input2, self);
  Tensor x = empty_columns(batch, self.size(-2), self.size(-1), self.dtype(), self.device());
  if (x.is_meta() || x.numel() == 0) return x;
  if (self.is_cuda()) {
    GradGuard off(false);
    const Tensor factors = columns_of(input2, batch);
    const char adjoint = self.is_complex() ? 'C' : 'T';
    op::copy_(x, self);
    device_linalg.triangular_solve(factors, x, true, upper, upper ? adjoint : 'N', false);
    device_linalg.triangular_solve(factors, x, true, upper, upper ? 'N' : adjoint, false);
    return x;
  }
  const MatrixBatch factors(input2, batch), rhs(self, batch), out(x);
  const int n = lapack_int(x.size(-2)), k = lapack_int(x.size(-1));
  dispatch_lapack(x.dtype(), [&]<class T> {
    if constexpr (!is_complex_v<T>) {
      for_matrices(
          out.count(), 2.0 * n * n * k,
          [&](int64_t begin, int64_t end) {
            const int64_t room = k > 1 ? n : 0;
            Triangle<T> first(room), second(room);
            for (int64_t i = begin; i < end; ++i) {
              const Strided<const T> factor{factors.at<const T>(i), factors.row_stride,
                                            factors.column_stride},
                  turned{factor.data, factor.column, factor.row};
              if (k == 1) {
                copy_to_columns(out.at<T>(i), n, rhs, i);
                const auto substitute = triangle_table<T>().substitute;
                substitute(false, false, n, upper ? turned : factor, out.at<T>(i));
                substitute(true, false, n, upper ? factor : turned, out.at<T>(i));
              } else {
                pack_factor(upper, n, factor, first, second);
                solve_triangles({&first, &second}, n, k,
                                {rhs.at<const T>(i), rhs.row_stride, rhs.column_stride},
                                {out.at<T>(i), 1, n});
              }
            }
          },
          true);
    } else {
      for_matrices(out.count(), 2.0 * n * n * k, [&](int64_t begin, int64_t end) {
        const ReadableMatrices<T> a(factors);
        for (int64_t i = begin; i < end; ++i) {
          copy_to_columns(out.at<T>(i), n, rhs, i);
          lapack::potrs(upper ? 'U' : 'L', n, k, a.at(i), a.leading(), out.at<T>(i), n);
        }
      });
    }
  });
  return x;
}

// From the gradient of A = L L^H (or U^H U), of which the operator reads one triangle.
static Tensor factor_grad(const Tensor& gA, const Tensor& L, bool upper) {
  Tensor both = gA + adjoint(gA);
  if (upper) return op::triu(op::matmul(op::triu(L), both));
  return op::tril(op::matmul(both, op::tril(L)));
}

Tensor _cholesky_solve_grad(const Tensor& grad, const Tensor& result, const Tensor& L, bool upper) {
  Tensor gB = op::cholesky_solve(grad, L, upper);
  return factor_grad(-op::matmul(gB, adjoint(result)), L, upper);
}

// The place of the first zero on the diagonal, counted from 1, or 0.
template <class T>
static int first_zero(int64_t n, Strided<const T> a) {
  for (int64_t i = 0; i < n; ++i)
    if (a.data[i * (a.row + a.column)] == T(0)) return int(i + 1);
  return 0;
}

static std::string singular_factor(int info) {
  return text("The diagonal element ", info,
              " is zero, the inversion could not be completed because the input matrix is "
              "singular.");
}

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  require_square(self, "A");
  require_lapack_dtype(self, "A", ErrorKind::NotImplemented);
  const Dims batch(batch_of(self));
  const int64_t n = self.size(-1);
  Tensor inverse = empty_columns(batch, n, n, self.dtype(), self.device());
  if (self.is_meta() || inverse.numel() == 0) return inverse;
  if (self.is_cuda()) {
    GradGuard off(false);
    const Tensor identity = op::eye(n, self.dtype(), std::nullopt, self.device());
    op::copy_(inverse, cholesky_solve(op::expand(identity, inverse.sizes()), self, upper));
    return inverse;
  }
  Tensor info = empty_tensor(batch, DType::Int32, self.device());
  const MatrixBatch in(self), out(inverse);
  const int size = lapack_int(n);
  int* infos = info.data_as<int>();
  dispatch_lapack(self.dtype(), [&]<class T> {
    if constexpr (!is_complex_v<T>) {
      for_matrices(
          in.count(), double(n) * n * n,
          [&](int64_t begin, int64_t end) {
            Triangle<T> first(n), second(n);
            for (int64_t i = begin; i < end; ++i) {
              const Strided<const T> factor{in.at<const T>(i), in.row_stride, in.column_stride};
              infos[i] = first_zero(n, factor);
              if (infos[i]) continue;
              pack_factor(upper, n, factor, first, second);
              invert_triangles<T>(first, second, n, nullptr, out.at<T>(i));
            }
          },
          true);
    } else {
      for_matrices(in.count(), double(n) * n * n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* a = out.at<T>(i);
          copy_to_columns(a, n, in, i);
          infos[i] = lapack::potri(upper ? 'U' : 'L', size, a, size);
          for (int64_t c = 0; c < n; ++c)  // the triangle that LAPACK leaves alone
            for (int64_t r = 0; r < c; ++r) {
              if (upper) a[c + r * n] = detail::conjugate(a[r + c * n]);
              else a[r + c * n] = detail::conjugate(a[c + r * n]);
            }
        }
      });
    }
  });
  check_info(info, singular_factor);
  return inverse;
}

Tensor _cholesky_inverse_grad(const Tensor& grad, const Tensor& result, const Tensor& L,
                              bool upper) {
  return factor_grad(-op::matmul(result, op::matmul(grad, result)), L, upper);
}

}  // namespace facula::kernels
