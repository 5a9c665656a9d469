// Least squares by LAPACK's four drivers.
#include <cmath>
#include <limits>

#include "cpu/blocked_lstsq.h"
#include "cpu/magnitude.h"
#include "cpu/small_matrix.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/reductions.h"

namespace facula::kernels {

namespace {

enum class Driver { Gels, Gelsy, Gelsd, Gelss };

Driver parse_driver(std::string_view name) {
  if (name.empty() || name == "gelsy") return Driver::Gelsy;
  if (name == "gels") return Driver::Gels;
  if (name == "gelsd") return Driver::Gelsd;
  if (name == "gelss") return Driver::Gelss;
  runtime_error("parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got '", name,
                "'");
}
// On devices there is only the driver for matrices of full rank.
Driver driver_for(const Tensor& a, std::string_view name) {
  if (!a.is_cuda()) return parse_driver(name);
  if (!name.empty() && parse_driver(name) != Driver::Gels)
    runtime_error("parameter `driver` other than `gels` is not supported on CUDA, but got '", name,
                  "'");
  return Driver::Gels;
}
bool gives_singular_values(Driver d) {
  return d == Driver::Gelsd || d == Driver::Gelss;
}

std::string not_full_rank(int info) {
  return text(
      "The least squares solution could not be computed because the input matrix does not "
      "have full rank (element ",
      info,
      " on the diagonal of its triangular factor is zero). The drivers 'gelsy', 'gelsd' and "
      "'gelss' take such matrices");
}
std::string not_converged(int info) {
  return text("The singular values of the input matrix did not converge: ", info,
              " elements of its bidiagonal form stayed nonzero. Does it contain NaN?");
}

// Scratch of one driver for m x n systems with k right-hand sides, for one thread.
template <class T>
class Solver {
 public:
  using R = real_of_t<T>;
  Solver(Driver driver, int m, int n, int k, R rcond)
      : driver_(driver),
        m_(m),
        n_(n),
        k_(k),
        ld_a_(std::max(m, 1)),
        ld_b_(std::max({m, n, 1})),
        rcond_(rcond),
        jpvt_(n) {
    T work(1);
    R rwork(1);
    int iwork = 1;
    call(nullptr, nullptr, nullptr, &work, -1, &rwork, &iwork);
    work_size_ = std::max(1, int(detail::real_part(work)));
    const int least = std::min(m, n);
    real_size_ = std::max({1, 2 * n, 5 * least, int(rwork)});
    integer_size_ = std::max(1, iwork);
  }
  struct Scratch {
    HostArray<T> work;
    HostArray<R> rwork;
    HostArray<int> iwork;
    explicit Scratch(const Solver& s)
        : work(s.work_size_), rwork(s.real_size_), iwork(s.integer_size_) {}
  };
  // a is destroyed, b holds the solution and s the singular values where the driver gives them.
  int run(T* a, T* b, R* s, Scratch& scratch) {
    if constexpr (!is_complex_v<T>) {
      constexpr int kLeast = 4;  // columns that are worth it
      if (driver_ == Driver::Gelsy && m_ >= n_ && n_ >= kLeast && !std::isnan(rcond_) &&
          suits_blocks(largest_magnitude(a, int64_t(m_) * n_),
                       largest_magnitude(b, int64_t(ld_b_) * k_))) {
        rank_ = blocked_lstsq(m_, n_, k_, a, b, ld_b_, rcond_);
        return 0;
      }
    }
    return call(a, b, s, scratch.work.data(), work_size_, scratch.rwork.data(),
                scratch.iwork.data());
  }
  int rank() const { return rank_; }

 private:
  // A matrix of zeros has no rank to find; small right-hand sides lose nothing.
  static bool suits_blocks(R matrix, R sides) {
    return matrix > 0 && is_moderate(matrix) && (sides < 1 || is_moderate(sides));
  }

