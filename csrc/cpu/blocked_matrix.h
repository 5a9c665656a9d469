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
void blocked_solve_upper(int n, int nrhs, const T* a, int lda, T* b, int ldb);
// Whether the condition number of an upper triangle in the 2-norm is at most `limit`, by bounds
// that are larger than it, if need be with the inverse; false when it is singular or not finite.
template <class T>
bool blocked_is_well_conditioned(int n, const T* a, int lda, double limit);
template <class T>
void blocked_qr(int m, int n, T* a, int lda, T* tau);
// The same for m >= n, and b := Q^T b for nrhs columns.
template <class T>
void blocked_qr_of_system(int m, int n, T* a, int lda, T* tau, int nrhs, T* b, int ldb);
template <class T>  // the first n columns of Q from k reflectors, k <= n <= m
void blocked_q(int m, int n, int k, T* a, int lda, const T* tau);
template <class T>  // c := Q c or Q^T c, where c is m x n and a holds k reflectors
void blocked_multiply_by_q(bool transpose, int m, int n, int k, const T* a, int lda, const T* tau,
                           T* c, int ldc);

}  // namespace facula
