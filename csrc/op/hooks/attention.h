// What a device backend does for attention (kernels/attention.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct Attention;  // cpu/attention.h, with pointers into device memory

struct AttentionHooks {
  // Whether there are kernels for queries of this dtype and device, and for these widths.
  DeviceHook<bool(const Tensor& query, int64_t value_width)> supports{
      "scaled_dot_product_attention"};
  DeviceHook<void(const Attention& problem, Device device)> forward{"scaled_dot_product_attention"};
  DeviceHook<void(const Attention& problem, Device device)> backward{
      "scaled_dot_product_attention"};
};
inline constinit AttentionHooks device_attention;

}  // namespace facula
