#include "cpu/lapack.h"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "cpu/blas.h"

namespace facula::lapack {

namespace {

// "getrf" of double is "dgetrf_".
template <class T>
void* find(const char* routine) {
  constexpr bool wide = sizeof(real_of_t<T>) == 8;
  constexpr char letter = is_complex_v<T> ? (wide ? 'z' : 'c') : (wide ? 'd' : 's');
  const std::string name = letter + std::string(routine) + "_";
  if (void* symbol = blas_symbol(name.c_str())) return symbol;
  throw std::runtime_error("the LAPACK library has no routine " + name +
                           "; reinstall it with `pip install --force-reinstall scipy-openblas32`");
}

// Fortran takes everything by address and the lengths of character arguments at the end.
template <class... Args>
void invoke(void* routine, Args... args) {
  reinterpret_cast<void (*)(Args...)>(routine)(args...);
}
constexpr size_t kOne = 1;

}  // namespace

// The address of a routine for the type T, looked up once per place and type.
#define ROUTINE(name)                          \
  ([] {                                        \
    static void* const symbol = find<T>(name); \
    return symbol;                             \
  }())

template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
          int ldb) {
  const T one(1);
  invoke(ROUTINE("trsm"), &side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb, kOne, kOne,
         kOne, kOne);
}

template <class T>
void trmv(char uplo, char trans, char diag, int n, const T* a, int lda, T* x) {
  const int step = 1;
  invoke(ROUTINE("trmv"), &uplo, &trans, &diag, &n, a, &lda, x, &step, kOne, kOne, kOne);
}

template <class T>
int potrf(char uplo, int n, T* a, int lda) {
  int info = 0;
  invoke(ROUTINE("potrf"), &uplo, &n, a, &lda, &info, kOne);
  return info;
}

template <class T>
int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb) {
  int info = 0;
  invoke(ROUTINE("potrs"), &uplo, &n, &nrhs, a, &lda, b, &ldb, &info, kOne);
  return info;
}

template <class T>
int potri(char uplo, int n, T* a, int lda) {
  int info = 0;
  invoke(ROUTINE("potri"), &uplo, &n, a, &lda, &info, kOne);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  invoke(ROUTINE("getrf"), &m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  invoke(ROUTINE("getrs"), &trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, kOne);
  return info;
}

template <class T>
int getri(int n, T* a, int lda, const int* pivots, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("getri"), &n, a, &lda, pivots, work, &lwork, &info);
  return info;
}

template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots, T* work, int lwork) {
  int info = 0;
  void* routine = ROUTINE("sytrf");
  if constexpr (is_complex_v<T>) {
    if (hermitian) routine = ROUTINE("hetrf");
  }
  invoke(routine, &uplo, &n, a, &lda, pivots, work, &lwork, &info, kOne);
  return info;
}

template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
          int ldb) {
  int info = 0;
  void* routine = ROUTINE("sytrs");
  if constexpr (is_complex_v<T>) {
    if (hermitian) routine = ROUTINE("hetrs");
  }
  invoke(routine, &uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, kOne);
  return info;
}

template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("geqrf"), &m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}

template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE(is_complex_v<T> ? "ungqr" : "orgqr"), &m, &n, &k, a, &lda, tau, work, &lwork,
         &info);
  return info;
}

template <class T>
int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc, T* work, int lwork) {
  int info = 0;
  const char direction = is_complex_v<T> && trans == 'T' ? 'C' : trans;
  invoke(ROUTINE(is_complex_v<T> ? "unmqr" : "ormqr"), &side, &direction, &m, &n, &k, a, &lda, tau,
         c, &ldc, work, &lwork, &info, kOne, kOne);
  return info;
}

template <class T>
int gels(char trans, int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("gels"), &trans, &m, &n, &nrhs, a, &lda, b, &ldb, work, &lwork, &info, kOne);
  return info;
}

template <class T>
int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("gelsy"), &m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork,
           rwork, &info);
  else
    invoke(ROUTINE("gelsy"), &m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork,
           &info);
  return info;
}

