// Sampling at arbitrary points, and the points of affine maps.
#include "cpu/grid_sample.h"

#include <algorithm>

#include "kernels/destination.h"
#include "op/hooks/sampling.h"
#include "op/kernels/images.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/images.h"
#include "op/ops/joining.h"
#include "op/ops/products.h"
#include "op/ops/views.h"
#include "op/settings.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// input is (..., C, spatial), grid (..., spatial of the result, dims).
GridSample describe(IntSpan input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align_corners) {
  GridSample g{};
  g.mode = GridMode(mode), g.padding = GridPadding(padding), g.align_corners = align_corners;
  g.dims = int(grid.size(-1));
  const size_t dims = size_t(g.dims), leading = input.size() - dims - 1;
  g.batch = checked_numel(input.first(leading));
  g.channels = input[leading];
  g.size[0] = g.size[1] = g.size[2] = 1;
  for (size_t i = 0; i < dims; ++i) g.size[3 - dims + i] = input[leading + 1 + i];
  if (g.pixels() > std::numeric_limits<int32_t>::max())
    runtime_error(
        "images and volumes of more than 2**31 - 1 elements are not supported, got shape ", input);
  g.points = checked_numel(grid.sizes().subspan(leading, dims));
  return g;
}

// (..., C, spatial of the grid).
Dims sampled_shape(const Tensor& input, const Tensor& grid) {
  const size_t dims = size_t(grid.size(-1)), leading = size_t(input.dim()) - dims;
  Dims shape(input.sizes().first(leading));
  for (int64_t n : grid.sizes().subspan(leading - 1, dims)) shape.push_back(n);
  return shape;
}

// In a type that has loops; dense, too.
Tensor computable(const Tensor& t) {
  return is_reduced_float(t.dtype()) ? op::_to_copy(t, DType::Float32) : t;
}
Tensor for_loops(const Tensor& t) {
  return dense(computable(t));
}

template <class F>
Tensor computed(IntSpan shape, const Tensor& like, F run) {
  const DType dtype = is_reduced_float(like.dtype()) ? DType::Float32 : like.dtype();
  Tensor out = empty_tensor(shape, dtype, like.device());
  if (!out.is_meta() && out.numel()) {
    if (dtype == DType::Float64) run(TypeTag<double>{}, out);
    else run(TypeTag<float>{}, out);
  }
  return dtype == like.dtype() ? out : op::_to_copy(out, like.dtype());
}

}  // namespace

