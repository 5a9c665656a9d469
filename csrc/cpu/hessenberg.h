// Eigenvalues and eigenvectors of real square matrices: LAPACK's way (balance, Hessenberg form, QR
// steps with two shifts, vectors of a triangle), where the turning of rows and columns by each step
// is gathered and done by vectors; that of the eigenvectors is shared by the thread pool. Results
// do not depend on the number of threads. BLAS must be on one thread (no BlasThreads).
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

// Reflections of three rows and columns, 1 - tau (1, v)' (1, v), from row `first` on, each one row
// below the one before.
template <class T>
struct Reflections {
  static constexpr int kMost = 16;
  int first, count;
  T tau[kMost], v[kMost][2];
};

template <class T>
struct BulgeChase {
  // Moves a bulge down the diagonal of rows first .. last. The first reflection is made of `start`;
  // rows from `top` on and columns before `end` are turned; more may be. Returns how many groups of
  // reflections it was, which are written to `done`.
  int (*chase)(int first, int last, bool is_inner, const T* start, int top, int end, T* h,
               int64_t ld, Reflections<T>* done);
  // Turns the columns of z by the groups, one after the other, from row `begin`, a multiple of
  // kHessenbergPadding, up to row `end`.
  void (*turn)(const Reflections<T>* groups, int count, int begin, int end, T* z, int64_t ld);
};
template <class T>
const BulgeChase<T>& bulge_chase();

// By the matrix a (column-major), which is destroyed. w: the n real and then the n imaginary parts;
// vectors, unless they are null, as LAPACK's geev has them. Returns its info. Float and double;
// elements are finite and squares of them neither overflow nor all vanish.
template <class T>
int real_eig(int n, T* a, T* w, T* vectors);

}  // namespace facula
