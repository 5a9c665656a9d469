// Least squares with real matrices of any rank, as LAPACK's gelsy solves them. Results do not
// depend on the number of threads. BLAS must be on one thread (no BlasThreads).
#pragma once

namespace facula {

// m >= n. a, with columns m apart, is destroyed; b holds nrhs right-hand sides of m elements, then
// solutions of n. Singular values below rcond times the largest count as zero. Returns the rank.
// Float and double; squares of elements are finite, and those of a do not all vanish.
template <class T>
int blocked_lstsq(int m, int n, int nrhs, T* a, T* b, int ldb, T rcond);

}  // namespace facula
