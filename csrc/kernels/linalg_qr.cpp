// QR factorisation and products of Householder reflectors.
#include "cpu/small_matrix.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/reductions.h"

namespace facula::kernels {

namespace {

// The answer to a workspace query, at least 1.
template <class T, class F>
int best_size(F&& query) {
  T best(1);
  query(&best);
  return std::max(1, int(detail::real_part(best)));
}

// The upper triangle of rows x columns, zeros below it.
template <class T>
void copy_upper(T* to, int64_t rows, const T* from, int64_t ld, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    const int64_t kept = std::min(j + 1, rows);
    if (to != from) std::copy_n(from + j * ld, kept, to + j * rows);
    std::fill(to + j * rows + kept, to + (j + 1) * rows, T(0));
  }
}

enum class QrMode { Reduced, Complete, R };

QrMode parse_mode(std::string_view mode) {
  if (mode == "reduced") return QrMode::Reduced;
  if (mode == "complete") return QrMode::Complete;
  if (mode == "r") return QrMode::R;
  runtime_error("qr received unrecognized mode '", mode,
                "' but expected one of 'reduced' (default), 'r', or 'complete'");
}

}  // namespace

// In the mode 'r', Q has no columns.
std::tuple<Tensor, Tensor> _linalg_qr(const Tensor& A, std::string_view mode_name) {
  require_matrix(A, "A");
  require_lapack_dtype(A, "A");
  const QrMode mode = parse_mode(mode_name);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const Dims batch(batch_of(A));
  // Q and R are m x inner and inner x n.
  const int64_t inner = mode == QrMode::Complete ? m : k;
  Tensor Q = empty_columns(batch, m, mode == QrMode::R ? 0 : inner, A.dtype(), A.device());
  Tensor R = empty_columns(batch, inner, n, A.dtype(), A.device());
  if (A.is_meta() || (Q.numel() == 0 && R.numel() == 0)) return {Q, R};
  if (A.is_cuda()) {
    GradGuard off(false);
    Dims tau_shape(batch);
    tau_shape.push_back(k);
    const Tensor factored = columns_of(A, batch),
                 tau = empty_tensor(tau_shape, A.dtype(), A.device());
    if (k) device_linalg.qr(factored, tau);
    if (R.numel()) op::copy_(R, op::triu(first_rows(factored, inner)));
    if (mode != QrMode::R && Q.numel()) {
      if (k == 0) op::copy_(Q, op::eye(m, A.dtype(), std::nullopt, A.device()));
      else op::copy_(first_columns(Q, k), first_columns(factored, k));
      if (k) device_linalg.householder_product(Q, tau);
    }
    return {Q, R};
  }
  const int rows = lapack_int(m), columns = lapack_int(n), reflectors = int(k),
            ld = std::max(rows, 1);
  const MatrixBatch in(A);
  dispatch_lapack(A.dtype(), [&]<class T> {
    const int work_size = std::max(
        best_size<T>([&](T* w) { lapack::geqrf<T>(rows, columns, nullptr, ld, nullptr, w, -1); }),
        best_size<T>([&](T* w) {
          lapack::orgqr<T>(rows, int(inner), reflectors, nullptr, ld, nullptr, w, -1);
        }));
    for_matrices(
        in.count(), 4.0 * m * n * k,
        [&](int64_t begin, int64_t end) {
          HostArray<T> work(work_size), tau(k);
          // A tall matrix is factored where Q will be, a wide one where R will be.
          HostArray<T> spare(mode == QrMode::R && m >= n ? m * n : 0);
          for (int64_t i = begin; i < end; ++i) {
            T* r = R.data_as<T>() + i * inner * n;
            T* q = mode == QrMode::R ? spare.data() : Q.data_as<T>() + i * m * inner;
            T* factored = m >= n ? q : r;
            copy_to_columns(factored, ld, in, i);
            factor_qr(rows, columns, factored, ld, tau.data(), work.data(), work_size);
            if (m < n && mode != QrMode::R) std::copy_n(factored, m * m, q);
            copy_upper(r, inner, factored, ld, n);
            if (mode != QrMode::R)
              expand_qr(rows, int(inner), reflectors, q, ld, tau.data(), work.data(), work_size);
          }
        },
        is_qr_blocked<T>(rows, columns));
  });
  return {Q, R};
}

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) {
  auto [Q, R] = op::_linalg_qr(A, mode);
  return {mode == "r" ? op::new_empty(Q, Dims{0}) : Q, R};
}

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return op::linalg_qr(self, some ? "reduced" : "complete");
}

