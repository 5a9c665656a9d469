// What a device backend does for products of sparse matrices (sparse/products.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

// The functions of sparse/rows.h, for all rows. `starts` and `columns` are int64, the others dense
// tensors of one dtype; small floats are added up in float32.
struct SparseHooks {
  DeviceHook<void(const Tensor& starts, const Tensor& columns, const Tensor& values,
                  const Tensor& matrix, const Tensor& out)>
      multiply_rows{"sparse.mm"};
  DeviceHook<void(const Tensor& starts, const Tensor& columns, const Tensor& a, const Tensor& b,
                  const Tensor& out)>
      sample_rows{"sparse.sampled_addmm"};
};
inline constinit SparseHooks device_sparse;

}  // namespace facula
