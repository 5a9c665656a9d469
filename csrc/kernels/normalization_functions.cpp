// The norms that users call in terms of the primitives, running moments, second derivatives.
#include <cmath>
#include <limits>

#include "kernels/normalized_shape.h"
#include "kernels/spatial.h"
#include "op/elementwise.h"
#include "op/kernels/normalization.h"
#include "op/ops/convolution.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/normalization.h"
#include "op/ops/pooling.h"
#include "op/ops/reductions.h"
#include "op/ops/statistics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// ---- over the last dimensions

Tensor layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, bool) {
  return std::get<0>(op::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

namespace {

// Channels side by side stay so, whatever else lies otherwise becomes contiguous.
Tensor in_order_of(const Tensor& input, const Tensor& result) {
  const bool volumes = input.dim() == 5;
  if ((volumes || input.dim() == 4) && suggests_channels_last(input))
    return op::contiguous(result,
                          volumes ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast);
  return result.is_contiguous() ? result : op::contiguous(result);
}

// Where the fused kernel does not apply. Of complex numbers PyTorch takes the mean of the squares
// themselves, not of their magnitudes, so the root is complex.
Tensor rms_norm_of_parts(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                         double eps) {
  Dims dims;
  for (int64_t d = first_normalized(input, normalized_shape); d < input.dim(); ++d)
    dims.push_back(d);
  const Tensor scaled = input * op::rsqrt(op::mean_dim(input * input, dims, true) + eps);
  return in_order_of(input, weight.defined() ? scaled * weight : scaled);
}

}  // namespace

Tensor rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (input.dim() < int64_t(normalized_shape.size()))
    value_error("Input tensor must have at least ", normalized_shape.size(),
                " dimensions, but got ", input.dim());
  // Half precision is computed in float32, whose eps it takes.
  const double least = to_real(input.dtype()) == DType::Float64
                           ? std::numeric_limits<double>::epsilon()
                           : std::numeric_limits<float>::epsilon();
  const double added = eps.value_or(least);
  if (input.is_complex()) return rms_norm_of_parts(input, normalized_shape, weight, added);
  const bool reduced = is_reduced_float(input.dtype());
  if (weight.defined() && input.is_floating() && weight.dtype() != input.dtype() &&
      !(reduced && weight.dtype() == DType::Float32)) {
    const Tensor x = reduced ? op::_to_copy(input, DType::Float32) : input;
    return op::_to_copy(rms_norm_of_parts(x, normalized_shape, weight, added), input.dtype());
  }
  return in_order_of(input,
                     std::get<0>(op::_fused_rms_norm(input, normalized_shape, weight, added)));
}

// ---- channels

namespace {

void check_count(const Tensor& t, const char* name, int64_t channels) {
  if (t.defined() && t.numel() != channels)
    runtime_error(name, " should contain ", channels, " elements not ", t.numel(),
                  ": one for each channel of the input");
}

void check_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const Tensor& running_mean, const Tensor& running_var) {
  if (input.dim() < 2)
    runtime_error("expected an input with at least 2 dimensions, (N, C, ...), but got shape ",
                  input.sizes());
  const int64_t channels = input.size(1);
  check_count(running_mean, "running_mean", channels);
  check_count(running_var, "running_var", channels);
  check_count(weight, "weight", channels);
  check_count(bias, "bias", channels);
}

int64_t values_per_channel(const Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

void require_several(const Tensor& input, const char* kind, int64_t count) {
  if (count == 1)
    value_error("Expected more than 1 ", kind, " when training, got input size facula.Size(",
                input.sizes(), ")");
}

void move_towards(const Tensor& running, const Tensor& now, double momentum) {
  if (!running.defined()) return;
  GradGuard off(false);
  op::mul_(running, 1 - momentum);
  op::add_(running, op::detach(now), Scalar(momentum));
}

// The variance of a sample of this many, from that of the sample alone.
double unbiased(int64_t count) {
  return double(count) / double(count - 1);
}

// (C,) in the shape (1, C, 1, ...).
Tensor by_channel(const Tensor& t, int64_t dims) {
  Dims shape(size_t(dims), 1);
  shape[1] = t.numel();
  return op::reshape(t, shape);
}

Three normalized_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Tensor& running_mean, const Tensor& running_var, bool training,
                          double momentum, double eps) {
  check_channels(input, weight, bias, running_mean, running_var);
  if (training) {
    auto [out, mean, rstd, variance] = op::_batch_norm(input, weight, bias, eps);
    move_towards(running_mean, mean, momentum);
    if (running_var.defined())
      move_towards(running_var, variance * unbiased(values_per_channel(input)), momentum);
    return {out, mean, rstd};
  }
  if (!running_mean.defined() || !running_var.defined())
    runtime_error(running_mean.defined() ? "running_var" : "running_mean",
                  " must be defined in evaluation mode; pass training=True to use the moments of "
                  "the input");
  Tensor scale = op::rsqrt(running_var + eps);
  if (weight.defined()) scale = scale * weight;
  Tensor shift = -(running_mean * scale);
  if (bias.defined()) shift = shift + bias;
  const Tensor none = op::new_empty(input, Dims{0});
  return {op::_scale_channels(input, scale, shift), none, none};
}

}  // namespace