template <class T>
int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_of_t<T>* s, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork, int* iwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("gelsd"), &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork,
           iwork, &info);
  else
    invoke(ROUTINE("gelsd"), &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork,
           &info);
  return info;
}

template <class T>
int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_of_t<T>* s, real_of_t<T> rcond,
          int* rank, T* work, int lwork, real_of_t<T>* rwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("gelss"), &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork,
           &info);
  else
    invoke(ROUTINE("gelss"), &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, &info);
  return info;
}

template <class T>
int geqp3(int m, int n, T* a, int lda, int* jpvt, T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("geqp3"), &m, &n, a, &lda, jpvt, tau, work, &lwork, &info);
  return info;
}

template <class T>
void laic1(int job, int j, const T* x, T estimate, const T* w, T gamma, T* next, T* s, T* c) {
  invoke(ROUTINE("laic1"), &job, &j, x, &estimate, w, &gamma, next, s, c);
}

template <class T>
int tzrzf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("tzrzf"), &m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}

template <class T>
int ormrz(char side, char trans, int m, int n, int k, int l, const T* a, int lda, const T* tau,
          T* c, int ldc, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("ormrz"), &side, &trans, &m, &n, &k, &l, a, &lda, tau, c, &ldc, work, &lwork,
         &info, kOne, kOne);
  return info;
}

template <class T>
int gesdd(char jobz, int m, int n, T* a, int lda, real_of_t<T>* s, T* u, int ldu, T* vt, int ldvt,
          T* work, int lwork, real_of_t<T>* rwork, int* iwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("gesdd"), &jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork,
           iwork, &info, kOne);
  else
    invoke(ROUTINE("gesdd"), &jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork,
           &info, kOne);
  return info;
}

template <class T>
int gesvd(char jobu, char jobvt, int m, int n, T* a, int lda, real_of_t<T>* s, T* u, int ldu, T* vt,
          int ldvt, T* work, int lwork, real_of_t<T>* rwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("gesvd"), &jobu, &jobvt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork,
           rwork, &info, kOne, kOne);
  else
    invoke(ROUTINE("gesvd"), &jobu, &jobvt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork,
           &info, kOne, kOne);
  return info;
}

template <class T>
int syevd(char jobz, char uplo, int n, T* a, int lda, real_of_t<T>* w, T* work, int lwork,
          real_of_t<T>* rwork, int lrwork, int* iwork, int liwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("heevd"), &jobz, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork,
           &liwork, &info, kOne, kOne);
  else
    invoke(ROUTINE("syevd"), &jobz, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info,
           kOne, kOne);
  return info;
}

template <class T>
int sytrd(char uplo, int n, T* a, int lda, T* d, T* e, T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("sytrd"), &uplo, &n, a, &lda, d, e, tau, work, &lwork, &info, kOne);
  return info;
}

template <class T>
int stedc(char compz, int n, T* d, T* e, T* z, int ldz, T* work, int lwork, int* iwork,
          int liwork) {
  int info = 0;
  invoke(ROUTINE("stedc"), &compz, &n, d, e, z, &ldz, work, &lwork, iwork, &liwork, &info, kOne);
  return info;
}

template <class T>
int sterf(int n, T* d, T* e) {
  int info = 0;
  invoke(ROUTINE("sterf"), &n, d, e, &info);
  return info;
}

template <class T>
int laed2(int* k, int n, int n1, T* d, T* q, int ldq, int* indxq, T* rho, T* z, T* dlamda, T* w,
          T* q2, int* indx, int* indxc, int* indxp, int* coltyp) {
  int info = 0;
  invoke(ROUTINE("laed2"), k, &n, &n1, d, q, &ldq, indxq, rho, z, dlamda, w, q2, indx, indxc, indxp,
         coltyp, &info);
  return info;
}

template <class T>
int laed4(int n, int i, const T* d, const T* z, T* delta, T rho, T* lambda) {
  int info = 0;
  invoke(ROUTINE("laed4"), &n, &i, d, z, delta, &rho, lambda, &info);
  return info;
}

