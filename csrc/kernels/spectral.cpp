// Singular value and eigenvalue decompositions: shapes and checks here, LAPACK in cpu/spectral.
#include "cpu/spectral.h"
#include "kernels/host_only.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/kernels/linalg_spectral.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_spectral.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// A result with one number for each row or column.
static Tensor empty_values(const Tensor& a, int64_t n, DType dtype) {
  Dims shape(batch_of(a));
  shape.push_back(n);
  return empty_tensor(shape, dtype, a.device());
}

static Tensor empty_info(const Tensor& a) {
  return empty_tensor(batch_of(a), DType::Int32, a.device());
}

static std::string not_converged(int info, const char* what) {
  if (info == kNotFinite)
    return "The algorithm failed to converge because the input matrix contained non-finite values.";
  return text(
      "The algorithm failed to converge because the input matrix is ill-conditioned or has "
      "too many repeated ",
      what, " (error code: ", info, ").");
}
static std::string describe_svd(int info) {
  return not_converged(info, "singular values");
}
static std::string describe_eigh(int info) {
  return not_converged(info, "eigenvalues");
}
static std::string describe_eig(int info) {
  return info == kNotFinite ? "input tensor should not contain infs or NaNs."
                            : not_converged(info, "eigenvalues");
}

// ---- singular values

static void check_svd(const Tensor& a, std::string_view driver) {
  require_matrix(a, "A");
  require_lapack_dtype(a, "A");
  if (!driver.empty())
    runtime_error("keyword argument `driver=` is only supported on CUDA inputs, got '", driver,
                  "' for a tensor on ", a.device());
  require_host(a, "linalg.svd");
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& a, bool full_matrices,
                                              std::string_view driver) {
  check_svd(a, driver);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  Tensor u = empty_columns(batch_of(a), m, full_matrices ? m : k, a.dtype(), a.device()),
         vh = empty_columns(batch_of(a), full_matrices ? n : k, n, a.dtype(), a.device()),
         s = empty_values(a, k, to_real(a.dtype()));
  if (a.is_meta()) return {u, s, vh};
  if (a.numel() == 0) {  // the vectors without a singular value: any orthonormal ones
    for (const Tensor& t : {u, vh}) {
      op::zero_(t);
      op::fill_(op::diagonal(t, 0, -2, -1), 1);
    }
  } else {
    const Tensor info = empty_info(a);
    cpu_svd(a, u, s, vh, info);
    check_info(info, describe_svd);
  }
  return {u, s, vh};
}

Tensor linalg_svdvals(const Tensor& a, std::string_view driver) {
  check_svd(a, driver);
  Tensor s = empty_values(a, std::min(a.size(-2), a.size(-1)), to_real(a.dtype()));
  if (!a.is_meta() && a.numel()) {
    const Tensor info = empty_info(a);
    cpu_svd(a, Tensor(), s, Tensor(), info);
    check_info(info, describe_svd);
  }
  return s;
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  if (compute_uv) {
    auto [u, s, vh] = op::linalg_svd(self, !some);
    return {u, s, adjoint(vh)};
  }
  require_matrix(self, "input");
  auto zeros = [&](int64_t n) {
    return op::zeros(with_matrix(batch_of(self), n, n), self.dtype(), std::nullopt, self.device());
  };
  // As if V were the transpose of Vh.
  return {zeros(self.size(-2)), op::linalg_svdvals(self),
          op::transpose(zeros(self.size(-1)), -2, -1)};
}

// ---- eigenvalues of Hermitian matrices

static bool reads_lower(std::string_view uplo) {
  if (uplo == "L" || uplo == "l") return true;
  if (uplo == "U" || uplo == "u") return false;
  runtime_error("Expected UPLO argument to be 'L' or 'U', but got ", uplo);
}

static void check_eigh(const Tensor& a) {
  require_square(a, "A");
  require_lapack_dtype(a, "A", ErrorKind::NotImplemented);
  require_host(a, "linalg.eigh");
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view uplo) {
  const bool lower = reads_lower(uplo);
  check_eigh(self);
  const int64_t n = self.size(-1);
  Tensor values = empty_values(self, n, to_real(self.dtype())),
         vectors = empty_columns(batch_of(self), n, n, self.dtype(), self.device());
  if (!self.is_meta() && self.numel()) {
    const Tensor info = empty_info(self);
    cpu_eigh(self, lower, values, vectors, info);
    check_info(info, describe_eigh);
  }
  return {values, vectors};
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo) {
  const bool lower = reads_lower(uplo);
  check_eigh(self);
  Tensor values = empty_values(self, self.size(-1), to_real(self.dtype()));
  if (!self.is_meta() && self.numel()) {
    const Tensor info = empty_info(self);
    cpu_eigh(self, lower, values, Tensor(), info);
    check_info(info, describe_eigh);
  }
  return values;
}

// ---- eigenvalues of any square matrices

static void check_eig(const Tensor& a) {
  require_square(a, "A");
  require_lapack_dtype(a, "A");
  require_host(a, "linalg.eig");
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) {
  check_eig(self);
  const int64_t n = self.size(-1);
  const DType dtype = to_complex(self.dtype());
  Tensor values = empty_values(self, n, dtype),
         vectors = empty_columns(batch_of(self), n, n, dtype, self.device());
  if (!self.is_meta() && self.numel()) {
    const Tensor info = empty_info(self);
    cpu_eig(self, values, vectors, info);
    check_info(info, describe_eig);
  }
  return {values, vectors};
}

Tensor linalg_eigvals(const Tensor& self) {
  check_eig(self);
  Tensor values = empty_values(self, self.size(-1), to_complex(self.dtype()));
  if (!self.is_meta() && self.numel()) {
    const Tensor info = empty_info(self);
    cpu_eig(self, values, Tensor(), info);
    check_info(info, describe_eig);
  }
  return values;
}

// ---- the exponential

Tensor matrix_exp(const Tensor& self) {
  require_square(self, "A");
  if (category(self.dtype()) < Category::Floating) require_lapack_dtype(self, "A");
  require_host(self, "matrix_exp");
  if (self.size(-1) <= 1 || self.numel() == 0) return op::exp(op::contiguous(self));
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (self.is_meta()) return out;
  if (!is_reduced_float(self.dtype())) {
    cpu_matrix_exp(op::contiguous(self), out);
    return out;
  }
  const Tensor wide = op::contiguous(op::_to_copy(self, DType::Float32));
  const Tensor result = empty_tensor(self.sizes(), DType::Float32, self.device());
  cpu_matrix_exp(wide, result);
  return op::_to_copy(result, self.dtype());
}

Tensor linalg_matrix_exp(const Tensor& self) {
  return op::matrix_exp(self);
}

}  // namespace facula::kernels
