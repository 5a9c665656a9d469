// Reductions of stretches of a dimension: every element learns the number of its stretch, then
// scatter_reduce does the work.
#include <limits>

#include "op/kernels/segments.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/padding.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

// The values of a tensor of the host that is no part of a transform; none of any other.
std::span<const int64_t> readable(const Tensor& whole) {
  if (whole->keys & (kKeyCuda | kKeyMeta | kKeyWrapped)) return {};
  return {reinterpret_cast<const int64_t*>(whole.data()), size_t(whole.numel())};
}

void check_lengths(const Tensor& lengths, int64_t count, int64_t size) {
  const Tensor whole = op::contiguous(lengths);
  const auto values = readable(whole);
  for (size_t i = 0; count && i < values.size(); i += size_t(count)) {
    int64_t sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      if (values[i + size_t(k)] < 0) runtime_error("lengths must not be negative");
      sum += values[i + size_t(k)];
    }
    if (sum != size)
      runtime_error("Expected all rows of lengths along axis to sum to data.size(axis) = ", size,
                    " when !unsafe, but one sums to ", sum);
  }
}

struct Rule {
  const char* scatter;  // the name of the reduction in scatter_reduce
  double identity;
};

Rule rule_of(std::string_view name) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (name == "sum" || name == "mean") return {"sum", 0};
  if (name == "prod") return {"prod", 1};
  if (name == "max" || name == "amax") return {"amax", -kInfinity};
  if (name == "min" || name == "amin") return {"amin", kInfinity};
  runtime_error("reduce argument must be either sum, prod, mean, max or min, got ", name);
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                      Value initial) {
  const Rule rule = rule_of(reduce);
  if (indices.defined()) runtime_error("indices based reduction is not supported");
  if (!lengths.defined() && !offsets.defined())
    runtime_error("Either lengths or offsets must be defined.");
  if (!is_floating(data.dtype()))
    fail(ErrorKind::NotImplemented, "data must be floating-point, got ", data.dtype());
  axis = wrap_dim(axis, data.dim());
  const Tensor& given = offsets.defined() ? offsets : lengths;
  if (!is_integral(given.dtype(), false))
    runtime_error("lengths and offsets must be integers, got ", given.dtype());
  if (given.dim() != axis + 1)
    runtime_error("Expected axis to be the last dimension of ",
                  offsets.defined() ? "offsets" : "lengths", ", which has shape ", given.sizes(),
                  ", but got axis ", axis);
  const Dims front(data.sizes().first(size_t(axis)));
  if (!same(front, given.sizes().first(size_t(axis))))
    runtime_error("data of shape ", data.sizes(), " and ",
                  offsets.defined() ? "offsets" : "lengths", " of shape ", given.sizes(),
                  " differ before axis ", axis);
  int64_t rows = 1, rest = 1;
  for (int64_t s : front) rows *= s;
  for (int64_t d = axis + 1; d < data.dim(); ++d) rest *= data.size(d);
  const int64_t size = data.size(axis);
  const int64_t count = given.size(axis) - (offsets.defined() ? 1 : 0);
  if (count < 0) runtime_error("offsets need at least one element");

  Tensor whole = op::_to_copy(given, DType::Int64);
  Tensor begins;  // (rows, count + 1): where stretches begin, and where the last one ends
  if (offsets.defined()) {
    begins = op::reshape(whole, Dims{rows, count + 1});
  } else {
    if (!unsafe) check_lengths(whole, count, size);
    const Tensor sums = op::cumsum(op::reshape(whole, Dims{rows, count}), 1);
    begins = op::constant_pad_nd(sums, Dims{1, 0});
  }
  const Tensor places =
      op::expand(op::arange(size, DType::Int64, std::nullopt, data.device()), Dims{rows, size});
  const Tensor found = op::searchsorted(begins, op::contiguous(places), false, true) - Scalar(1);
  // What lies before the first stretch or after the last goes to one more, which is dropped.
  const Tensor number = op::where(op::lt(found, Scalar(0)), Scalar(count), found);

  const bool begun = !initial.is_none();
  const Scalar start = begun ? initial.scalar() : Scalar(rule.identity);
  const Tensor base = op::new_full(data, Dims{rows, count + 1, rest}, start);
  const Tensor index = op::expand(op::unsqueeze(number, 2), Dims{rows, size, rest});
  Tensor result = op::scatter_reduce_two(base, 1, index, op::reshape(data, Dims{rows, size, rest}),
                                         rule.scatter, true);
  result = op::contiguous(op::narrow(result, 1, 0, count));
  if (reduce == "mean") {
    Tensor sizes = op::narrow(begins, 1, 1, count) - op::narrow(begins, 1, 0, count);
    sizes = op::unsqueeze(sizes, 2);
    const Tensor mean = result / sizes;
    // Of nothing: what it begins with, or NaN, which the division has given.
    result = begun ? op::where(op::eq(sizes, Scalar(0)), result, mean) : mean;
  }
  Dims shape(front);
  shape.push_back(count);
  for (int64_t d = axis + 1; d < data.dim(); ++d) shape.push_back(data.size(d));
  return op::reshape(result, shape);
}

}  // namespace facula::kernels
