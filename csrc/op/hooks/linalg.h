// What a device backend does for factorisations and solves. Matrices are in LAPACK's order: dense
// columns, one matrix after the other (kernels/linalg_matrices.h, empty_columns). `info`, int32
// with one number for each matrix, is LAPACK's. Nothing is empty.
#pragma once
#include "op/device_hook.h"

namespace facula {

struct LinalgHooks {
  // In place; the triangle that is not named keeps what it held.
  DeviceHook<void(const Tensor& a, bool upper, const Tensor& info)> cholesky{"linalg.cholesky"};
  // In place; pivots are 1-based rows, int32, dense.
  DeviceHook<void(const Tensor& a, const Tensor& pivots, const Tensor& info)> lu{
      "linalg.lu_factor"};
  // b := op(a)^-1 b from the factors; op is 'N', 'T' or 'C' (the adjoint).
  DeviceHook<void(const Tensor& lu, const Tensor& pivots, const Tensor& b, char trans)> lu_solve{
      "linalg.lu_solve"};
  // b := op(a)^-1 b, or b op(a)^-1.
  DeviceHook<void(const Tensor& a, const Tensor& b, bool left, bool upper, char trans, bool unit)>
      triangular_solve{"linalg.solve_triangular"};
  // R above reflectors, in place; tau (..., min(m, n)) is dense.
  DeviceHook<void(const Tensor& a, const Tensor& tau)> qr{"linalg.qr"};
  // The first columns of the product of reflectors, in place.
  DeviceHook<void(const Tensor& a, const Tensor& tau)> householder_product{
      "linalg.householder_product"};
  // c := op(Q) c or c op(Q), Q the product of the reflectors.
  DeviceHook<void(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint)>
      multiply_by_q{"ormqr"};
  // m >= n; a is overwritten. Without u and vh only singular values are computed; otherwise vh is
  // n x n and u is m x n or m x m.
  DeviceHook<void(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
                  const Tensor& info)>
      svd{"linalg.svd"};
  // The vectors take the place of a, if they are asked for.
  DeviceHook<void(const Tensor& a, bool lower, bool vectors, const Tensor& values,
                  const Tensor& info)>
      eigh{"linalg.eigh"};
  // Everything is complex; a is overwritten; vectors may be undefined.
  DeviceHook<void(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info)>
      eig{"linalg.eig"};
  // L D L^T of symmetric matrices by their lower triangle, in place; pivots, int32, are dense.
  DeviceHook<void(const Tensor& a, const Tensor& pivots, const Tensor& info)> ldl{
      "linalg.ldl_factor"};
  // b := a^-1 b from these factors; pivots are int64 and dense.
  DeviceHook<void(const Tensor& a, const Tensor& pivots, const Tensor& b)> ldl_solve{
      "linalg.ldl_solve"};
  // order[i] for (P^T x)[i] = x[order[i]], or for P x when inverse; pivots (..., k) and order
  // (..., rows), int64, are dense. Pivots that name no row raise when the program next waits.
  DeviceHook<void(const Tensor& pivots, const Tensor& order, bool inverse)> lu_order{"lu_unpack"};
};
inline constinit LinalgHooks device_linalg;

}  // namespace facula
