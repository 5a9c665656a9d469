// What a device backend does for losses over classes (kernels/cross_entropy.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

// Labels of the samples of (batch, classes, inner). All tensors are dense; labels are int64, the
// rest is of the type that computes unless it says otherwise.
struct ClassLabels {
  int64_t batch, classes, inner;
  Tensor labels;
  Tensor weight;  // of each class; may be undefined
  int64_t ignored;
};

struct LossHooks {
  // loss, largest and log_sum of each sample from the logits `in`, of any floating-point dtype.
  // `counted` gets the weight of its label, 0 where that is ignored.
  DeviceHook<void(const ClassLabels& targets, const Tensor& in, double smoothing,
                  const Tensor& loss, const Tensor& sums, const Tensor& counted)>
      cross_entropy{"cross_entropy"};
  // `out` has the dtype of `in`.
  DeviceHook<void(const ClassLabels& targets, const Tensor& in, double smoothing,
                  const Tensor& grad, const Tensor& sums, const Tensor& out)>
      cross_entropy_grad{"cross_entropy"};
  DeviceHook<void(const ClassLabels& targets, const Tensor& in, const Tensor& loss,
                  const Tensor& counted)>
      nll_loss{"nll_loss"};
  // Writes the labels' elements of `out`, which starts as zeros.
  DeviceHook<void(const ClassLabels& targets, const Tensor& grad, const Tensor& out)> nll_loss_grad{
      "nll_loss"};
  // The loss of each row, or its derivative by the input, from the gradient of each row. The input
  // and `out` are of any floating-point dtype.
  DeviceHook<void(const Tensor& in, const Tensor& labels, const Tensor& loss)> multilabel_margin{
      "multilabel_margin_loss"};
  DeviceHook<void(const Tensor& in, const Tensor& labels, const Tensor& grad, const Tensor& out)>
      multilabel_margin_grad{"multilabel_margin_loss"};
};
inline constinit LossHooks device_losses;

}  // namespace facula
