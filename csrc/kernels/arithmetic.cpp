// Composites around elementwise arithmetic, and derivatives that need a case distinction.
#include "op/kernels/arithmetic.h"
#include "autograd/node.h"
#include "op/kernels/comparison.h"
#include "op/kernels/mathematics.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/lazy.h"
#include "op/ops/limits.h"
#include "op/ops/mathematics.h"
#include "op/records.h"
#include "op/tensor_operators.h"

namespace facula {

Tensor grad_or_zeros(const Node& n, Tensor* grads, uint32_t i) {
  if (grads[i].defined()) return grads[i];
  const OutputMeta& m = n.outputs[i];
  return op::zeros(m.sizes, m.dtype, std::nullopt, m.device);
}

std::vector<Tensor> list_grads(const Node& n, Tensor* grads) {
  std::vector<Tensor> out;
  for (uint32_t i = 0; i < n.outputs.size(); ++i) out.push_back(grad_or_zeros(n, grads, i));
  return out;
}

namespace kernels {

Tensor _scale(Value self, const Scalar& factor) {
  if (self.is_tensor() && factor.equals(1)) return self.tensor();
  return op::mul(self, factor);
}

Tensor _scale_back(const Tensor& grad, const Scalar& factor) {
  if (!factor.is_complex()) return op::_scale(grad, factor);
  return op::mul(grad, Scalar(Complex<double>(factor.to_complex().re, -factor.to_complex().im)));
}

Tensor square(const Tensor& self) {
  return op::pow(self, 2);
}

Tensor div_mode(Value self, Value other, std::string_view mode) {
  if (mode.empty()) return op::div(self, other);
  if (mode == "floor") return op::_div_floor(self, other);
  if (mode == "trunc") return op::_div_trunc(self, other);
  runtime_error("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
                mode, "'");
}

Tensor _pow_grad_self(const Tensor& grad, Value self, Value exponent) {
  if (exponent.is_number()) {
    Scalar e = exponent.scalar();
    if (e.equals(0)) return op::zeros_like(grad);
    // Where it may be differentiated again, the result keeps its tie to self, as in PyTorch.
    if (e.equals(1) && !grad_enabled()) return grad;
    if (e.equals(2)) return grad * op::conj(self * 2);
    Scalar less = e.is_complex() ? Scalar(Complex<double>(e.to_complex().re - 1, e.to_complex().im))
                                 : Scalar(e.to_double() - 1);
    return grad * op::conj(op::pow(self, less) * e);
  }
  Tensor power = exponent * op::pow(self, exponent - 1);
  return grad * op::conj(op::where(op::eq(exponent, 0), 0, power));
}

Tensor _pow_grad_exponent(const Tensor& grad, Value self, Value exponent, const Tensor& result) {
  // 0 ** e is flat for e >= 0, where log(0) would give NaN.
  Tensor zero_base = op::eq(self, 0);
  Tensor flat = exponent.is_tensor() && exponent.tensor().is_complex()
                    ? zero_base
                    : op::logical_and(zero_base, op::ge(exponent, 0));
  return grad * op::conj(op::where(flat, 0, result * op::log(self)));
}

Tensor _sgn_grad(const Tensor& grad, Value self, const Tensor& result) {
  if (!self.is_tensor() || !self.tensor().is_complex()) return op::zeros_like(grad);
  // Nothing is divided by 0, so that the next derivative has no NaN either.
  const Tensor zero = op::eq(self, 0), z = op::where(zero, 1, self);
  Tensor tangent = (grad / op::abs(z)) - (op::real(grad / z) * result);
  return op::where(zero, 0, tangent);
}

Tensor _half_ties(const Tensor& grad, Value self, Value other) {
  // All of the gradient where self is larger, half where they are equal.
  Tensor g = op::where(op::eq(self, other), grad / 2, grad);
  return op::where(op::lt(self, other), 0, g);
}

Tensor clamp(const Tensor& self, Value min, Value max) {
  if (min.is_none() && max.is_none())
    runtime_error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (self.is_complex())
    fail(ErrorKind::NotImplemented, "clamp is not supported for complex types");
  if (max.is_none()) return op::clamp_min(self, min);
  return min.is_none() ? op::clamp_max(self, max) : op::_clamp_between(self, min, max);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  if (self.dtype() != other.dtype())
    runtime_error(legacy_dtype_name(self.dtype()), " did not match ",
                  legacy_dtype_name(other.dtype()), ": isclose compares tensors of one dtype");
  for (const auto& [name, tolerance] : {std::pair("rtol", rtol), std::pair("atol", atol)})
    if (!(tolerance >= 0))
      runtime_error(name, " must be greater than or equal to zero, but got ", tolerance);
  Tensor close = op::eq(self, other);
  if (equal_nan && is_differentiable_dtype(self.dtype()))
    close = op::logical_or(close, op::logical_and(op::isnan(self), op::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  bool exact = category(self.dtype()) < Category::Floating;
  Tensor a = exact ? op::_to_copy(self, default_dtype()) : self,
         b = exact ? op::_to_copy(other, default_dtype()) : other;
  Tensor error = op::abs(a - b);
  Tensor within = op::logical_and(op::isfinite(error), op::le(error, op::abs(b * rtol) + atol));
  return op::logical_or(close, within);
}

Tensor conj(Value self) {
  if (self.is_number()) {
    Scalar s = self.scalar();
    if (s.is_complex()) s = Scalar(Complex<double>(s.to_complex().re, -s.to_complex().im));
    return weak_number_tensor(s);
  }
  return self.tensor().is_complex() ? op::_conj(self.tensor()) : self.tensor();
}

Tensor _angle_grad(const Tensor& grad, Value self) {
  if (!self.is_tensor() || !self.tensor().is_complex()) return op::zeros_like(grad);
  Tensor r = op::abs(self);
  Tensor unit = self / (r * r);
  return op::where(op::eq(r, 0), 0, grad * unit * Scalar(Complex<double>(0, 1)));
}

Tensor _from_real(const Tensor& grad) {
  return grad.is_complex() ? grad : op::complex(grad, op::zeros_like(grad));
}
Tensor _from_imag(const Tensor& grad) {
  return op::complex(op::zeros_like(grad), grad);
}

}  // namespace kernels
}  // namespace facula
