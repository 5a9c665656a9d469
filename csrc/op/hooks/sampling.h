// What a device backend does for sampling at points, distances and alignments
// (kernels/grid_sample.cpp, distances.cpp, ctc.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct GridSample;  // cpu/grid_sample.h

enum class GridSampleKind { Values, Back, Slopes };

// Sequences of labels, spread over the steps of log_probs (steps, batch, classes).
struct LabelSequences {
  Tensor log_probs, labels;                                 // dense; labels are int64
  const int64_t *input_lengths, *target_lengths, *offsets;  // of each sequence, in host memory
  int64_t blank, longest;
};

struct SamplingHooks {
  // The functions of cpu/grid_sample.h on dense tensors of one dtype: `input` is written by Back
  // (it starts as zeros), `output` by Values, `slopes` by Slopes. The direction may be undefined.
  DeviceHook<void(GridSampleKind kind, const GridSample& problem, const Tensor& input,
                  const Tensor& grid, const Tensor& direction, const Tensor& output,
                  const Tensor& slopes)>
      grid_sample{"grid_sample"};
  // out (count, rows, columns) = p-norms of the differences of rows of x1 and x2.
  DeviceHook<void(const Tensor& x1, const Tensor& x2, double p, const Tensor& out)> distances{
      "cdist"};
  // out (count, rows, width) = the derivative of the distances by x1, times grad, summed.
  DeviceHook<void(const Tensor& grad, const Tensor& distances, const Tensor& x1, const Tensor& x2,
                  double p, const Tensor& out)>
      distance_slopes{"cdist"};
  // alpha is (batch, steps, 2 longest + 1).
  DeviceHook<void(const LabelSequences& sequences, const Tensor& loss, const Tensor& alpha)> ctc{
      "ctc_loss"};
  DeviceHook<void(const LabelSequences& sequences, const Tensor& loss, const Tensor& alpha,
                  const Tensor& grad, bool zero_infinity, const Tensor& out)>
      ctc_grad{"ctc_loss"};
};
inline constinit SamplingHooks device_sampling;

}  // namespace facula
