#pragma once

namespace facula::cuda {

void register_backward_streams();

}  // namespace facula::cuda
