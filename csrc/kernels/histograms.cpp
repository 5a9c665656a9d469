// Histograms of one and of several dimensions; histc is in counting.cpp.
#include <cmath>

#include "cpu/histogram.h"
#include "kernels/destination.h"
#include "op/kernels/statistics.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/numerics.h"
#include "op/ops/reductions.h"
#include "op/ops/statistics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

using Floats = std::span<const double>;

void check_points(const Tensor& points, const Tensor& weight) {
  if (points.dtype() != DType::Float32 && points.dtype() != DType::Float64)
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(points.dtype()),
         "'; convert the input to facula.float32 or facula.float64");
  if (!weight.defined()) return;
  if (!same(weight.sizes(), points.sizes().first(size_t(points.dim()) - 1)))
    runtime_error(
        "if weight tensor is provided it should have the same shape as the input tensor "
        "excluding its innermost dimension, but got input with shape ",
        points.sizes(), " and weight with shape ", weight.sizes());
  if (weight.dtype() != points.dtype())
    runtime_error(
        "if weight tensor is provided, input tensor and weight tensor should have the same "
        "dtype, but got ",
        points.dtype(), " and ", weight.dtype());
  if (weight.device() != points.device()) device_error(points.device(), weight.device());
}

void check_edges(const Tensor& points, TensorSpan bins) {
  const int64_t d = points.size(-1);
  if (int64_t(bins.size()) != d)
    runtime_error("expected ", d, " sequences of bin edges for a ", d,
                  "-dimensional histogram but got ", bins.size());
  for (int64_t k = 0; k < d; ++k) {
    const Tensor& edges = bins[size_t(k)];
    if (edges.dtype() != points.dtype())
      runtime_error(
          "input tensor and bins tensors should have the same dtype, but got input with dtype ",
          points.dtype(), " and bins for dimension ", k, " with dtype ", edges.dtype());
    if (edges.dim() != 1)
      runtime_error("bins tensor should have one dimension, but got ", edges.dim(),
                    " dimensions in the bins tensor for dimension ", k);
    if (edges.numel() < 2)
      runtime_error("bins must be > 0, but got ", edges.numel(), " edge(s) for dimension ", k);
    if (edges.device() != points.device()) device_error(points.device(), edges.device());
  }
}

// The ends of the grid: as given, or those of the data; ends that meet are moved apart.
std::pair<double, double> ends_of(const Tensor& points, int64_t k, Floats range) {
  double low = 0, high = 1;
  if (!range.empty()) {
    low = range[size_t(2 * k)];
    high = range[size_t(2 * k + 1)];
  } else if (points.numel()) {
    auto [least, most] = op::aminmax(op::select(points, -1, k));
    low = item_of(least).to_double();
    high = item_of(most).to_double();
  }
  if (!std::isfinite(low) || !std::isfinite(high))
    runtime_error("dimension ", k, "'s range [", low, ", ", high, "] is not finite");
  if (low > high)
    runtime_error("min should not exceed max, but got min ", low, " max ", high, " for dimension ",
                  k);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  return {low, high};
}

std::vector<Tensor> equal_edges(const Tensor& points, IntSpan bins, Floats range) {
  const int64_t d = points.size(-1);
  if (int64_t(bins.size()) != d)
    runtime_error("The size of bins must be equal to the innermost dimension of the input: got ",
                  bins.size(), " and ", d);
  for (int64_t k = 0; k < d; ++k)
    if (bins[size_t(k)] <= 0)
      runtime_error("bins must be > 0, but got ", bins[size_t(k)], " for dimension ", k);
  if (!range.empty() && int64_t(range.size()) != 2 * d)
    runtime_error("for a ", d, "-dimensional histogram range should have ", 2 * d,
                  " elements, but got ", range.size());
  std::vector<Tensor> edges;
  for (int64_t k = 0; k < d; ++k) {
    auto [low, high] = points.is_meta() ? std::pair(0.0, 1.0) : ends_of(points, k, range);
    edges.push_back(op::linspace(low, high, bins[size_t(k)] + 1, points.dtype(), std::nullopt,
                                 points.device()));
  }
  return edges;
}

