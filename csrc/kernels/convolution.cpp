// Convolution and its weight gradient: checks, shapes and layouts here, arithmetic in cpu/conv.
#include "op/kernels/convolution.h"
#include "cpu/conv.h"
#include "kernels/spatial.h"
#include "op/hooks/convolution.h"
#include "op/ops/arithmetic.h"
#include "op/ops/convolution.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// One value for each spatial dimension.
struct Geometry {
  Dims stride, padding, dilation, output_padding;
};

Dims for_each_dim(IntSpan given, int64_t dims, const char* name) {
  if (given.size() == 1) return Dims(size_t(dims), given[0]);
  if (int64_t(given.size()) != dims)
    runtime_error("expected ", name, " to be a single integer value or a list of ", dims,
                  " values to match the convolution dimensions, but got ", name, "=", given);
  return Dims(given);
}

void check_values(const Geometry& g) {
  for (size_t i = 0; i < g.stride.size(); ++i) {
    if (g.stride[i] <= 0)
      runtime_error("non-positive stride is not supported, got stride=", IntSpan(g.stride));
    if (g.dilation[i] <= 0)
      runtime_error("non-positive dilation is not supported, got dilation=", IntSpan(g.dilation));
    if (g.padding[i] < 0)
      runtime_error("negative padding is not supported, got padding=", IntSpan(g.padding),
                    "; cut the input with narrow instead");
    if (g.output_padding[i] < 0)
      runtime_error("negative output_padding is not supported, got output_padding=",
                    IntSpan(g.output_padding));
  }
}

void check_operands(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (input.dtype() != weight.dtype())
    runtime_error("Input type (", input.dtype(), ") and weight type (", weight.dtype(),
                  ") should be the same; convert one of them with .to(...)");
  if (bias.defined() && bias.dtype() != input.dtype())
    runtime_error("Input type (", input.dtype(), ") and bias type (", bias.dtype(),
                  ") should be the same; convert one of them with .to(...)");
  if (input.device() != weight.device()) device_error(input.device(), weight.device());
  if (bias.defined() && bias.device() != input.device())
    device_error(input.device(), bias.device());
  if (input.dtype() == DType::Bool || (is_floating(input.dtype()) && input.item_size() == 1))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(input.dtype()),
         "'; convert to an integer or floating-point dtype");
}

void check_channels(const Tensor& input, const Tensor& weight, const Tensor& bias, bool transposed,
                    int64_t groups) {
  if (groups <= 0) runtime_error("non-positive groups is not supported, got groups=", groups);
  if (weight.dim() < 3)
    runtime_error(
        "weight should have at least three dimensions, (out_channels, in_channels / "
        "groups, kernel size ...), got shape ",
        weight.sizes());
  if (weight.dim() > 5)
    runtime_error(
        "unsupported ConvNd parameters: kernels have 1 to 3 spatial dimensions, got a "
        "weight of shape ",
        weight.sizes());
  if (input.dim() != weight.dim())
    runtime_error("Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
                  "-dimensional weight ", weight.sizes(), ", but got ", input.dim(),
                  "-dimensional input of size ", input.sizes(), " instead");
  if (weight.size(0) < groups)
    runtime_error("Given groups=", groups, ", expected weight to be at least ", groups,
                  " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  if (weight.size(0) % groups != 0)
    runtime_error("Given groups=", groups, ", expected weight to be divisible by ", groups,
                  " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  const int64_t expected = transposed ? weight.size(0) : weight.size(1) * groups;
  if (input.size(1) != expected)
    runtime_error("Given ", transposed ? "transposed=1, " : "",
                  transposed ? std::string() : text("groups=", groups, ", "), "weight of size ",
                  weight.sizes(), ", expected input", input.sizes(), " to have ", expected,
                  " channels, but got ", input.size(1), " channels instead");
  const int64_t out = transposed ? weight.size(1) * groups : weight.size(0);
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != out))
    runtime_error("Given ", transposed ? "transposed=1, " : "", "weight of size ", weight.sizes(),
                  ", expected bias to be 1-dimensional with ", out,
                  " elements, but got bias of size ", bias.sizes(), " instead");
}

