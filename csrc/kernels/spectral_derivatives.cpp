// Derivatives of decompositions, in terms of operators that are differentiable again. Notation: gX
// is the gradient of X, ^H the conjugate transpose.
#include "kernels/linalg_expressions.h"
#include "op/kernels/linalg_spectral.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/linalg_spectral.h"
#include "op/ops/reductions.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static Tensor diagonal_of(const Tensor& m) {
  return op::diagonal(m, 0, -2, -1);
}

// differences(i, j) = v(j) - v(i), and 1 on the diagonal.
static Tensor differences(const Tensor& v) {
  const Tensor d = op::unsqueeze(v, -2) - op::unsqueeze(v, -1);
  return d + op::diag_embed(op::ones_like(v));
}

// Vectors are known up to a phase; a loss must not depend on it. `phase` is its derivative by the
// phase of each vector, which is 0 where the loss is well defined.
Tensor _refuse_phase(const Tensor& phase, std::string_view decomposition,
                     std::string_view vectors) {
  constexpr double kTolerance = 1e-2;
  if (!phase.is_meta() && phase.numel() &&
      !(item_of(op::amax(op::abs(op::contiguous(phase)))).to_double() <= kTolerance))
    runtime_error("the ", vectors, " of ", decomposition,
                  " are specified up to multiplication by e^{i phi} in the complex case. The "
                  "specified loss function depends on this quantity, so it is ill-defined.");
  return alias_tensor(phase);
}

// ---- singular values

// With E(i, j) = S(j)^2 - S(i)^2 and skew(X) = X - X^H:
//   gA = U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + gS] V^H
//        + (I - U U^H) gU S^-1 V^H + U S^-1 gV^H (I - V V^H)
Tensor _svd_grad(const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_vh,
                 const Tensor& u_full, const Tensor& s, const Tensor& vh_full) {
  const int64_t k = s.size(-1), m = u_full.size(-2), n = vh_full.size(-1);
  // Vectors beyond the singular values are arbitrary and get no gradient.
  auto narrowed = [&](const Tensor& t, int64_t dim) {
    return !t.defined() || t.size(dim) == k ? t : op::narrow(t, dim, 0, k);
  };
  const Tensor u = narrowed(u_full, -1), vh = narrowed(vh_full, -2), gu = narrowed(grad_u, -1),
               gvh = narrowed(grad_vh, -2);
  if (!gu.defined() && !gvh.defined()) {
    if (!grad_s.defined()) return Tensor();
    return op::matmul(u * op::unsqueeze(grad_s, -2), vh);
  }
  const Tensor s_row = op::unsqueeze(s, -2), s_column = op::unsqueeze(s, -1);
  const Tensor e = differences(s * s);
  auto skew = [](const Tensor& x) { return x - adjoint(x); };
  Tensor inner, u_part, v_part;
  if (gu.defined()) {
    u_part = skew(op::matmul(adjoint(u), gu));
    inner = u_part / e * s_row;
  }
  if (gvh.defined()) {
    v_part = skew(op::matmul(vh, adjoint(gvh)));
    const Tensor term = s_column * (v_part / e);
    inner = inner.defined() ? inner + term : term;
  }
  if (u.is_complex()) {
    const Tensor phases = !v_part.defined()   ? diagonal_of(u_part)
                          : !u_part.defined() ? diagonal_of(v_part)
                                              : diagonal_of(u_part) + diagonal_of(v_part);
    op::_refuse_phase(op::imag(phases) / 2, "svd", "singular vectors");
    if (u_part.defined() && v_part.defined())
      inner = inner + op::diag_embed(diagonal_of(u_part) / (s * 2));
  }
  if (grad_s.defined()) inner = inner + op::diag_embed(grad_s);
  Tensor result = op::matmul(op::matmul(u, inner), vh);
  if (m > k && gu.defined()) {
    const Tensor scaled = gu / s_row;
    const Tensor outside = scaled - op::matmul(u, op::matmul(adjoint(u), scaled));
    result = result + op::matmul(outside, vh);
  }
  if (n > k && gvh.defined()) {
    const Tensor scaled = gvh / s_column;
    const Tensor outside = scaled - op::matmul(op::matmul(scaled, adjoint(vh)), vh);
    result = result + op::matmul(u, outside);
  }
  return result;
}

Tensor _svdvals_grad(const Tensor& grad, const Tensor& a) {
  const auto [u, s, vh] = op::linalg_svd(a, false);
  return op::matmul(u * op::unsqueeze(grad, -2), vh);
}

// ---- eigenvalues

