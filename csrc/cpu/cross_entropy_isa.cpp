// The loops of the cross entropy; built once per ISA.
#include "cpu/cross_entropy_loops.h"
#include "cpu/exponential_sums.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
T weighted_sum(const T* x, const T* weight, int64_t n) {
  constexpr int L = 256 / sizeof(T);
  T lane[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
#pragma GCC ivdep
    for (int j = 0; j < L; ++j) lane[j] += weight ? x[i + j] * weight[i + j] : x[i + j];
  for (int j = 0; i + j < n; ++j) lane[j] += weight ? x[i + j] * weight[i + j] : x[i + j];
  for (int width = L / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

template <class T>
void row(const T* x, int64_t n, const T* weight, T* largest, T* log_sum, T* weighted) {
  T top = reduce_block<LargestOfNumbers>(x, n);
  if (top == -__builtin_inf()) top = 0;
  *largest = top;
  *log_sum = math::log(sum_of_exponentials<false>(x, static_cast<T*>(nullptr), n, top));
  if (weighted) *weighted = weighted_sum(x, weight, n);
}

template <class T>
void columns(const T* x, int64_t n, int64_t inner, int64_t width, const T* weight, T* largest,
             T* log_sum, T* weighted) {
  T top[kColumnsAtOnce], sum[kColumnsAtOnce];
  for (int64_t j = 0; j < width; ++j) top[j] = x[j], sum[j] = 0;
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) top[j] = math::maximum(top[j], x[i * inner + j]);
  for (int64_t j = 0; j < width; ++j) top[j] = top[j] == -__builtin_inf() ? 0 : top[j];
  for (int64_t i = 0; i < n; ++i)
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) sum[j] += math::exp_of_negative(x[i * inner + j] - top[j]);
  for (int64_t j = 0; j < width; ++j) largest[j] = top[j], log_sum[j] = math::log(sum[j]);
  if (!weighted) return;
  for (int64_t j = 0; j < width; ++j) weighted[j] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T w = weight ? weight[i] : T(1);
    for (int64_t j = 0; j < width; ++j) weighted[j] += w * x[i * inner + j];
  }
}

template <class T>
void row_gradient(const T* x, T* dx, int64_t n, const T* weight, T largest, T log_sum, T scale,
                  T share) {
  if (share != T(0) && weight) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      dx[i] = scale * math::exp_of_negative((x[i] - largest) - log_sum) - share * weight[i];
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    dx[i] = scale * math::exp_of_negative((x[i] - largest) - log_sum) - share;
}

template <class T>
void column_gradient(const T* x, T* dx, int64_t n, int64_t inner, int64_t width, const T* weight,
                     const T* largest, const T* log_sum, const T* scale, const T* share) {
  for (int64_t i = 0; i < n; ++i) {
    const T w = weight ? weight[i] : T(1);
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j)
      dx[i * inner + j] =
          scale[j] * math::exp_of_negative((x[i * inner + j] - largest[j]) - log_sum[j]) -
          share[j] * w;
  }
}

}  // namespace

extern const CrossEntropyLoops<float> cross_entropy_f32;
extern const CrossEntropyLoops<double> cross_entropy_f64;
const CrossEntropyLoops<float> cross_entropy_f32 = {row<float>, columns<float>, row_gradient<float>,
                                                    column_gradient<float>};
const CrossEntropyLoops<double> cross_entropy_f64 = {row<double>, columns<double>,
                                                     row_gradient<double>, column_gradient<double>};

}  // namespace facula::FACULA_ISA