template <class T>
void lamrg(int n1, int n2, const T* a, int step1, int step2, int* index) {
  invoke(ROUTINE("lamrg"), &n1, &n2, a, &step1, &step2, index);
}

template <class T>
int gebrd(int m, int n, T* a, int lda, T* d, T* e, T* tauq, T* taup, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("gebrd"), &m, &n, a, &lda, d, e, tauq, taup, work, &lwork, &info);
  return info;
}

template <class T>
int bdsdc(char uplo, int n, T* d, T* e, T* u, int ldu, T* vt, int ldvt, T* work, int* iwork) {
  int info = 0;
  const char vectors = 'I';
  T* const compact = nullptr;
  int* const compact_index = nullptr;
  invoke(ROUTINE("bdsdc"), &uplo, &vectors, &n, d, e, u, &ldu, vt, &ldvt, compact, compact_index,
         work, iwork, &info, kOne, kOne);
  return info;
}

template <class T>
int geev(char jobvl, char jobvr, int n, T* a, int lda, T* w, T* vl, int ldvl, T* vr, int ldvr,
         T* work, int lwork, real_of_t<T>* rwork) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    invoke(ROUTINE("geev"), &jobvl, &jobvr, &n, a, &lda, w, vl, &ldvl, vr, &ldvr, work, &lwork,
           rwork, &info, kOne, kOne);
  else
    invoke(ROUTINE("geev"), &jobvl, &jobvr, &n, a, &lda, w, w + n, vl, &ldvl, vr, &ldvr, work,
           &lwork, &info, kOne, kOne);
  return info;
}

template <class T>
int lasq1(int n, T* d, T* e, T* work) {
  int info = 0;
  invoke(ROUTINE("lasq1"), &n, d, e, work, &info);
  return info;
}

template <class T>
int gebal(char job, int n, T* a, int lda, int* begin, int* end, T* scale) {
  int info = 0;
  invoke(ROUTINE("gebal"), &job, &n, a, &lda, begin, end, scale, &info, kOne);
  return info;
}

template <class T>
int gebak(char job, char side, int n, int begin, int end, const T* scale, int m, T* v, int ldv) {
  int info = 0;
  invoke(ROUTINE("gebak"), &job, &side, &n, &begin, &end, scale, &m, v, &ldv, &info, kOne, kOne);
  return info;
}

template <class T>
int gehrd(int n, int begin, int end, T* a, int lda, T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("gehrd"), &n, &begin, &end, a, &lda, tau, work, &lwork, &info);
  return info;
}

template <class T>
int orghr(int n, int begin, int end, T* a, int lda, const T* tau, T* work, int lwork) {
  int info = 0;
  invoke(ROUTINE("orghr"), &n, &begin, &end, a, &lda, tau, work, &lwork, &info);
  return info;
}

template <class T>
void lanv2(T* a, T* b, T* c, T* d, T* real1, T* imaginary1, T* real2, T* imaginary2, T* cosine,
           T* sine) {
  invoke(ROUTINE("lanv2"), a, b, c, d, real1, imaginary1, real2, imaginary2, cosine, sine);
}

template <class T>
int trevc3(char side, char howmany, int n, const T* t, int ldt, T* v, int ldv, T* work, int lwork) {
  int info = 0, select = 0, count = 0;
  invoke(ROUTINE("trevc3"), &side, &howmany, &select, &n, t, &ldt, v, &ldv, v, &ldv, &n, &count,
         work, &lwork, &info, kOne, kOne);
  return info;
}

