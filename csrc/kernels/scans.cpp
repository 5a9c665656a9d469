// Running products, extrema and log-sums, with the derivatives that are more than one expression.
#include <limits>

#include "core/type_names.h"
#include "cpu/index_scan.h"
#include "kernels/destination.h"
#include "op/hooks/sorting.h"
#include "op/kernels/arithmetic.h"
#include "op/kernels/indexing.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

void cumprod(const Tensor& self, int64_t dim, DType dtype, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  DType result = dtype != DType::None                   ? dtype
                 : rets.destination != Destination::New ? rets.t[0].dtype()
                 : is_integral(self.dtype(), true)      ? DType::Int64
                                                        : self.dtype();
  if (rets.destination == Destination::InPlace && result != self.dtype())
    runtime_error("Bad in-place call: input tensor dtype ", cpp_type_name(self.dtype()),
                  " and output tensor dtype ", cpp_type_name(result), " should match");
  if (result == DType::Bool)
    dtype_error(DType::Bool, "integers, floating-point and complex dtypes");
  Tensor& out = exact_result(rets, 0, self.sizes(), result, self.device());
  if (self.is_meta() || self.numel() == 0) return;
  Tensor in = rets.destination == Destination::Out ? apart_or_copied(out, self) : self;
  if (out.is_cuda())
    return device_sorting.scan(at_least_1d(in), dim, Scan::Product, at_least_1d(out));
  if (in.dtype() != result) in = op::_to_copy(in, result);
  cpu_cumprod(at_least_1d(op::contiguous(in)), dim, at_least_1d(out));
}

// Sums from each element to the end.
static Tensor sum_behind(const Tensor& t, int64_t dim) {
  if (t.dim() == 0) return t;
  return op::flip(op::cumsum(op::flip(t, Dims{dim}), dim), Dims{dim});
}

// Element i of the gradient is the sum over k >= i of grad[k] times the product of all x[j], j <=
// k, but x[i].
Tensor _cumprod_grad(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result) {
  if (self.numel() <= 1 && self.dim() == 0) return grad;
  if (self.numel() == 0) return op::zeros_like(grad);
  dim = wrap_dim(dim, self.dim());
  Tensor x = self.dtype() == result.dtype() ? self : op::_to_copy(self, result.dtype());
  Tensor zero = op::eq(x, 0);
  bool any_zero = false;
  if (!x.is_meta()) {
    GradGuard off(false);
    any_zero = item_of(op::any(zero)).to_int() != 0;
  }
  if (!any_zero) return sum_behind(op::conj(result) * grad, dim) / op::conj(x);
  if (is_followed(self)) {
    // Differentiable at zeros: for every i the running product with x[i] replaced by 1.
    const int64_t n = x.sizes()[dim];
    Tensor line = op::movedim(x, Dims{dim}, Dims{-1}), g = op::movedim(grad, Dims{dim}, Dims{-1});
    Dims square(line.sizes());
    square.insert(square.size() - 1, n);
    Tensor self_place = op::eye(n, DType::Bool, std::nullopt, x.device());
    Tensor others = op::where(self_place, 1, op::expand(op::unsqueeze(line, -2), square));
    Tensor products = op::triu(op::cumprod(others, -1));
    const int64_t last = -1;
    return op::movedim(op::sum_dim(op::conj(products) * op::unsqueeze(g, -2), IntSpan(&last, 1)),
                       Dims{-1}, Dims{dim});
  }
  // Before the first zero nothing changes; the first zero sees the products without it; behind it
  // every product keeps that zero.
  Tensor first = op::logical_and(zero, op::eq(op::cumsum(zero, dim), 1));
  Tensor without = op::cumprod(op::masked_fill(x, first, 1), dim);
  Tensor before = op::eq(op::cumsum(zero, dim), 0);
  Tensor ordinary =
      sum_behind(op::conj(result) * grad, dim) / op::conj(op::masked_fill(x, zero, 1));
  Tensor at_zero = sum_behind(op::masked_fill(op::conj(without) * grad, before, 0), dim);
  return op::where(before, ordinary, op::where(first, at_zero, 0));
}