namespace {

// How points see the input.
struct Options {
  int64_t mode, padding;
  bool align_corners;
};

template <class T>
const T* data_of(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}
Tensor optional_for_loops(const Tensor& t) {
  return t.defined() ? for_loops(t) : t;
}

// Where channels lie side by side, each neighbour of a point is a vector: that is worth turning the
// input for, unless points see little of it. The four neighbours in an image are as quick to read
// as they lie; what is added to them is not.
bool takes_channels_last(const GridSample& g, GridSampleKind kind) {
  if (g.mode == GridMode::Nearest || g.pixels() > 4 * g.points) return false;
  if (g.mode == GridMode::Cubic || kind == GridSampleKind::Back) return g.channels >= 2;
  if (g.dims == 3) return g.channels >= 8;
  return kind == GridSampleKind::Slopes && g.channels >= 48;
}
// The problem with channels last, and zeros for what their number lacks of a multiple of four.
GridSample with_channels_last(GridSample g) {
  g.channels_last = true;
  g.channels = (g.channels + 3) / 4 * 4;
  return g;
}
// (batch, channels, n) as (batch, n, channels), and back into `to`.
Tensor turned(const Tensor& t, const GridSample& g, int64_t n) {
  const Tensor view = op::transpose(op::reshape(t, Dims{g.batch, g.channels, n}), 1, 2);
  const int64_t channels = with_channels_last(g).channels;
  if (channels == g.channels) return op::contiguous(view);
  const Tensor padded = op::new_zeros(t, Dims{g.batch, n, channels});
  op::copy_(op::narrow(padded, 2, 0, g.channels), view);
  return padded;
}
void turn_back(const Tensor& from, const GridSample& g, int64_t n, const Tensor& to) {
  op::copy_(op::view(to, Dims{g.batch, g.channels, n}),
            op::transpose(op::narrow(from, 2, 0, g.channels), 1, 2));
}

Tensor sample(const Tensor& input, const Tensor& grid, const Tensor& direction, Options o) {
  return computed(sampled_shape(input, grid), input, [&](auto tag, const Tensor& out) {
    using T = typename decltype(tag)::type;
    const Tensor at = for_loops(grid), along = optional_for_loops(direction);
    const GridSample g = describe(input.sizes(), at, o.mode, o.padding, o.align_corners);
    if (!input.is_cuda() && takes_channels_last(g, GridSampleKind::Values)) {
      const GridSample last = with_channels_last(g);
      const Tensor x = turned(computable(input), g, g.pixels());
      const Tensor y =
          empty_tensor(Dims{g.batch, g.points, last.channels}, out.dtype(), out.device());
      grid_sample(last, data_of<T>(x), data_of<T>(at), data_of<T>(along), y.data_as<T>());
      return turn_back(y, g, g.points, out);
    }
    const Tensor x = for_loops(input);
    if (x.is_cuda())
      return device_sampling.grid_sample(GridSampleKind::Values, g, x, at, along, out, Tensor());
    grid_sample(g, data_of<T>(x), data_of<T>(at), data_of<T>(along), out.data_as<T>());
  });
}

Tensor back(const Tensor& grad, const Tensor& grid, const Tensor& direction, IntSpan size,
            Options o) {
  return computed(size, grad, [&](auto tag, const Tensor& out) {
    using T = typename decltype(tag)::type;
    const Tensor at = for_loops(grid), along = optional_for_loops(direction);
    const GridSample problem = describe(size, at, o.mode, o.padding, o.align_corners);
    if (!grad.is_cuda() && takes_channels_last(problem, GridSampleKind::Back)) {
      const GridSample last = with_channels_last(problem);
      const Tensor y = turned(computable(grad), problem, problem.points);
      const Tensor x = empty_tensor(Dims{problem.batch, problem.pixels(), last.channels},
                                    out.dtype(), out.device());
      grid_sample_back(last, data_of<T>(y), data_of<T>(at), data_of<T>(along), x.data_as<T>());
      return turn_back(x, problem, problem.pixels(), out);
    }
    const Tensor g = for_loops(grad);
    if (g.is_cuda()) check_fixed_order("grid_sample's derivative by its input");
    if (g.is_cuda())
      return device_sampling.grid_sample(GridSampleKind::Back, problem, op::zero_(out), at, along,
                                         g, Tensor());
    grid_sample_back(problem, data_of<T>(g), data_of<T>(at), data_of<T>(along), out.data_as<T>());
  });
}

Tensor slopes(const Tensor& grad, const Tensor& input, const Tensor& grid, const Tensor& direction,
              Options o) {
  return computed(grid.sizes(), grid, [&](auto tag, const Tensor& out) {
    using T = typename decltype(tag)::type;
    const Tensor at = for_loops(grid), along = optional_for_loops(direction);
    const GridSample problem = describe(input.sizes(), at, o.mode, o.padding, o.align_corners);
    const bool last = !grad.is_cuda() && takes_channels_last(problem, GridSampleKind::Slopes);
    auto arranged = [&](const Tensor& t, int64_t n) {
      return last ? turned(computable(t), problem, n) : for_loops(t);
    };
    const Tensor g = arranged(grad, problem.points), x = arranged(input, problem.pixels());
    if (g.is_cuda()) {
      if (problem.channels == 0) op::zero_(out);
      return device_sampling.grid_sample(GridSampleKind::Slopes, problem, x, at, along, g, out);
    }
    grid_sample_slopes(last ? with_channels_last(problem) : problem, data_of<T>(g), data_of<T>(x),
                       data_of<T>(at), data_of<T>(along), out.data_as<T>());
  });
}

}  // namespace

