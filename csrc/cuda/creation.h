// Sequences made on the device.
#pragma once

namespace facula::cuda {

void register_creation();

}  // namespace facula::cuda
