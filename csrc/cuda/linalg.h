// Factorisations and solves by cuSOLVER and cuBLAS.
#pragma once

namespace facula::cuda {

void register_linalg();

}  // namespace facula::cuda
