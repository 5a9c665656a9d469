#include "op/device_hooks.h"

#include "op/hooks/memory.h"

namespace facula {

thread_local constinit bool copies_return_early = false;

static DeviceHooks g_hooks{};

DeviceHooks& device_hooks() {
  if (!g_hooks.elementwise) runtime_error("no CUDA backend is loaded in this process");
  return g_hooks;
}

void register_device_hooks(const DeviceHooks& hooks) {
  g_hooks = hooks;
}

void no_device_kernel(const OpDef& op, Device device) {
  fail(ErrorKind::NotImplemented, "'", op.name, "' has no kernel for tensors on ", device,
       "; move the input with .cpu() to compute it on the host");
}

}  // namespace facula
