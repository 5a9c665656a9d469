// LU factorisation with row exchanges, and what is read from its factors.
#include "kernels/linalg_lu.h"

#include "cpu/small_matrix.h"
#include "kernels/linalg_expressions.h"
#include "kernels/linalg_matrices.h"
#include "op/hooks/linalg.h"
#include "op/kernels/linalg_solve.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_solve.h"

namespace facula {

LuFactors factor_matrices(const Tensor& a) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Dims batch(batch_of(a));
  Dims pivot_shape(batch);
  pivot_shape.push_back(k);
  LuFactors f{empty_columns(batch, m, n, a.dtype(), a.device()),
              empty_tensor(pivot_shape, DType::Int32, a.device()),
              empty_tensor(batch, DType::Int32, a.device())};
  if (a.is_meta() || f.info.numel() == 0) return f;
  if (a.is_cuda()) {
    GradGuard off(false);
    op::copy_(f.lu, a);
    if (k) device_linalg.lu(f.lu, f.pivots, f.info);
    else op::zero_(f.info);
    return f;
  }
  const MatrixBatch in(a), out(f.lu);
  const int rows = lapack_int(m), columns = lapack_int(n), ld = std::max(rows, 1);
  int *pivots = f.pivots.data_as<int>(), *info = f.info.data_as<int>();
  dispatch_lapack(a.dtype(), [&]<class T> {
    if constexpr (std::is_floating_point_v<T>) {
      if (m == n && fits_lanes<T>(n, in.count()))
        return for_lanes<T>(in.count(), [&](int64_t first, int count) {
          matrix_lanes<T>().factor(columns, count, lanes_of<T>(in, first, count),
                                   f.lu.data_as<T>() + first * n * n, pivots + first * n,
                                   info + first);
        });
    }
    if constexpr (std::is_same_v<T, float>) {
      if (m == n && n >= 1 && n <= kSmallMatrix)
        return for_matrices(in.count(), double(n) * double(n) * double(n),
                            [&](int64_t begin, int64_t end) {
                              constexpr int64_t most = MatrixLanes<T>::kMost;
                              for (int64_t i = begin; i < end; i += most) {
                                const int count = int(std::min(most, end - i));
                                small_lu()(columns, count, lanes_of<T>(in, i, count),
                                           f.lu.data_as<T>() + i * n * n, pivots + i * n, info + i);
                              }
                            });
    }
    for_matrices(
        in.count(), double(m) * double(n) * double(k),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            copy_to_columns(out.at<T>(i), ld, in, i);
            info[i] = factor_lu(rows, columns, out.at<T>(i), ld, pivots + i * k);
          }
        },
        is_blocked<T>(rows, columns));
  });
  return f;
}

Tensor empty_solution(IntSpan batch, const Tensor& b, bool left) {
  if (left) return empty_columns(batch, b.size(-2), b.size(-1), b.dtype(), b.device());
  return empty_tensor(with_matrix(batch, b.size(-2), b.size(-1)), b.dtype(), b.device());
}

namespace {

template <class T>
void conjugate_all(T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = detail::conjugate(x[i]);
}

void check_pivots(const int* pivots, int64_t count, int n) {
  for (int64_t i = 0; i < count; ++i)
    if (pivots[i] < 1 || pivots[i] > n)
      runtime_error("pivots must be between 1 and ", n, ", the number of rows, but pivot ", i,
                    " is ", pivots[i], ". Did you properly pass the result of lu_factor?");
}

void require_pivots(const Tensor& pivots, const char* name, const Tensor& lu, int64_t count) {
  if (pivots.device() != lu.device()) device_error(lu.device(), pivots.device());
  if (pivots.dtype() != DType::Int32)
    runtime_error(name,
                  std::string_view(name) == "pivots"
                      ? " should be a Tensor of scalar type torch.int32"
                      : " is expected to be a contiguous tensor of torch.int32 dtype",
                  ", as lu_factor returns it, but got ", pivots.dtype());
  if (pivots.dim() == 0 || pivots.size(-1) != count)
    runtime_error(
        "Number of pivots per batch should be same as the dimension of the matrix: "
        "expected ",
        name, " of shape [..., ", count, "], but got ", pivots.sizes());
}

}  // namespace

