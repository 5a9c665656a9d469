// Images and volumes of another size: where each element of the result comes from.
#include "op/kernels/interpolation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cpu/resample_bytes.h"
#include "kernels/image_work.h"

namespace facula::kernels {

namespace {

struct Rule {
  bool cubic, lanczos, antialias, align_corners;
};

Rule rule_of(std::string_view mode, bool align_corners) {
  const bool antialias = mode.ends_with(" antialias");
  const std::string_view kind = mode.substr(0, mode.find(' '));
  const bool lanczos = kind == "lanczos";
  if (kind != "linear" && kind != "cubic" && !(lanczos && antialias))
    value_error("mode '", mode, "' is not one of 'linear', 'cubic' and 'lanczos antialias'");
  return {kind == "cubic", lanczos, antialias, align_corners};
}

// How far apart neighbours of the result are in the input. Coordinates are computed in float32
// for all but float64 tensors, as PyTorch does: next to an element they decide which is taken.
template <class A>
A step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? A(in - 1) / A(out - 1) : A(0);
  return scale > 0 ? A(1.0 / scale) : A(in) / A(out);
}

// Keys' kernel (1981), for taps 1 + t, t, 1 - t and 2 - t away.
template <class A>
void cubic_weights(A t, double* weight) {
  const A a = A(-0.75);
  auto near = [&](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [&](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  weight[0] = far(t + 1), weight[1] = near(t), weight[2] = near(1 - t), weight[3] = far(2 - t);
}

template <class A>
ResampleTable point_table(int64_t in, int64_t out, const Rule& rule, double scale) {
  const int64_t taps = rule.cubic ? 4 : 2;
  ResampleTable table(in, out, std::min(taps, in));
  const A step = step_of<A>(in, out, rule.align_corners, scale);
  for (int64_t t = 0; t < out; ++t) {
    A at = rule.align_corners ? step * A(t) : step * (A(t) + A(0.5)) - A(0.5);
    if (!rule.cubic) at = std::max(at, A(0));
    const int64_t left = std::min(int64_t(std::floor(at)), in - 1);
    const A part = std::clamp(at - A(left), A(0), A(1));
    double weight[4] = {1 - double(part), double(part), 0, 0};
    if (rule.cubic) cubic_weights(part, weight);
    // Taps beyond the ends fall on the outermost elements, whose weights they join.
    const int64_t before = rule.cubic ? 1 : 0;
    const int64_t first = std::clamp<int64_t>(left - before, 0, in - 1),
                  last = std::clamp<int64_t>(left - before + taps - 1, 0, in - 1);
    table.start[size_t(t)] = first;
    table.count[size_t(t)] = last - first + 1;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t tap = std::clamp<int64_t>(left - before + k, 0, in - 1);
      table.weight[size_t(t * table.width + tap - first)] += weight[k];
    }
  }
  return table;
}

// The sinc function, tapered by its own middle lobe.
template <class A>
A lanczos_weight(A x) {
  auto sinc = [](A x) {
    const A angle = x * std::numbers::pi_v<A>;
    return x == 0 ? A(1) : std::sin(angle) / angle;
  };
  return x < 3 ? sinc(x) * sinc(x / 3) : A(0);
}

// Windows as wide as the step: a triangle, Keys' kernel with a = -0.5, or Lanczos' kernel with
// three lobes, as Pillow has them.
template <class A>
ResampleTable window_table(int64_t in, int64_t out, const Rule& rule, double scale) {
  const A step = step_of<A>(in, out, rule.align_corners, scale);
  const A reach = rule.lanczos ? A(3) : rule.cubic ? A(2) : A(1);
  const A support = step >= 1 ? reach * step : reach;
  const A shrink = step >= 1 ? A(1) / step : A(1);
  const int64_t widest = std::min(in, int64_t(std::ceil(support)) * 2 + 1);
  auto filter = [&](A x) {
    x = std::abs(x);
    if (rule.lanczos) return lanczos_weight(x);
    if (!rule.cubic) return x < 1 ? 1 - x : A(0);
    const A a = A(-0.5);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : A(0);
  };
  ResampleTable table(in, out, widest);
  for (int64_t t = 0; t < out; ++t) {
    const A center = step * (A(t) + A(0.5));
    const int64_t first = std::max<int64_t>(int64_t(center - support + A(0.5)), 0);
    const int64_t last = std::min<int64_t>(int64_t(center + support + A(0.5)), in);
    const int64_t start = std::min(first, in - 1);
    const int64_t count = std::clamp<int64_t>(last - start, 0, widest);
    table.start[size_t(t)] = start;
    table.count[size_t(t)] = count;
    double* weight = table.weight.data() + t * widest;
    A total = 0;
    for (int64_t k = 0; k < count; ++k) {
      const A w = filter((A(k + start) - center + A(0.5)) * shrink);
      weight[k] = double(w);
      total += w;
    }
    for (int64_t k = 0; total != 0 && k < count; ++k) weight[k] = double(A(weight[k]) / total);
  }
  return table;
}

ResampleTable table_of(int64_t in, int64_t out, const Rule& rule, double scale, DType dtype) {
  const bool wide = dtype == DType::Float64 || dtype == DType::UInt8;
  // An axis that keeps its size is copied whatever the scale, as PyTorch does in all but one mode.
  if (in == out && (!rule.cubic || rule.antialias || dtype == DType::UInt8))
    return ResampleTable::identity(in);
  if (rule.antialias)
    return wide ? window_table<double>(in, out, rule, scale)
                : window_table<float>(in, out, rule, scale);
  return wide ? point_table<double>(in, out, rule, scale)
              : point_table<float>(in, out, rule, scale);
}

double scale_at(std::span<const double> scales, size_t i) {
  return i < scales.size() ? scales[i] : 0;
}

void interpolation_tables(const int64_t* in, const int64_t* out, size_t dims, std::string_view mode,
                          bool align_corners, std::span<const double> scales, DType dtype,
                          ResampleTable tables[3]) {
  const Rule rule = rule_of(mode, align_corners);
  for (size_t i = 0; i < 3; ++i)
    tables[i] = i + dims < 3 ? ResampleTable::identity(1)
                             : table_of(in[i], out[i], rule, scale_at(scales, i + dims - 3), dtype);
}

template <class A>
AxisPositions nearest_positions(int64_t in, int64_t out, bool exact, double scale) {
  AxisPositions axis;
  axis.in = in;
  axis.at.resize(size_t(out));
  const A step = step_of<A>(in, out, false, scale);
  for (int64_t t = 0; t < out; ++t) {
    const A at = exact ? (A(t) + A(0.5)) * step : A(t) * step;
    axis.at[size_t(t)] = std::clamp<int64_t>(int64_t(std::floor(at)), 0, in - 1);
  }
  return axis;
}

void nearest_axes(const int64_t* in, const int64_t* out, size_t dims, bool exact,
                  std::span<const double> scales, DType dtype, AxisPositions axis[3]) {
  for (size_t i = 0; i < 3; ++i) {
    // PyTorch copies an axis of an image, but not of others, that keeps its size.
    const bool same = dims == 2 && !exact && in[i] == out[i];
    const double scale = i + dims < 3 || same ? 0 : scale_at(scales, i + dims - 3);
    axis[i] = dtype == DType::Float64 ? nearest_positions<double>(in[i], out[i], exact, scale)
                                      : nearest_positions<float>(in[i], out[i], exact, scale);
  }
}

// The sums of what was taken from each element.
ResampleTable sums_of(const AxisPositions& axis) {
  ResampleTable table(axis.in, axis.out(), 1);
  table.start = axis.at;
  std::fill(table.count.begin(), table.count.end(), 1);
  std::fill(table.weight.begin(), table.weight.end(), 1.0);
  return table.transposed();
}

void check_sizes(const Tensor& self, IntSpan output_size) {
  const size_t dims = output_size.size();
  bool positive = true;
  for (int64_t n : output_size) positive &= n > 0;
  for (int64_t n : self.sizes().last(dims)) positive &= n > 0;
  if (!positive)
    runtime_error("Input and output sizes should be greater than 0, but got an input of shape ",
                  self.sizes(), " and output sizes ", output_size);
  for (int64_t d = 1; d < self.dim(); ++d)
    if (self.sizes()[size_t(d)] == 0)
      runtime_error("Non-empty ", self.dim(), "D data tensor expected but got a tensor with sizes ",
                    self.sizes());
}

}  // namespace

Tensor _interpolate(const Tensor& self, IntSpan output_size, std::string_view mode,
                    bool align_corners, std::span<const double> scales) {
  check_sizes(self, output_size);
  if ((!is_floating(self.dtype()) || self.item_size() == 1) && self.dtype() != DType::UInt8)
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; floating-point numbers and uint8 are accepted");
  const size_t dims = output_size.size();
  const Spatial in = spatial_view(self, int64_t(dims));
  const Spatial out = spatial_result(in, output_size, self.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  interpolation_tables(in.size, out.size, dims, mode, align_corners, scales, self.dtype(), tables);
  if (self.dtype() == DType::UInt8 && dims == 2 && self.is_cpu())
    resample_bytes(in.outer, in.inner, tables[1], tables[2], in.t.data_as<uint8_t>(),
                   out.t.data_as<uint8_t>());
  else resample_images(in, tables, out);
  return out.t;
}

Tensor _interpolate_grad(const Tensor& grad_output, IntSpan size, IntSpan output_size,
                         std::string_view mode, bool align_corners,
                         std::span<const double> scales) {
  const size_t dims = output_size.size();
  const Spatial in = spatial_view(grad_output, int64_t(dims));
  const Spatial out = spatial_result(in, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  ResampleTable tables[3];
  interpolation_tables(out.size, in.size, dims, mode, align_corners, scales, in.t.dtype(), tables);
  for (ResampleTable& t : tables) t = t.transposed();
  resample_images(in, tables, out);
  return out.t;
}

Tensor _nearest(const Tensor& self, IntSpan output_size, bool exact,
                std::span<const double> scales) {
  check_sizes(self, output_size);
  const size_t dims = output_size.size();
  const Spatial in = spatial_view(self, int64_t(dims));
  const Spatial out = spatial_result(in, output_size, self.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  AxisPositions axis[3];
  nearest_axes(in.size, out.size, dims, exact, scales, self.dtype(), axis);
  select_positions(in, axis, out);
  return out.t;
}

Tensor _nearest_grad(const Tensor& grad_output, IntSpan size, IntSpan output_size, bool exact,
                     std::span<const double> scales) {
  const size_t dims = output_size.size();
  const Spatial in = spatial_view(grad_output, int64_t(dims));
  const Spatial out = spatial_result(in, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  AxisPositions axis[3];
  nearest_axes(out.size, in.size, dims, exact, scales, in.t.dtype(), axis);
  if (!is_floating(in.t.dtype()) || in.t.item_size() == 1) {
    add_positions(in, axis, out);
    return out.t;
  }
  ResampleTable tables[3];
  for (int i = 0; i < 3; ++i) tables[i] = sums_of(axis[i]);
  resample_images(in, tables, out);
  return out.t;
}

}  // namespace facula::kernels
