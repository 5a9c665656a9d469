// Products of the rows of sparse matrices on the device.
#pragma once

namespace facula::cuda {

void register_sparse_rows();  // sets device_sparse (op/hooks/sparse.h)

}  // namespace facula::cuda
