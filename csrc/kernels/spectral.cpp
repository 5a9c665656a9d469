// Singular value and eigenvalue decompositions: shapes and checks here, LAPACK in cpu/spectral.
#include "cpu/spectral.h"

#include <cmath>

#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_spectral.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/linalg_spectral.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
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

// ---- on devices

// Matrices as hooks overwrite them, with 0 for what is not finite: the libraries may not come back
// from such input.
static Tensor scratch_columns(const Tensor& a) {
  GradGuard off(false);
  Tensor out = columns_of(a, batch_of(a));
  op::copy_(out, op::where(op::isfinite(out), out, 0));
  return out;
}

// `info` with kNotFinite for matrices that hold infinities or NaN.
static Tensor noting_infinities(const Tensor& a, const Tensor& info) {
  GradGuard off(false);
  const Tensor finite = op::all_dim(op::isfinite(a), IntSpan(Dims{-2, -1}));
  return op::where(finite, info, int64_t(kNotFinite));
}

static void device_svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
                       const Tensor& info) {
  GradGuard off(false);
  if (a.size(-2) >= a.size(-1)) return device_linalg.svd(scratch_columns(a), u, s, vh, info);
  // A^H = W S Z^H makes A = Z S W^H.
  const Tensor turned = scratch_columns(adjoint(a));
  if (!u.defined()) return device_linalg.svd(turned, u, s, vh, info);
  const int64_t m = a.size(-2), n = a.size(-1);
  const Tensor w = empty_columns(batch_of(a), n, vh.size(-2), a.dtype(), a.device()),
               zh = empty_columns(batch_of(a), m, m, a.dtype(), a.device());
  device_linalg.svd(turned, w, s, zh, info);
  op::copy_(u, adjoint(zh));
  op::copy_(vh, adjoint(w));
}

static void compute_svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh) {
  Tensor info = empty_info(a);
  if (a.is_cuda()) {
    device_svd(a, u, s, vh, info);
    info = noting_infinities(a, info);
  } else {
    cpu_svd(a, u, s, vh, info);
  }
  check_info(info, describe_svd);
}

static void compute_eigh(const Tensor& a, bool lower, const Tensor& values, const Tensor& vectors) {
  Tensor info = empty_info(a);
  if (a.is_cuda()) {
    const Tensor work = scratch_columns(a);
    device_linalg.eigh(work, lower, vectors.defined(), values, info);
    GradGuard off(false);
    if (vectors.defined()) op::copy_(vectors, work);
    info = noting_infinities(a, info);
  } else {
    cpu_eigh(a, lower, values, vectors, info);
  }
  check_info(info, describe_eigh);
}

static void compute_eig(const Tensor& a, const Tensor& values, const Tensor& vectors) {
  Tensor info = empty_info(a);
  if (a.is_cuda()) {
    GradGuard off(false);
    const Tensor work = scratch_columns(op::_to_copy(a, to_complex(a.dtype()), a.device()));
    device_linalg.eig(work, values, vectors, info);
    info = noting_infinities(a, info);
  } else {
    cpu_eig(a, values, vectors, info);
  }
  check_info(info, describe_eig);
}

// ---- singular values

static void check_svd(const Tensor& a, std::string_view driver) {
  require_matrix(a, "A");
  require_lapack_dtype(a, "A");
  if (!driver.empty() && !a.is_cuda())
    runtime_error("keyword argument `driver=` is only supported on CUDA inputs, got '", driver,
                  "' for a tensor on ", a.device());
  if (!driver.empty() && driver != "gesvd")
    runtime_error("unknown svd driver '", driver, "'; on CUDA there is 'gesvd'");
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
    compute_svd(a, u, s, vh);
  }
  return {u, s, vh};
}