// Nothing to normalise: the parameters still belong to the graph.
static Tensor of_nothing(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Tensor out = op::clone(input);
  if (weight.defined() && weight.numel()) out = out * op::select(weight, 0, 0);
  if (bias.defined() && bias.numel()) out = out + op::select(bias, 0, 0);
  return out;
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  if (input.numel() == 0) return of_nothing(input, weight, bias);
  return std::get<0>(
      normalized_channels(input, weight, bias, running_mean, running_var, training, momentum, eps));
}
Tensor batch_norm_functional(const Tensor& input, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                             bool training, double momentum, double eps) {
  if (eps < 0 || (training && eps == 0))
    value_error("batch_norm eps must be ", training ? "positive during training" : "non-negative",
                ", but got ", eps);
  if (training && running_mean.defined() != running_var.defined())
    value_error("running_mean and running_var must either both be None or neither be None");
  if (input.numel() == 0) return of_nothing(input, weight, bias);
  if (training && input.dim() >= 2)
    require_several(input, "value per channel", values_per_channel(input));
  return std::get<0>(
      normalized_channels(input, weight, bias, running_mean, running_var, training, momentum, eps));
}
Three native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& running_mean, const Tensor& running_var, bool training,
                        double momentum, double eps) {
  return normalized_channels(input, weight, bias, running_mean, running_var, training, momentum,
                             eps);
}
Three _native_batch_norm_legit(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool training,
                               double momentum, double eps) {
  return normalized_channels(input, weight, bias, running_mean, running_var, training, momentum,
                             eps);
}
Three _native_batch_norm_legit_no_stats(const Tensor& input, const Tensor& weight,
                                        const Tensor& bias, bool training, double momentum,
                                        double eps) {
  return normalized_channels(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}

Two batch_norm_stats(const Tensor& input, double eps) {
  auto [out, mean, rstd, variance] = op::_batch_norm(input, Tensor(), Tensor(), eps);
  return {mean, rstd};
}
Two batch_norm_update_stats(const Tensor& input, const Tensor& running_mean,
                            const Tensor& running_var, double momentum) {
  check_channels(input, Tensor(), Tensor(), running_mean, running_var);
  auto [out, mean, rstd, variance] = op::_batch_norm(input, Tensor(), Tensor(), 0);
  move_towards(running_mean, mean, momentum);
  if (running_var.defined())
    move_towards(running_var, variance * unbiased(values_per_channel(input)), momentum);
  return {mean, variance};
}
Tensor batch_norm_elemt(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& invstd, double) {
  check_channels(input, weight, bias, mean, invstd);
  const Tensor scale = weight.defined() ? invstd * weight : invstd;
  const Tensor shift = -(mean * scale);
  return op::_scale_channels(input, scale, bias.defined() ? shift + bias : shift);
}

static Two gathered(const Tensor& mean, const Tensor& invstd, const Tensor& running_mean,
                    const Tensor& running_var, double momentum, double eps,
                    const Tensor& counts) {  // (parts, 1)
  const Dims parts{0};
  const IntSpan over(parts);
  const Tensor total = op::sum(counts);
  const Tensor whole = op::sum_dim(mean * counts, over, false) / total;
  const Tensor variances = 1 / (invstd * invstd) - eps, away = mean - whole;
  const Tensor squares = op::sum_dim((variances + away * away) * counts, over, false);
  move_towards(running_mean, whole, momentum);
  if (running_var.defined()) move_towards(running_var, squares / (total - 1), momentum);
  return {whole, op::rsqrt(squares / total + eps)};
}
Two batch_norm_gather_stats(const Tensor&, const Tensor& mean, const Tensor& invstd,
                            const Tensor& running_mean, const Tensor& running_var, double momentum,
                            double eps, int64_t count) {
  const Tensor counts = op::new_full(mean, Dims{mean.size(0), 1}, Scalar(double(count)));
  return gathered(mean, invstd, running_mean, running_var, momentum, eps, counts);
}
Two batch_norm_gather_stats_with_counts(const Tensor&, const Tensor& mean, const Tensor& invstd,
                                        const Tensor& running_mean, const Tensor& running_var,
                                        double momentum, double eps, const Tensor& counts) {
  return gathered(mean, invstd, running_mean, running_var, momentum, eps,
                  op::reshape(counts, Dims{-1, 1}));
}
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const Tensor&, bool, bool, bool) {
  const Tensor of_g = op::_sum_to_channels(grad_out);
  const Tensor of_gx = op::_sum_to_channels(grad_out * (input - by_channel(mean, input.dim())));
  return {of_g, of_gx, of_gx * invstd, of_g};
}
Tensor batch_norm_backward_elemt(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                 const Tensor& invstd, const Tensor& weight, const Tensor& sum_dy,
                                 const Tensor& sum_dy_xmu, const Tensor& count) {
  const int64_t dims = input.dim();
  const Tensor total = op::sum(count);
  const Tensor factor = weight.defined() ? invstd * weight : invstd;
  const Tensor slope = sum_dy_xmu / total * invstd * invstd;
  return (grad_out - by_channel(sum_dy / total, dims) -
          (input - by_channel(mean, dims)) * by_channel(slope, dims)) *
         by_channel(factor, dims);
}

