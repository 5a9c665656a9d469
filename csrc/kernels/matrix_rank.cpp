// What follows from singular values: rank, pseudo-inverse, condition number.
#include <cmath>
#include <limits>

#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/kernels/linalg_spectral.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/linalg_spectral.h"
#include "op/ops/reductions.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// ---- tolerances

static Tensor number_like(const Tensor& a, double value) {
  return op::full(IntSpan(), Scalar(value), to_real(a.dtype()), std::nullopt, a.device());
}

static void check_tolerance(const Tensor& t, const char* name) {
  if (t.defined() && t.is_complex())
    runtime_error(name, " tensor of complex type is not supported. Got ",
                  legacy_dtype_name(t.dtype()));
}

// As many units in the last place as rounding of the singular values may cost.
static double default_rtol(const Tensor& a) {
  const double epsilon = to_real(a.dtype()) == DType::Float64
                             ? std::numeric_limits<double>::epsilon()
                             : double(std::numeric_limits<float>::epsilon());
  return epsilon * double(std::max(a.size(-2), a.size(-1)));
}

struct Tolerances {
  Tensor atol, rtol;
};

// rtol has its default only where no absolute tolerance is asked for.
static Tolerances tolerances_of(const Tensor& a, const Tensor& atol, const Tensor& rtol) {
  check_tolerance(atol, "atol");
  check_tolerance(rtol, "rtol");
  Tolerances t{atol, rtol};
  if (!rtol.defined())
    t.rtol = atol.defined()
                 ? op::where(atol > 0, number_like(a, 0), number_like(a, default_rtol(a)))
                 : number_like(a, default_rtol(a));
  if (!atol.defined()) t.atol = number_like(a, 0);
  return t;
}

static Tolerances tolerances_of(const Tensor& a, std::optional<double> atol,
                                std::optional<double> rtol) {
  const double absolute = atol.value_or(0);
  return {number_like(a, absolute),
          number_like(a, rtol.value_or(absolute > 0 ? 0 : default_rtol(a)))};
}

// Which of the (..., k) values count as more than 0. `largest` and the tolerances are (..., 1).
static Tensor is_significant(const Tensor& values, const Tensor& largest, const Tensor& atol,
                             const Tensor& rtol) {
  return values > op::maximum(atol, rtol * largest);
}

// ---- rank

static Tensor rank_of(const Tensor& a, const Tolerances& tolerances, bool hermitian) {
  const Tensor values = hermitian ? op::abs(op::linalg_eigvalsh(a)) : op::linalg_svdvals(a);
  if (values.size(-1) == 0) return op::zeros(batch_of(a), DType::Int64, std::nullopt, a.device());
  const Tensor largest = op::amax(values, Dims{-1}, true);
  return op::sum_dim(is_significant(values, largest, op::unsqueeze(tolerances.atol, -1),
                                    op::unsqueeze(tolerances.rtol, -1)),
                     Dims{-1});
}

Tensor linalg_matrix_rank(const Tensor& self, const Tensor& atol, const Tensor& rtol,
                          bool hermitian) {
  require_matrix(self, "input");
  require_lapack_dtype(self, "input");
  return rank_of(self, tolerances_of(self, atol, rtol), hermitian);
}
Tensor linalg_matrix_rank_numbers(const Tensor& self, std::optional<double> atol,
                                  std::optional<double> rtol, bool hermitian) {
  require_matrix(self, "input");
  require_lapack_dtype(self, "input");
  return rank_of(self, tolerances_of(self, atol, rtol), hermitian);
}
Tensor linalg_matrix_rank_tol_number(const Tensor& self, double tol, bool hermitian) {
  return op::linalg_matrix_rank_numbers(self, tol, 0.0, hermitian);
}
Tensor linalg_matrix_rank_tol(const Tensor& self, const Tensor& tol, bool hermitian) {
  require_matrix(self, "input");
  require_lapack_dtype(self, "input");
  return op::linalg_matrix_rank(self, tol, number_like(self, 0), hermitian);
}

// ---- pseudo-inverse; _pinv takes tolerances of shape (..., 1, 1), so that their batch dimensions
// line up with those of the matrices

static void check_pinv(const Tensor& a) {
  const DType real = to_real(a.dtype());
  if (a.dim() < 2 || (real != DType::Float32 && real != DType::Float64))
    runtime_error(
        "expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
        "types, got shape ",
        a.sizes(), " and dtype ", a.dtype());
}

