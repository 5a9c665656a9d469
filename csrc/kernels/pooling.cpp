// Pooling: checks, shapes and layouts here, arithmetic in cpu/max_pool and cpu/resample.
#include "op/kernels/pooling.h"

#include "cpu/max_pool.h"
#include "kernels/image_work.h"
#include "kernels/pool_shapes.h"
#include "kernels/spatial.h"
#include "op/ops/copying.h"
#include "op/ops/pooling.h"
#include "op/ops/reductions.h"

namespace facula::kernels {

namespace {

void check_orderable(const Tensor& t) {
  if (t.is_complex() || t.dtype() == DType::Bool || (t.is_floating() && t.item_size() == 1))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(t.dtype()),
         "'; integers and floating-point numbers are accepted");
}

void check_floating(const Tensor& t) {
  if (!is_floating(t.dtype()) || t.item_size() == 1)
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(t.dtype()),
         "'; floating-point numbers are accepted");
}

MaxPool describe(DType dtype, const Spatial& in, const int64_t* out, IntSpan kernel, IntSpan stride,
                 IntSpan padding, IntSpan dilation) {
  MaxPool p{dtype, in.outer, in.inner, {}};
  const size_t dims = kernel.size();
  for (size_t i = 0; i < 3; ++i) p.axis[i].in = in.size[i], p.axis[i].out = out[i];
  for (size_t i = 0; i < dims; ++i) {
    PoolAxis& a = p.axis[3 - dims + i];
    a.taps = kernel[i], a.step = stride[i], a.spread = dilation[i], a.pad = padding[i];
  }
  return p;
}

}  // namespace

// ---- max pooling

std::tuple<Tensor, Tensor> _max_pool(const Tensor& self, IntSpan kernel_size, IntSpan stride,
                                     IntSpan padding, IntSpan dilation, bool ceil_mode) {
  check_orderable(self);
  const int64_t dims = int64_t(kernel_size.size());
  const Dims out = pooled_sizes(self, kernel_size, stride, padding, dilation, ceil_mode);
  const Spatial in = spatial_view(self, dims);
  int64_t taps = 1;
  for (int64_t k : kernel_size) taps *= k;
  const Spatial values = spatial_result(in, out, self.dtype());
  const Spatial where = spatial_result(in, out, tap_dtype(taps));
  if (self.is_meta() || !values.t.numel()) return {values.t, where.t};
  const MaxPool problem =
      describe(self.dtype(), in, values.size, kernel_size, stride, padding, dilation);
  if (self.is_cuda())
    device_images.max_pool(MaxPoolKind::Forward, problem, in.t, values.t, where.t);
  else max_pool_forward(problem, in.t.data(), values.t.data(), where.t.data());
  return {values.t, where.t};
}

Tensor _max_pool_values(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                        IntSpan dilation, bool ceil_mode) {
  check_orderable(self);
  const int64_t dims = int64_t(kernel_size.size());
  const Dims out = pooled_sizes(self, kernel_size, stride, padding, dilation, ceil_mode);
  const Spatial in = spatial_view(self, dims);
  const Spatial values = spatial_result(in, out, self.dtype());
  if (values.t.numel())
    max_pool_forward(
        describe(self.dtype(), in, values.size, kernel_size, stride, padding, dilation),
        in.t.data(), values.t.data(), nullptr);
  return values.t;
}