// x A = b is A^T x^T = b^T; x is contiguous, so that its transpose is in column-major order.
static void solve_on_device(const Tensor& lu, const Tensor& pivots, const Tensor& b,
                            const Tensor& x, bool left, bool adjoint) {
  GradGuard off(false);
  const IntSpan batch = batch_of(x);
  const Tensor factors = columns_of(lu, batch), exchanges = dense_rows(pivots, batch);
  const bool conjugated = !left && adjoint && x.is_complex();  // conj(x A^H) = conj(x) A^T
  op::copy_(x, conjugated ? op::conj(b) : b);
  const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
  device_linalg.lu_solve(factors, exchanges, left ? x : transposed(x), trans);
  if (conjugated) op::copy_(x, op::conj(x));
}

void solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, const Tensor& x,
                    bool left, bool adjoint) {
  if (x.numel() == 0) return;
  if (x.is_cuda()) return solve_on_device(lu, pivots, b, x, left, adjoint);
  const IntSpan batch = batch_of(x);
  const int n = lapack_int(lu.size(-1)), k = lapack_int(left ? b.size(-1) : b.size(-2));
  const MatrixBatch factors(lu, batch), exchanges(as_columns(pivots), batch), rhs(b, batch), out(x);
  const bool conjugated = !left && adjoint && x.is_complex();  // conj(x A^H) = conj(x) A^T
  const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
  const bool dense =
      factors.column_major() && factors.column_stride == n && (exchanges.row_stride == 1 || n == 1);
  dispatch_lapack(x.dtype(), [&]<class T> {
    if constexpr (std::is_floating_point_v<T>) {
      if (dense && trans == 'N' && left && fits_lanes<T>(n, out.count()))
        return for_lanes<T>(out.count(), [&](int64_t first, int count) {
          const T* a[MatrixLanes<T>::kMost];
          const int* p[MatrixLanes<T>::kMost];
          for (int l = 0; l < count; ++l) {
            a[l] = factors.at<T>(first + l);
            p[l] = exchanges.at<int>(first + l);
            check_pivots(p[l], n, n);
          }
          matrix_lanes<T>().solve(n, k, count, a, p, lanes_of<T>(rhs, first, count),
                                  x.data_as<T>() + first * n * k);
        });
    }
    for_matrices(
        out.count(), 2.0 * n * n * k,
        [&](int64_t begin, int64_t end) {
          const ReadableMatrices<T> a(factors);
          const ReadableMatrices<int> p(exchanges);
          for (int64_t i = begin; i < end; ++i) {
            T* solution = out.at<T>(i);
            const int* rows = p.at(i);
            check_pivots(rows, n, n);
            if (left) copy_to_columns(solution, n, rhs, i);
            else
              copy_to_columns(solution, n, rhs.at<T>(i), rhs.column_stride, rhs.row_stride, n, k);
            if (conjugated) conjugate_all(solution, int64_t(n) * k);
            solve_lu(trans, n, k, a.at(i), a.leading(), rows, solution, n);
            if (conjugated) conjugate_all(solution, int64_t(n) * k);
          }
        },
        !is_complex_v<T>);
  });
}

