// Convolutions of any dtype but bool and complex, on the host, as loops over strides: forward, and
// the gradients, which are convolutions again (conv.cpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// One spatial axis. Output t and tap j meet input t * step + j * spread + start; what lies outside
// [0, in) counts as zero.
struct ConvAxis {
  int64_t out = 1, in = 1, taps = 1;
  int64_t step = 1, spread = 1, start = 0;
  int64_t x_stride = 0, w_stride = 0, y_stride = 0;  // of input, weight and output, in elements
  // Only inside conv.cpp: all but every gap-th of the `in` inputs are zeros that x does not have.
  int64_t gap = 1;
};

// y[n, o, t] = bias[o] + sum over channels c and taps j of w[o, c, j] * x[n, c, input(t, j)],
// for each group of channels. All strides are in elements.
struct Conv {
  DType dtype;
  int64_t batch, groups, in, out;  // in, out: channels of one group
  ConvAxis axis[3];                // depth, height, width; missing ones are of size 1
  const void* x;
  int64_t x_batch, x_channel;
  const void* w;
  int64_t w_group, w_out, w_in;
  const void* bias;  // contiguous, groups * out elements; may be null
  void* y;
  int64_t y_batch, y_channel;
  bool transposed = false;  // set by conv_transposed where all remainders are computed at once

  FACULA_INLINE int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  FACULA_INLINE int64_t pixels() const {  // of one output
    return axis[0].out * axis[1].out * axis[2].out;
  }
};

// Sizes may be zero. Half and bfloat16 accumulate in float32 and round once, integers wrap around.
// Neither result depends on the number of threads.
void conv_forward(const Conv&);

// The transposed operator: x has the shape of a forward convolution's output and y that of its
// input. The axes describe that forward convolution (out, step, start ... as forward would have
// them: `out` is x's size and `in` is y's; x_stride belongs to x and y_stride to y).
void conv_transposed(const Conv&);

// w = the sum over the batch and all outputs of y * x: the derivative of conv_forward by w, when y
// is that of its result. Here w is written and y is only read; bias is not used.
void conv_weight_gradient(const Conv&);

}  // namespace facula
