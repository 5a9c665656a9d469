// Words of matrix algebra for composites and derivatives: operators only, so that they can be
// differentiated and batched again.
#pragma once
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/products.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula {

inline Tensor transposed(const Tensor& t) {
  return op::transpose(t, -2, -1);
}
inline Tensor adjoint(const Tensor& t) {
  return t.is_complex() ? op::conj(transposed(t)) : transposed(t);
}
inline Tensor first_columns(const Tensor& t, int64_t n) {
  return op::narrow(t, -1, 0, n);
}
inline Tensor first_rows(const Tensor& t, int64_t n) {
  return op::narrow(t, -2, 0, n);
}
inline Tensor last_columns(const Tensor& t, int64_t n) {
  return op::narrow(t, -1, t.size(-1) - n, n);
}
inline Tensor last_rows(const Tensor& t, int64_t n) {
  return op::narrow(t, -2, t.size(-2) - n, n);
}

}  // namespace facula
