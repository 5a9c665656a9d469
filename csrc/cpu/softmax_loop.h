// What softmax_isa.cpp offers.
#pragma once
#include <cstdint>

#include "core/numeric.h"

namespace facula {

struct SoftmaxLoops {
  void (*rows_f32)(const float* in, float* out, int64_t count, int64_t n, bool logarithm);
  void (*rows_f64)(const double* in, double* out, int64_t count, int64_t n, bool logarithm);
  void (*columns_f32)(const float* in, float* out, int64_t n, int64_t inner, int64_t width,
                      bool logarithm);
  void (*columns_f64)(const double* in, double* out, int64_t n, int64_t inner, int64_t width,
                      bool logarithm);
  // The gradient by what softmax was given, from its result and the gradient of that.
  void (*row_grads_f32)(const float* grad, const float* result, float* out, int64_t count,
                        int64_t n, bool logarithm);
  void (*row_grads_f64)(const double* grad, const double* result, double* out, int64_t count,
                        int64_t n, bool logarithm);
  void (*row_grads_f16)(const Half* grad, const Half* result, Half* out, int64_t count, int64_t n,
                        bool logarithm);
  void (*row_grads_bf16)(const BFloat16* grad, const BFloat16* result, BFloat16* out, int64_t count,
                         int64_t n, bool logarithm);
  void (*column_grads_f32)(const float* grad, const float* result, float* out, int64_t n,
                           int64_t inner, int64_t width, bool logarithm);
  void (*column_grads_f64)(const double* grad, const double* result, double* out, int64_t n,
                           int64_t inner, int64_t width, bool logarithm);
};

}  // namespace facula
