// Composites around the format of numbers: what depends on the dtype is decided here, once, and
// handed to one loop.
#include "op/kernels/number_format.h"

#include <cmath>
#include <limits>

#include "op/elementwise.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/mathematics.h"
#include "op/ops/number_format.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

void float_power(Value self, Value exponent, Rets& rets) {
  if (!self.is_tensor() && !exponent.is_tensor())
    type_error("at least one argument must be Tensor, all are numbers");
  auto is_complex_value = [](const Value& v) {
    return v.is_tensor() ? v.tensor().is_complex() : v.scalar().is_complex();
  };
  const DType dtype =
      is_complex_value(self) || is_complex_value(exponent) ? DType::Complex128 : DType::Float64;
  if (rets.destination != Destination::New && rets.t[0].dtype() != dtype)
    runtime_error(rets.destination == Destination::InPlace ? "the base given to float_power_"
                                                           : "the output given to float_power",
                  " has dtype ", legacy_dtype_name(rets.t[0].dtype()),
                  " but the operation's result requires dtype ", legacy_dtype_name(dtype));
  Tensor base, power;
  auto widened = [dtype](const Value& v, Tensor& holder) {
    if (!v.is_tensor() || v.tensor().dtype() == dtype) return v;
    holder = op::_to_copy(v.tensor(), dtype);
    return Value(holder);
  };
  const Value args[] = {widened(self, base), widened(exponent, power)};
  call(defs::pow, args, rets);
}

void nextafter(const Tensor& self, const Tensor& other, Rets& rets) {
  Promotion promotion;
  promotion.add(self);
  promotion.add(other);
  const DType dtype = promotion.result();
  if (dtype != DType::Float16 && dtype != DType::BFloat16) {
    const Value args[] = {Value(self), Value(other)};
    return call(defs::_nextafter, args, rets);
  }
  const bool half = dtype == DType::Float16;
  const Value args[] = {Value(self), Value(other), Value(int64_t(half ? 10 : 7)),
                        Value(int64_t(half ? -14 : -126))};
  call(defs::_nextafter_coarse, args, rets);
}

void round_decimals(const Tensor& self, int64_t decimals, Rets& rets) {
  const double scale = std::pow(10.0, std::abs(double(decimals)));
  const Value args[] = {Value(self), Value(scale), Value(decimals < 0)};
  call(defs::_round_scaled, args, rets);
}

void nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf, Rets& rets) {
  const double largest = largest_finite(self.dtype());
  const Value args[] = {Value(self), Value(nan.value_or(0.0)), Value(posinf.value_or(largest)),
                        Value(neginf.value_or(-largest))};
  call(defs::_nan_to_num, args, rets);
}

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  if (!is_floating(self.dtype()))
    runtime_error("only supports floating-point dtypes, got ", self.dtype());
  Tensor exponent;
  {
    GradGuard off(false);
    exponent = op::_to_copy(op::_frexp_exponent(self), DType::Int32);
  }
  return {op::_frexp_mantissa(self), exponent};
}

Tensor isreal(const Tensor& self) {
  if (self.is_complex()) return op::eq(op::imag(self), 0);
  return op::ones_like(self, DType::Bool);
}

Tensor positive(const Tensor& self) {
  if (self.dtype() == DType::Bool)
    runtime_error(
        "The `+` operator, on a bool tensor is not supported. Convert it to integers first");
  return self;
}

Tensor hash_tensor(const Tensor& self, IntSpan dim, bool keepdim, int64_t mode) {
  if (mode != 0) runtime_error("Unknown hash_tensor mode: ", mode, "; there is only mode 0");
  if (self.is_complex())
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; hash real and imaginary part on their own");
  const DType wide = is_floating(self.dtype())       ? DType::Float64
                     : self.dtype() == DType::UInt64 ? DType::UInt64
                                                     : DType::Int64;
  Tensor words = self.dtype() == wide ? self : op::_to_copy(self, wide);
  return op::_xor_bits(op::view_dtype(words, DType::UInt64), dim, keepdim);
}

}  // namespace facula::kernels
