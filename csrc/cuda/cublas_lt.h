// Matrix products with a bias in one kernel, through cuBLASLt.
#pragma once
#include "cuda/matmul.h"

namespace facula::cuda {

// A column-major product, as cuBLAS wants it: d = op(left) op(right) + bias, (rows, columns), with
// one element of the bias for each row.
struct BiasedProduct {
  int type, compute;  // cudaDataType_t, cublasComputeType_t
  int left_op, right_op;
  int64_t rows, columns, depth;
  const void *left, *right, *bias;
  void* out;
  int64_t left_leading, right_leading, out_leading;
};

// False where the library is missing or has no such kernel: nothing has been done then.
bool biased_product(const BiasedProduct& product, int device, CuStream stream);

}  // namespace facula::cuda
