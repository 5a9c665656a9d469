// The pooling that users call, in terms of the primitives of pooling.cpp.
#include "autograd/node.h"
#include "autograd/node_names.h"
#include "kernels/spatial.h"
#include "op/kernels/pooling.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/mathematics.h"
#include "op/ops/pooling.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// One value of every option for each spatial dimension.
struct Window {
  Dims kernel, stride, padding, dilation;
  Window(IntSpan kernel_size, std::optional<IntSpan> steps, IntSpan pads, IntSpan spacing,
         int64_t dims)
      : kernel(spatial_values(kernel_size, dims, "kernel_size")),
        stride(steps && !steps->empty() ? spatial_values(*steps, dims, "stride") : kernel),
        padding(spatial_values(pads, dims, "padding")),
        dilation(spatial_values(spacing, dims, "dilation")) {}
};

// PyTorch has texts of its own for one dimension.
void check_max_pool1d(const Window& w) {
  const int64_t kernel = w.kernel[0], padding = w.padding[0];
  auto refuse = [](const char* name, const char* what, int64_t given) {
    runtime_error("max_pool1d() ", name, " must be ", what, ", but got ", given);
  };
  if (kernel <= 0) refuse("kernel_size", "greater than zero", kernel);
  if (w.stride[0] <= 0) refuse("stride", "greater than zero", w.stride[0]);
  if (padding < 0) refuse("padding", "non-negative", padding);
  if (padding > kernel / 2)
    runtime_error("max_pool1d() padding should be at most half of kernel size, but got padding=",
                  padding, " and kernel_size=", kernel);
  if (w.dilation[0] <= 0) refuse("dilation", "greater than zero", w.dilation[0]);
}

constexpr int64_t kOne[] = {1};
constexpr int64_t kNone[] = {0};

// PyTorch pools lines as images of one row, which keep channels last: lines that lie this way come
// from (N, L, C), transposed.
bool keeps_rows(const Tensor& self, int64_t dims) {
  return dims == 1 && self.dim() == 3 && !self.is_wrapped() && suggests_channels_last(self);
}
template <class F>
Tensor as_image(const Tensor& self, F pool) {
  return op::squeeze_dim(pool(op::unsqueeze(self, -2)), Dims{-2});
}

// The nodes are those of images; with PyTorch's names they tell other numbers of dimensions.
Tensor named(const Tensor& result, uint64_t earlier, int64_t dims, const char* of_volumes) {
  if (dims != 2) name_node(result, earlier, dims == 1 ? "SqueezeBackward1" : of_volumes);
  return result;
}

Tensor max_pool(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride,
                IntSpan padding, IntSpan dilation, bool ceil_mode, int64_t dims) {
  check_spatial_input(self, dims);
  const Window w(kernel_size, stride, padding, dilation, dims);
  if (dims == 1) check_max_pool1d(w);
  const bool differentiable = grad_enabled() && requires_grad(self);
  // Nobody will ask where the largest elements were.
  if (!(self->keys & ~kKeyGrad) && !differentiable)
    return op::_max_pool_values(self, w.kernel, w.stride, w.padding, w.dilation, ceil_mode);
  if (differentiable && keeps_rows(self, dims))
    return as_image(self, [&](const Tensor& image) {
      return max_pool(image, Dims{1, w.kernel[0]}, Dims{1, w.stride[0]}, Dims{0, w.padding[0]},
                      Dims{1, w.dilation[0]}, ceil_mode, 2);
    });
  const uint64_t earlier = next_node();
  return named(
      std::get<0>(op::_max_pool(self, w.kernel, w.stride, w.padding, w.dilation, ceil_mode)),
      earlier, dims, "MaxPool3DWithIndicesBackward0");
}