// Cells are searched along each dimension; what lies outside adds nothing to the first one.
void count_on_device(const Tensor& points, TensorSpan edges, const Tensor& weight,
                     const Tensor& counts) {
  Tensor cell, inside;
  for (size_t k = 0; k < edges.size(); ++k) {
    const int64_t bins = edges[k].numel() - 1;
    const Tensor x = op::contiguous(op::select(points, 1, int64_t(k)));
    const Tensor at = op::clamp(op::searchsorted(edges[k], x, false, true) - 1, 0, bins - 1);
    const Tensor within = op::logical_and(op::ge(x, op::select(edges[k], 0, 0)),
                                          op::le(x, op::select(edges[k], 0, bins)));
    cell = k ? cell * bins + at : at;
    inside = k ? op::logical_and(inside, within) : within;
  }
  Tensor amounts = op::_to_copy(inside, counts.dtype());
  if (weight.defined()) amounts = op::where(inside, op::reshape(weight, Dims{-1}), 0);
  op::index_add_(op::view(counts, Dims{-1}), 0, op::where(inside, cell, 0), amounts);
}

Tensor counts_of(const Tensor& points, TensorSpan edges, bool equal, const Tensor& weight,
                 bool density) {
  Dims shape;
  for (const Tensor& e : edges) shape.push_back(e.numel() - 1);
  Tensor counts = op::zeros(shape, points.dtype(), std::nullopt, points.device());
  if (points.is_meta()) return counts;
  const int64_t d = points.size(-1);
  if (d && points.is_cuda())
    count_on_device(op::reshape(points, Dims{-1, d}), edges, weight, counts);
  else if (d)
    cpu_histogram_grid(op::reshape(dense(points), Dims{-1, d}), edges, equal,
                       weight.defined() ? dense(weight) : Tensor(), counts);
  if (!density) return counts;
  counts = counts / op::sum(counts);
  for (int64_t k = 0; k < d; ++k) {
    Dims along(size_t(d), 1);
    along[size_t(k)] = -1;
    counts = counts / op::reshape(op::diff(edges[size_t(k)]), along);
  }
  return counts;
}

void deliver(const Tensor& counts, const Tensor& edges, Rets& rets) {
  op::copy_(exact_result(rets, 0, counts.sizes(), counts.dtype(), counts.device()), counts);
  op::copy_(exact_result(rets, 1, edges.sizes(), edges.dtype(), edges.device()), edges);
}

Tensor as_points(const Tensor& self) {
  return op::reshape(self, Dims{-1, 1});
}

// Errors speak of the shapes that the user gave.
Tensor flat_weight(const Tensor& self, const Tensor& weight) {
  if (!weight.defined()) return weight;
  if (!same(weight.sizes(), self.sizes()))
    runtime_error(
        "if weight tensor is provided it should have the same shape as the input tensor, but got "
        "input with shape ",
        self.sizes(), " and weight with shape ", weight.sizes());
  return op::reshape(weight, Dims{-1});
}

void require_grid(const Tensor& self) {
  if (self.dim() < 2)
    runtime_error("input tensor should have at least 2 dimensions, but has shape ", self.sizes());
}

std::vector<Tensor> with_edges(const Tensor& counts, TensorSpan edges) {
  std::vector<Tensor> list{counts};
  list.insert(list.end(), edges.begin(), edges.end());
  return list;
}

}  // namespace

void histogram(const Tensor& self, int64_t bins, Floats range, const Tensor& weight, bool density,
               Rets& rets) {
  GradGuard off(false);
  Tensor points = as_points(self), weights = flat_weight(self, weight);
  check_points(points, weights);
  std::vector<Tensor> edges = equal_edges(points, IntSpan(&bins, 1), range);
  deliver(counts_of(points, edges, true, weights, density), edges[0], rets);
}

void histogram_edges(const Tensor& self, const Tensor& bins, const Tensor& weight, bool density,
                     Rets& rets) {
  GradGuard off(false);
  Tensor points = as_points(self), weights = flat_weight(self, weight), edges = dense(bins);
  check_points(points, weights);
  check_edges(points, TensorSpan(&edges, 1));
  deliver(counts_of(points, TensorSpan(&edges, 1), false, weights, density), edges, rets);
}

std::vector<Tensor> _histogramdd(const Tensor& self, IntSpan bins, Floats range,
                                 const Tensor& weight, bool density) {
  GradGuard off(false);
  require_grid(self);
  check_points(self, weight);
  std::vector<Tensor> edges = equal_edges(self, bins, range);
  return with_edges(counts_of(self, edges, true, weight, density), edges);
}

std::vector<Tensor> _histogramdd_edges(const Tensor& self, TensorSpan bins, const Tensor& weight,
                                       bool density) {
  GradGuard off(false);
  require_grid(self);
  check_points(self, weight);
  std::vector<Tensor> edges;
  for (const Tensor& b : bins) edges.push_back(op::clone(b, MemoryFormat::Contiguous));
  check_edges(self, edges);
  return with_edges(counts_of(self, edges, false, weight, density), edges);
}

}  // namespace facula::kernels
