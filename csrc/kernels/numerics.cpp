// Finite differences, the trapezoidal rule, combinations.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "op/elementwise.h"
#include "op/kernels/numerics.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/numerics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

// t without its first `front` and last `back` slices.
Tensor trimmed(const Tensor& t, int64_t dim, int64_t front, int64_t back) {
  return op::narrow(t, dim, front, std::max<int64_t>(t.size(dim) - front - back, 0));
}

Tensor steps(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0) return t;
  Tensor later = trimmed(t, dim, 1, 0), earlier = trimmed(t, dim, 0, 1);
  return t.dtype() == DType::Bool ? op::logical_xor(later, earlier) : later - earlier;
}

// Integers that are about to become fractions: their sums and differences must not wrap around.
Tensor without_overflow(const Tensor& t) {
  return is_integral(t.dtype(), false) && t.dtype() != DType::Int64 ? op::_to_copy(t, DType::Int64)
                                                                    : t;
}

void check_joined(const Tensor& self, int64_t dim, const Tensor& other) {
  if (other.dim() != self.dim())
    runtime_error(
        "diff expects prepend or append to be the same dimension as input, but got shapes ",
        other.sizes(), " and ", self.sizes());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim && other.sizes()[d] != self.sizes()[d])
      runtime_error(
          "diff expects the shape of tensor to prepend or append to match that of input except "
          "along "
          "the differencing dimension; input.size(",
          d, ") = ", self.sizes()[d], ", but got tensor.size(", d, ") = ", other.sizes()[d]);
}

}  // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  if (self.dim() == 0) runtime_error("diff expects input to be at least one-dimensional");
  if (n < 0) runtime_error("order must be non-negative but got ", n);
  dim = wrap_dim(dim, self.dim());
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, self, append}) {
    if (!part.defined()) continue;
    check_joined(self, dim, part);
    parts.push_back(part);
  }
  if (n == 0) return op::clone(self);
  Tensor t = parts.size() > 1 ? op::cat(parts, dim) : self;
  for (int64_t k = std::min(n, t.size(dim)); k > 0; --k) t = steps(t, dim);
  return t;
}

// ---- gradient

