// What a device backend does for reading and writing by indices (kernels/scatter.cpp and others).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct IndexingHooks {
  // out[i][j] = self[index[i][j]][j] along dim; self is cut to index's shape in other dimensions.
  DeviceHook<void(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out)> gather{
      "gather"};
};
inline constinit IndexingHooks device_indexing;

}  // namespace facula
