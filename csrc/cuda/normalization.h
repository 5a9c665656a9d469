// Normalisation on the device.
#pragma once

namespace facula::cuda {

void register_normalization();  // sets device_normalization (op/hooks/normalization.h)

}  // namespace facula::cuda