// Q^H dQ is skew-Hermitian and dR R^-1 upper triangular with a real diagonal, which splits
// Q^H dA R^-1 between them. Columns of A beyond the square only turn with Q.
Tensor _qr_grad(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R,
                std::string_view mode_name) {
  const QrMode mode = parse_mode(mode_name);
  if (mode == QrMode::R)
    runtime_error(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
        "Please use linalg.qr(A, mode='reduced') if you are going to differentiate "
        "through linalg.qr.");
  const int64_t m = Q.size(-2), n = R.size(-1), k = std::min(m, n);
  if (mode == QrMode::Complete && m > n)
    runtime_error(
        "The QR decomposition is not differentiable when mode='complete' and nrows > "
        "ncols (",
        m, " > ", n,
        "): the last columns of Q are not determined by A. Use "
        "mode='reduced'");
  Tensor gQ = grad_Q, gR = first_columns(grad_R, k), R1 = first_columns(R, k);
  if (m < n) {
    Tensor rest = op::matmul(Q, last_columns(R, n - k));
    gQ = gQ + op::matmul(rest, adjoint(last_columns(grad_R, n - k)));
  }
  Tensor upper = op::triu(op::matmul(gR, adjoint(R1)) - op::matmul(adjoint(Q), gQ));
  Tensor both = upper + adjoint(upper);
  Tensor hermitian = both - op::tril(op::triu(both)) * 0.5;
  Tensor gA = op::linalg_solve_triangular(adjoint(R1), gQ + op::matmul(Q, hermitian), false, false);
  if (m >= n) return gA;
  return op::cat(std::vector<Tensor>{gA, op::matmul(Q, last_columns(grad_R, n - k))}, -1);
}

// ---- reflectors

std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  require_matrix(self, "input");
  require_lapack_dtype(self, "input", ErrorKind::NotImplemented);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  const Dims batch(batch_of(self));
  Dims tau_shape(batch);
  tau_shape.push_back(k);
  Tensor a = empty_columns(batch, m, n, self.dtype(), self.device());
  Tensor tau = empty_tensor(tau_shape, self.dtype(), self.device());
  if (self.is_meta() || a.numel() == 0) return {a, tau};
  if (self.is_cuda()) {
    GradGuard off(false);
    op::copy_(a, self);
    device_linalg.qr(a, tau);
    return {a, tau};
  }
  const MatrixBatch in(self), out(a);
  const int rows = lapack_int(m), columns = lapack_int(n);
  dispatch_lapack(self.dtype(), [&]<class T> {
    const int work_size =
        best_size<T>([&](T* w) { lapack::geqrf<T>(rows, columns, nullptr, rows, nullptr, w, -1); });
    for_matrices(
        in.count(), 2.0 * m * n * k,
        [&](int64_t begin, int64_t end) {
          HostArray<T> work(work_size);
          for (int64_t i = begin; i < end; ++i) {
            copy_to_columns(out.at<T>(i), m, in, i);
            factor_qr(rows, columns, out.at<T>(i), rows, tau.data_as<T>() + i * k, work.data(),
                      work_size);
          }
        },
        is_qr_blocked<T>(rows, columns));
  });
  return {a, tau};
}