  int call(T* a, T* b, R* s, T* work, int lwork, R* rwork, int* iwork) {
    switch (driver_) {
      case Driver::Gels: return lapack::gels('N', m_, n_, k_, a, ld_a_, b, ld_b_, work, lwork);
      case Driver::Gelsy:
        std::fill_n(jpvt_.data(), n_, 0);  // every column may move
        return lapack::gelsy(m_, n_, k_, a, ld_a_, b, ld_b_, jpvt_.data(), rcond_, &rank_, work,
                             lwork, rwork);
      case Driver::Gelsd:
        return lapack::gelsd(m_, n_, k_, a, ld_a_, b, ld_b_, s, rcond_, &rank_, work, lwork, rwork,
                             iwork);
      default:
        return lapack::gelss(m_, n_, k_, a, ld_a_, b, ld_b_, s, rcond_, &rank_, work, lwork, rwork);
    }
  }
  Driver driver_;
  int m_, n_, k_, ld_a_, ld_b_;
  R rcond_;
  HostArray<int> jpvt_;
  int rank_ = 0, work_size_ = 1, real_size_ = 1, integer_size_ = 1;
};

template <class T>
real_of_t<T> sum_of_squares(const T* x, int64_t n) {
  real_of_t<T> sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += detail::real_part(x[i] * detail::conjugate(x[i]));
  return sum;
}

}  // namespace

// Every result has the batch dimensions, so that it can be batched further; the residuals have no
// columns where they are not known.
std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_lstsq(const Tensor& A, const Tensor& B,
                                                         std::optional<double> rcond,
                                                         std::string_view driver_name) {
  const Driver driver = driver_for(A, driver_name);
  const int64_t m = A.size(-2), n = A.size(-1), k = B.size(-1), least = std::min(m, n);
  const int64_t ld = std::max({m, n, int64_t(1)});
  const Dims batch = broadcast_batches(A, B);
  const DType real = to_real(A.dtype());
  // LAPACK puts the solution where the right-hand sides were.
  Tensor buffer = empty_columns(batch, ld, k, A.dtype(), A.device());
  Tensor solution =
      alias_tensor(buffer, with_matrix(batch, n, k), buffer.strides(), buffer.offset());
  Dims residual_shape(batch), value_shape(batch);
  residual_shape.push_back(m > n && driver != Driver::Gelsy ? k : 0);
  value_shape.push_back(gives_singular_values(driver) ? least : 0);
  Tensor residuals = empty_tensor(residual_shape, real, A.device());
  Tensor rank = empty_tensor(batch, DType::Int64, A.device());
  Tensor values = empty_tensor(value_shape, real, A.device());
  if (A.is_meta() || rank.numel() == 0) return {solution, residuals, rank, values};
  if (A.is_cuda()) {
    GradGuard off(false);
    op::fill_(rank, int64_t(least));
    if (least == 0 || k == 0) {
      op::zero_(solution);
    } else if (m >= n) {
      auto [Q, R] = op::linalg_qr(A, "reduced");
      op::copy_(solution, op::linalg_solve_triangular(R, op::matmul(adjoint(Q), B), true));
    } else {  // the shortest solution lies in the space of the rows
      auto [Q, R] = op::linalg_qr(adjoint(A), "reduced");
      op::copy_(solution, op::matmul(Q, op::linalg_solve_triangular(adjoint(R), B, false)));
    }
    if (residuals.numel()) {
      const Tensor rest = op::abs(B - op::matmul(A, solution));
      op::copy_(residuals, op::sum_dim(rest * rest, IntSpan(Dims{-2})));
    }
    return {solution, residuals, rank, values};
  }
  Tensor info = empty_tensor(batch, DType::Int32, A.device());
  const MatrixBatch in(A, batch), rhs(B, batch), out(buffer);
  const int rows = lapack_int(m), columns = lapack_int(n), sides = lapack_int(k);
  int64_t* ranks = rank.data_as<int64_t>();
  int* infos = info.data_as<int>();
  dispatch_lapack(A.dtype(), [&]<class T> {
    using R = real_of_t<T>;
    const R tolerance = rcond ? R(*rcond) : std::numeric_limits<R>::epsilon() * R(std::max(m, n));
    R* norms = residuals.data_as<R>();
    R* singular = values.data_as<R>();
    const int64_t norm_count = residual_shape.back(), value_count = value_shape.back();
    const auto solve = [&](int64_t begin, int64_t end) {
      Solver<T> solver(driver, rows, columns, sides, tolerance);
      typename Solver<T>::Scratch scratch(solver);
      HostArray<T> a(std::max<int64_t>(m * n, 1));
      HostArray<R> spare(std::max<int64_t>(least, 1));
      for (int64_t i = begin; i < end; ++i) {
        T* b = out.at<T>(i);
        copy_to_columns(a.data(), std::max<int64_t>(m, 1), in, i);
        copy_to_columns(b, ld, rhs, i);
        for (int64_t j = 0; j < k; ++j) std::fill(b + j * ld + m, b + (j + 1) * ld, T(0));
        if (least == 0) {  // nothing to solve, nothing to converge
          infos[i] = 0;
          ranks[i] = 0;
        } else {
          infos[i] = solver.run(a.data(), b, spare.data(), scratch);
          ranks[i] = driver == Driver::Gels ? least : solver.rank();
        }
        std::copy_n(spare.data(), value_count, singular + i * value_count);
        for (int64_t j = 0; j < norm_count; ++j)
          norms[i * norm_count + j] = sum_of_squares(b + j * ld + n, m - n);
      }
    };
    for_matrices(out.count(), 4.0 * m * n * (least + k), solve,
                 driver == Driver::Gelsy && m >= n && is_blocked<T>(rows, columns));
  });
  check_info(info, driver == Driver::Gels ? not_full_rank : not_converged);
  // What lies below the solution is a residual only if all columns count.
  if (driver != Driver::Gels &&
      std::any_of(ranks, ranks + rank.numel(), [&](int64_t r) { return r < n; })) {
    residual_shape[residual_shape.size() - 1] = 0;
    residuals = empty_tensor(residual_shape, real, A.device());
  }
  return {solution, residuals, rank, values};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::string_view driver_name) {
  require_matrix(self, "input");
  if (b.dim() < 1) runtime_error("other must have at least 1 dimension, but it has none");
  require_lapack_dtype(self, "input");
  require_same_dtype(self, "input", b, "other");
  const int64_t extra = self.dim() - b.dim();
  if (extra < 0 || extra > 1)
    runtime_error(
        "input.dim() must be greater or equal to other.dim() and (input.dim() - "
        "other.dim()) <= 1, but the shapes are ",
        self.sizes(), " and ", b.sizes());
  Tensor B = extra ? op::unsqueeze(b, -1) : b;
  if (self.size(-2) != B.size(-2))
    runtime_error("input.size(-2) should match other.size(", extra ? -1 : -2,
                  "), the number of equations, but the shapes are ", self.sizes(), " and ",
                  b.sizes());
  const Driver driver = driver_for(self, driver_name);
  auto [solution, residuals, rank, values] = op::_linalg_lstsq(self, B, rcond, driver_name);
  if (extra) solution = op::squeeze_dim(solution, Dims{-1});
  // Results that a driver does not give are empty vectors, whatever the batch.
  if (residuals.size(-1) == 0) residuals = op::reshape(residuals, Dims{0});
  for (int64_t d = 0; d < rank.dim(); ++d) {  // one for each matrix, not for each solution
    if (self.size(d) != 1) continue;
    rank = op::narrow(rank, d, 0, 1);
    values = op::narrow(values, d, 0, 1);
  }
  if (driver == Driver::Gels) rank = op::new_empty(rank, Dims{0});
  if (!gives_singular_values(driver)) values = op::new_empty(values, Dims{0});
  return {solution, residuals, rank, values};
}

// ---- derivatives

// X = A^+ B and, for matrices A of constant rank,
//   dA^+ = -A^+ dA A^+ + A^+ A^+H dA^H (I - A A^+) + (I - A^+ A) dA^H A^+H A^+.
// A^+ times something is a least squares problem itself. The residuals |B - A X|^2 only vary with A
// and B, as they are least in X.
static Tensor pseudo_solve(const Tensor& A, const Tensor& B, std::optional<double> rcond,
                           std::string_view driver) {
  return std::get<0>(op::_linalg_lstsq(A, B, rcond, driver));
}
static Tensor residual_grad(const Tensor& grad_residuals, const Tensor& A, const Tensor& B,
                            const Tensor& X) {
  return (B - op::matmul(A, X)) * op::unsqueeze(grad_residuals, -2) * 2;
}

Tensor _lstsq_grad_A(const Tensor& grad_solution, const Tensor& grad_residuals, const Tensor& A,
                     const Tensor& B, const Tensor& X, std::optional<double> rcond,
                     std::string_view driver) {
  const int64_t m = A.size(-2), n = A.size(-1);
  const bool full_rank = parse_driver(driver) == Driver::Gels;
  Tensor Ah = adjoint(A), Z = pseudo_solve(Ah, grad_solution, rcond, driver);
  Tensor gA = -op::matmul(Z, adjoint(X));
  if (m > n || !full_rank)  // B has a part outside of the columns of A
    gA = gA + op::matmul(B - op::matmul(A, X), adjoint(pseudo_solve(A, Z, rcond, driver)));
  if (m < n || !full_rank)  // the solution has the least norm among many
    gA = gA +
         op::matmul(pseudo_solve(Ah, X, rcond, driver), adjoint(grad_solution - op::matmul(Ah, Z)));
  if (grad_residuals.size(-1) > 0)
    gA = gA - op::matmul(residual_grad(grad_residuals, A, B, X), adjoint(X));
  return gA;
}

Tensor _lstsq_grad_B(const Tensor& grad_solution, const Tensor& grad_residuals, const Tensor& A,
                     const Tensor& B, const Tensor& X, std::optional<double> rcond,
                     std::string_view driver) {
  Tensor gB = pseudo_solve(adjoint(A), grad_solution, rcond, driver);
  if (grad_residuals.size(-1) > 0) gB = gB + residual_grad(grad_residuals, A, B, X);
  return gB;
}

}  // namespace facula::kernels