std::tuple<Tensor, Tensor> max_pool_with_indices(const Tensor& self, IntSpan kernel_size,
                                                 std::optional<IntSpan> stride, IntSpan padding,
                                                 IntSpan dilation, bool ceil_mode, int64_t dims) {
  check_spatial_input(self, dims);
  if (dims == 1) {
    // As images of one row, which may keep channels last.
    const Window w(kernel_size, stride, padding, dilation, 1);
    auto [values, places] =
        max_pool_with_indices(op::unsqueeze(self, -2), Dims{1, w.kernel[0]}, Dims{1, w.stride[0]},
                              Dims{0, w.padding[0]}, Dims{1, w.dilation[0]}, ceil_mode, 2);
    return {op::squeeze_dim(values, Dims{-2}), op::squeeze_dim(places, Dims{-2})};
  }
  const Window w(kernel_size, stride, padding, dilation, dims);
  const uint64_t earlier = next_node();
  auto [values, taps] = op::_max_pool(self, w.kernel, w.stride, w.padding, w.dilation, ceil_mode);
  return {named(values, earlier, dims, "MaxPool3DWithIndicesBackward0"),
          op::_max_pool_positions(taps, self.sizes(), w.kernel, w.stride, w.padding, w.dilation)};
}

// Truncated quotients of sums by counts, exact below 2**53.
Tensor integer_average(const Tensor& self, const Window& w, bool ceil_mode, bool count_include_pad,
                       std::optional<int64_t> divisor) {
  auto average = [&](const Tensor& x, std::optional<int64_t> by) {
    return op::_avg_pool(x, w.kernel, w.stride, w.padding, ceil_mode, count_include_pad, by);
  };
  const Tensor x = op::_to_copy(self, DType::Float64), sums = average(x, 1);
  if (divisor) return op::_to_copy(op::trunc(sums / double(*divisor)), self.dtype());
  const Tensor ones = op::ones_like(x);
  const Tensor counts = op::round(average(ones, 1) / average(ones, std::nullopt));
  return op::_to_copy(op::trunc(sums / counts), self.dtype());
}

Tensor avg_pool(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride,
                IntSpan padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor, int64_t dims) {
  check_spatial_input(self, dims);
  const Window w(kernel_size, stride, padding, kOne, dims);
  if (divisor && *divisor == 0) runtime_error("divisor must be not zero");
  if (self.dtype() == DType::Int64)
    return integer_average(self, w, ceil_mode, count_include_pad, divisor);
  if (keeps_rows(self, dims))
    return as_image(self, [&](const Tensor& image) {
      return avg_pool(image, Dims{1, w.kernel[0]}, Dims{1, w.stride[0]}, Dims{0, w.padding[0]},
                      ceil_mode, count_include_pad, divisor, 2);
    });
  const uint64_t earlier = next_node();
  return named(
      op::_avg_pool(self, w.kernel, w.stride, w.padding, ceil_mode, count_include_pad, divisor),
      earlier, dims, "AvgPool3DBackward0");
}

Dims adaptive_sizes(const Tensor& self, IntSpan output_size, int64_t dims, int64_t may_be_empty,
                    bool any_leading = false) {
  const Dims sizes = spatial_values(output_size, dims, "output_size");
  for (int64_t n : sizes)
    if (n < 0)
      runtime_error("elements of output_size must be greater than or equal to 0 but received ",
                    IntSpan(sizes));
  for (int64_t d = may_be_empty; d < self.dim(); ++d)
    if (self.sizes()[size_t(d)] == 0)
      runtime_error("Expected input to have non-zero size for non-batch dimensions, but input has ",
                    "sizes ", self.sizes(), " with dimension ", d, " being empty");
  if (!any_leading || self.dim() < dims) check_spatial_input(self, dims, may_be_empty);
  return sizes;
}

Tensor adaptive_avg_pool(const Tensor& self, IntSpan output_size, int64_t dims) {
  // One window for everything is the average over the last dimensions, whatever stands before them.
  bool one = is_floating(self.dtype());
  for (int64_t n : output_size) one &= n == 1;
  const Dims sizes =
      adaptive_sizes(self, output_size, dims, dims == 3 ? 1 : self.dim() - dims, one && dims > 1);
  if (keeps_rows(self, dims))
    return as_image(
        self, [&](const Tensor& image) { return adaptive_avg_pool(image, Dims{1, sizes[0]}, 2); });
  const uint64_t earlier = next_node();
  return named(one ? op::_mean_of_planes(self, dims) : op::_adaptive_avg_pool(self, sizes), earlier,
               dims, one ? "MeanBackward1" : "AdaptiveAvgPool3DBackward0");
}

