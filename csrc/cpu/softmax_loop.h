// What softmax_isa.cpp offers.
#pragma once
#include <cstdint>

#include "core/numeric.h"

namespace facula {

// The gradient by what softmax was given, from its result and the gradient of that.
template <class S>
struct SoftmaxGradLoops {
  void (*rows)(const S* grad, const S* result, S* out, int64_t count, int64_t n, bool logarithm);
  void (*columns)(const S* grad, const S* result, S* out, int64_t n, int64_t inner, int64_t width,
                  bool logarithm);
};

struct SoftmaxLoops {
  void (*rows_f32)(const float* in, float* out, int64_t count, int64_t n, bool logarithm);
  void (*rows_f64)(const double* in, double* out, int64_t count, int64_t n, bool logarithm);
  void (*columns_f32)(const float* in, float* out, int64_t n, int64_t inner, int64_t width,
                      bool logarithm);
  void (*columns_f64)(const double* in, double* out, int64_t n, int64_t inner, int64_t width,
                      bool logarithm);
  SoftmaxGradLoops<float> grads_f32;
  SoftmaxGradLoops<double> grads_f64;
  SoftmaxGradLoops<Half> grads_f16;
  SoftmaxGradLoops<BFloat16> grads_bf16;
};

}  // namespace facula
