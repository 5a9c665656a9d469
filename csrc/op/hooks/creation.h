// What a device backend does for tensors that are made on it.
#pragma once
#include "op/device_hook.h"

namespace facula {

struct CreationHooks {
  // out[i] = first + i * step, in integers where both are.
  DeviceHook<void(const Tensor& out, const Scalar& first, const Scalar& step)> progression{
      "arange"};
  // Evenly spaced values from `first` to `last`, counted from both ends.
  DeviceHook<void(const Tensor& out, double first, double last)> spaced{"linspace"};
};
inline constinit CreationHooks device_creation;

}  // namespace facula