// ---- groups and instances

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  if (input.dim() < 2)
    runtime_error("Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t batch = input.size(0), channels = input.size(1);
  if (num_groups <= 0 || channels % num_groups != 0)
    runtime_error("Expected number of channels in input to be divisible by num_groups, but got ",
                  "input of shape ", input.sizes(), " and num_groups=", num_groups);
  int64_t inner = 1;
  for (int64_t d = 2; d < input.dim(); ++d) inner *= input.size(d);
  return std::get<0>(
      op::native_group_norm(input, weight, bias, batch, channels, inner, num_groups, eps));
}

Tensor group_norm_functional(const Tensor& input, int64_t num_groups, const Tensor& weight,
                             const Tensor& bias, double eps) {
  // What is one value in a group is its mean, whatever it is: the result would say nothing.
  if (input.dim() >= 2 && num_groups > 0)
    require_several(input, "value per channel", input.numel() / num_groups);
  return op::group_norm(input, num_groups, weight, bias, eps, true);
}

static Tensor normalized_instances(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   bool use_input_stats, double momentum, double eps) {
  check_channels(input, weight, bias, running_mean, running_var);
  if (!use_input_stats) {
    if (!running_mean.defined() || !running_var.defined())
      runtime_error(
          "Expected running_mean and running_var to be defined when use_input_stats is false");
    return op::batch_norm(op::contiguous(input), weight, bias, running_mean, running_var, false,
                          momentum, eps, false);
  }
  const int64_t channels = input.size(1),
                inner = input.numel() / std::max<int64_t>(1, input.size(0) * channels);
  if (running_mean.defined() || running_var.defined()) {
    GradGuard off(false);
    Dims spatial;
    for (int64_t d = 2; d < input.dim(); ++d) spatial.push_back(d);
    auto [variance, mean] = op::var_mean(input, IntSpan(spatial), Scalar(1), false);
    const Dims batch{0};
    move_towards(running_mean, op::mean_dim(mean, IntSpan(batch), false), momentum);
    move_towards(running_var, op::mean_dim(variance, IntSpan(batch), false), momentum);
  }
  return std::get<0>(op::native_group_norm(op::contiguous(input), weight, bias, input.size(0),
                                           channels, inner, channels, eps));
}
Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool) {
  return normalized_instances(input, weight, bias, running_mean, running_var, use_input_stats,
                              momentum, eps);
}
Tensor instance_norm_functional(const Tensor& input, const Tensor& running_mean,
                                const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                                bool use_input_stats, double momentum, double eps) {
  if (use_input_stats) {
    int64_t inner = 1;
    for (int64_t d = 2; d < input.dim(); ++d) inner *= input.size(d);
    require_several(input, "spatial element", inner);
  }
  return normalized_instances(input, weight, bias, running_mean, running_var, use_input_stats,
                              momentum, eps);
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  if (input.dim() < 3)
    value_error("Expected 3D or higher dimensionality input (got ", input.dim(), " dimensions)");
  if (input.numel() == 0) return input;
  // Squares with zeros around the channels, as windows of `size` of them.
  const Tensor squares = input * input;
  Dims before(input.sizes()), after(input.sizes());
  before[1] = size / 2;
  after[1] = (size - 1) / 2;
  const Tensor padded = op::cat(
      std::vector<Tensor>{op::new_zeros(input, before), squares, op::new_zeros(input, after)}, 1);
  const Dims last{-1};
  auto sum = [&] { return op::sum_dim(op::unfold(padded, 1, size, 1), IntSpan(last), false); };
  Tensor mean;
  if (is_integral(input.dtype())) {
    mean = op::floor_divide(sum(), size);
  } else if (!input.is_floating()) {
    mean = sum() / double(size);
  } else if (input.dim() == 3) {  // as pools, which have a policy under autocast
    mean = op::squeeze_dim(op::avg_pool2d(op::unsqueeze(padded, 1), Dims{size, 1}, Dims{1, 1}),
                           Dims{1});
  } else {
    const Dims planes{input.size(0), 1, padded.size(1), input.size(2), -1};
    mean = op::reshape(op::avg_pool3d(op::reshape(padded, planes), Dims{size, 1, 1}, Dims{1, 1, 1}),
                       input.sizes());
  }
  return input / op::pow(mean * alpha + k, beta);
}