std::string by_x(IntSpan sizes) {  // "5 x 6", as PyTorch's messages have it
  std::string s = "(";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? " x " : "") + std::to_string(sizes[i]);
  return s + ")";
}

// The result's shape; refuses kernels that do not fit.
Dims output_shape(const Tensor& input, const Tensor& weight, const Geometry& g, bool transposed,
                  int64_t groups) {
  const IntSpan kernel = weight.sizes().subspan(2);
  Dims shape{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  Dims padded;
  bool fits = true;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t in = input.sizes()[i + 2], reach = g.dilation[i] * (kernel[i] - 1) + 1;
    if (kernel[i] <= 0)
      runtime_error("kernel size should be greater than zero, but the weight has shape ",
                    weight.sizes());
    if (transposed) {
      if (g.output_padding[i] >= g.stride[i] && g.output_padding[i] >= g.dilation[i])
        runtime_error(
            "output padding must be smaller than either stride or dilation, but got "
            "output_padding=",
            IntSpan(g.output_padding), ", stride=", IntSpan(g.stride),
            ", dilation=", IntSpan(g.dilation));
      shape.push_back((in - 1) * g.stride[i] - 2 * g.padding[i] + reach + g.output_padding[i]);
    } else {
      padded.push_back(in + 2 * g.padding[i]);
      fits &= padded.back() >= reach;
      shape.push_back((padded.back() - reach) / g.stride[i] + 1);
    }
    if (in == 0 && fits && input.size(0) != 0 && input.size(1) != 0)
      runtime_error("Only zero batch or zero channel inputs are supported, but got input shape: ",
                    input.sizes());
  }
  if (!fits) {
    Dims reach;
    for (size_t i = 0; i < kernel.size(); ++i) reach.push_back(g.dilation[i] * (kernel[i] - 1) + 1);
    runtime_error("Calculated padded input size per channel: ", by_x(padded),
                  ". Kernel size: ", by_x(reach),
                  ". Kernel size can't be greater than actual input size (input of "
                  "shape ",
                  input.sizes(), ", weight of shape ", weight.sizes(), ")");
  }
  for (size_t i = 2; transposed && i < shape.size(); ++i) {
    if (shape[i] <= 0)
      runtime_error("Given input size per channel: ", by_x(input.sizes().subspan(2)),
                    ". Calculated output size per channel: ", by_x(IntSpan(shape).subspan(2)),
                    ". Output size is too small; padding=", IntSpan(g.padding),
                    " takes away more than the kernel adds");
  }
  return shape;
}

// ---- layouts

// Whether the channels of the result are contiguous. PyTorch has no such kernels for volumes of
// most dtypes, and takes sequences (N, C, L) that lie this way for permuted ones.
bool by_pixels(const Tensor& input, const Tensor& weight) {
  if (input.dim() == 5 && input.dtype() != DType::Float32 && input.dtype() != DType::BFloat16)
    return false;
  return (input.dim() > 3 && suggests_channels_last(input)) || suggests_channels_last(weight);
}

// Weights are read in either layout.
Tensor dense_weight(const Tensor& t) {
  return with_spatial_layout(t, has_spatial_layout(t, true));
}

// ---- the problem that cpu/conv solves

