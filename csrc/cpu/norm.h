// Normalisation of contiguous host memory: moments, the normalised values, and gradients.
//
// Three layouts. Rows: each row of n values has its own moments (layer norm, RMS norm). Runs: a
// channel is made of runs of neighbouring values (batch and group norm of contiguous images).
// Columns: the channels are neighbours (batch norm of matrices and of channels-last images).
// Values are of type S and computed in T: float for half precision, else the same type.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

template <class T, class S>
struct RowNorm {
  int64_t rows, n;
  const S* input;
  const T* weight;  // of n values, or null
  T* mean;          // of each row; null: values are not centred (RMS norm)
  T* rstd;
};
template <class T, class S>
void cpu_normalize_rows(const RowNorm<T, S>& norm, const T* bias, double eps, S* output);
// Gradients that are not wanted are null.
template <class T, class S>
void cpu_normalize_rows_backward(const RowNorm<T, S>& norm, const S* grad, S* input_grad,
                                 T* weight_grad, T* bias_grad);

// Batches of channels of `inner` values each: (batch, channels, inner), or (batch, inner, channels)
// when the channels are last.
struct ChannelShape {
  int64_t batch, channels, inner;
  bool channels_last;
  int64_t count() const { return batch * inner; }  // values of a channel
};
template <class T, class S>
struct ChannelNorm {
  ChannelShape shape;
  const S* input;
  const T* weight;  // of each channel, or null
  T* mean;
  T* rstd;
};
template <class T, class S>
void cpu_batch_norm(const ChannelNorm<T, S>& norm, const T* bias, double eps, T* variance,
                    S* output);
template <class T, class S>
void cpu_batch_norm_backward(const ChannelNorm<T, S>& norm, const S* grad, S* input_grad,
                             T* weight_grad, T* bias_grad);
// input * scale + shift; a null shift is 0.
template <class T, class S>
void cpu_scale_channels(const ChannelShape& shape, const S* input, const T* scale, const T* shift,
                        S* output);
// The channels come in `groups` with moments of their own for each element of the batch; mean and
// rstd are (batch, groups). Gradients never of channels that are last.
template <class T, class S>
void cpu_group_norm(const ChannelNorm<T, S>& norm, int64_t groups, const T* bias, double eps,
                    S* output);
template <class T, class S>
void cpu_group_norm_backward(const ChannelNorm<T, S>& norm, int64_t groups, const S* grad,
                             S* input_grad, T* weight_grad, T* bias_grad);

}  // namespace facula
