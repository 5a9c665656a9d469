// LAPACK (and the triangular solve of BLAS) from OpenBLAS, typed: one function template per routine
// for float, double and both complex types, with Fortran's conventions otherwise. Matrices are
// column-major, the result is LAPACK's info: 0, or the 1-based place of a zero pivot or of the
// minor that is not positive. Routines that need scratch memory take `work` of `lwork` elements;
// lwork = -1 asks for the best size, which is left in work[0]. Real types ignore rwork.
#pragma once
#include "core/numeric.h"

namespace facula::lapack {

// ---- triangular and Cholesky; uplo is 'U' or 'L', trans 'N', 'T' or 'C', diag 'U' (unit) or 'N'
template <class T>  // B := op(A)^-1 B (side 'L') or B op(A)^-1 (side 'R'); B is m x n
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
          int ldb);
template <class T>  // x := op(A) x
void trmv(char uplo, char trans, char diag, int n, const T* a, int lda, T* x);
template <class T>
int potrf(char uplo, int n, T* a, int lda);
template <class T>
int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb);
template <class T>  // the inverse from the factor, in the triangle named by uplo
int potri(char uplo, int n, T* a, int lda);

// ---- LU with row interchanges; pivots are 1-based rows
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots);
template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb);
template <class T>  // the inverse from the factors
int getri(int n, T* a, int lda, const int* pivots, T* work, int lwork);

// ---- L D L^T, or L D L^H when hermitian (real types: the same)
template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots, T* work, int lwork);
template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
          int ldb);

// ---- QR
template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork);
template <class T>  // orgqr, ungqr
int orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork);
template <class T>  // ormqr, unmqr; trans 'T' means the adjoint in every type
int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc, T* work, int lwork);

// ---- least squares
template <class T>
int gels(char trans, int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* work, int lwork);
template <class T>  // rwork: 2 n
int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork);
template <class T>  // a query leaves the sizes of rwork and iwork in rwork[0] and iwork[0]
int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_of_t<T>* s, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork, int* iwork);
template <class T>  // rwork: 5 min(m, n)
int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_of_t<T>* s, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork);

// The parts of gelsy, for real types: QR with exchanged columns (jpvt, counted from 1, all 0 on
// entry), an estimate of the least (job 2) or largest (job 1) singular value of a triangle with one
// more column, and the triangle of a trapezoid with the reflectors from the right that make it.
template <class T>
int geqp3(int m, int n, T* a, int lda, int* jpvt, T* tau, T* work, int lwork);
template <class T>
void laic1(int job, int j, const T* x, T estimate, const T* w, T gamma, T* next, T* s, T* c);
template <class T>
int tzrzf(int m, int n, T* a, int lda, T* tau, T* work, int lwork);
template <class T>
int ormrz(char side, char trans, int m, int n, int k, int l, const T* a, int lda, const T* tau,
          T* c, int ldc, T* work, int lwork);

// ---- singular values and eigenvalues
template <class T>  // rwork as LAPACK's cgesdd has it; iwork: 8 min(m, n)
int gesdd(char jobz, int m, int n, T* a, int lda, real_of_t<T>* s, T* u, int ldu, T* vt, int ldvt,
          T* work, int lwork, real_of_t<T>* rwork, int* iwork);
template <class T>  // rwork: 5 min(m, n)
int gesvd(char jobu, char jobvt, int m, int n, T* a, int lda, real_of_t<T>* s, T* u, int ldu, T* vt,
          int ldvt, T* work, int lwork, real_of_t<T>* rwork);
template <class T>  // syevd, heevd; lwork, lrwork and liwork are queried together
int syevd(char jobz, char uplo, int n, T* a, int lda, real_of_t<T>* w, T* work, int lwork,
          real_of_t<T>* rwork, int lrwork, int* iwork, int liwork);
// The parts of syevd and gesdd, for real types: the tridiagonal form with its eigenvectors, the
// bidiagonal one with its singular vectors.
template <class T>  // tau: n - 1
int sytrd(char uplo, int n, T* a, int lda, T* d, T* e, T* tau, T* work, int lwork);
template <class T>  // work: 1 + 4 n + n^2; iwork: 3 + 5 n
int stedc(char compz, int n, T* d, T* e, T* z, int ldz, T* work, int lwork, int* iwork, int liwork);
template <class T>  // eigenvalues only
int sterf(int n, T* d, T* e);
// How stedc joins two halves, the columns of q sorted in each by indxq (counted from 1): laed2
// drops what is known already and leaves k roots of an equation, laed4 finds the i-th, lamrg merges
// two sorted lists. coltyp and indxc say which of the columns in q2 have elements in which half.
template <class T>
int laed2(int* k, int n, int n1, T* d, T* q, int ldq, int* indxq, T* rho, T* z, T* dlamda, T* w,
          T* q2, int* indx, int* indxc, int* indxp, int* coltyp);
template <class T>
int laed4(int n, int i, const T* d, const T* z, T* delta, T rho, T* lambda);
template <class T>
void lamrg(int n1, int n2, const T* a, int step1, int step2, int* index);
template <class T>
int gebrd(int m, int n, T* a, int lda, T* d, T* e, T* tauq, T* taup, T* work, int lwork);
template <class T>  // with vectors; work: 3 n^2 + 4 n; iwork: 8 n
int bdsdc(char uplo, int n, T* d, T* e, T* u, int ldu, T* vt, int ldvt, T* work, int* iwork);
template <class T>  // singular values only, of an upper bidiagonal form; work: 4 n
int lasq1(int n, T* d, T* e, T* work);
// w: n eigenvalues; in real types 2 n numbers, all real parts and then all imaginary parts.
template <class T>  // rwork: 2 n
int geev(char jobvl, char jobvr, int n, T* a, int lda, T* w, T* vl, int ldvl, T* vr, int ldvr,
         T* work, int lwork, real_of_t<T>* rwork);

// The parts of geev, for real types. Rows and columns begin .. end (counted from 1) are not
// triangular after gebal's exchanges, which gebak undoes in vectors.
template <class T>
int gebal(char job, int n, T* a, int lda, int* begin, int* end, T* scale);
template <class T>
int gebak(char job, char side, int n, int begin, int end, const T* scale, int m, T* v, int ldv);
template <class T>
int gehrd(int n, int begin, int end, T* a, int lda, T* tau, T* work, int lwork);
template <class T>
int orghr(int n, int begin, int end, T* a, int lda, const T* tau, T* work, int lwork);
template <class T>  // turns (a, b; c, d) to standard form
void lanv2(T* a, T* b, T* c, T* d, T* real1, T* imaginary1, T* real2, T* imaginary2, T* cosine,
           T* sine);
template <class T>  // all vectors of one side; howmany 'B' turns those in v back
int trevc3(char side, char howmany, int n, const T* t, int ldt, T* v, int ldv, T* work, int lwork);

}  // namespace facula::lapack
