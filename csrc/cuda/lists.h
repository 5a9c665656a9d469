// Optimisers, norms and scaling over many tensors.
#pragma once

namespace facula::cuda {

void register_lists();

}  // namespace facula::cuda