Tensor _pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  if (hermitian) require_square(self, "A");
  if (self.numel() == 0) {
    Dims shape(self.sizes());
    std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
    return op::zeros(shape, self.dtype(), std::nullopt, self.device());
  }
  auto inverted = [&](const Tensor& values, const Tensor& sizes) {
    const Tensor significant = is_significant(sizes, op::amax(sizes, Dims{-1}, true),
                                              op::select(atol, -1, 0), op::select(rtol, -1, 0));
    return op::where(significant, op::reciprocal(values), 0);
  };
  if (hermitian) {
    const auto [values, vectors] = op::linalg_eigh(self, "L");
    const Tensor scale = op::unsqueeze(inverted(values, op::abs(values)), -2);
    return op::matmul(vectors * scale, adjoint(vectors));
  }
  const auto [u, s, vh] = op::linalg_svd(self, false);
  return op::matmul(adjoint(vh) * op::unsqueeze(inverted(s, s), -2), adjoint(u));
}

static Tensor pinv_of(const Tensor& a, const Tolerances& t, bool hermitian) {
  auto as_matrix = [](const Tensor& x) { return op::unsqueeze(op::unsqueeze(x, -1), -1); };
  return op::_pinv(a, as_matrix(t.atol), as_matrix(t.rtol), hermitian);
}

Tensor linalg_pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_pinv(self);
  return pinv_of(self, tolerances_of(self, atol, rtol), hermitian);
}
Tensor linalg_pinv_numbers(const Tensor& self, std::optional<double> atol,
                           std::optional<double> rtol, bool hermitian) {
  check_pinv(self);
  return pinv_of(self, tolerances_of(self, atol, rtol), hermitian);
}
Tensor linalg_pinv_rcond_number(const Tensor& self, double rcond, bool hermitian) {
  return op::linalg_pinv_numbers(self, 0.0, rcond, hermitian);
}
Tensor linalg_pinv_rcond(const Tensor& self, const Tensor& rcond, bool hermitian) {
  check_pinv(self);
  return op::linalg_pinv(self, number_like(self, 0), rcond, hermitian);
}
Tensor pinverse(const Tensor& self, double rcond) {
  return op::linalg_pinv_numbers(self, 0.0, rcond, false);
}

// ---- condition number

static Tensor no_elements(const Tensor& a) {
  return op::zeros(batch_of(a), to_real(a.dtype()), std::nullopt, a.device());
}

// The norm of a matrix times that of its inverse; a singular matrix has none and gives inf.
template <class Norm>
static Tensor cond_by_inverse(const Tensor& a, Norm norm) {
  const auto [inverse, info] = op::linalg_inv_ex(a);
  const Tensor result = norm(a) * norm(inverse);
  return op::masked_fill(result, op::ne(info, 0), std::numeric_limits<double>::infinity());
}

Tensor linalg_cond(const Tensor& self, Value p) {
  require_matrix(self, "input");
  const double order = p.is_none() ? 2 : p.scalar().is_complex() ? 0 : p.to_double();
  if (std::fabs(order) != 1 && std::fabs(order) != 2 && !std::isinf(order))
    runtime_error("linalg.cond got an invalid norm type: ", order,
                  "; accepted are None, 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'");
  if (std::fabs(order) == 2) {
    if (self.numel() == 0) return no_elements(self);
    const Tensor s = op::linalg_svdvals(self);
    const Tensor largest = op::select(s, -1, 0), smallest = op::select(s, -1, -1);
    return order > 0 ? largest / smallest : smallest / largest;
  }
  require_square(self, "A");
  if (self.numel() == 0) return no_elements(self);
  return cond_by_inverse(
      self, [&](const Tensor& a) { return op::linalg_matrix_norm_number(a, Scalar(order)); });
}

Tensor linalg_cond_name(const Tensor& self, std::string_view p) {
  require_matrix(self, "input");
  if (p != "fro" && p != "nuc")
    runtime_error("linalg.cond got an invalid norm type: ", p,
                  "; accepted are None, 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'");
  require_square(self, "A");
  if (self.numel() == 0) return no_elements(self);
  if (p == "nuc") {  // from the singular values: a singular matrix has no inverse to take a norm of
    const Tensor s = op::linalg_svdvals(self);
    const Dims last{-1};
    return op::sum_dim(s, IntSpan(last)) * op::sum_dim(op::reciprocal(s), IntSpan(last));
  }
  return cond_by_inverse(self, [&](const Tensor& a) { return op::linalg_matrix_norm_name(a, p); });
}

}  // namespace facula::kernels
