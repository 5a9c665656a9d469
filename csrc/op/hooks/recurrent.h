// What a device backend does for recurrent layers (kernels/recurrent_layer.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct RecurrentLayer;  // cpu/recurrent.h, with pointers into device memory

struct RecurrentHooks {
  // `h` and `c`, dense (batch, size), start as the first state and cells and become the last ones;
  // c is undefined where the layer is no LSTM.
  DeviceHook<void(const RecurrentLayer& layer, const Tensor& h, const Tensor& c)> forward{
      "recurrent layers"};
  DeviceHook<void(const RecurrentLayer& layer, Device device)> backward{"recurrent layers"};
};
inline constinit RecurrentHooks device_recurrent;

}  // namespace facula
