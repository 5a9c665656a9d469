// Variance and mean of dimensions on a device (kernels/one_pass_moments.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct MomentsHooks {
  // `pairs` is complex, with the reduced dimensions (bits of `dims`) of size 1: the sum of squared
  // deviations divided by `freedom` as real part, the mean as imaginary part.
  DeviceHook<void(const Tensor& self, uint64_t dims, double freedom, const Tensor& pairs)> moments{
      "var"};
};
inline constinit MomentsHooks device_moments;

}  // namespace facula