// gA = V (gL + V^H gV / E) V^H with E(i, j) = L(j) - L(i), and of that the Hermitian part: only
// Hermitian matrices have such a decomposition.
Tensor _eigh_grad(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                  const Tensor& vectors) {
  const Tensor vh = adjoint(vectors);
  if (!grad_vectors.defined()) {
    if (!grad_values.defined()) return Tensor();
    return op::matmul(vectors * op::unsqueeze(grad_values, -2), vh);
  }
  Tensor inner = op::matmul(vh, grad_vectors);
  if (vectors.is_complex())
    op::_refuse_phase(op::imag(diagonal_of(inner)), "linalg.eigh", "eigenvectors");
  inner = inner / differences(values);
  inner = (inner + adjoint(inner)) / 2;
  Tensor diagonal = -diagonal_of(inner);  // along itself a vector of length 1 does not move
  if (grad_values.defined()) diagonal = diagonal + grad_values;
  return op::matmul(vectors, op::matmul(inner + op::diag_embed(diagonal), vh));
}

Tensor _eigvalsh_grad(const Tensor& grad, const Tensor& self, std::string_view uplo) {
  const Tensor vectors = std::get<1>(op::linalg_eigh(self, uplo));
  return op::matmul(vectors * op::unsqueeze(grad, -2), adjoint(vectors));
}

// gA = V^-H (gL + (V^H gV - V^H V Re(diag(V^H gV))) / conj(E)) V^H
Tensor _eig_grad(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                 const Tensor& vectors) {
  if (!grad_values.defined() && !grad_vectors.defined()) return Tensor();
  const Tensor vh = adjoint(vectors);
  if (!grad_vectors.defined()) return op::linalg_solve(vh, op::unsqueeze(grad_values, -1) * vh);
  const Tensor along = op::matmul(vh, grad_vectors), diagonal = diagonal_of(along);
  op::_refuse_phase(op::imag(diagonal), "linalg.eig", "eigenvectors");
  // LAPACK scales vectors to length 1, so nothing moves along them.
  Tensor inner = along - op::matmul(vh, vectors) * op::unsqueeze(op::real(diagonal), -2);
  inner = inner / op::conj(differences(values));
  Tensor on_diagonal = -diagonal_of(inner);
  if (grad_values.defined()) on_diagonal = on_diagonal + grad_values;
  return op::linalg_solve(vh, op::matmul(inner + op::diag_embed(on_diagonal), vh));
}

Tensor _eigvals_grad(const Tensor& grad, const Tensor& self) {
  const Tensor vh = adjoint(std::get<1>(op::linalg_eig(self)));
  return op::linalg_solve(vh, op::unsqueeze(grad, -1) * vh);
}

// ---- functions of matrices

// With P the pseudo-inverse of A:
//   gA = -P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A)
Tensor _pinv_grad(const Tensor& grad, const Tensor& p, const Tensor& a) {
  const Tensor ph = adjoint(p), gh = adjoint(grad);
  const Tensor through = op::matmul(ph, op::matmul(grad, ph));
  if (a.size(-2) <= a.size(-1)) {                // products of the smaller side first
    const Tensor gp = op::matmul(gh, p);         // (m, m)
    const Tensor right = op::matmul(gp, ph);     // (m, n)
    const Tensor rest = gh - op::matmul(gp, a);  // G^H (I - P A)
    return right - op::matmul(op::matmul(a, p), right) - through +
           op::matmul(op::matmul(ph, p), rest);
  }
  const Tensor pg = op::matmul(p, gh);         // (n, n)
  const Tensor left = op::matmul(ph, pg);      // (m, n)
  const Tensor rest = gh - op::matmul(a, pg);  // (I - A P) G^H
  return left - op::matmul(left, op::matmul(p, a)) - through + op::matmul(rest, op::matmul(p, ph));
}

// exp([[X, G], [0, X]]) has the derivative of exp at X in direction G in its upper right block; the
// adjoint of that derivative at A is the derivative at A^H.
Tensor _matrix_exp_grad(const Tensor& grad, const Tensor& self) {
  const int64_t n = self.size(-1);
  const Tensor a = adjoint(self);
  const Tensor upper = op::cat(std::vector<Tensor>{a, grad}, -1),
               lower = op::cat(std::vector<Tensor>{op::zeros_like(a), a}, -1);
  const Tensor whole = op::matrix_exp(op::cat(std::vector<Tensor>{upper, lower}, -2));
  return op::narrow(op::narrow(whole, -2, 0, n), -1, n, n);
}

}  // namespace facula::kernels
