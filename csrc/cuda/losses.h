// Losses over classes on the device.
#pragma once

namespace facula::cuda {

void register_losses();  // sets device_losses (op/hooks/losses.h)

}  // namespace facula::cuda