// ---- second derivatives

namespace {

// A norm over some dimensions of x, scaled by a weight that broadcasts against it.
struct Norm {
  Tensor x, weight;
  Dims over;        // where the moments are taken
  Dims parameters;  // what a parameter is summed over
  double eps;
  bool centred = true;
  Tensor xhat, rstd;

  void start() {
    const Tensor centre = centred ? x - mean(x) : x;
    rstd = op::rsqrt(mean(centre * centre) + eps);
    xhat = centre * rstd;
  }
  Tensor mean(const Tensor& t) const { return op::mean_dim(t, IntSpan(over), true); }
  // The derivative of xhat by x, which is its own transpose, applied to t.
  Tensor project(const Tensor& t) const {
    const Tensor rest = centred ? t - mean(t) : t;
    return rstd * (rest - xhat * mean(t * xhat));
  }

  // The norm's gradient by the input is project(g w), by the weight the sum of g xhat, by the bias
  // that of g. These are the derivatives by g, x and the weight of their products with v, u and t.
  Three differentiate(const Tensor& v, const Tensor& u, const Tensor& t, const Tensor& g) {
    start();
    Tensor dg, dx, dw;
    auto add = [](Tensor& to, const Tensor& term) { to = to.defined() ? to + term : term; };
    if (v.defined()) {
      const Tensor gw = weight.defined() ? g * weight : g, pv = project(v);
      add(dg, weight.defined() ? weight * pv : pv);
      if (weight.defined()) dw = op::sum_dim(g * pv, IntSpan(parameters), true);
      const Tensor along_g = mean(gw * xhat), along_v = mean(v * xhat);
      Tensor product = mean(v * gw) - along_g * along_v;
      if (centred) product = product - mean(v) * mean(gw);
      add(dx, project(-(rstd * (v * along_g + gw * along_v))) - rstd * rstd * xhat * product);
    }
    if (u.defined()) {
      add(dg, u * xhat);
      add(dx, project(u * g));
    }
    if (t.defined()) add(dg, op::expand_as(t, x));
    return {dg, dx, dw};
  }
};

Tensor shaped(const Tensor& t, IntSpan shape) {
  return t.defined() ? op::reshape(t, shape) : t;
}

// A gradient that was sent for a result; results that nobody had asked for are empty.
Tensor sent(const Tensor& t, IntSpan shape) {
  return t.defined() && t.numel() == 0 && checked_numel(shape) != 0 ? Tensor() : shaped(t, shape);
}

Three finish(Three parts, const Tensor& grad_output, const Tensor& input, const Tensor& weight) {
  auto& [dg, dx, dw] = parts;
  if (!dg.defined()) dg = op::zeros_like(grad_output);
  if (!dx.defined()) dx = op::zeros_like(input);
  if (weight.defined() && !dw.defined()) dw = op::zeros_like(weight);
  return {shaped(dg, grad_output.sizes()), shaped(dx, input.sizes()),
          weight.defined() ? shaped(dw, weight.sizes()) : Tensor()};
}

}  // namespace