namespace kernels {

static std::string zero_in_u(int info) {
  return text("U[", info, ",", info,
              "] is zero and using it on lu_solve would result in a division by zero. If you still "
              "want to perform the factorization, consider calling linalg.lu(A) or "
              "linalg.lu_factor_ex(A)");
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot,
                                                       bool check_errors) {
  require_matrix(A, "A");
  require_lapack_dtype(A, "A", ErrorKind::NotImplemented);
  if (!pivot && !A.is_meta())
    runtime_error("LU without pivoting is not implemented on the CPU; use pivot=True");
  LuFactors f = factor_matrices(A);
  if (check_errors) check_info(f.info, zero_in_u);
  return {f.lu, f.pivots, f.info};
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  auto [lu, pivots, info] = op::linalg_lu_factor_ex(A, pivot, true);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  auto [lu, pivots, info] = op::linalg_lu_factor_ex(A, pivot, false);
  return op::lu_unpack(lu, pivots, true, true);
}

// The rows of a matrix in the order of the factors: (P^T x)[i] = x[order[i]]; with inverse=True
// (P x)[i] = x[order[i]].
Tensor _lu_order(const Tensor& pivots, int64_t rows, bool inverse) {
  Dims shape(pivots.sizes());
  const int64_t k = shape.back();
  shape[shape.size() - 1] = rows;
  Tensor out = empty_tensor(shape, DType::Int64, pivots.device());
  if (out.is_meta() || out.numel() == 0) return out;
  if (pivots.is_cuda()) {
    device_linalg.lu_order(dense_rows(pivots, pivots.sizes().first(shape.size() - 1)), out,
                           inverse);
    return out;
  }
  const MatrixBatch exchanges(as_columns(pivots));
  int64_t* const orders = out.data_as<int64_t>();
  const int n = lapack_int(rows);
  parallel_for(0, exchanges.count(), std::max<int64_t>(1, 8192 / rows),
               [&](int64_t begin, int64_t end) {
                 const ReadableMatrices<int> p(exchanges);
                 HostArray<int64_t> order(rows);
                 for (int64_t i = begin; i < end; ++i) {
                   const int* swaps = p.at(i);
                   check_pivots(swaps, k, n);
                   for (int64_t r = 0; r < rows; ++r) order[r] = r;
                   for (int64_t r = 0; r < k; ++r) std::swap(order[r], order[swaps[r] - 1]);
                   int64_t* to = orders + i * rows;
                   for (int64_t r = 0; r < rows; ++r) {
                     if (inverse) to[order[r]] = r;
                     else to[r] = order[r];
                   }
                 }
               });
  return out;
}

// P x, or P^T x, without the matrix P.
static Tensor exchange_rows(const Tensor& x, const Tensor& pivots, bool back) {
  Tensor order = op::unsqueeze(op::_lu_order(pivots, x.size(-2), back), -1);
  return op::gather(x, -2, op::expand(order, x.sizes()));
}

static Tensor unit_lower(const Tensor& lu, int64_t k) {
  Tensor below = op::tril(first_columns(lu, k), -1);
  return below + op::eye_m(lu.size(-2), k, lu.dtype(), std::nullopt, lu.device());
}
static Tensor upper(const Tensor& lu, int64_t k) {
  return op::triu(first_rows(lu, k));
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data, bool unpack_pivots) {
  require_matrix(LU_data, "LU_data");
  const int64_t m = LU_data.size(-2), k = std::min(m, LU_data.size(-1));
  if (unpack_pivots) {
    require_pivots(LU_pivots, "LU_pivots", LU_data, k);
    if (!same(batch_of(LU_data), LU_pivots.sizes().first(size_t(LU_pivots.dim() - 1))))
      runtime_error("LU_data of shape ", LU_data.sizes(), " and LU_pivots of shape ",
                    LU_pivots.sizes(), " must have the same batch dimensions");
  }
  const auto none = [&] { return op::new_empty(LU_data, Dims{0}); };
  Tensor L = unpack_data ? unit_lower(LU_data, k) : none();
  Tensor U = unpack_data ? upper(LU_data, k) : none();
  if (!unpack_pivots) return {none(), L, U};
  Tensor order = op::unsqueeze(op::_lu_order(LU_pivots, m, false), -2);
  Tensor rows = op::unsqueeze(op::arange(m, DType::Int64, std::nullopt, LU_data.device()), -1);
  Tensor P = op::_to_copy(op::eq(rows, order), LU_data.dtype());
  return {P, L, U};
}

// d(lu) = L phi_L + phi_U U with phi = L^-1 P^T dA U^-1 split at the diagonal; columns or rows
// beyond the square follow from A2 = P L U2 or P^T A = [L1 U; L2 U].
Tensor _lu_factor_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  Tensor L = unit_lower(LU, k), U = upper(LU, k);
  Tensor gL = op::tril(first_columns(grad, k), -1), gU = op::triu(first_rows(grad, k));
  Tensor L1 = first_rows(L, k), U1 = first_columns(U, k);
  Tensor below = op::matmul(adjoint(L1), first_rows(gL, k)),
         above = op::matmul(first_columns(gU, k), adjoint(U1));
  if (m < n) below = below - op::matmul(last_columns(gU, n - k), adjoint(last_columns(U, n - k)));
  if (m > n) above = above - op::matmul(adjoint(last_rows(L, m - k)), last_rows(gL, m - k));
  Tensor inner =
      op::linalg_solve_triangular(adjoint(U1), op::tril(below, -1) + op::triu(above), false, false);
  if (m > n) {
    Tensor rest = op::linalg_solve_triangular(adjoint(U1), last_rows(gL, m - k), false, false);
    Tensor square = op::linalg_solve_triangular(adjoint(L1), inner, true, true, true);
    return exchange_rows(op::cat(std::vector<Tensor>{square, rest}, -2), pivots, true);
  }
  if (m < n) inner = op::cat(std::vector<Tensor>{inner, last_columns(gU, n - k)}, -1);
  return exchange_rows(op::linalg_solve_triangular(adjoint(L1), inner, true, true, true), pivots,
                       true);
}

