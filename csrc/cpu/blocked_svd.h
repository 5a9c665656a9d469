// Singular vectors of real matrices: LAPACK's way, by a bidiagonal form, with the products that
// lead to it and back shared by the thread pool. Results do not depend on the number of threads.
// BLAS must be on one thread (no BlasThreads).
#pragma once

namespace facula {

// m >= n. a is destroyed; u is m x columns, where columns is n or m, and v, not its transpose, n x
// n. Returns LAPACK's info. Float and double; squares of elements are finite and not all too small.
template <class T>
int blocked_svd(int m, int n, T* a, T* s, int columns, T* u, T* v);

template <class T>
int blocked_svdvals(int m, int n, T* a, T* s);

}  // namespace facula
