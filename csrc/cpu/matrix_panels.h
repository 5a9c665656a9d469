// Panels of real matrices: a few columns that are factored one after the other. Blocked
// factorisations (blocked_matrix.h) are made of them. Conventions are LAPACK's.
#pragma once
#include <cstdint>

namespace facula {

constexpr int kWidestPanel = 64;

// Panels are factored in scratch memory in which columns end with a vector of padding, so that
// loops need no remainder.
template <class T>
constexpr int64_t panel_stride(int64_t rows) {
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  return (rows + lanes - 1) / lanes * lanes + lanes;
}
template <class T>
constexpr int64_t panel_scratch(int64_t rows, int64_t columns) {
  return panel_stride<T>(rows) * columns;
}

// m >= n; sizes are positive, n is at most kWidestPanel.
template <class T>
struct MatrixPanels {
  int (*lu)(int m, int n, T* a, int lda, int* pivots, T* scratch);
  void (*qr)(int m, int n, T* a, int lda, T* tau, T* scratch);
  // t of I - V t V^T, the product of reflectors, from products = V^T V. The columns of t are
  // panel_stride(n) apart, with zeros below the diagonal.
  void (*reflector_factor)(int n, const T* products, const T* tau, T* t);
};

// For the instruction set of this machine; float and double.
template <class T>
const MatrixPanels<T>& matrix_panels();

}  // namespace facula
