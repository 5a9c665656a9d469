// What a device backend provides to the families; the CUDA backend fills the table when it loads.
#pragma once
#include "op/elementwise.h"

namespace facula {

struct ReduceDef;

struct DeviceHooks {
  void (*elementwise)(const OpDef&, const ElementwiseDef&, const Value* args, const Tensor& out,
                      DType compute, DType loop_out, const void* params);
  void (*reduce)(const OpDef&, const ReduceDef&, const Tensor& in, uint64_t dims,
                 const Tensor& out);
  void (*copy)(const Tensor& from, const Tensor& to);  // any devices, dtypes and strides
  void (*fill)(const Tensor& t, const Scalar& value);
};

DeviceHooks& device_hooks();  // raises when the backend is absent
void register_device_hooks(const DeviceHooks& hooks);
// Raises "not implemented on cuda" for operators without a device kernel.
[[noreturn]] void no_device_kernel(const OpDef& op, Device device);

}  // namespace facula
