// What a device backend does for products of matrices (kernels/products.cpp, kernels/linear.cpp).
#pragma once
#include "core/scalar.h"
#include "op/device_hook.h"

namespace facula {

struct ProductHooks {
  // out = alpha a @ b + beta out, matrices or batches of them; a batch stride of 0 broadcasts. Any
  // strides and any dtype but bool.
  DeviceHook<void(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
                  const Scalar& beta)>
      multiply{"matmul"};
  // out = a @ b + bias, with a dense vector for the columns of a dense matrix.
  DeviceHook<void(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out)>
      multiply_biased{"linear"};
};
inline constinit ProductHooks device_products;

}  // namespace facula
