// The CUDA backend as the families see it.
#pragma once

namespace facula::cuda {

void register_backend();  // cheap: no library is opened before a CUDA tensor is made

}  // namespace facula::cuda
