// What a device backend does for softmax (kernels/reductions.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct SoftmaxHooks {
  // Along a dimension of dense tensors that are not empty.
  DeviceHook<void(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out)> forward{
      "softmax"};
  DeviceHook<void(const Tensor& grad, const Tensor& result, int64_t dim, bool logarithm,
                  const Tensor& out)>
      backward{"softmax"};
};
inline constinit SoftmaxHooks device_softmax;

}  // namespace facula
