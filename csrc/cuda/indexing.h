// Reading and writing by indices on the device.
#pragma once

namespace facula::cuda {

void register_indexing();  // sets device_indexing (op/hooks/indexing.h)

}  // namespace facula::cuda