namespace {

// The batch dimensions that the operands of a product of reflectors share.
Dims reflector_batch(const Tensor& a, IntSpan tau_batch) {
  if (!is_expandable(tau_batch, batch_of(a)) && !is_expandable(batch_of(a), tau_batch))
    runtime_error("Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
                  tau_batch, " and ", batch_of(a));
  return broadcast_shapes(batch_of(a), tau_batch);
}

// tau with a column dimension, contiguous in the batch shape.
Tensor expanded_tau(const Tensor& tau, IntSpan batch) {
  Dims shape(batch);
  shape.push_back(tau.size(-1));
  GradGuard off(false);
  return op::contiguous(op::expand(tau, shape));
}

void require_tau(const Tensor& input, const Tensor& tau) {
  if (tau.dim() + 1 != input.dim())
    runtime_error("Expected tau to have one dimension less than input, but got tau.ndim equal to ",
                  tau.dim(), " and input.ndim is equal to ", input.dim());
  if (tau.dtype() != input.dtype())
    runtime_error("Expected input and tau to have the same dtype: tau dtype ",
                  legacy_dtype_name(tau.dtype()), " does not match input dtype ",
                  legacy_dtype_name(input.dtype()));
  if (tau.device() != input.device()) device_error(input.device(), tau.device());
}

}  // namespace

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  require_matrix(input, "input");
  require_tau(input, tau);
  require_lapack_dtype(input, "input", ErrorKind::NotImplemented);
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  if (m < n)
    runtime_error(
        "input.shape[-2] must be greater than or equal to input.shape[-1], but input has "
        "shape ",
        input.sizes());
  if (n < k)
    runtime_error(
        "input.shape[-1] must be greater than or equal to tau.shape[-1], but the shapes "
        "are ",
        input.sizes(), " and ", tau.sizes());
  const Dims batch = reflector_batch(input, tau.sizes().first(size_t(tau.dim() - 1)));
  Tensor Q = empty_columns(batch, m, n, input.dtype(), input.device());
  if (Q.is_meta() || Q.numel() == 0) return Q;
  const Tensor scales = expanded_tau(tau, batch);
  if (input.is_cuda()) {
    GradGuard off(false);
    if (k == 0) {
      op::copy_(Q, op::eye_m(m, n, Q.dtype(), std::nullopt, Q.device()));
    } else {
      op::copy_(Q, input);
      device_linalg.householder_product(Q, scales);
    }
    return Q;
  }
  const MatrixBatch in(input, batch), out(Q);
  const int rows = lapack_int(m), columns = lapack_int(n), reflectors = int(k);
  dispatch_lapack(Q.dtype(), [&]<class T> {
    const int work_size = best_size<T>(
        [&](T* w) { lapack::orgqr<T>(rows, columns, reflectors, nullptr, rows, nullptr, w, -1); });
    for_matrices(
        out.count(), 4.0 * m * n * k,
        [&](int64_t begin, int64_t end) {
          HostArray<T> work(work_size);
          for (int64_t i = begin; i < end; ++i) {
            copy_to_columns(out.at<T>(i), m, in, i);
            expand_qr(rows, columns, reflectors, out.at<T>(i), rows, scales.data_as<T>() + i * k,
                      work.data(), work_size);
          }
        },
        is_qr_blocked<T>(rows, reflectors));
  });
  return Q;
}

Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return op::linalg_householder_product(self, input2);
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
             bool transpose) {
  require_matrix(self, "input");
  require_matrix(input3, "other");
  require_tau(self, input2);
  if (input3.dim() != self.dim())
    runtime_error(
        "Expected other to have the same number of dimensions as input, but got other.ndim equal "
        "to ",
        input3.dim(), " and input.ndim is equal to ", self.dim());
  const int64_t order = input3.size(left ? -2 : -1), k = input2.size(-1);
  const char* side = left ? "-2" : "-1";
  if (k > self.size(-1))
    runtime_error(
        "tau.shape[-1] must be less than or equal to input.shape[-1], but tau.shape[-1] "
        "must be equal to min(other.shape[",
        side, "], input.shape[-1]): the shapes of input, tau and other are ", self.sizes(), ", ",
        input2.sizes(), " and ", input3.sizes());
  if (k != std::min(order, self.size(-1)))
    runtime_error("tau.shape[-1] must be equal to min(other.shape[", side,
                  "], input.shape[-1]), but got ", k, " and min(", order, ", ", self.size(-1), ")");
  if (order != self.size(-2))
    runtime_error("other.shape[", side, "] must be equal to input.shape[-2], but got ", order,
                  " and ", self.size(-2));
  require_lapack_dtype(self, "input", ErrorKind::NotImplemented);
  require_same_dtype(self, "input", input3, "other");
  const Dims reflectors = reflector_batch(self, input2.sizes().first(size_t(input2.dim() - 1)));
  if (!is_expandable(reflectors, batch_of(input3)) && !is_expandable(batch_of(input3), reflectors))
    runtime_error("Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
                  batch_of(input3), " and ", batch_of(self));
  const Dims batch = broadcast_shapes(reflectors, batch_of(input3));
  Tensor C = empty_columns(batch, input3.size(-2), input3.size(-1), self.dtype(), self.device());
  if (C.is_meta() || C.numel() == 0) return C;
  const Tensor scales = expanded_tau(input2, batch);
  if (self.is_cuda()) {
    GradGuard off(false);
    op::copy_(C, input3);
    if (k) device_linalg.multiply_by_q(columns_of(self, batch), scales, C, left, transpose);
    return C;
  }
  const MatrixBatch factors(self, batch), other(input3, batch), out(C);
  const int rows = lapack_int(C.size(-2)), columns = lapack_int(C.size(-1)), count = int(k);
  dispatch_lapack(C.dtype(), [&]<class T> {
    const char from = left ? 'L' : 'R', trans = transpose ? 'T' : 'N';
    const int work_size = best_size<T>([&](T* w) {
      lapack::ormqr<T>(from, trans, rows, columns, count, nullptr, int(order), nullptr, nullptr,
                       rows, w, -1);
    });
    for_matrices(out.count(), 4.0 * rows * columns * count, [&](int64_t begin, int64_t end) {
      HostArray<T> work(work_size);
      const ReadableMatrices<T> a(factors);
      for (int64_t i = begin; i < end; ++i) {
        copy_to_columns(out.at<T>(i), rows, other, i);
        lapack::ormqr(from, trans, rows, columns, count, a.at(i), a.leading(),
                      scales.data_as<T>() + i * k, out.at<T>(i), rows, work.data(), work_size);
      }
    });
  });
  return C;
}

