// Convolutions on the device: an own kernel for single planes (depthwise.h), cuDNN for what it can
// do, and another own kernel elsewhere.
#pragma once

namespace facula::cuda {

void register_convolution();  // sets device_convolution (op/hooks/convolution.h)

}  // namespace facula::cuda
