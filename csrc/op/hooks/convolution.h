// What a device backend does for convolutions (kernels/convolution.cpp).
#pragma once
#include "cpu/conv.h"
#include "op/device_hook.h"

namespace facula {

enum class ConvolutionKind { Forward, Transposed, WeightGradient };

struct ConvolutionHooks {
  // conv_forward, conv_transposed or conv_weight_gradient of cpu/conv.h, on dense tensors with
  // `dims` spatial axes whose layouts are all alike.
  DeviceHook<void(ConvolutionKind kind, const Conv& problem, int dims, Device device)> run{
      "convolution"};
};
inline constinit ConvolutionHooks device_convolution;

}  // namespace facula