// ---- derivatives of products with reflectors

namespace {

// H_1 ... H_k = I - V T V^H with V unit lower trapezoidal and T = M^-1 D, where D = diag(tau) and
// M = I + D S is unit upper triangular, S = V^H V above the diagonal. So Q C = C - V Y with
// M Y = D V^H C: matrix products and one triangular solve, instead of a loop over reflectors.
struct ReflectorGrads {
  Tensor V, S, W, Z, gM, scale;  // W = V^H C, Z = M^-H gY; tau as a column

  // grad is that of Q C.
  ReflectorGrads(const Tensor& reflectors, const Tensor& tau, const Tensor& grad, const Tensor& C) {
    const int64_t k = tau.size(-1);
    V = op::tril(first_columns(reflectors, k), -1) +
        op::eye_m(reflectors.size(-2), k, tau.dtype(), std::nullopt, tau.device());
    scale = op::unsqueeze(tau, -1);
    S = op::triu(op::matmul(adjoint(V), V), 1);
    W = op::matmul(adjoint(V), C);
    Tensor M = scale * S;  // the unit diagonal is understood
    Y_ = op::linalg_solve_triangular(M, scale * W, true, true, true);
    Z = op::linalg_solve_triangular(adjoint(M), -op::matmul(adjoint(V), grad), false, true, true);
    gM = op::triu(-op::matmul(Z, adjoint(Y_)), 1);
    grad_ = grad;
    C_ = C;
  }
  Tensor of_tau() const {
    return op::sum_dim(Z * op::conj(W), IntSpan(Dims{-1})) +
           op::sum_dim(gM * op::conj(S), IntSpan(Dims{-1}));
  }
  Tensor of_reflectors(int64_t columns) const {
    Tensor factor = op::conj(scale), gS = factor * gM;
    Tensor gV = op::matmul(V, gS + adjoint(gS)) + op::matmul(C_, adjoint(factor * Z)) -
                op::matmul(grad_, adjoint(Y_));
    gV = op::tril(gV, -1);
    const int64_t unused = columns - V.size(-1);
    if (unused == 0) return gV;
    Dims shape(gV.sizes());
    shape[shape.size() - 1] = unused;
    return op::cat(std::vector<Tensor>{gV, op::new_zeros(gV, shape)}, -1);
  }

 private:
  Tensor Y_, grad_, C_;
};

ReflectorGrads of_product(const Tensor& grad, const Tensor& input, const Tensor& tau) {
  Tensor identity =
      op::eye_m(input.size(-2), input.size(-1), input.dtype(), std::nullopt, input.device());
  return ReflectorGrads(input, tau, grad, identity);
}

// <g, Q^H c> = <c, Q g>^*, and C Q = (Q^H C^H)^H: every side is Q times something.
ReflectorGrads of_multiplication(const Tensor& grad, const Tensor& self, const Tensor& tau,
                                 const Tensor& other, bool left, bool transpose) {
  if (left == transpose)
    return ReflectorGrads(self, tau, left ? other : adjoint(other), left ? grad : adjoint(grad));
  return ReflectorGrads(self, tau, left ? grad : adjoint(grad), left ? other : adjoint(other));
}

}  // namespace

Tensor _householder_grad_input(const Tensor& grad, const Tensor& input, const Tensor& tau) {
  return of_product(grad, input, tau).of_reflectors(input.size(-1));
}
Tensor _householder_grad_tau(const Tensor& grad, const Tensor& input, const Tensor& tau) {
  return of_product(grad, input, tau).of_tau();
}
Tensor _ormqr_grad_self(const Tensor& grad, const Tensor& self, const Tensor& tau,
                        const Tensor& other, bool left, bool transpose) {
  return of_multiplication(grad, self, tau, other, left, transpose).of_reflectors(self.size(-1));
}
Tensor _ormqr_grad_tau(const Tensor& grad, const Tensor& self, const Tensor& tau,
                       const Tensor& other, bool left, bool transpose) {
  return of_multiplication(grad, self, tau, other, left, transpose).of_tau();
}

}  // namespace facula::kernels
