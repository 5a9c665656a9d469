// Singular value and eigenvalue decompositions of batches of matrices, by LAPACK.
#pragma once
#include <climits>

#include "core/tensor.h"

namespace facula {

// Inputs are (..., m, n) in any layout; results are dense, matrices in column-major order. An
// undefined u and vh (or vectors) are not computed. `info`, int32 of the batch's shape, gets
// LAPACK's info of each matrix, or kNotFinite for one that holds infinities or NaN.
constexpr int kNotFinite = INT_MAX;
void cpu_svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
             const Tensor& info);
void cpu_eigh(const Tensor& a, bool lower, const Tensor& values, const Tensor& vectors,
              const Tensor& info);
void cpu_eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info);

// Exponentials of (..., n, n); a and out are contiguous.
void cpu_matrix_exp(const Tensor& a, const Tensor& out);

}  // namespace facula
