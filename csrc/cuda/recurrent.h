// Recurrent layers on the device: a product and a kernel for the gates of each step.
#pragma once

namespace facula::cuda {

void register_recurrent();  // sets device_recurrent (op/hooks/recurrent.h)

}  // namespace facula::cuda
