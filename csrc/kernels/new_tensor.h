// What functions that make tensors have in common.
#pragma once
#include "autograd/node.h"
#include "op/hooks/memory.h"
#include "op/settings.h"

namespace facula {

inline Device with_index(Device device) {
  if (device.is_cuda() && device.index < 0) device.index = int8_t(device_memory.current_device());
  return device;
}

namespace kernels {

struct Like {  // what an argument left open
  DType dtype;
  Device device;
  Like(DType d, Device v)
      : dtype(d == DType::None ? default_dtype() : d),
        device(v.type == DeviceType::None ? default_device() : with_index(v)) {}
  Like(const Tensor& t, DType d, Device v)
      : dtype(d == DType::None ? t.dtype() : d),
        device(v.type == DeviceType::None ? t.device() : with_index(v)) {}
};

inline Tensor finish(Tensor t, bool grad) {
  if (grad) set_requires_grad(t, true);
  return t;
}

}  // namespace kernels
}  // namespace facula
