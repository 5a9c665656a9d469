// Variance and mean in one pass.
#pragma once

namespace facula::cuda {

void register_moments();  // sets device_moments (op/hooks/moments.h)

}  // namespace facula::cuda
