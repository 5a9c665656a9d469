// Linear systems, inverses and determinants.
#include <limits>

#include "cpu/small_matrix.h"
#include "cpu/triangle.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_lu.h"
#include "kernels/linalg_matrices.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_solve.h"
#include "transform/wrapper.h"

namespace facula::kernels {

// ---- solve

static std::string singular_system(int info) {
  return text("The solver failed because the input matrix is singular: the pivot in row ", info,
              " of its LU factorization is zero");
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_solve_ex(const Tensor& A, const Tensor& B,
                                                            bool left, bool check_errors) {
  require_lapack_dtype(A, "A");
  require_system(A, "A", B, "B", left);
  const Dims batch = broadcast_batches(A, B);
  LuFactors f = factor_matrices(A);
  if (check_errors) check_info(f.info, singular_system);
  Tensor x = empty_solution(batch, B, left);
  if (!x.is_meta()) solve_factored(f.lu, f.pivots, B, x, left, false);
  return {x, f.lu, f.pivots, f.info};
}

// One vector, or as many vectors as there are matrices.
static bool is_vector(const Tensor& A, const Tensor& B) {
  return B.dim() == 1 ||
         (A.dim() - 1 == B.dim() && same(A.sizes().first(size_t(B.dim())), B.sizes()));
}

static std::tuple<Tensor, Tensor> solve_any(const Tensor& A, const Tensor& B, bool left,
                                            bool check_errors) {
  require_matrix(A, "A");
  const bool vector = is_vector(A, B);
  if (vector && !left)
    runtime_error("with left=False, B must be a matrix or a batch of matrices, but its shape ",
                  B.sizes(), " is that of vectors for A of shape ", A.sizes(),
                  "; x A = b is solved by linalg.solve(A.mT, b)");
  auto [x, lu, pivots, info] =
      op::_linalg_solve_ex(A, vector ? op::unsqueeze(B, -1) : B, left, check_errors);
  if (!vector) return {x, info};
  x = op::squeeze_dim(x, Dims{-1});
  if (x.dim() > 1)  // PyTorch lays a batch of vectors out like a matrix
    x = transposed(op::clone(transposed(x), MemoryFormat::Contiguous));
  return {x, info};
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  return solve_any(A, B, left, check_errors);
}
Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  return std::get<0>(solve_any(A, B, left, true));
}

// A^-H g (or g A^-H): from the factors at hand, or from A itself where the result is to be
// differentiated again, by a tape or in forward mode: the factors are constants to both.
static Tensor solve_adjoint(const Tensor& A, const Tensor& LU, const Tensor& pivots,
                            const Tensor& g, bool left) {
  if (!is_followed(A)) return op::linalg_lu_solve(LU, pivots, g, left, true);
  return std::get<0>(op::_linalg_solve_ex(adjoint(A), g, left, true));
}

Tensor _solve_grad_B(const Tensor& grad, const Tensor& A, const Tensor& LU, const Tensor& pivots,
                     bool left) {
  return solve_adjoint(A, LU, pivots, grad, left);
}
Tensor _solve_grad_A(const Tensor& grad, const Tensor& A, const Tensor& result, const Tensor& LU,
                     const Tensor& pivots, bool left) {
  Tensor gB = solve_adjoint(A, LU, pivots, grad, left);
  return -(left ? op::matmul(gB, adjoint(result)) : op::matmul(adjoint(result), gB));
}

// ---- inverse

static std::string singular_inverse(int info) {
  return text("The diagonal element ", info,
              " is zero, the inversion could not be completed because the input matrix is "
              "singular.");
}

namespace {

// By LAPACK; otherwise the columns of the unit matrix are solved for.
template <class T>
bool inverts_in_place(int n) {
  return n > kSmallMatrix && is_complex_v<T>;
}

// a holds a matrix and receives its inverse, or NaN when there is none. `spare` has n * n elements
// for small ones.
template <class T>
int invert(int n, T* a, T* spare, int* pivots, T* work, int work_size) {
  int info = factor_lu(n, n, a, n, pivots);
  if (info == 0 && inverts_in_place<T>(n)) {
    info = lapack::getri(n, a, n, pivots, work, work_size);
  } else if (info == 0 && n > kSmallMatrix) {
    if constexpr (!is_complex_v<T>) {
      const Strided<const T> factors{a, 1, n};
      const Triangle<T> lower(false, true, n, factors), upper(true, false, n, factors);
      invert_triangles(lower, upper, n, pivots, a);
    }
  } else if (info == 0) {
    std::copy_n(a, int64_t(n) * n, spare);
    std::fill_n(a, int64_t(n) * n, T(0));
    for (int64_t i = 0; i < n; ++i) a[i + i * n] = T(1);
    solve_lu('N', n, n, spare, n, pivots, a, n);
  }
  if (info > 0) std::fill_n(a, int64_t(n) * n, T(std::numeric_limits<real_of_t<T>>::quiet_NaN()));
  return info;
}

template <class T>
int inverse_work(int n) {
  if (!inverts_in_place<T>(n)) return 0;
  T best;
  lapack::getri<T>(n, nullptr, n, nullptr, &best, -1);
  return std::max(n, int(detail::real_part(best)));
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors) {
  require_square(A, "A");
  require_lapack_dtype(A, "A");
  const Dims batch(batch_of(A));
  const int64_t n = A.size(-1);
  Tensor inverse = empty_columns(batch, n, n, A.dtype(), A.device());
  Tensor info = empty_tensor(batch, DType::Int32, A.device());
  if (A.is_meta() || info.numel() == 0) return {inverse, info};
  if (A.is_cuda()) {
    GradGuard off(false);
    const LuFactors f = factor_matrices(A);
    if (n) {
      const Tensor identity = op::eye(n, A.dtype(), std::nullopt, A.device());
      solve_factored(f.lu, f.pivots, op::expand(identity, A.sizes()), inverse, true, false);
      const Tensor singular = op::unsqueeze(op::unsqueeze(op::gt(f.info, 0), -1), -1);
      op::copy_(inverse, op::where(singular, std::numeric_limits<double>::quiet_NaN(), inverse));
    }
    if (check_errors) check_info(f.info, singular_inverse);
    return {inverse, f.info};
  }
  const MatrixBatch in(A), out(inverse);
  const int size = lapack_int(n);
  int* infos = info.data_as<int>();
  dispatch_lapack(A.dtype(), [&]<class T> {
    if constexpr (std::is_floating_point_v<T>) {
      if (fits_lanes<T>(n, in.count()))
        return for_lanes<T>(in.count(), [&](int64_t first, int count) {
          matrix_lanes<T>().invert(size, count, lanes_of<T>(in, first, count),
                                   inverse.data_as<T>() + first * n * n, infos + first);
        });
    }
    const int work_size = inverse_work<T>(size);
    for_matrices(
        in.count(), 2.0 * n * n * n,
        [&](int64_t begin, int64_t end) {
          HostArray<int> pivots(n);
          HostArray<T> work(work_size);
          HostArray<T> spare(n > kSmallMatrix ? 0 : n * n);
          for (int64_t i = begin; i < end; ++i) {
            copy_to_columns(out.at<T>(i), n, in, i);
            infos[i] = n == 0 ? 0
                              : invert(size, out.at<T>(i), spare.data(), pivots.data(), work.data(),
                                       work_size);
          }
        },
        !is_complex_v<T>);
  });
  if (check_errors) check_info(info, singular_inverse);
  return {inverse, info};
}

Tensor linalg_inv(const Tensor& A) {
  return std::get<0>(op::linalg_inv_ex(A, true));
}

Tensor _inverse_grad(const Tensor& grad, const Tensor& inverse) {
  Tensor a = adjoint(inverse);
  return -op::matmul(a, op::matmul(grad, a));
}

// ---- tensors as matrices

static int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}
static Dims concatenated(IntSpan a, IntSpan b) {
  Dims sizes(a);
  for (int64_t size : b) sizes.push_back(size);
  return sizes;
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  if (ind <= 0) runtime_error("Expected a strictly positive integer for 'ind', but got ", ind);
  const IntSpan sizes = self.sizes();
  const size_t split = size_t(std::min(ind, self.dim()));
  const IntSpan first = sizes.first(split), rest = sizes.subspan(split);
  const int64_t n = product(rest);
  if (n != product(first))
    runtime_error(
        "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
        "prod(self.shape[:ind]), but got ",
        n, " != ", product(first), " for shape ", sizes, " and ind=", ind);
  return op::reshape(op::linalg_inv(op::reshape(self, Dims{n, n})), concatenated(rest, first));
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, std::optional<IntSpan> dims) {
  Tensor a = self;
  if (dims && !dims->empty()) {
    Dims last;
    for (size_t i = 0; i < dims->size(); ++i)
      last.push_back(self.dim() - int64_t(dims->size()) + int64_t(i));
    a = op::movedim(self, *dims, last);
  }
  const size_t split = size_t(std::min(other.dim(), a.dim()));
  const IntSpan first = a.sizes().first(split), rest = a.sizes().subspan(split);
  const int64_t n = product(rest);
  if (n != product(first))
    runtime_error(
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
        "prod(self.shape[:other.ndim]), but got ",
        n, " != ", product(first), " for self of shape ", a.sizes(),
        " (after moving dims to the end) and other of shape ", other.sizes());
  if (other.numel() != n)
    runtime_error("other of shape ", other.sizes(), " must have ", n,
                  " elements, as many as the first dimensions of self of shape ", a.sizes());
  return op::reshape(op::linalg_solve(op::reshape(a, Dims{n, n}), op::reshape(other, Dims{n})),
                     Dims(rest));
}

// ---- powers

Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  require_square(self, "A");
  if (n == 0) {
    Tensor eye = op::eye(self.size(-1), self.dtype(), std::nullopt, self.device());
    // A constant, but one with a (zero) derivative by self.
    return op::copy_(op::clone(self, MemoryFormat::Contiguous), eye);
  }
  if (n == 1) return op::clone(self);
  if (n == -1) return op::linalg_inv(self);
  Tensor square = n < 0 ? op::linalg_inv(self) : self, result;
  for (uint64_t rest = n < 0 ? 0 - uint64_t(n) : uint64_t(n);;) {
    if (rest & 1) result = result.defined() ? op::matmul(result, square) : square;
    if ((rest >>= 1) == 0) return result;
    square = op::matmul(square, square);
  }
}

}  // namespace facula::kernels
