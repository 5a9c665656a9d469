// Softmax on the device.
#pragma once

namespace facula::cuda {

void register_softmax();  // sets device_softmax (op/hooks/softmax.h)

}  // namespace facula::cuda
