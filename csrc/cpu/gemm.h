// Matrix products of any dtype, with any strides, on the host.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// c[i] = alpha * a[i] @ b[i] + beta * c[i] for i < batch; a is (m, k), b is (k, n), c is (m, n).
// Strides are in elements and may have any value, 0 and negative ones too (0 in c only where the
// extent is 1). c overlaps neither a nor b. beta == 0 ignores what c holds, NaN too.
// Integers wrap around and take the real parts of alpha and beta, truncated. Half, bfloat16 and
// float8 accumulate in float32 and round once. Bool is refused with std::invalid_argument.
struct Gemm {
  DType dtype;
  int64_t batch, m, n, k;
  const void* a;
  int64_t a_batch, a_row, a_col;
  const void* b;
  int64_t b_batch, b_row, b_col;
  void* c;
  int64_t c_batch, c_row, c_col;
  double alpha_re = 1, alpha_im = 0, beta_re = 0, beta_im = 0;
  const void* bias = nullptr;  // n contiguous elements to add to each row; batch is 1 and beta 0
};
void gemm(const Gemm& problem);
// One matrix of bfloat16 or half, not rounded and without alpha, beta and bias: to rows of floats,
// `apart` from each other, with room for whole vectors of 16 columns. There is something to
// multiply, and recurrent_by_pairs() (recurrent.h) holds.
void gemm_in_floats(const Gemm&, float* sums, int64_t apart);

}  // namespace facula
