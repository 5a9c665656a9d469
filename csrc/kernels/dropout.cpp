// Dropout, made of random masks.
#include <cmath>

#include "op/elementwise.h"
#include "op/hooks/random.h"
#include "op/kernels/dropout.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/dropout.h"
#include "op/ops/random.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

void check(double p) {
  if (!(p >= 0 && p <= 1))
    runtime_error("dropout probability has to be between 0 and 1, but got ", p);
}
void check_functional(double p) {
  if (!(p >= 0 && p <= 1))
    value_error("dropout probability has to be between 0 and 1, but got ", p);
}

// True with probability 1 - p.
Tensor kept(const Tensor& input, double p) {
  GradGuard off(false);
  return op::bernoulli_(op::empty_like(input, DType::Bool), 1 - p);
}

// One of a channel, (N, C, 1, ...).
Tensor kept_channels(const Tensor& input, double p) {
  if (input.dim() < 2)
    runtime_error("Feature dropout requires at least 2 dimensions in the input, got shape ",
                  input.sizes());
  Dims shape(size_t(input.dim()), 1);
  shape[0] = input.size(0);
  shape[1] = input.size(1);
  GradGuard off(false);
  return op::bernoulli_(op::new_empty(input, shape, DType::Bool), 1 - p);
}

// 1 / (1 - p), rounded as a quotient of the dtype is.
double scale_for(DType dtype, double p) {
  if (p == 1) return 0;
  if (dtype == DType::Float64 || dtype == DType::Complex128) return 1 / (1 - p);
  const float quotient = 1.0f / float(1 - p);
  if (dtype == DType::Float16) return double(float(Half(quotient)));
  if (dtype == DType::BFloat16) return double(float(BFloat16(quotient)));
  return quotient;
}

// Under function transforms the coins have rules of their own.
bool fits_one_pass(const Tensor& input) {
  return input.is_cuda() && input.is_floating() && current_level == 0 && input.item_size() > 1;
}

bool changes_nothing(const Tensor& input, double p, bool train) {
  return p == 0 || !train || input.numel() == 0;
}

// Without a coin for each element: what is drawn next must not depend on them.
Tensor nothing_kept(const Tensor& input, bool inplace) {
  return inplace ? op::mul_(input, 0) : input * op::new_zeros(input, Dims{});
}

Tensor dropped(const Tensor& input, double p, bool train, bool channels, bool inplace) {
  if (changes_nothing(input, p, train)) return input;
  if (p == 1) return nothing_kept(input, inplace);
  const double scale = scale_for(input.dtype(), p);
  if (!channels && !inplace && fits_one_pass(input))
    return std::get<0>(op::_masked_dropout(input, p, scale));
  const Tensor mask = channels ? kept_channels(input, p) : kept(input, p);
  return inplace ? op::_keep_scaled_(input, mask, scale) : op::_keep_scaled(input, mask, scale);
}

// What is dropped becomes -alpha; a and b restore mean and variance (Klambauer and others 2017).
Tensor alpha_dropped(const Tensor& input, double p, bool train, bool channels, bool inplace) {
  if (changes_nothing(input, p, train)) return input;
  if (p == 1) return nothing_kept(input, inplace);
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  const Tensor mask =
      op::_to_copy(channels ? kept_channels(input, p) : kept(input, p), input.dtype());
  const Tensor shift = (mask - 1) * (kAlpha * a) + kAlpha * a * p;
  return inplace ? op::add_(op::mul_(input, mask * a), shift) : input * (mask * a) + shift;
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  check(p);
  return dropped(input, p, train, false, false);
}
void dropout_(const Tensor& self, double p, bool train, Rets&) {
  check(p);
  dropped(self, p, train, false, true);
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  check(p);
  return dropped(input, p, train, true, false);
}
void feature_dropout_(const Tensor& self, double p, bool train, Rets&) {
  check(p);
  dropped(self, p, train, true, true);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  check(p);
  return alpha_dropped(input, p, train, false, false);
}
void alpha_dropout_(const Tensor& self, double p, bool train, Rets&) {
  check(p);
  alpha_dropped(self, p, train, false, true);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  check(p);
  return alpha_dropped(input, p, train, true, false);
}
void feature_alpha_dropout_(const Tensor& self, double p, bool train, Rets&) {
  check(p);
  alpha_dropped(self, p, train, true, true);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  check(p);
  if (input.numel() == 0) return {input, op::empty_like(input, DType::Bool)};
  if (!train.value_or(true)) return {input, op::ones_like(input, DType::Bool)};
  const double scale = scale_for(input.dtype(), p);
  if (fits_one_pass(input)) return op::_masked_dropout(input, p, scale);
  const Tensor mask = kept(input, p);
  return {op::_keep_scaled(input, mask, scale), mask};
}

