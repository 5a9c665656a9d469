// Factorisations of real matrices by panels of columns: a panel is factored column by column, the
// rest follows with matrix products, which the thread pool shares. Conventions are LAPACK's, and
// results do not depend on the number of threads. BLAS must be on one thread (no BlasThreads).
#pragma once
#include "core/numeric.h"

namespace facula {

constexpr int kBlockedMatrix = 64;  // from this many rows and columns on it pays

template <class T>  // float and double
int blocked_lu(int m, int n, T* a, int lda, int* pivots);
// Solves with the factors for each column of b, several columns at a time.
template <class T>
void blocked_lu_solve(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
                      int ldb);
template <class T>
void blocked_qr(int m, int n, T* a, int lda, T* tau);
template <class T>  // the first n columns of Q from k reflectors, k <= n <= m
void blocked_q(int m, int n, int k, T* a, int lda, const T* tau);

}  // namespace facula
