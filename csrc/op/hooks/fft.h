// What a device backend does for Fourier transforms.
#pragma once
#include "op/device_hook.h"

namespace facula {

struct FftHooks {
  // The last `rank` (1 to 3) dimensions of dense row-major tensors, without a factor. Complex to
  // complex, forward or not; real to complex (forward), where the last dimension of `out` is half
  // of that of `in`; complex to real (backward), the other way round: it may overwrite `in`.
  DeviceHook<void(const Tensor& in, const Tensor& out, int rank, bool forward)> transform{"fft"};
};
inline constinit FftHooks device_fft;

}  // namespace facula