static void check_out_dtype(const Rets& rets, int i, DType wanted) {
  if (rets.destination == Destination::Out && rets.t[i].dtype() != wanted)
    runtime_error("expected scalar_type ", legacy_dtype_name(wanted), " but found ",
                  legacy_dtype_name(rets.t[i].dtype()), ": out= takes no other dtype here");
}

static void extreme_into(const Tensor& self, int64_t dim, bool largest, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  if (self.is_complex())
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "': complex numbers have no order");
  Tensor in = self;
  check_out_dtype(rets, 0, self.dtype());
  check_out_dtype(rets, 1, DType::Int64);
  exact_result(rets, 0, self.sizes(), self.dtype(), self.device());
  exact_result(rets, 1, self.sizes(), DType::Int64, self.device());
  if (self.is_meta() || self.numel() == 0) return;
  if (rets.destination != Destination::New)
    in = apart_from(rets.t[1], apart_or_copied(rets.t[0], self));
  if (self.is_cuda())
    return device_sorting.cumulative_extreme(at_least_1d(in), dim, largest, at_least_1d(rets.t[0]),
                                             at_least_1d(rets.t[1]));
  in = op::contiguous(in);
  if (!is_reduced_float(in.dtype()) || dim < self.dim() - 1)
    return cpu_cumulative_extreme(at_least_1d(in), dim, largest, at_least_1d(rets.t[0]),
                                  at_least_1d(rets.t[1]));
  // Rows of half precision: the loops of float32 are vectors, which pays for the way there and
  // back.
  const Tensor values = empty_tensor(self.sizes(), DType::Float32, self.device());
  cpu_cumulative_extreme(at_least_1d(op::_to_copy(in, DType::Float32)), dim, largest,
                         at_least_1d(values), at_least_1d(rets.t[1]));
  op::copy_(rets.t[0], values);
}
void cummax(const Tensor& self, int64_t dim, Rets& rets) {
  extreme_into(self, dim, true, rets);
}
void cummin(const Tensor& self, int64_t dim, Rets& rets) {
  extreme_into(self, dim, false, rets);
}

void logcumsumexp(const Tensor& self, int64_t dim, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  if (category(self.dtype()) < Category::Floating)
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; convert the input to a floating-point dtype");
  check_out_dtype(rets, 0, self.dtype());
  Tensor& out = exact_result(rets, 0, self.sizes(), self.dtype(), self.device());
  if (self.is_meta() || self.numel() == 0) return;
  Tensor in = rets.destination == Destination::New ? self : apart_or_copied(out, self);
  if (out.is_cuda())
    return device_sorting.scan(at_least_1d(in), dim, Scan::LogSumExp, at_least_1d(out));
  cpu_logcumsumexp(at_least_1d(in), dim, at_least_1d(out));
}

// sum over k >= i of grad[k] exp(x[i] - y[k]), kept in logarithms so that nothing overflows; real
// gradients go separately, the positive and the negative ones.
Tensor _logcumsumexp_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                          const Tensor& result) {
  if (self.dim() == 0 || self.numel() == 0) return grad;
  // Finite, so that the derivative of this is, too, where all gradients have one sign.
  const double lowest = self.dtype() == DType::Float16 ? -6e4 : -1e30;
  auto sums_behind = [&](const Tensor& logs) {
    return op::flip(op::logcumsumexp(op::flip(logs, Dims{dim}), dim), Dims{dim});
  };
  if (self.is_complex())  // every number but 0 has a logarithm
    return op::exp(sums_behind(op::log(grad) - op::conj(result)) + op::conj(self));
  auto part = [&](const Tensor& positive, const Tensor& size) {
    Tensor logs = op::where(positive, op::log(op::where(positive, size, 1)) - result, lowest);
    return op::exp(sums_behind(logs) + self);
  };
  return part(op::gt(grad, 0), grad) - part(op::lt(grad, 0), -grad);
}

}  // namespace facula::kernels