std::tuple<Tensor, Tensor> _masked_dropout(const Tensor& self, double p, double scale,
                                           Generator* generator) {
  GradGuard off(false);
  const Tensor mask = op::empty_like(self, DType::Bool);
  if (self.is_meta()) return {op::empty_like(self), mask};
  const auto bytes = std::min<uintptr_t>(4 * self.item_size(), 16);
  const bool dense = non_overlapping_and_dense(self.sizes(), self.strides()) &&
                     reinterpret_cast<uintptr_t>(self.data()) % bytes == 0;
  if (self.is_cuda() && dense && self.numel()) {
    const Tensor out = op::empty_like(self);
    if (same(out.strides(), self.strides()) && same(mask.strides(), self.strides())) {
      device_random.dropout(self, 1 - p, scale, out, mask, generator);
      return {out, mask};
    }
  }
  op::bernoulli_(mask, 1 - p, generator);
  return {op::_keep_scaled(self, mask, scale), mask};
}

// ---- nn.functional

Tensor dropout_functional(const Tensor& input, double p, bool training, bool inplace) {
  check_functional(p);
  return dropped(input, p, training, false, inplace);
}

Tensor dropout1d_functional(const Tensor& input, double p, bool training, bool inplace) {
  check_functional(p);
  if (input.dim() != 2 && input.dim() != 3)
    runtime_error("dropout1d: Expected 2D or 3D input, but received a ", input.dim(),
                  "D input. Note that dropout1d exists to provide channel-wise dropout on inputs "
                  "with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                  "(i.e. 2D or 3D inputs).");
  if (input.dim() == 3) return dropped(input, p, training, true, inplace);
  const Tensor out = dropped(op::unsqueeze(input, 0), p, training, true, inplace);
  return inplace ? input : op::squeeze_dim(out, Dims{0});
}
Tensor dropout2d_functional(const Tensor& input, double p, bool training, bool inplace) {
  check_functional(p);
  if (input.dim() != 3 && input.dim() != 4 && warn)
    warn(text("dropout2d: Received a ", input.dim(),
              "-D input to dropout2d, which is deprecated and will result in an error in a future "
              "release. To retain the behavior and silence this warning, please use dropout "
              "instead. Note that dropout2d exists to provide channel-wise dropout on inputs with "
              "2 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 3D "
              "or 4D inputs).")
             .c_str());
  if (input.dim() == 3 && warn)
    warn(
        "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
        "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
        "dim. This behavior will change in a future release to interpret the input as one without "
        "a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
        "behavior, please switch to using dropout1d instead.");
  return dropped(input, p, training, true, inplace);
}
Tensor dropout3d_functional(const Tensor& input, double p, bool training, bool inplace) {
  check_functional(p);
  if (input.dim() != 4 && input.dim() != 5 && warn)
    warn(text("dropout3d: Received a ", input.dim(),
              "-D input to dropout3d, which is deprecated and will result in an error in a future "
              "release. To retain the behavior and silence this warning, please use dropout "
              "instead. Note that dropout3d exists to provide channel-wise dropout on inputs with "
              "3 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 4D "
              "or 5D inputs).")
             .c_str());
  if (input.dim() == 5) return dropped(input, p, training, true, inplace);
  const Tensor out = dropped(op::unsqueeze(input, 0), p, training, true, inplace);
  return inplace ? input : op::squeeze_dim(out, Dims{0});
}
Tensor alpha_dropout_functional(const Tensor& input, double p, bool training, bool inplace) {
  check_functional(p);
  return alpha_dropped(input, p, training, false, inplace);
}
Tensor feature_alpha_dropout_functional(const Tensor& input, double p, bool training,
                                        bool inplace) {
  check_functional(p);
  return alpha_dropped(input, p, training, true, inplace);
}

}  // namespace facula::kernels