#define INSTANTIATE(T)                                                                           \
  template void trsm<T>(char, char, char, char, int, int, const T*, int, T*, int);               \
  template int potrf<T>(char, int, T*, int);                                                     \
  template int potrs<T>(char, int, int, const T*, int, T*, int);                                 \
  template int potri<T>(char, int, T*, int);                                                     \
  template int getrf<T>(int, int, T*, int, int*);                                                \
  template int getrs<T>(char, int, int, const T*, int, const int*, T*, int);                     \
  template int getri<T>(int, T*, int, const int*, T*, int);                                      \
  template int sytrf<T>(bool, char, int, T*, int, int*, T*, int);                                \
  template int sytrs<T>(bool, char, int, int, const T*, int, const int*, T*, int);               \
  template int geqrf<T>(int, int, T*, int, T*, T*, int);                                         \
  template int orgqr<T>(int, int, int, T*, int, const T*, T*, int);                              \
  template int ormqr<T>(char, char, int, int, int, const T*, int, const T*, T*, int, T*, int);   \
  template int gels<T>(char, int, int, int, T*, int, T*, int, T*, int);                          \
  template int gelsy<T>(int, int, int, T*, int, T*, int, int*, real_of_t<T>, int*, T*, int,      \
                        real_of_t<T>*);                                                          \
  template int gelsd<T>(int, int, int, T*, int, T*, int, real_of_t<T>*, real_of_t<T>, int*, T*,  \
                        int, real_of_t<T>*, int*);                                               \
  template int gelss<T>(int, int, int, T*, int, T*, int, real_of_t<T>*, real_of_t<T>, int*, T*,  \
                        int, real_of_t<T>*);                                                     \
  template int gesdd<T>(char, int, int, T*, int, real_of_t<T>*, T*, int, T*, int, T*, int,       \
                        real_of_t<T>*, int*);                                                    \
  template int gesvd<T>(char, char, int, int, T*, int, real_of_t<T>*, T*, int, T*, int, T*, int, \
                        real_of_t<T>*);                                                          \
  template int syevd<T>(char, char, int, T*, int, real_of_t<T>*, T*, int, real_of_t<T>*, int,    \
                        int*, int);                                                              \
  template int geev<T>(char, char, int, T*, int, T*, T*, int, T*, int, T*, int, real_of_t<T>*);
#define INSTANTIATE_REAL(T)                                                                      \
  template int geqp3<T>(int, int, T*, int, int*, T*, T*, int);                                   \
  template void laic1<T>(int, int, const T*, T, const T*, T, T*, T*, T*);                        \
  template int tzrzf<T>(int, int, T*, int, T*, T*, int);                                         \
  template int ormrz<T>(char, char, int, int, int, int, const T*, int, const T*, T*, int, T*,    \
                        int);                                                                    \
  template void trmv<T>(char, char, char, int, const T*, int, T*);                               \
  template int sytrd<T>(char, int, T*, int, T*, T*, T*, T*, int);                                \
  template int sterf<T>(int, T*, T*);                                                            \
  template int stedc<T>(char, int, T*, T*, T*, int, T*, int, int*, int);                         \
  template int laed2<T>(int*, int, int, T*, T*, int, int*, T*, T*, T*, T*, T*, int*, int*, int*, \
                        int*);                                                                   \
  template int laed4<T>(int, int, const T*, const T*, T*, T, T*);                                \
  template void lamrg<T>(int, int, const T*, int, int, int*);                                    \
  template int gebrd<T>(int, int, T*, int, T*, T*, T*, T*, T*, int);                             \
  template int bdsdc<T>(char, int, T*, T*, T*, int, T*, int, T*, int*);                          \
  template int lasq1<T>(int, T*, T*, T*);                                                        \
  template int gebal<T>(char, int, T*, int, int*, int*, T*);                                     \
  template int gebak<T>(char, char, int, int, int, const T*, int, T*, int);                      \
  template int gehrd<T>(int, int, int, T*, int, T*, T*, int);                                    \
  template int orghr<T>(int, int, int, T*, int, const T*, T*, int);                              \
  template void lanv2<T>(T*, T*, T*, T*, T*, T*, T*, T*, T*, T*);                                \
  template int trevc3<T>(char, char, int, const T*, int, T*, int, T*, int);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE_REAL(float)
INSTANTIATE_REAL(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)

}  // namespace facula::lapack
