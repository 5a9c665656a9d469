// Eigenvalues and eigenvectors of real square matrices: LAPACK's way (balance, Hessenberg form, QR
// steps with two shifts, vectors of a triangle), where the turning of rows and columns by each step
// is gathered and done by vectors. On one thread. BLAS must be on one thread (no BlasThreads).
#pragma once
#include <cstdint>

namespace facula {

constexpr int kMostHessenberg = 512;  // rows up to which one bulge at a time is quickest

// Columns of a matrix with zeros between them, and with columns of zeros behind the last, so that
// loops over its rows or columns need no remainder.
template <class T>
constexpr int64_t kHessenbergPadding = 64 / int64_t(sizeof(T));
template <class T>
constexpr int64_t hessenberg_stride(int64_t n) {
  constexpr int64_t lanes = kHessenbergPadding<T>;
  return (n + lanes - 1) / lanes * lanes + lanes;
}
template <class T>  // with the zeros before the first column
constexpr int64_t hessenberg_size(int64_t n) {
  return kHessenbergPadding<T> + hessenberg_stride<T>(n) * (n + 3 * kHessenbergPadding<T>);
}

// Reflections of three rows and columns, 1 - tau (1, v)' (1, v), that move a bulge down the
// diagonal of rows first .. last. The first is made of `start`; rows from `top` on and columns
// before `end` are turned; more may be. z, unless it is null, has n rows, and its columns are
// turned.
template <class T>
using ChaseBulge = void (*)(int first, int last, bool is_inner, const T* start, int top, int end,
                            T* h, int64_t ld, int n, T* z);
template <class T>
ChaseBulge<T> chase_bulge();

// By the matrix a (column-major), which is destroyed. w: the n real and then the n imaginary parts;
// vectors, unless they are null, as LAPACK's geev has them. Returns its info. Float and double;
// elements are finite and squares of them neither overflow nor all vanish.
template <class T>
int real_eig(int n, T* a, T* w, T* vectors);

}  // namespace facula
