// Eigenvectors of real symmetric matrices: LAPACK's way, by a tridiagonal form that is halved until
// it is small, with the halves and the products shared by the thread pool. Results do not depend on
// the number of threads. BLAS must be on one thread (no BlasThreads).
#pragma once

namespace facula {

// By the lower triangle of a; vectors are n x n, the eigenvalues ascend. Return LAPACK's info.
// Float and double; elements and their squares are finite and not all too small.
template <class T>
int blocked_eigh(int n, const T* a, T* values, T* vectors);
template <class T>
int blocked_eigvalsh(int n, const T* a, T* values);

}  // namespace facula
