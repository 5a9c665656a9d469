// BLAS and LAPACK from the OpenBLAS of the PyPI package scipy-openblas32, opened on first use.
// OpenBLAS runs single-threaded: products are cut into tiles that the thread pool computes, so that
// only one set of threads exists. A LAPACK call that gains from threads inside takes a BlasThreads.
#pragma once
#include <cstdint>

namespace facula {

enum class BlasOrder : int { RowMajor = 101, ColumnMajor = 102 };
enum class BlasTranspose : int { No = 111, Yes = 112, Conjugate = 113 };

// Sizes are 32-bit in this build; callers cut larger problems. Complex scalars go by address.
struct BlasTable {
  template <class T>
  using RealGemm = void (*)(BlasOrder, BlasTranspose, BlasTranspose, int m, int n, int k, T alpha,
                            const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
  using ComplexGemm = void (*)(BlasOrder, BlasTranspose, BlasTranspose, int m, int n, int k,
                               const void* alpha, const void* a, int lda, const void* b, int ldb,
                               const void* beta, void* c, int ldc);
  template <class T>
  using RealGemv = void (*)(BlasOrder, BlasTranspose, int m, int n, T alpha, const T* a, int lda,
                            const T* x, int incx, T beta, T* y, int incy);
  using ComplexGemv = void (*)(BlasOrder, BlasTranspose, int m, int n, const void* alpha,
                               const void* a, int lda, const void* x, int incx, const void* beta,
                               void* y, int incy);
  template <class T>
  using RealDot = T (*)(int n, const T* x, int incx, const T* y, int incy);
  using ComplexDot = void (*)(int n, const void* x, int incx, const void* y, int incy,
                              void* result);

  RealGemm<float> sgemm;
  RealGemm<double> dgemm;
  ComplexGemm cgemm, zgemm;
  RealGemv<float> sgemv;
  RealGemv<double> dgemv;
  ComplexGemv cgemv, zgemv;
  RealDot<float> sdot;
  RealDot<double> ddot;
  ComplexDot cdotu, zdotu;  // without conjugation
};

// Opens the library on the first call. Throws std::runtime_error that names the package to install
// when it is not found.
const BlasTable& blas();

// The address of a BLAS or LAPACK routine by its usual name ("dgetrf_", "cblas_dtrsm"); the prefix
// of the scipy build is added here. nullptr when the library does not have it.
void* blas_symbol(const char* name);

// The file to open instead of ../scipy_openblas32/lib/ beside our own shared object. Has no effect
// once the library is open.
void set_blas_library(const char* path);

// Lets OpenBLAS use the pool's number of threads inside one call while this object lives (one
// thread when created inside a parallel region). Objects of different threads wait for each other.
class BlasThreads {
 public:
  BlasThreads();
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  bool threaded_;
};

}  // namespace facula
