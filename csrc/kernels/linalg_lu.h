// LU factorisations that several operators start from.
#pragma once
#include "core/tensor.h"

namespace facula {

// a = P L U for every matrix: lu holds both factors in column-major order, pivots the 1-based rows
// that were exchanged and info 0 or the first zero on the diagonal of U (both int32).
struct LuFactors {
  Tensor lu, pivots, info;
};
LuFactors factor_matrices(const Tensor& a);

// x := op(a)^-1 b (left) or b op(a)^-1 from the factors of a, where op is the identity or the
// adjoint. All batches expand to that of x, which is in column-major order (left) or contiguous.
// Pivots that do not belong to an n x n matrix raise.
void solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, const Tensor& x,
                    bool left, bool adjoint);
// An uninitialised x for solve_factored.
Tensor empty_solution(IntSpan batch, const Tensor& b, bool left);

}  // namespace facula