Tensor _grid_sample(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                    int64_t padding_mode, bool align_corners) {
  return sample(input, grid, Tensor(), {interpolation_mode, padding_mode, align_corners});
}
Tensor _grid_sample_along(const Tensor& input, const Tensor& grid, const Tensor& direction,
                          int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return sample(input, grid, direction, {interpolation_mode, padding_mode, align_corners});
}
Tensor _grid_sample_back(const Tensor& grad_output, const Tensor& grid, IntSpan size,
                         int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return back(grad_output, grid, Tensor(), size, {interpolation_mode, padding_mode, align_corners});
}
Tensor _grid_sample_back_along(const Tensor& grad_output, const Tensor& grid,
                               const Tensor& direction, IntSpan size, int64_t interpolation_mode,
                               int64_t padding_mode, bool align_corners) {
  return back(grad_output, grid, direction, size,
              {interpolation_mode, padding_mode, align_corners});
}
Tensor _grid_sample_slopes(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                           int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return slopes(grad_output, input, grid, Tensor(),
                {interpolation_mode, padding_mode, align_corners});
}
Tensor _grid_sample_slopes_along(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                 const Tensor& direction, int64_t interpolation_mode,
                                 int64_t padding_mode, bool align_corners) {
  return slopes(grad_output, input, grid, direction,
                {interpolation_mode, padding_mode, align_corners});
}

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                    int64_t padding_mode, bool align_corners) {
  if (input.dim() && grid.dim() && grid.size(0) != input.size(0))
    runtime_error("expected grid and input to have same batch size, but got input with sizes ",
                  input.sizes(), " and grid with sizes ", grid.sizes());
  if (input.dim() > 2 && grid.dim() && grid.size(-1) != input.dim() - 2)
    runtime_error("expected grid to have size ", input.dim() - 2,
                  " in last dimension, but got grid with sizes ", grid.sizes());
  if (input.dim() != 4 && input.dim() != 5)
    runtime_error("expected a 4D or 5D input, (N, C, H, W) or (N, C, D, H, W), but got shape ",
                  input.sizes());
  if (input.dtype() != grid.dtype())
    runtime_error("expected input and grid to have the same dtype, but input is ", input.dtype(),
                  " and grid ", grid.dtype());
  if (input.device() != grid.device()) device_error(input.device(), grid.device());
  if (!is_floating(input.dtype()) || input.item_size() == 1)
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(input.dtype()),
         "'; floating-point numbers are accepted");
  if (grid.dim() != input.dim())
    runtime_error("expected ", input.dim(), "D input and grid with same number of dimensions, ",
                  "but got input with sizes ", input.sizes(), " and grid with sizes ",
                  grid.sizes());
  for (int64_t d = 2; d < input.dim(); ++d)
    if (input.size(d) <= 0)
      runtime_error("expected input to have non-empty spatial dimensions, but input has sizes ",
                    input.sizes());
  if (interpolation_mode < 0 || interpolation_mode > 2)
    runtime_error("interpolation_mode must be 0 (bilinear), 1 (nearest) or 2 (bicubic), but got ",
                  interpolation_mode);
  if (padding_mode < 0 || padding_mode > 2)
    runtime_error("padding_mode must be 0 (zeros), 1 (border) or 2 (reflection), but got ",
                  padding_mode);
  if (interpolation_mode == 2 && input.dim() == 5)
    runtime_error("bicubic interpolation only supports 4D input, but got shape ", input.sizes());
  return op::_grid_sample(input, grid, interpolation_mode, padding_mode, align_corners);
}

static Tensor sampler_of_rank(const Tensor& input, const Tensor& grid, int64_t mode,
                              int64_t padding, bool align_corners, int64_t dim) {
  if (input.dim() != dim)
    runtime_error("expected a ", dim, "D input, but got shape ", input.sizes());
  return op::grid_sampler(input, grid, mode, padding, align_corners);
}
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners) {
  return sampler_of_rank(input, grid, interpolation_mode, padding_mode, align_corners, 4);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners) {
  return sampler_of_rank(input, grid, interpolation_mode, padding_mode, align_corners, 5);
}

