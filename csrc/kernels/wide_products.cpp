// Matrix products with a result that is wider than the factors.
#include "op/kernels/wide_products.h"
#include "op/ops/copying.h"
#include "op/ops/products.h"

namespace facula::kernels {

static Tensor widened(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  if (dtype != DType::Float32 || (t.dtype() != DType::Float16 && t.dtype() != DType::BFloat16))
    runtime_error(
        "out_dtype must be the dtype of the arguments or, for half and bfloat16, "
        "facula.float32; got out_dtype ",
        dtype, " and an argument of dtype ", t.dtype());
  return op::_to_copy(t, dtype);
}

Tensor mm_dtype(const Tensor& self, const Tensor& mat2, DType out_dtype) {
  return op::mm(widened(self, out_dtype), widened(mat2, out_dtype));
}
Tensor bmm_dtype(const Tensor& self, const Tensor& mat2, DType out_dtype) {
  return op::bmm(widened(self, out_dtype), widened(mat2, out_dtype));
}
Tensor addmm_dtype(const Tensor& self, const Tensor& mat1, const Tensor& mat2, DType out_dtype,
                   const Scalar& beta, const Scalar& alpha) {
  return op::addmm(widened(self, out_dtype), widened(mat1, out_dtype), widened(mat2, out_dtype),
                   beta, alpha);
}
Tensor baddbmm_dtype(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     DType out_dtype, const Scalar& beta, const Scalar& alpha) {
  return op::baddbmm(widened(self, out_dtype), widened(batch1, out_dtype),
                     widened(batch2, out_dtype), beta, alpha);
}

}  // namespace facula::kernels