Tensor linalg_svdvals(const Tensor& a, std::string_view driver) {
  check_svd(a, driver);
  Tensor s = empty_values(a, std::min(a.size(-2), a.size(-1)), to_real(a.dtype()));
  if (!a.is_meta() && a.numel()) compute_svd(a, Tensor(), s, Tensor());
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
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view uplo) {
  const bool lower = reads_lower(uplo);
  check_eigh(self);
  const int64_t n = self.size(-1);
  Tensor values = empty_values(self, n, to_real(self.dtype())),
         vectors = empty_columns(batch_of(self), n, n, self.dtype(), self.device());
  if (!self.is_meta() && self.numel()) compute_eigh(self, lower, values, vectors);
  return {values, vectors};
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo) {
  const bool lower = reads_lower(uplo);
  check_eigh(self);
  Tensor values = empty_values(self, self.size(-1), to_real(self.dtype()));
  if (!self.is_meta() && self.numel()) compute_eigh(self, lower, values, Tensor());
  return values;
}

// ---- eigenvalues of any square matrices

static void check_eig(const Tensor& a) {
  require_square(a, "A");
  require_lapack_dtype(a, "A");
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) {
  check_eig(self);
  const int64_t n = self.size(-1);
  const DType dtype = to_complex(self.dtype());
  Tensor values = empty_values(self, n, dtype),
         vectors = empty_columns(batch_of(self), n, n, dtype, self.device());
  if (!self.is_meta() && self.numel()) compute_eig(self, values, vectors);
  return {values, vectors};
}

Tensor linalg_eigvals(const Tensor& self) {
  check_eig(self);
  Tensor values = empty_values(self, self.size(-1), to_complex(self.dtype()));
  if (!self.is_meta() && self.numel()) compute_eig(self, values, Tensor());
  return values;
}

// ---- the exponential

// By operators, for devices: the rational approximation of order 13 of A / 2^s, squared s times
// (Higham, 2005). One number is read back, the largest norm.
static Tensor exponential_by_products(const Tensor& a) {
  GradGuard off(false);
  constexpr double kLimit = 5.371920351148152;
  constexpr double b[] = {64764752532480000.,
                          32382376266240000.,
                          7771770303897600.,
                          1187353796428800.,
                          129060195264000.,
                          10559470521600.,
                          670442572800.,
                          33522128640.,
                          1323241920.,
                          40840800.,
                          960960.,
                          16380.,
                          182.,
                          1.};
  const Tensor sums = op::sum_dim(op::abs(a), IntSpan(Dims{-2}));
  const double norm = item_of(op::_to_copy(op::amax(sums), DType::Float64, Device{})).to_double();
  int squarings = 0;
  if (norm > kLimit && std::isfinite(norm)) squarings = int(std::ceil(std::log2(norm / kLimit)));
  const Tensor x = a * std::ldexp(1.0, -squarings);
  const Tensor identity = op::eye(a.size(-1), a.dtype(), std::nullopt, a.device());
  const Tensor x2 = op::matmul(x, x), x4 = op::matmul(x2, x2), x6 = op::matmul(x4, x2);
  const Tensor odd_high = op::matmul(x6, x6 * b[13] + x4 * b[11] + x2 * b[9]);
  const Tensor odd = op::matmul(x, odd_high + x6 * b[7] + x4 * b[5] + x2 * b[3] + identity * b[1]);
  const Tensor even = op::matmul(x6, x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] +
                      x2 * b[2] + identity * b[0];
  Tensor out = op::linalg_solve(even - odd, even + odd);
  for (int i = 0; i < squarings; ++i) out = op::matmul(out, out);
  return op::contiguous(out);
}

Tensor matrix_exp(const Tensor& self) {
  require_square(self, "A");
  if (category(self.dtype()) < Category::Floating) require_lapack_dtype(self, "A");
  if (self.size(-1) <= 1 || self.numel() == 0) return op::exp(op::contiguous(self));
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (self.is_meta()) return out;
  if (self.is_cuda()) {
    const bool narrow = is_reduced_float(self.dtype());
    const Tensor wide = narrow ? op::_to_copy(self, DType::Float32) : self;
    const Tensor result = exponential_by_products(wide);
    return narrow ? op::_to_copy(result, self.dtype()) : result;
  }
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