static bool corners(std::optional<bool> align_corners, const char* function) {
  if (!align_corners)
    warn(text("Default ", function, " behavior has changed to align_corners=False since 1.3.0. ",
              "Please specify align_corners=True if the old behavior is desired.")
             .c_str());
  return align_corners.value_or(false);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode,
                   std::string_view padding_mode, std::optional<bool> align_corners) {
  const int64_t kind = mode == "bilinear" ? 0 : mode == "nearest" ? 1 : mode == "bicubic" ? 2 : -1;
  if (kind < 0)
    value_error("expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '", mode, "'");
  const int64_t padding = padding_mode == "zeros"        ? 0
                          : padding_mode == "border"     ? 1
                          : padding_mode == "reflection" ? 2
                                                         : -1;
  if (padding < 0)
    value_error("expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '",
                padding_mode, "'");
  return op::grid_sampler(input, grid, kind, padding, corners(align_corners, "grid_sample"));
}

// ---- affine maps

// From -1 to 1 at the centres of the outermost elements, or at their edges.
static Tensor coordinates(const Tensor& like, int64_t n, bool align_corners) {
  const double end = n <= 1 ? 0 : align_corners ? 1 : double(n - 1) / double(n);
  return op::linspace(-end, end, n, like.dtype(), std::nullopt, like.device());
}

Tensor affine_grid_generator(const Tensor& theta, IntSpan size, bool align_corners) {
  if (size.size() != 4 && size.size() != 5)
    fail(ErrorKind::NotImplemented,
         "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
         "respectively. Got size ",
         size);
  const int64_t dims = int64_t(size.size()) - 2;
  if (!is_floating(theta.dtype()))
    value_error("Expected theta to have floating point type, but got ", theta.dtype());
  if (theta.dim() != 3 || theta.size(-2) != dims || theta.size(-1) != dims + 1)
    value_error("Expected a batch of ", dims, "D affine matrices of shape Nx", dims, "x", dims + 1,
                " for size ", size, ". Got ", theta.sizes(), ".");
  for (int64_t n : size)
    if (n <= 0) value_error("Expected non-zero, positive output size. Got ", size);
  if (theta.size(0) != size[0])
    runtime_error("Expected theta for a batch of ", size[0], ", as size ", size,
                  " says, but got shape ", theta.sizes());
  // (dims + 1, spatial): x first, and a one. The points of a coordinate lie side by side, which the
  // product with a gradient sums over.
  const Dims shape(size.subspan(2));
  std::vector<Tensor> parts;
  for (int64_t d = dims; d-- > 0;) {
    Dims along(size_t(dims), 1);
    along[size_t(d)] = shape[size_t(d)];
    parts.push_back(
        op::expand(op::reshape(coordinates(theta, shape[size_t(d)], align_corners), along), shape));
  }
  parts.push_back(op::new_ones(theta, shape));
  const int64_t points = checked_numel(shape);
  const Tensor base = op::reshape(op::stack(parts, 0), Dims{1, dims + 1, points});
  const Tensor grid = op::matmul(op::transpose(base, 1, 2), op::transpose(theta, 1, 2));
  Dims result{size[0]};
  for (int64_t n : shape) result.push_back(n);
  result.push_back(dims);
  return op::reshape(grid, result);
}

Tensor affine_grid(const Tensor& theta, IntSpan size, std::optional<bool> align_corners) {
  const bool align = corners(align_corners, "affine_grid");
  if (align && warn && size.size() > 2 && std::ranges::count(size.subspan(2), 1))
    warn(
        "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
        "align_corners=True. This is not an intended use case of affine_grid. See the "
        "documentation of affine_grid for details.");
  return op::affine_grid_generator(theta, size, align);
}

}  // namespace facula::kernels