Tensor _max_pool_grad(const Tensor& grad_output, const Tensor& taps, IntSpan size,
                      IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation) {
  const size_t dims = kernel_size.size();
  const Spatial where = spatial_view(taps, int64_t(dims));
  const Spatial grad = spatial_view(grad_output, int64_t(dims), where.channels_last);
  const Spatial out = spatial_result(grad, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  const MaxPool problem =
      describe(out.t.dtype(), out, grad.size, kernel_size, stride, padding, dilation);
  if (out.t.is_cuda()) device_images.max_pool(MaxPoolKind::Back, problem, out.t, grad.t, where.t);
  else max_pool_back(problem, grad.t.data(), where.t.data(), out.t.data());
  return out.t;
}

Tensor _max_pool_pick(const Tensor& self, const Tensor& taps, IntSpan kernel_size, IntSpan stride,
                      IntSpan padding, IntSpan dilation) {
  const size_t dims = kernel_size.size();
  const Spatial where = spatial_view(taps, int64_t(dims));
  const Spatial in = spatial_view(self, int64_t(dims), where.channels_last);
  const Spatial out = spatial_result(in, taps.sizes().last(dims), self.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  const MaxPool problem =
      describe(out.t.dtype(), in, out.size, kernel_size, stride, padding, dilation);
  if (out.t.is_cuda()) device_images.max_pool(MaxPoolKind::Pick, problem, in.t, out.t, where.t);
  else max_pool_pick(problem, in.t.data(), where.t.data(), out.t.data());
  return out.t;
}

Tensor _max_pool_positions(const Tensor& taps, IntSpan size, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, IntSpan dilation) {
  const size_t dims = kernel_size.size();
  const Spatial where = spatial_view(taps, int64_t(dims));
  const Spatial out = spatial_result(where, taps.sizes().last(dims), DType::Int64);
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  Spatial in = where;
  for (size_t i = 0; i < dims; ++i) in.size[3 - dims + i] = size[size.size() - dims + i];
  const MaxPool problem =
      describe(taps.dtype(), in, out.size, kernel_size, stride, padding, dilation);
  if (taps.is_cuda())
    device_images.max_pool(MaxPoolKind::Positions, problem, Tensor(), out.t, where.t);
  else max_pool_positions(problem, where.t.data(), out.t.data_as<int64_t>());
  return out.t;
}

// ---- windows that divide the input

static int64_t first_of(int64_t t, int64_t in, int64_t out) {
  return t * in / out;
}
static int64_t end_of(int64_t t, int64_t in, int64_t out) {
  return ((t + 1) * in + out - 1) / out;
}

// PyTorch keeps channels_last of images here, not of volumes.
static Spatial image_view(const Tensor& t, size_t dims) {
  return dims == 3 ? spatial_view(t, 3, false) : spatial_view(t, int64_t(dims));
}

std::tuple<Tensor, Tensor> _adaptive_max_pool(const Tensor& self, IntSpan output_size) {
  check_orderable(self);
  const Spatial in = image_view(self, output_size.size());
  const Spatial values = spatial_result(in, output_size, self.dtype());
  const Spatial where = spatial_result(in, output_size, DType::Int64);
  if (self.is_meta() || !values.t.numel()) return {values.t, where.t};
  if (self.is_cuda()) {
    device_images.window_max(on_device(in), on_device(values), where.t, {}, Tensor());
    return {values.t, where.t};
  }
  const MaxWindows windows{[&](int64_t, int axis, int64_t t) {
    return PoolWindow{first_of(t, in.size[axis], values.size[axis]),
                      end_of(t, in.size[axis], values.size[axis])};
  }};
  max_of_windows(in, values, where, windows);
  return {values.t, where.t};
}

Tensor _max_positions_grad(const Tensor& grad_output, const Tensor& indices, IntSpan size,
                           IntSpan output_size) {
  const size_t dims = output_size.size();
  const Spatial where = spatial_view(indices, int64_t(dims));
  const Spatial grad = spatial_view(grad_output, int64_t(dims), where.channels_last);
  const Spatial out = spatial_result(grad, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  if (out.t.is_cuda()) device_images.sum_by_positions(on_device(grad), where.t, on_device(out));
  else sum_by_positions(grad, where, out);
  return out.t;
}

static ResampleTable divided_table(int64_t in, int64_t out) {
  if (in == out) return ResampleTable::identity(in);
  int64_t widest = 1;
  for (int64_t t = 0; t < out; ++t)
    widest = std::max(widest, end_of(t, in, out) - first_of(t, in, out));
  ResampleTable table(in, out, widest);
  for (int64_t t = 0; t < out; ++t) {
    const int64_t count = end_of(t, in, out) - first_of(t, in, out);
    table.start[size_t(t)] = first_of(t, in, out);
    table.count[size_t(t)] = count;
    for (int64_t k = 0; k < count; ++k) table.weight[size_t(t * widest + k)] = 1.0 / double(count);
  }
  return table;
}

Tensor _adaptive_avg_pool(const Tensor& self, IntSpan output_size) {
  check_floating(self);
  const Spatial in = image_view(self, output_size.size());
  const Spatial out = spatial_result(in, output_size, self.dtype());
  if (self.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  for (int i = 0; i < 3; ++i) tables[i] = divided_table(in.size[i], out.size[i]);
  resample_images(in, tables, out);
  return out.t;
}

Tensor _adaptive_avg_pool_grad(const Tensor& grad_output, IntSpan size, IntSpan output_size) {
  const size_t dims = output_size.size();
  const Spatial in = image_view(grad_output, dims);
  const Spatial out = spatial_result(in, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  for (int i = 0; i < 3; ++i) tables[i] = divided_table(out.size[i], in.size[i]).transposed();
  resample_images(in, tables, out);
  return out.t;
}

Tensor _mean_of_planes(const Tensor& self, int64_t spatial_dims) {
  check_floating(self);
  const Spatial in = spatial_view(self, spatial_dims);
  const Spatial out = spatial_result(in, Dims(size_t(spatial_dims), 1), self.dtype());
  if (self.is_meta() || !out.t.numel()) return out.t;
  if (self.is_cuda()) {
    const int64_t pixels = in.pixels();
    auto planes = [&](const Tensor& t, int64_t n) {
      return alias_tensor(t, Dims{in.outer, n, in.inner}, Dims{n * in.inner, in.inner, 1},
                          t.offset());
    };
    op::copy_(planes(out.t, 1), op::mean_dim(planes(in.t, pixels), Dims{1}, true));
    return out.t;
  }
  mean_of_planes(self.dtype(), in.outer, in.pixels(), in.inner, in.t.data(), out.t.data());
  return out.t;
}

// ---- averages

// What is divided by is a product of one number for each axis.
static ResampleTable window_table(int64_t in, int64_t out, int64_t taps, int64_t step, int64_t pad,
                                  bool count_padding, std::optional<double> divisor) {
  ResampleTable table(in, out, taps);
  for (int64_t t = 0; t < out; ++t) {
    const int64_t from = t * step - pad, to = std::min(from + taps, in + pad);
    const int64_t first = std::max<int64_t>(from, 0), last = std::min(to, in);
    const int64_t count = std::max<int64_t>(0, last - first);
    table.start[size_t(t)] = std::min(first, in - count);
    table.count[size_t(t)] = count;
    const double by = divisor ? *divisor : double(count_padding ? to - from : count);
    for (int64_t k = 0; k < count; ++k) table.weight[size_t(t * taps + k)] = 1.0 / by;
  }
  return table;
}

static void window_tables(const int64_t* in, const int64_t* out, IntSpan kernel, IntSpan stride,
                          IntSpan padding, bool count_padding, std::optional<int64_t> divisor,
                          ResampleTable tables[3]) {
  const size_t dims = kernel.size();
  for (size_t i = 0; i < 3; ++i) {
    if (i + dims < 3) {
      tables[i] = ResampleTable::identity(1);
      continue;
    }
    const size_t k = i + dims - 3;
    std::optional<double> by;
    if (divisor) by = i == 2 ? double(*divisor) : 1.0;
    tables[i] = window_table(in[i], out[i], kernel[k], stride[k], padding[k], count_padding, by);
  }
}

Tensor _avg_pool(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                 bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  check_floating(self);
  const int64_t dims = int64_t(kernel_size.size());
  const Dims sizes =
      pooled_sizes(self, kernel_size, stride, padding, Dims(size_t(dims), 1), ceil_mode);
  const Spatial in = image_view(self, size_t(dims));
  const Spatial out = spatial_result(in, sizes, self.dtype());
  if (self.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  window_tables(in.size, out.size, kernel_size, stride, padding, count_include_pad,
                divisor_override, tables);
  resample_images(in, tables, out);
  return out.t;
}

Tensor _avg_pool_grad(const Tensor& grad_output, IntSpan size, IntSpan kernel_size, IntSpan stride,
                      IntSpan padding, bool, bool count_include_pad,
                      std::optional<int64_t> divisor_override) {
  const size_t dims = kernel_size.size();
  const Spatial in = image_view(grad_output, dims);
  const Spatial out = spatial_result(in, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  window_tables(out.size, in.size, kernel_size, stride, padding, count_include_pad,
                divisor_override, tables);
  for (ResampleTable& t : tables) t = t.transposed();
  resample_images(in, tables, out);
  return out.t;
}

// ---- windows at random places

// Where the windows of one axis begin, from a number in [0, 1) (Graham, 2014).
static int64_t random_start(double sample, int64_t t, int64_t in, int64_t out, int64_t taps,
                            bool narrow) {
  if (t == out - 1) return in - taps;
  if (narrow) {
    const float alpha = float(in - taps) / float(out - 1), u = float(sample);
    return int64_t((float(t) + u) * alpha) - int64_t(u * alpha);
  }
  const double alpha = double(in - taps) / double(out - 1);
  return int64_t((double(t) + sample) * alpha) - int64_t(sample * alpha);
}

std::tuple<Tensor, Tensor> _fractional_max_pool(const Tensor& self, IntSpan kernel_size,
                                                IntSpan output_size, const Tensor& random_samples) {
  check_floating(self);
  const int64_t dims = int64_t(kernel_size.size());
  const Spatial in = spatial_view(self, dims, false);
  const Spatial values = spatial_result(in, output_size, self.dtype());
  const Spatial where = spatial_result(in, output_size, DType::Int64);
  if (self.is_meta() || !values.t.numel()) return {values.t, where.t};
  const Tensor samples = op::contiguous(op::_to_copy(random_samples, DType::Float64));
  if (self.is_cuda()) {
    device_images.window_max(on_device(in), on_device(values), where.t, kernel_size, samples);
    return {values.t, where.t};
  }
  const double* drawn = samples.data_as<double>();  // (planes, dims), the last axis first
  const bool narrow = self.dtype() != DType::Float64;
  auto window = [&](int64_t plane, int axis, int64_t t) {
    const int64_t k = axis - (3 - dims);
    if (k < 0) return PoolWindow{0, 1};
    // Samples are given as (width, height) of images, but (depth, height, width) of volumes.
    const int64_t at = dims == 2 ? 1 - k : k;
    const int64_t taps = kernel_size[size_t(k)];
    const int64_t first =
        random_start(drawn[plane * dims + at], t, in.size[axis], values.size[axis], taps, narrow);
    return PoolWindow{first, first + taps};
  };
  max_of_windows(in, values, where, MaxWindows{window, true});
  return {values.t, where.t};
}

}  // namespace facula::kernels
