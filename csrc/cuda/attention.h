// Attention on the device, in tiles.
#pragma once

namespace facula::cuda {

void register_attention();  // sets device_attention (op/hooks/attention.h)

}  // namespace facula::cuda