Three _layer_norm_grad_grad(const Tensor& for_input, const Tensor& for_weight,
                            const Tensor& for_bias, const Tensor& grad_output, const Tensor& input,
                            const Tensor& weight, IntSpan normalized_shape, double eps,
                            const Tensor& mean) {
  int64_t n = 1;
  for (int64_t s : normalized_shape) n *= s;
  const Dims matrix{n ? input.numel() / n : 0, n}, row{1, n};
  Norm norm{
      shaped(input, matrix), shaped(weight, row), Dims{1}, Dims{0}, eps, mean.defined(), {}, {}};
  return finish(norm.differentiate(sent(for_input, matrix), sent(for_weight, row),
                                   sent(for_bias, row), shaped(grad_output, matrix)),
                grad_output, input, weight);
}

// The elements of each channel of each sample, also where there are no samples.
static int64_t pixels_of(const Tensor& t) {
  int64_t n = 1;
  for (int64_t size : t.sizes().subspan(2)) n *= size;
  return n;
}

Three _batch_norm_grad_grad(const Tensor& for_input, const Tensor& for_weight,
                            const Tensor& for_bias, const Tensor& grad_output, const Tensor& input,
                            const Tensor& weight, double eps) {
  const Dims whole{input.size(0), input.size(1), pixels_of(input)}, one{1, input.size(1), 1};
  Norm norm{shaped(input, whole), shaped(weight, one), Dims{0, 2}, Dims{0, 2}, eps, true, {}, {}};
  return finish(norm.differentiate(sent(for_input, whole), sent(for_weight, one),
                                   sent(for_bias, one), shaped(grad_output, whole)),
                grad_output, input, weight);
}

Three _group_norm_grad_grad(const Tensor& for_input, const Tensor& for_weight,
                            const Tensor& for_bias, const Tensor& grad_output, const Tensor& input,
                            const Tensor& weight, int64_t group, double eps) {
  const int64_t width = input.size(1) / group;
  const Dims whole{input.size(0), group, width, pixels_of(input)}, one{1, group, width, 1};
  Norm norm{shaped(input, whole), shaped(weight, one), Dims{2, 3}, Dims{0, 3}, eps, true, {}, {}};
  return finish(norm.differentiate(sent(for_input, whole), sent(for_weight, one),
                                   sent(for_bias, one), shaped(grad_output, whole)),
                grad_output, input, weight);
}

}  // namespace facula::kernels
