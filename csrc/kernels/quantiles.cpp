// Quantiles: the elements are sorted, and a level points between two of them.
#include "op/elementwise.h"
#include "op/kernels/statistics.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/statistics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

enum class Between { Linear, Lower, Higher, Midpoint, Nearest };

Between between_of(std::string_view name) {
  if (name == "linear") return Between::Linear;
  if (name == "lower") return Between::Lower;
  if (name == "higher") return Between::Higher;
  if (name == "midpoint") return Between::Midpoint;
  if (name == "nearest") return Between::Nearest;
  runtime_error(
      "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
      "got ",
      name);
}

void check_input(const Tensor& self) {
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64)
    runtime_error("quantile() input tensor must be either float or double dtype, but got ",
                  self.dtype());
  if (self.numel() == 0)
    runtime_error("quantile() input tensor must be non-empty, but has shape ", self.sizes());
}

// sorted (..., n) at ranks (..., m), which need not be whole numbers.
Tensor elements_at(const Tensor& sorted, const Tensor& ranks, Between between) {
  auto at = [&](const Tensor& whole) {
    return op::gather(sorted, -1, op::_to_copy(whole, DType::Int64));
  };
  if (between == Between::Nearest) return at(op::round(ranks));
  if (between == Between::Higher) return at(op::ceil(ranks));
  Tensor below = op::floor(ranks), low = at(below);
  if (between == Between::Lower) return low;
  Tensor high = at(op::ceil(ranks));
  if (between == Between::Midpoint) return op::lerp(low, high, 0.5);
  return op::lerp(low, high, ranks - below);
}

Tensor quantile_of(const Tensor& self, const Tensor& levels, std::optional<int64_t> dim,
                   bool keepdim, std::string_view interpolation, bool skip_nan) {
  const Between between = between_of(interpolation);
  Dims reduced(self.sizes());
  Tensor x;
  if (!dim || self.dim() == 0) {
    if (dim) wrap_dim(*dim, 0);
    x = op::reshape(self, Dims{-1});
    reduced = keepdim ? Dims(size_t(self.dim()), 1) : Dims();
  } else {
    const int64_t d = wrap_dim(*dim, self.dim());
    x = d == self.dim() - 1 ? self : op::movedim(self, Dims{d}, Dims{-1});
    if (keepdim) reduced[size_t(d)] = 1;
    else reduced.erase(size_t(d));
  }
  const int64_t n = x.size(-1);
  Tensor sorted = std::get<0>(op::sort(x, -1)), ranks;
  Tensor q = op::reshape(op::_quantile_levels(levels), Dims{-1});
  if (skip_nan) {
    Tensor last = op::sum_dim(op::logical_not(op::isnan(sorted)), IntSpan(Dims{-1}), true) - 1;
    ranks = op::clamp_min(q * last, 0);
  } else {
    // NaN is sorted behind the rest: where there is one, every level points at it.
    Tensor spoilt = op::isnan(op::narrow(sorted, -1, n - 1, 1));
    ranks = op::where(spoilt, double(n - 1), q * double(n - 1));
  }
  Tensor result = elements_at(sorted, ranks, between);  // (..., levels)
  if (levels.dim() == 0) return op::reshape(op::squeeze_dim(result, Dims{-1}), reduced);
  // The dimension of the levels comes first.
  result = op::movedim(result, Dims{-1}, Dims{0});
  Dims shape{levels.numel()};
  for (int64_t s : reduced) shape.push_back(s);
  return op::reshape(result, shape);
}

void check_levels(const Tensor& self, const Tensor& q) {
  check_input(self);
  if (q.dim() > 1)
    runtime_error("quantile() q must be a scalar or 1D tensor, but has shape ", q.sizes());
  if (q.dtype() != self.dtype())
    runtime_error("quantile() q tensor must be same dtype as the input tensor, but got ", q.dtype(),
                  " and ", self.dtype());
  if (q.device() != self.device()) device_error(self.device(), q.device());
}

Tensor level_tensor(const Tensor& self, double q) {
  check_input(self);
  if (!(q >= 0 && q <= 1)) runtime_error("quantile() q must be in the range [0, 1] but got ", q);
  return op::full(Dims(), q, self.dtype(), std::nullopt, self.device());
}

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  check_levels(self, q);
  return quantile_of(self, q, dim, keepdim, interpolation, false);
}
Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view interpolation) {
  return quantile_of(self, level_tensor(self, q), dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  check_levels(self, q);
  return quantile_of(self, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                          std::string_view interpolation) {
  return quantile_of(self, level_tensor(self, q), dim, keepdim, interpolation, true);
}

}  // namespace facula::kernels
