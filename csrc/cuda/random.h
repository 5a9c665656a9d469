// Random numbers on the device.
#pragma once

namespace facula::cuda {

void register_random();  // sets device_random (op/hooks/random.h)

}  // namespace facula::cuda
