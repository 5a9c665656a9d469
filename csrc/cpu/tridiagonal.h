// Tridiagonal forms of real symmetric matrices and their eigenvectors, and bidiagonal forms of
// other real matrices, by vectors. Columns are panel_stride(n) apart (matrix_panels.h) and end with
// zeros. Conventions are LAPACK's.
#pragma once
#include <cstdint>

namespace facula {

template <class T>
struct Tridiagonal {
  // The lower triangle of a to the diagonal d and e beside it. Each column is read and written once
  // for a reflection: what the last one left to do is done where the next one looks at it. room is
  // for 3 panel_stride(n) numbers.
  void (*reduce)(int n, T* a, T* d, T* e, T* tau, T* room);
  // The product of the reflections; q is all zeros before.
  void (*expand)(int n, const T* a, const T* tau, T* q);
  // QR steps until e vanishes, with the columns of z (n x n) turned; the largest of d and e is
  // about
  // 1. room is for 2 n numbers. Whether it converged; d is not sorted.
  bool (*solve)(int n, T* d, T* e, T* z, T* room);
  // The bidiagonal form of m x n, m >= n, as gebrd has it. room is for panel_stride(m) and
  // 2 panel_stride(n) numbers.
  void (*reduce_both)(int m, int n, T* a, T* d, T* e, T* left, T* right, T* room);
};

// For the instruction set of this machine; float and double.
template <class T>
const Tridiagonal<T>& tridiagonal();

}  // namespace facula
