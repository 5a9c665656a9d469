// What cross_entropy_isa.cpp offers.
#pragma once
#include <cstdint>

namespace facula {

// Over `n` classes: of one row, or of `width` columns whose classes are `inner` values apart.
template <class T>
struct CrossEntropyLoops {
  // The largest logit, the logarithm of the sum of e^(x - largest), and where `weighted` is not
  // null the sum of weight x (a null weight is 1).
  void (*row)(const T* x, int64_t n, const T* weight, T* largest, T* log_sum, T* weighted);
  void (*columns)(const T* x, int64_t n, int64_t inner, int64_t width, const T* weight, T* largest,
                  T* log_sum, T* weighted);
  // scale e^(x - largest - log_sum) - share weight
  void (*row_gradient)(const T* x, T* dx, int64_t n, const T* weight, T largest, T log_sum, T scale,
                       T share);
  void (*column_gradient)(const T* x, T* dx, int64_t n, int64_t inner, int64_t width,
                          const T* weight, const T* largest, const T* log_sum, const T* scale,
                          const T* share);
};

constexpr int64_t kColumnsAtOnce = 64;  // the most that `width` may be

}  // namespace facula