std::tuple<Tensor, Tensor> adaptive_max_pool(const Tensor& self, IntSpan output_size,
                                             int64_t dims) {
  const Dims sizes = adaptive_sizes(self, output_size, dims, 1);
  if (keeps_rows(self, dims)) {
    auto [values, places] = adaptive_max_pool(op::unsqueeze(self, -2), Dims{1, sizes[0]}, 2);
    return {op::squeeze_dim(values, Dims{-2}), op::squeeze_dim(places, Dims{-2})};
  }
  const uint64_t earlier = next_node();
  auto [values, places] = op::_adaptive_max_pool(self, sizes);
  return {named(values, earlier, dims, "AdaptiveMaxPool3DBackward0"), places};
}

Tensor lp_pool(const Tensor& input, double norm_type, IntSpan kernel_size,
               std::optional<IntSpan> stride, bool ceil_mode, int64_t dims) {
  check_spatial_input(input, dims);
  const Window w(kernel_size, stride, kNone, kOne, dims);
  if (keeps_rows(input, dims))
    return as_image(input, [&](const Tensor& image) {
      return lp_pool(image, norm_type, Dims{1, w.kernel[0]}, Dims{1, w.stride[0]}, ceil_mode, 2);
    });
  const Tensor powers = op::pow(input, norm_type);
  double taps = 1;
  for (int64_t k : w.kernel) taps *= double(k);
  const Tensor sums =
      op::_avg_pool(powers, w.kernel, w.stride, w.padding, ceil_mode, true, std::nullopt);
  // No gradient where the root's would be infinite.
  const Tensor safe = op::where(op::eq(sums, 0), 0, sums);
  return op::pow(safe * taps, 1.0 / norm_type);
}

}  // namespace

#define FACULA_POOLS(n)                                                                         \
  Tensor max_pool##n##d(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride, \
                        IntSpan padding, IntSpan dilation, bool ceil_mode) {                    \
    return max_pool(self, kernel_size, stride, padding, dilation, ceil_mode, n);                \
  }                                                                                             \
  std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(                                       \
      const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride, IntSpan padding,  \
      IntSpan dilation, bool ceil_mode, bool) {                                                 \
    return max_pool_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode, n);   \
  }                                                                                             \
  Tensor adaptive_avg_pool##n##d(const Tensor& self, IntSpan output_size) {                     \
    return adaptive_avg_pool(self, output_size, n);                                             \
  }                                                                                             \
  std::tuple<Tensor, Tensor> adaptive_max_pool##n##d(const Tensor& self, IntSpan output_size) { \
    return adaptive_max_pool(self, output_size, n);                                             \
  }                                                                                             \
  Tensor lp_pool##n##d(const Tensor& input, double norm_type, IntSpan kernel_size,              \
                       std::optional<IntSpan> stride, bool ceil_mode) {                         \
    return lp_pool(input, norm_type, kernel_size, stride, ceil_mode, n);                        \
  }
FACULA_POOLS(1)
FACULA_POOLS(2)
FACULA_POOLS(3)
#undef FACULA_POOLS

Tensor avg_pool1d(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride,
                  IntSpan padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt,
                  1);
}
Tensor avg_pool2d(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride,
                  IntSpan padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override, 2);
}
Tensor avg_pool3d(const Tensor& self, IntSpan kernel_size, std::optional<IntSpan> stride,
                  IntSpan padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override, 3);
}

Tensor _spread_over_planes(const Tensor& self, IntSpan size, int64_t spatial_dims) {
  double pixels = 1;
  for (int64_t n : size.last(size_t(spatial_dims))) pixels *= double(n);
  if (grad_enabled() || self.is_wrapped()) return op::expand(self, size) / pixels;
  const Tensor share = self / pixels;
  share->flags |= kSpreadGrad;
  return op::expand(share, size);
}

// ---- positions in flattened planes

namespace {

// (..., spatial) as (..., pixels).
Tensor flat_planes(const Tensor& t, int64_t dims) {
  Dims shape(t.sizes().first(size_t(t.dim() - dims)));
  int64_t pixels = 1;
  for (int64_t n : t.sizes().last(size_t(dims))) pixels *= n;
  shape.push_back(pixels);
  return op::reshape(t, shape);
}

}  // namespace