// `x` and `y` are the input and output of the forward operator, or of the transposed one.
Conv describe(const Tensor& x, const Tensor& w, const Tensor& y, const Geometry& g, bool transposed,
              int64_t groups) {
  Conv v{};
  v.dtype = x.dtype();
  v.batch = x.size(0);
  v.groups = groups;
  const int64_t rows = w.size(0) / groups;
  v.in = transposed ? rows : w.size(1);
  v.out = transposed ? w.size(1) : rows;
  v.x = x.data(), v.x_batch = x.stride(0), v.x_channel = x.stride(1);
  v.y = y.data(), v.y_batch = y.stride(0), v.y_channel = y.stride(1);
  v.w = w.data(), v.w_group = rows * w.stride(0);
  v.w_out = w.stride(transposed ? 1 : 0), v.w_in = w.stride(transposed ? 0 : 1);
  const size_t dims = g.stride.size();
  for (size_t i = 0; i < dims; ++i) {
    ConvAxis& a = v.axis[3 - dims + i];
    const int64_t at = int64_t(i) + 2;
    a.out = transposed ? x.size(at) : y.size(at);
    a.in = transposed ? y.size(at) : x.size(at);
    a.taps = w.size(at);
    a.step = g.stride[i], a.spread = g.dilation[i], a.start = -g.padding[i];
    a.x_stride = x.stride(at), a.w_stride = w.stride(at), a.y_stride = y.stride(at);
  }
  return v;
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Geometry& g,
                bool transposed, int64_t groups) {
  const bool last = by_pixels(input, weight);
  const Dims shape = output_shape(input, weight, g, transposed, groups);
  Tensor out = empty_tensor(shape, spatial_strides(shape, last), input.dtype(), input.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor x = with_spatial_layout(input, last),
               w = input.is_cuda() ? with_spatial_layout(weight, last) : dense_weight(weight);
  const Tensor b = bias.defined() ? op::contiguous(bias) : bias;
  Conv v = describe(x, w, out, g, transposed, groups);
  v.bias = b.defined() ? b.data() : nullptr;
  if (input.is_cuda())
    device_convolution.run(transposed ? ConvolutionKind::Transposed : ConvolutionKind::Forward, v,
                           int(g.stride.size()), input.device());
  else transposed ? conv_transposed(v) : conv_forward(v);
  return out;
}

// A product of complex operands from three products of real ones, as f(a, b) computes them.
template <class F>
Tensor complex_product(const Tensor& a, const Tensor& b, F f) {
  const Tensor a_re = op::real(a), a_im = op::imag(a), b_re = op::real(b), b_im = op::imag(b);
  const Tensor re = f(a_re, b_re), im = f(a_im, b_im);
  return op::complex(re - im, f(a_re + a_im, b_re + b_im) - re - im);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                   IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                   int64_t groups) {
  check_channels(input, weight, bias, transposed, groups);
  check_operands(input, weight, bias);
  const int64_t dims = input.dim() - 2;
  const Geometry g{for_each_dim(stride, dims, "stride"), for_each_dim(padding, dims, "padding"),
                   for_each_dim(dilation, dims, "dilation"),
                   for_each_dim(output_padding, dims, "output_padding")};
  check_values(g);
  if (!input.is_complex()) return convolve(input, weight, bias, g, transposed, groups);
  Tensor out = complex_product(input, weight, [&](const Tensor& x, const Tensor& w) {
    return convolve(x, w, Tensor(), g, transposed, groups);
  });
  if (!bias.defined()) return out;
  Dims shape(size_t(input.dim()), 1);
  shape[1] = bias.size(0);
  return out + op::reshape(bias, shape);
}

Tensor _convolution_weight_gradient(const Tensor& input, const Tensor& grad_output,
                                    IntSpan weight_size, IntSpan stride, IntSpan padding,
                                    IntSpan dilation, int64_t groups) {
  const int64_t dims = input.dim() - 2;
  const Geometry g{for_each_dim(stride, dims, "stride"), for_each_dim(padding, dims, "padding"),
                   for_each_dim(dilation, dims, "dilation"), Dims()};
  auto gradient = [&](const Tensor& in, const Tensor& grad) {
    const bool last = by_pixels(in, grad);
    Tensor out =
        empty_tensor(weight_size, spatial_strides(weight_size, last), in.dtype(), in.device());
    if (out.is_meta() || out.numel() == 0) return out;
    const Tensor x = with_spatial_layout(in, last), y = with_spatial_layout(grad, last);
    const Conv v = describe(x, out, y, g, false, groups);
    if (in.is_cuda())
      device_convolution.run(ConvolutionKind::WeightGradient, v, int(dims), in.device());
    else conv_weight_gradient(v);
    return out;
  };
  return input.is_complex() ? complex_product(input, grad_output, gradient)
                            : gradient(input, grad_output);
}

}  // namespace facula::kernels