namespace {

Dims gradient_dims(const Tensor& self, std::optional<IntSpan> dim, int64_t edge_order) {
  if (edge_order != 1 && edge_order != 2)
    runtime_error("torch.gradient only supports edge_order=1 and edge_order=2. Got ", edge_order);
  if (self.dim() == 0 && dim && !dim->empty())
    index_error("Dimension specified as ", (*dim)[0], " but tensor has no dimensions");
  check_rank(self.dim());
  Dims dims;
  uint64_t seen = 0;
  for (int64_t k = 0; k < (dim ? int64_t(dim->size()) : self.dim()); ++k) {
    const int64_t d = dim ? wrap_dim((*dim)[size_t(k)], self.dim()) : k;
    if (seen >> d & 1) runtime_error("dim ", d, " appears multiple times in the list of dims");
    seen |= uint64_t(1) << d;
    dims.push_back(d);
    if (self.size(d) < edge_order + 1)
      runtime_error(
          "torch.gradient expected each dimension size to be at least edge_order+1, here ",
          edge_order + 1, ", but the input has shape ", self.sizes());
  }
  return dims;
}

void check_count(const Tensor& self, std::optional<IntSpan> dim, const Dims& dims, size_t given) {
  if (given == dims.size()) return;
  if (dim)
    runtime_error(
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
        "arguments to have the same length, but got a spacing argument of length ",
        given, " and a dim argument of length ", dims.size(), ".");
  runtime_error(
      "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
      "'self.dim() = ",
      self.dim(), "', since dim argument was not given, but got a list of length ", given);
}

Tensor at(const Tensor& t, int64_t dim, int64_t index) {
  return op::narrow(t, dim, index < 0 ? t.size(dim) + index : index, 1);
}

Tensor gradient_along(const Tensor& values, int64_t dim, const Scalar& h, int64_t edge_order) {
  const Tensor f = without_overflow(values);
  Tensor inner = (trimmed(f, dim, 2, 0) - trimmed(f, dim, 0, 2)) / 2, first, last;
  if (edge_order == 1) {
    first = at(f, dim, 1) - at(f, dim, 0);
    last = at(f, dim, -1) - at(f, dim, -2);
  } else {
    first = at(f, dim, 1) * 2 - at(f, dim, 0) * 1.5 - at(f, dim, 2) * 0.5;
    last = at(f, dim, -1) * 1.5 - at(f, dim, -2) * 2 + at(f, dim, -3) * 0.5;
  }
  return op::cat(std::vector<Tensor>{first, inner, last}, dim) / h;
}

// The derivative at the middle of three samples with distances a and b, at the first, or at the
// last of them: that of the parabola through the three.
Tensor at_middle(const Tensor& f0, const Tensor& f1, const Tensor& f2, const Tensor& a,
                 const Tensor& b) {
  return f1 * ((b - a) / (a * b)) - f0 * (b / (a * (a + b))) + f2 * (a / (b * (a + b)));
}
Tensor at_first(const Tensor& f0, const Tensor& f1, const Tensor& f2, const Tensor& a,
                const Tensor& b) {
  return f1 * ((a + b) / (a * b)) - f0 * ((a * 2 + b) / (a * (a + b))) - f2 * (a / (b * (a + b)));
}
Tensor at_last(const Tensor& f0, const Tensor& f1, const Tensor& f2, const Tensor& a,
               const Tensor& b) {
  return f0 * (b / (a * (a + b))) - f1 * ((a + b) / (a * b)) + f2 * ((b * 2 + a) / (b * (a + b)));
}

Tensor gradient_along(const Tensor& values, int64_t dim, const Tensor& coordinates,
                      int64_t edge_order) {
  const Tensor f = without_overflow(values);
  if (coordinates.dim() != 1)
    runtime_error(
        "torch.gradient expected each element of spacing to have one dimension, but got an element "
        "with ",
        coordinates.dim(), " dimensions!");
  const int64_t n = f.size(dim);
  if (coordinates.numel() != n)
    runtime_error("expected one coordinate for each sample, but got ", coordinates.numel(),
                  " for dimension ", dim, " of size ", n);
  Tensor x = coordinates;
  if (is_integral(x.dtype(), true))
    x = op::_to_copy(x, is_integral(f.dtype(), true) ? default_dtype() : to_real(f.dtype()));
  Dims shape(size_t(f.dim()), 1);
  shape[size_t(dim)] = n - 1;
  Tensor h = op::reshape(steps(x, 0), shape);
  Tensor inner = at_middle(trimmed(f, dim, 0, 2), trimmed(f, dim, 1, 1), trimmed(f, dim, 2, 0),
                           trimmed(h, dim, 0, 1), trimmed(h, dim, 1, 0));
  Tensor first, last;
  if (edge_order == 1) {
    first = (at(f, dim, 1) - at(f, dim, 0)) / at(h, dim, 0);
    last = (at(f, dim, -1) - at(f, dim, -2)) / at(h, dim, -1);
  } else {
    first = at_first(at(f, dim, 0), at(f, dim, 1), at(f, dim, 2), at(h, dim, 0), at(h, dim, 1));
    last = at_last(at(f, dim, -3), at(f, dim, -2), at(f, dim, -1), at(h, dim, -2), at(h, dim, -1));
  }
  return op::cat(std::vector<Tensor>{first, inner, last}, dim);
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& self, Value spacing, std::optional<IntSpan> dim,
                             int64_t edge_order) {
  const Scalar h = spacing.is_none() ? Scalar(1) : spacing.scalar();
  std::vector<Tensor> result;
  for (int64_t d : gradient_dims(self, dim, edge_order))
    result.push_back(gradient_along(self, d, h, edge_order));
  return result;
}

std::vector<Tensor> gradient_each(const Tensor& self, std::span<const double> spacing,
                                  std::optional<IntSpan> dim, int64_t edge_order) {
  const Dims dims = gradient_dims(self, dim, edge_order);
  check_count(self, dim, dims, spacing.size());
  std::vector<Tensor> result;
  for (size_t k = 0; k < dims.size(); ++k)
    result.push_back(gradient_along(self, dims[k], Scalar(spacing[k]), edge_order));
  return result;
}

std::vector<Tensor> gradient_coordinates(const Tensor& self, TensorSpan spacing,
                                         std::optional<IntSpan> dim, int64_t edge_order) {
  const Dims dims = gradient_dims(self, dim, edge_order);
  check_count(self, dim, dims, spacing.size());
  std::vector<Tensor> result;
  for (size_t k = 0; k < dims.size(); ++k)
    result.push_back(gradient_along(self, dims[k], spacing[k], edge_order));
  return result;
}

// ---- integrals

namespace {

int64_t sample_dim(const Tensor& y, int64_t dim) {
  if (y.dim() == 0) index_error("expects samples along a dimension, but `y` has no dimensions");
  if (y.dtype() == DType::Bool)
    runtime_error("received a bool input for `y`, but bool is not supported");
  return wrap_dim(dim, y.dim());
}

Tensor neighbours(const Tensor& samples, int64_t dim) {  // the sums of neighbouring samples
  const Tensor y = without_overflow(samples);
  return trimmed(y, dim, 1, 0) + trimmed(y, dim, 0, 1);
}

// The distances of the samples in a shape that goes with neighbours(y).
Tensor distances(const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.dtype() == DType::Bool)
    runtime_error("received a bool input for `x` or `y`, but bool is not supported");
  if (x.dim() == 0 || x.dim() > y.dim())
    runtime_error("`x` of shape ", x.sizes(), " does not go with `y` of shape ", y.sizes());
  if (x.dim() == 1 && x.numel() != y.size(dim))
    runtime_error("There must be one `x` value for each sample point: got ", x.numel(), " for ",
                  y.size(dim));
  Dims shape(size_t(y.dim()), 1);
  if (x.dim() == 1) {
    shape[size_t(dim)] = x.numel();
  } else {
    for (int64_t d = 0; d < x.dim(); ++d) shape[size_t(y.dim() - x.dim() + d)] = x.sizes()[d];
  }
  return steps(op::reshape(without_overflow(x), shape), dim);
}

void check_distance(const Scalar& dx) {
  if (dx.is_complex() || dx.is_bool())
    runtime_error("Currently, we only support dx as a real number.");
}

// What zero samples give.
Tensor no_integral(const Tensor& y, int64_t dim) {
  Dims shape(y.sizes());
  shape.erase(size_t(dim));
  return op::zeros(shape, y.dtype(), std::nullopt, y.device());
}

}  // namespace

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = sample_dim(y, dim);
  if (y.size(dim) == 0) return no_integral(y, dim);
  return op::sum_dim(neighbours(y, dim) * distances(y, x, dim), IntSpan(&dim, 1)) / 2;
}

Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = sample_dim(y, dim);
  check_distance(dx);
  if (y.size(dim) == 0) return no_integral(y, dim);
  if (y.size(dim) == 1) return op::sum_dim(neighbours(y, dim), IntSpan(&dim, 1)) * dx / 2;
  // All samples count but for half of both ends.
  const Tensor ends = without_overflow(op::select(y, dim, 0)) + op::select(y, dim, -1);
  return (op::sum_dim(trimmed(y, dim, 1, 1), IntSpan(&dim, 1)) + ends / 2) * dx;
}

