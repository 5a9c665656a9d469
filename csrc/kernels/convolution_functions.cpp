// The convolutions that users call, and the pieces of derivatives, in terms of `convolution`.
#include "kernels/spatial.h"
#include "op/kernels/convolution.h"
#include "op/ops/convolution.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"

namespace facula::kernels {

namespace {

// One value for each of `dims` dimensions.
Dims spread(IntSpan given, int64_t dims, const char* name) {
  if (given.size() == 1) return Dims(size_t(dims), given[0]);
  if (int64_t(given.size()) != dims)
    runtime_error("expected ", name, " to be a single integer value or a list of ", dims,
                  " values to match the convolution dimensions, but got ", name, "=", given);
  return Dims(given);
}

bool is_batched(const Tensor& input, const Tensor& weight, int64_t dims, const char* name) {
  if (input.dim() != dims + 1 && input.dim() != dims + 2)
    runtime_error("Expected ", dims + 1, "D (unbatched) or ", dims + 2, "D (batched) input to ",
                  name, ", but got input of size: ", input.sizes());
  if (weight.dim() != dims + 2)
    runtime_error("Expected a ", dims + 2, "D weight for ", name,
                  ", but got weight of size: ", weight.sizes());
  return input.dim() == dims + 2;
}

struct Options {
  const Tensor& bias;
  IntSpan stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

// An input without a batch dimension is a batch of one.
Tensor run(const Tensor& input, const Tensor& weight, const Options& o, int64_t dims,
           const char* name) {
  const bool batched = is_batched(input, weight, dims, name);
  const Dims stride = spread(o.stride, dims, "stride"),
             padding = spread(o.padding, dims, "padding"),
             dilation = spread(o.dilation, dims, "dilation"),
             output_padding = spread(o.output_padding, dims, "output_padding");
  const Tensor out =
      op::convolution(batched ? input : op::unsqueeze(input, 0), weight, o.bias, stride, padding,
                      dilation, o.transposed, output_padding, o.groups);
  return batched ? out : op::squeeze_dim(out, Dims{0});
}

constexpr int64_t kNone[] = {0};

Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
               IntSpan padding, IntSpan dilation, int64_t groups, int64_t dims, const char* name) {
  return run(input, weight, {bias, stride, padding, dilation, kNone, false, groups}, dims, name);
}

Tensor backward(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                IntSpan padding, IntSpan output_padding, int64_t groups, IntSpan dilation,
                int64_t dims, const char* name) {
  return run(input, weight, {bias, stride, padding, dilation, output_padding, true, groups}, dims,
             name);
}

// padding='same' or 'valid'. An odd total goes to the far side: the larger half is put on both, and
// the first result, which is one too many, is cut off.
Tensor with_named_padding(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          IntSpan stride, std::string_view padding, IntSpan dilation,
                          int64_t groups, int64_t dims, const char* name) {
  if (padding == "valid")
    return forward(input, weight, bias, stride, kNone, dilation, groups, dims, name);
  if (padding != "same")
    runtime_error("Invalid padding string: '", padding, "'; 'valid' and 'same' are accepted");
  const bool batched = is_batched(input, weight, dims, name);
  const Dims steps = spread(stride, dims, "stride"), spacing = spread(dilation, dims, "dilation");
  Dims half;
  bool even = true;
  for (int64_t i = 0; i < dims; ++i) {
    if (steps[size_t(i)] != 1)
      runtime_error("padding='same' is not supported for strided convolutions, got stride=",
                    IntSpan(steps));
    const int64_t total = spacing[size_t(i)] * (weight.size(i + 2) - 1);
    half.push_back((total + 1) / 2);
    even &= total % 2 == 0;
  }
  Tensor out = forward(input, weight, bias, stride, half, dilation, groups, dims, name);
  if (even) return out;
  MemoryFormat format = MemoryFormat::Contiguous;
  if (dims > 1 && batched && !out.is_wrapped() && suggests_channels_last(out))
    format = dims == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t at = i + 1 + batched, size = input.size(at);
    if (out.size(at) != size) out = op::narrow(out, at, 1, size);
  }
  return op::contiguous(out, format);
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
              IntSpan padding, IntSpan dilation, int64_t groups) {
  return forward(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d");
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
              IntSpan padding, IntSpan dilation, int64_t groups) {
  return forward(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d");
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
              IntSpan padding, IntSpan dilation, int64_t groups) {
  return forward(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d");
}

Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  return with_named_padding(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d");
}
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  return with_named_padding(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d");
}
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  return with_named_padding(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d");
}

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntSpan stride, IntSpan padding, IntSpan output_padding, int64_t groups,
                        IntSpan dilation) {
  return backward(input, weight, bias, stride, padding, output_padding, groups, dilation, 1,
                  "conv_transpose1d");
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntSpan stride, IntSpan padding, IntSpan output_padding, int64_t groups,
                        IntSpan dilation) {
  return backward(input, weight, bias, stride, padding, output_padding, groups, dilation, 2,
                  "conv_transpose2d");
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntSpan stride, IntSpan padding, IntSpan output_padding, int64_t groups,
                        IntSpan dilation) {
  return backward(input, weight, bias, stride, padding, output_padding, groups, dilation, 3,
                  "conv_transpose3d");
}

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  if (self.dim() != 3)
    runtime_error("Input must have 3 dims: time, batch, in_channel; got shape ", self.sizes());
  if (weight.dim() != 3)
    runtime_error(
        "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels; got "
        "shape ",
        weight.sizes());
  if (bias.dim() != 1) runtime_error("Bias must be 1-D, got shape ", bias.sizes());
  if (self.size(2) != weight.size(1))
    runtime_error("Input dim 2 (input channels) is not == dim 1 in the weight tensor: ",
                  self.size(2), " and ", weight.size(1));
  if (bias.size(0) != weight.size(2))
    runtime_error("Bias size must equal dim 2 in the weight tensor (output channels): ",
                  bias.size(0), " and ", weight.size(2));
  const int64_t padding[] = {std::max<int64_t>(pad, 0)};
  const int64_t one[] = {1};
  Tensor in = self;
  if (pad < 0) in = op::narrow(self, 0, -pad, std::max<int64_t>(self.size(0) + 2 * pad, 0));
  const Tensor out =
      op::convolution(op::permute(in, Dims{1, 2, 0}), op::permute(weight, Dims{2, 1, 0}), bias, one,
                      padding, one, false, kNone, 1);
  return op::contiguous(op::permute(out, Dims{2, 0, 1}));
}

// ---- derivatives

Tensor _convolve_to(const Tensor& input, const Tensor& weight, IntSpan size, IntSpan stride,
                    IntSpan padding, IntSpan dilation, int64_t groups) {
  Tensor out =
      op::convolution(input, weight, Tensor(), stride, padding, dilation, false, kNone, groups);
  // The transpose of a dilated convolution may have been padded by more than its stride.
  for (int64_t d = 2; d < out.dim(); ++d)
    if (out.size(d) != size[size_t(d)]) out = op::narrow(out, d, 0, size[size_t(d)]);
  return out;
}

Tensor _convolve_back_to(const Tensor& input, const Tensor& weight, IntSpan size, IntSpan stride,
                         IntSpan padding, IntSpan dilation, int64_t groups) {
  const int64_t dims = input.dim() - 2;
  const Dims steps = spread(stride, dims, "stride"), pads = spread(padding, dims, "padding"),
             spacing = spread(dilation, dims, "dilation");
  Dims missing;
  for (int64_t i = 0; i < dims; ++i) {
    const size_t k = size_t(i);
    const int64_t least = (input.size(i + 2) - 1) * steps[k] - 2 * pads[k] +
                          spacing[k] * (weight.size(i + 2) - 1) + 1;
    missing.push_back(size[k + 2] - least);
  }
  return op::convolution(input, weight, Tensor(), steps, pads, spacing, true, missing, groups);
}

Tensor _sum_to_channels(const Tensor& self) {
  Dims others{0};
  for (int64_t d = 2; d < self.dim(); ++d) others.push_back(d);
  return op::sum_dim(self, std::optional<IntSpan>(others), false);
}

}  // namespace facula::kernels
