// What norm_isa.cpp offers.
#pragma once
#include <cstdint>

namespace facula {

template <class T>
struct Moments {
  T count, mean, squares;  // squares: the sum of (x - mean)^2
};
// Of two sets together (Chan, Golub and LeVeque 1979).
template <class T>
inline Moments<T> combined(const Moments<T>& a, const Moments<T>& b) {
  const T count = a.count + b.count, difference = b.mean - a.mean;
  if (count == T(0)) return a;
  return {count, a.mean + difference * (b.count / count),
          a.squares + b.squares + difference * difference * (a.count * b.count / count)};
}

template <class T>
struct NormLoops {
  Moments<T> (*moments)(const T* x, int64_t n);
  // (x - center) * scale + shift
  void (*scale)(const T* x, T* y, int64_t n, T center, T scale, T shift);
  // The sums of g and of g (x - center).
  void (*gradient_sums)(const T* g, const T* x, int64_t n, T center, T* of_g, T* of_gx);
  // a g + b (x - center) + c
  void (*gradient)(const T* g, const T* x, T* dx, int64_t n, T center, T a, T b, T c);

  // Rows of n values, each with moments of its own; mean null: not centred.
  void (*rows)(const T* x, const T* weight, const T* bias, T* y, T* mean, T* rstd, int64_t rows,
               int64_t n, double eps);
  // weight_grad and bias_grad are added to; any destination may be null.
  void (*rows_backward)(const T* g, const T* x, const T* weight, const T* mean, const T* rstd,
                        T* dx, T* weight_grad, T* bias_grad, int64_t rows, int64_t n);

  // Columns: the same for `rows` rows whose n values belong to n channels. Moments are folded into
  // mean and squares, which hold those of `before` rows; sums are added to.
  void (*column_moments)(const T* x, int64_t rows, int64_t n, int64_t before, T* mean, T* squares);
  void (*scale_columns)(const T* x, T* y, int64_t rows, int64_t n, const T* center, const T* scale,
                        const T* shift);
  void (*column_gradient_sums)(const T* g, const T* x, int64_t rows, int64_t n, const T* center,
                               T* of_g, T* of_gx);
  void (*column_gradient)(const T* g, const T* x, T* dx, int64_t rows, int64_t n, const T* center,
                          const T* a, const T* b, const T* c);
};

}  // namespace facula
