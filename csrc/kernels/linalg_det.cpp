// Determinants, through LU.
#include <cmath>
#include <limits>

#include "kernels/linalg_expressions.h"
#include "kernels/linalg_lu.h"
#include "kernels/linalg_matrices.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/reductions.h"
#include "transform/wrapper.h"

namespace facula::kernels {

namespace {

// Whether the exchanges are an odd permutation.
bool is_odd(const int* pivots, int64_t n) {
  bool odd = false;
  for (int64_t i = 0; i < n; ++i) odd ^= pivots[i] != i + 1;
  return odd;
}

void require_determinant(const Tensor& A) {
  require_square(A, "A");
  require_lapack_dtype(A, "A");
}

// 1, or -1 where the exchanges are an odd permutation, for each matrix.
Tensor parity(const Tensor& pivots) {
  const Tensor in_order =
      op::arange_start(1, pivots.size(-1) + 1, 1, DType::Int32, std::nullopt, pivots.device());
  const Tensor exchanges = op::sum_dim(op::ne(pivots, in_order), IntSpan(Dims{-1}));
  return 1 - op::remainder(exchanges, 2) * 2;
}

// f(i, diagonal of U, its step, whether the rows were exchanged an odd number of times)
template <class T, class F>
void for_diagonals(const LuFactors& f, F&& each) {
  const int64_t n = f.lu.size(-1);
  const int* pivots = f.pivots.data_as<int>();
  const T* lu = f.lu.data_as<T>();
  parallel_for(0, f.info.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(i, lu + i * n * n, n + 1, is_odd(pivots + i * n, n));
  });
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _linalg_det(const Tensor& A) {
  require_determinant(A);
  LuFactors f = factor_matrices(A);
  Tensor result = empty_tensor(batch_of(A), A.dtype(), A.device());
  if (A.is_meta()) return {result, f.lu, f.pivots};
  if (A.is_cuda()) {
    GradGuard off(false);
    op::copy_(result, op::prod_dim(op::diagonal(f.lu, 0, -2, -1), -1) * parity(f.pivots));
    return {result, f.lu, f.pivots};
  }
  dispatch_lapack(A.dtype(), [&]<class T> {
    T* out = result.data_as<T>();
    for_diagonals<T>(f, [&](int64_t i, const T* u, int64_t step, bool odd) {
      T product = T(odd ? -1 : 1);
      for (int64_t k = 0; k < A.size(-1); ++k) product *= u[k * step];
      out[i] = product;
    });
  });
  return {result, f.lu, f.pivots};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_slogdet(const Tensor& A) {
  require_determinant(A);
  LuFactors f = factor_matrices(A);
  Tensor sign = empty_tensor(batch_of(A), A.dtype(), A.device());
  Tensor logabsdet = empty_tensor(batch_of(A), to_real(A.dtype()), A.device());
  if (A.is_meta()) return {sign, logabsdet, f.lu, f.pivots};
  if (A.is_cuda()) {
    GradGuard off(false);
    const Tensor diagonal = op::diagonal(f.lu, 0, -2, -1), size = op::abs(diagonal);
    op::copy_(sign, op::prod_dim(op::sgn(diagonal), -1) * parity(f.pivots));
    op::copy_(logabsdet, op::sum_dim(op::log(size), IntSpan(Dims{-1})));
    return {sign, logabsdet, f.lu, f.pivots};
  }
  dispatch_lapack(A.dtype(), [&]<class T> {
    using R = real_of_t<T>;
    T* signs = sign.data_as<T>();
    R* logs = logabsdet.data_as<R>();
    for_diagonals<T>(f, [&](int64_t i, const T* u, int64_t step, bool odd) {
      T s = T(odd ? -1 : 1);
      double log = 0;
      for (int64_t k = 0; k < A.size(-1); ++k) {
        const T x = u[k * step];
        R size;
        if constexpr (is_complex_v<T>) size = std::hypot(x.re, x.im);
        else size = std::abs(x);
        s = size == 0 ? T(0) : s * (x / T(size));
        log += std::log(double(size));
      }
      signs[i] = s;
      logs[i] = R(log);
    });
  });
  return {sign, logabsdet, f.lu, f.pivots};
}

Tensor linalg_det(const Tensor& A) {
  return std::get<0>(op::_linalg_det(A));
}
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  auto [sign, logabsdet, lu, pivots] = op::_linalg_slogdet(A);
  return {sign, logabsdet};
}
Tensor logdet(const Tensor& self) {
  auto [sign, logabsdet, lu, pivots] = op::_linalg_slogdet(self);
  if (self.is_complex()) return op::log(sign) + logabsdet;
  return op::where(op::lt(sign, 0), std::numeric_limits<double>::quiet_NaN(), logabsdet);
}

// ---- derivatives

// (...) to (..., n, n) with the value all along the diagonal.
static Tensor scaled_identity(const Tensor& factor, int64_t n) {
  return op::unsqueeze(op::unsqueeze(factor, -1), -1) *
         op::eye(n, factor.dtype(), std::nullopt, factor.device());
}

// The adjugate, det(A) A^-1, exists for singular matrices too. Zero pivots are replaced by one that
// is small against the others, in the factors and in the determinant alike: what that changes is
// below the rounding errors, for matrices of rank n - 1 and for those whose adjugate is zero.
static Tensor adjugate_adjoint(const Tensor& factor, const Tensor& LU, const Tensor& pivots) {
  const int64_t n = LU.size(-1);
  const double epsilon = to_real(LU.dtype()) == DType::Float64
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
  Tensor diagonal = op::diagonal(LU, 0, -2, -1), zero = op::eq(diagonal, 0);
  Tensor size = op::amax(op::abs(diagonal), Dims{-1}, true);
  Tensor small = op::where(op::eq(size, 0), 1.0, size) * (epsilon * epsilon);
  Tensor change = op::where(zero, op::_to_copy(small, LU.dtype()), 0.0);
  Tensor determinant = op::prod_dim(diagonal + change, -1) * parity(pivots);
  return op::linalg_lu_solve(LU + op::diag_embed(change), pivots,
                             scaled_identity(factor * op::conj(determinant), n), true, true);
}

Tensor _det_grad(const Tensor& grad, const Tensor& A, const Tensor& result, const Tensor& LU,
                 const Tensor& pivots) {
  const int64_t n = A.size(-1);
  if (n == 0) return op::zeros_like(A);
  if (!is_followed(A)) return adjugate_adjoint(grad, LU, pivots);
  return op::linalg_solve(adjoint(A), scaled_identity(grad * op::conj(result), n));
}

// d log|det| = Re t and d sign = i sign Im t, with t = tr(A^-1 dA).
Tensor _slogdet_grad(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A,
                     const Tensor& sign, const Tensor& LU, const Tensor& pivots) {
  Tensor factor = A.is_complex() ? op::complex(grad_logabsdet, op::imag(grad_sign * op::conj(sign)))
                                 : grad_logabsdet;
  Tensor rhs = scaled_identity(factor, A.size(-1));
  if (!is_followed(A)) return op::linalg_lu_solve(LU, pivots, rhs, true, true);
  return op::linalg_solve(adjoint(A), rhs);
}

}  // namespace facula::kernels
