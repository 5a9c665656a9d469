// What a device backend does for normalisation (kernels/normalization.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

// Rows of n elements with parameters by column, or, where groups is not 0, by channel: row r has
// the `channels` channels from r % groups * channels on, of n / channels elements each.
struct NormalizedRows {
  int64_t rows, n;
  int64_t groups = 0, channels = 0;
  bool centred = true;
};

// (batch, channels, inner), or (batch, inner, channels) with the channels last.
struct NormalizedChannels {
  int64_t batch, channels, inner;
  bool channels_last;
};

// Inputs, results and gradients are dense and of one dtype, parameters of that or float32, moments
// of the type that computes. Undefined parameters are 1 and 0; undefined gradients are not wanted.
struct NormalizationHooks {
  DeviceHook<void(const NormalizedRows& shape, const Tensor& in, const Tensor& weight,
                  const Tensor& bias, double eps, const Tensor& mean, const Tensor& rstd,
                  const Tensor& out)>
      rows{"layer_norm"};
  // Gradients of parameters are of the type that computes.
  DeviceHook<void(const NormalizedRows& shape, const Tensor& grad, const Tensor& in,
                  const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                  const Tensor& input_grad, const Tensor& weight_grad, const Tensor& bias_grad)>
      rows_grad{"layer_norm"};
  DeviceHook<void(const NormalizedChannels& shape, const Tensor& in, const Tensor& weight,
                  const Tensor& bias, double eps, const Tensor& mean, const Tensor& rstd,
                  const Tensor& variance, const Tensor& out)>
      channels{"batch_norm"};
  // The gradients of both parameters are always wanted.
  DeviceHook<void(const NormalizedChannels& shape, const Tensor& grad, const Tensor& in,
                  const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                  const Tensor& input_grad, const Tensor& weight_grad, const Tensor& bias_grad)>
      channels_grad{"batch_norm"};
  // in * scale + shift
  DeviceHook<void(const NormalizedChannels& shape, const Tensor& in, const Tensor& scale,
                  const Tensor& shift, const Tensor& out)>
      scale_channels{"batch_norm"};
};
inline constinit NormalizationHooks device_normalization;

}  // namespace facula
