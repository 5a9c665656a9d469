// Composites of special functions, and derivatives that need a case distinction.
#include "op/kernels/special.h"

#include <cmath>
#include <limits>

#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/special.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

Tensor _no_derivative(std::string_view name, std::string_view argument) {
  fail(ErrorKind::NotImplemented, "the derivative of ", name, " with respect to '", argument,
       "' is not implemented; detach() that argument if it is a constant");
}

Tensor _logit_grad(const Tensor& grad, Value self, std::optional<double> eps) {
  const bool limited = eps && *eps >= 0;
  const double low = limited ? *eps : 0.0;
  const double outside = limited ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  // NaN is not outside, and its gradient is NaN.
  Tensor beyond = op::logical_or(op::lt(self, low), op::gt(self, 1 - low));
  return op::where(beyond, outside, grad / (self * (1 - self)));
}

Tensor polygamma_method(const Tensor& self, int64_t n) {
  return op::polygamma(n, self);
}

Tensor mvlgamma(const Tensor& x, int64_t p) {
  if (p < 1) runtime_error("p has to be greater than or equal to 1, got ", p);
  const Tensor self = op::contiguous(x);  // the result is, too
  Tensor total = op::lgamma(self);
  if (p <= 64) {
    for (int64_t j = 1; j < p; ++j) total = total + op::lgamma(self - 0.5 * double(j));
  } else {  // all terms in one tensor, so that a p beyond reason is refused for lack of memory
    const Tensor steps = op::arange_start(1, p, 1, total.dtype(), {}, self.device());
    const int64_t last[] = {-1};
    total = total + op::sum_dim(op::lgamma(op::unsqueeze(self, -1) - 0.5 * steps), IntSpan(last));
  }
  return total + 0.25 * double(p) * double(p - 1) * std::log(3.14159265358979323846);
}

// ---- derivatives of order-1 functions: f0 - f1 / x, which has the limit 1/2 at 0

static Tensor with_limit_at_zero(const Tensor& grad, Value self, const Tensor& zeroth,
                                 const Tensor& first) {
  Tensor zero = op::eq(self, 0);
  Tensor slope = zeroth - first / op::where(zero, 1, self);  // no NaN, also in its derivatives
  return grad * op::where(zero, 0.5, slope);
}

Tensor _i1_grad(const Tensor& grad, Value self, const Tensor& result) {
  return with_limit_at_zero(grad, self, op::i0(self), result);
}
Tensor _i1e_grad(const Tensor& grad, Value self, const Tensor& result) {
  return with_limit_at_zero(grad, self, op::special_i0e(self) - op::sign(self) * result, result);
}
Tensor _bessel_j1_grad(const Tensor& grad, Value self, const Tensor& result) {
  return with_limit_at_zero(grad, self, op::special_bessel_j0(self), result);
}

}  // namespace facula::kernels
