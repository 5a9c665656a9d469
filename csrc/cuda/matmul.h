// Matrix products on the device, through cuBLAS.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "cuda/context.h"

namespace facula::cuda {

// c[i] = alpha * a[i] @ b[i] + beta * c[i] for i < batch, with (m, k) @ (k, n) -> (m, n).
// Strides count elements and may be anything: what cuBLAS cannot walk is copied first. A batch
// stride of 0 uses one matrix for all. c must not overlap a or b.
struct Gemm {
  DType dtype = DType::Float32;  // any but Bool
  int64_t batch = 1, m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t a_batch = 0, a_row = 0, a_col = 1;
  const void* b = nullptr;
  int64_t b_batch = 0, b_row = 0, b_col = 1;
  void* c = nullptr;
  int64_t c_batch = 0, c_row = 0, c_col = 1;
  Complex<double> alpha = 1.0, beta = 0.0;  // real for real dtypes; beta 0 does not read c
  const void* bias = nullptr;  // a dense row that is added to every row of c; only with beta 0
};

// cuBLAS multiplies float16, bfloat16, float32, float64 and complex numbers, an own kernel the
// rest.
void gemm(const Gemm& gemm, int device, CuStream stream);

void register_products();  // sets device_products (op/hooks/products.h)

// Whether float32 products may round their inputs to TF32 (10 bits of mantissa). Off at first.
void set_allow_tf32(bool allow);
bool allow_tf32();

}  // namespace facula::cuda