// A cumulative integral of integers is a fraction, even over no samples.
static Tensor no_samples(const Tensor& y) {
  return is_integral(y.dtype(), true) ? op::_to_copy(y, default_dtype()) : y;
}

Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = sample_dim(y, dim);
  if (y.size(dim) == 0) return no_samples(y);
  return op::cumsum(neighbours(y, dim) * distances(y, x, dim) / 2, dim);
}

Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = sample_dim(y, dim);
  check_distance(dx);
  if (y.size(dim) == 0) return no_samples(y);
  return op::cumsum(neighbours(y, dim), dim) * (dx.to_double() / 2);
}

// ---- combinations

// How many rows there are; raises when they do not fit into memory.
static int64_t combination_count(int64_t n, int64_t r, bool with_replacement) {
  if (with_replacement) n += r - 1;
  if (r > n) return 0;
  unsigned __int128 count = 1;
  for (int64_t k = 1; k <= r; ++k) {
    count = count * static_cast<unsigned __int128>(n - r + k) / static_cast<unsigned __int128>(k);
    if (count > static_cast<unsigned __int128>(INT64_MAX / 16))
      runtime_error("the combinations of ", r, " out of ", n, " elements are too many for memory");
  }
  return int64_t(count);
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  if (self.dim() != 1) runtime_error("Expect a 1D vector, but got shape ", self.sizes());
  if (r < 0) runtime_error("Expect a non-negative number, but got ", r);
  const int64_t n = self.numel();
  if (r == 0) return op::empty(Dims{0}, self.dtype(), std::nullopt, self.device());
  const int64_t rows = n ? combination_count(n, r, with_replacement) : 0;
  Tensor index = empty_tensor(Dims{rows, r}, DType::Int64, Device{});
  int64_t* out = index.data_as<int64_t>();
  std::vector<int64_t> chosen(static_cast<size_t>(r), 0);
  if (!with_replacement) std::iota(chosen.begin(), chosen.end(), 0);
  for (int64_t row = 0; row < rows; ++row) {
    out = std::copy(chosen.begin(), chosen.end(), out);
    // The last position that can still move forward does; those behind it start again.
    int64_t k = r - 1;
    auto most = [&](int64_t i) { return with_replacement ? n - 1 : n - r + i; };
    while (k > 0 && chosen[size_t(k)] == most(k)) --k;
    ++chosen[size_t(k)];
    for (int64_t i = k + 1; i < r; ++i)
      chosen[size_t(i)] = chosen[size_t(i - 1)] + (with_replacement ? 0 : 1);
  }
  index = op::reshape(index, Dims{-1});
  if (!self.is_cpu()) index = op::_to_copy(index, DType::Int64, self.device());
  return op::reshape(op::index_select(self, 0, index), Dims{rows, r});
}

}  // namespace facula::kernels
