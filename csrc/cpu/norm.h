// Normalisation of contiguous host memory: moments, the normalised values, and gradients.
//
// Three layouts. Rows: each row of n values has its own moments (layer norm, RMS norm). Runs: a
// channel is made of runs of neighbouring values (batch and group norm of contiguous images).
// Columns: the channels are neighbours (batch norm of matrices and of channels-last images).
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

template <class T>
struct RowNorm {
  int64_t rows, n;
  const T* input;
  const T* weight;  // of n values, or null
  T* mean;          // of each row; null: values are not centred (RMS norm)
  T* rstd;
};
template <class T>
void cpu_normalize_rows(const RowNorm<T>& norm, const T* bias, double eps, T* output);
// Gradients that are not wanted are null.
template <class T>
void cpu_normalize_rows_backward(const RowNorm<T>& norm, const T* grad, T* input_grad,
                                 T* weight_grad, T* bias_grad);

// The same for input, output and gradients of half precision, of which some rows at a time are
// converted; norm.input is not read.
void cpu_normalize_rows_of_halves(const RowNorm<float>& norm, DType half, const char* input,
                                  const float* bias, double eps, char* output);
void cpu_normalize_rows_backward_of_halves(const RowNorm<float>& norm, DType half,
                                           const char* input, const char* grad, char* input_grad,
                                           float* weight_grad, float* bias_grad);

// Batches of channels of `inner` values each: (batch, channels, inner), or (batch, inner, channels)
// when the channels are last.
struct ChannelShape {
  int64_t batch, channels, inner;
  bool channels_last;
  int64_t count() const { return batch * inner; }  // values of a channel
};
template <class T>
struct ChannelNorm {
  ChannelShape shape;
  const T* input;
  const T* weight;  // of each channel, or null
  T* mean;
  T* rstd;
};
template <class T>
void cpu_batch_norm(const ChannelNorm<T>& norm, const T* bias, double eps, T* variance, T* output);
template <class T>
void cpu_batch_norm_backward(const ChannelNorm<T>& norm, const T* grad, T* input_grad,
                             T* weight_grad, T* bias_grad);
// The same for half precision, of which a channel at a time is converted; norm.input is not read.
// Never channels last.
void cpu_batch_norm_of_halves(const ChannelNorm<float>& norm, DType half, const char* input,
                              const float* bias, double eps, float* variance, char* output);
void cpu_batch_norm_backward_of_halves(const ChannelNorm<float>& norm, DType half,
                                       const char* input, const char* grad, char* input_grad,
                                       float* weight_grad, float* bias_grad);
// input * scale + shift; a null shift is 0.
template <class T>
void cpu_scale_channels(const ChannelShape& shape, const T* input, const T* scale, const T* shift,
                        T* output);
void cpu_scale_channels_of_halves(const ChannelShape& shape, DType half, const char* input,
                                  const float* scale, const float* shift, char* output);

// The channels come in `groups` with moments of their own for each element of the batch; mean and
// rstd are (batch, groups).
template <class T>
void cpu_group_norm(const ChannelNorm<T>& norm, int64_t groups, const T* bias, double eps,
                    T* output);
template <class T>
void cpu_group_norm_backward(const ChannelNorm<T>& norm, int64_t groups, const T* grad,
                             T* input_grad, T* weight_grad, T* bias_grad);

}  // namespace facula