Tensor _max_positions_pick(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  const int64_t dims = int64_t(output_size.size());
  return op::reshape(op::gather(flat_planes(self, dims), -1, flat_planes(indices, dims)),
                     indices.sizes());
}

// Why positions were refused: the first that lies outside of a plane of that size.
[[noreturn]] static void refuse_positions(const Tensor& indices, IntSpan output_size,
                                          int64_t pixels) {
  GradGuard off(false);
  const Tensor all = op::contiguous(indices);
  const int64_t* at = all.data_as<int64_t>();
  while (*at >= 0 && *at < pixels) ++at;
  std::string volume;
  for (int64_t n : output_size) volume += text(volume.empty() ? "" : "x", n);
  if (output_size.size() == 1) volume += "x1";
  runtime_error("Found an invalid max index: ", *at, " (output volumes are of size ", volume, ")");
}

Tensor _max_unpool(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  const int64_t dims = int64_t(output_size.size());
  if (indices.dtype() != DType::Int64)
    runtime_error("elements in indices should be type int64 but got: ",
                  legacy_dtype_name(indices.dtype()));
  if (!same(self.sizes(), indices.sizes()))
    runtime_error("Expected shape of indices to be same as that of the input tensor (",
                  self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  check_spatial_input(self, dims);
  Dims shape(self.sizes().first(size_t(self.dim() - dims)));
  Dims flat(shape);
  int64_t pixels = 1;
  for (int64_t n : output_size) pixels *= n, shape.push_back(n);
  flat.push_back(pixels);
  const Tensor zeros = op::new_zeros(self, flat);
  Tensor out;
  try {
    out = op::scatter_src(zeros, -1, flat_planes(indices, dims), flat_planes(self, dims));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Index && e.kind() != ErrorKind::Runtime) throw;
    if (!indices.is_cpu() || indices.is_wrapped()) throw;
    refuse_positions(indices, output_size, pixels);
  }
  out = op::reshape(out, shape);
  const bool last =
      !self.is_wrapped() && dims == 2 && self.dim() == 4 && suggests_channels_last(self);
  return last ? op::contiguous(out, MemoryFormat::ChannelsLast) : out;
}

// ---- windows at random places

namespace {

std::tuple<Tensor, Tensor> fractional(const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                      const Tensor& samples, int64_t dims) {
  check_spatial_input(self, dims);
  const Dims kernel = spatial_values(kernel_size, dims, "kernel_size");
  const Dims out = spatial_values(output_size, dims, "output_size");
  const bool batched = self.dim() == dims + 2;
  const int64_t n = batched ? self.size(0) : 1, channels = self.size(batched);
  if (samples.dtype() != self.dtype())
    runtime_error("expected _random_samples to have the dtype of the input, ", self.dtype(),
                  ", but got ", samples.dtype());
  if (samples.dim() != 3 || samples.size(0) < n || samples.size(1) != channels ||
      samples.size(2) != dims)
    runtime_error("expected _random_samples of shape ", IntSpan(Dims{n, channels, dims}),
                  " or more in the first dimension, but got ", samples.sizes());
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t in = self.size(d - dims), k = kernel[size_t(d)], o = out[size_t(d)];
    if (k < 1 || o < 1 || o + k - 1 > in)
      runtime_error("kernel_size=", IntSpan(kernel), " with output_size=", IntSpan(out),
                    " is too large relative to the input of shape ", self.sizes());
  }
  const uint64_t earlier = next_node();
  auto [values, places] = op::_fractional_max_pool(self, kernel, out, op::narrow(samples, 0, 0, n));
  name_node(values, earlier,
            dims == 2 ? "FractionalMaxPool2DBackward0" : "FractionalMaxPool3DBackward0");
  return {values, places};
}

}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntSpan kernel_size,
                                                 IntSpan output_size,
                                                 const Tensor& random_samples) {
  return fractional(self, kernel_size, output_size, random_samples, 2);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntSpan kernel_size,
                                                 IntSpan output_size,
                                                 const Tensor& random_samples) {
  return fractional(self, kernel_size, output_size, random_samples, 3);
}

}  // namespace facula::kernels