// ---- solving with the factors

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                       bool adjoint) {
  require_lapack_dtype(LU, "LU");
  require_system(LU, "LU", B, "B", left);
  require_pivots(pivots, "pivots", LU, LU.size(-1));
  const IntSpan pivot_batch = pivots.sizes().first(size_t(pivots.dim() - 1));
  if (!is_expandable(pivot_batch, batch_of(LU)) && !is_expandable(batch_of(LU), pivot_batch))
    runtime_error("LU of shape ", LU.sizes(), " and pivots of shape ", pivots.sizes(),
                  " must have the same batch dimensions");
  Tensor x = empty_solution(broadcast_shapes(broadcast_batches(LU, B), pivot_batch), B, left);
  if (x.is_meta()) return x;
  solve_factored(LU, pivots, B, x, left, adjoint);
  return x;
}

Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  return op::linalg_lu_solve(LU_data, LU_pivots, self, true, false);
}

// Of the factors: first of A = P L U, then split into those of L and U.
Tensor _lu_solve_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots, const Tensor& X,
                      bool left, bool adjoint) {
  const int64_t n = LU.size(-1);
  Tensor gB = op::linalg_lu_solve(LU, pivots, grad, left, !adjoint);
  // A X = B: -gB X^H; A^H X = B: its adjoint; X A = B: -X^H gB; X A^H = B: its adjoint.
  Tensor gA = left ? op::matmul(gB, facula::adjoint(X)) : op::matmul(facula::adjoint(X), gB);
  if (adjoint) gA = facula::adjoint(gA);
  Dims pivot_shape(batch_of(gA));
  pivot_shape.push_back(n);
  Tensor aligned = exchange_rows(-gA, op::expand(pivots, pivot_shape), false);
  return op::tril(op::matmul(aligned, facula::adjoint(upper(LU, n))), -1) +
         op::triu(op::matmul(facula::adjoint(unit_lower(LU, n)), aligned));
}

}  // namespace kernels
}  // namespace facula
