// Convolutions on the device: cuDNN where it can, an own kernel elsewhere.
#pragma once

namespace facula::cuda {

void register_convolution();  // sets device_convolution (op/hooks/convolution.h)

}  // namespace facula::cuda
