// gather, scatter and their reductions along one dimension.
#include <algorithm>
#include <limits>

#include "cpu/index_scatter.h"
#include "kernels/destination.h"
#include "op/hooks/indexing.h"
#include "op/kernels/indexing.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

int64_t extent(const Tensor& t, int64_t d) {
  return t.dim() ? t.sizes()[d] : 1;
}

void check_index_tensor(const Tensor& self, const Tensor& index, const char* role) {
  if (index.numel() && index.dtype() != DType::Int64 && index.dtype() != DType::Int32)
    runtime_error("Expected dtype int32/int64 for index, but got ", index.dtype());
  if (index.device() != self.device()) device_error(self.device(), index.device());
  if (index.numel() && std::max<int64_t>(index.dim(), 1) != std::max<int64_t>(self.dim(), 1))
    runtime_error("Index tensor must have the same number of dimensions as ", role,
                  " tensor, but index has shape ", index.sizes(), " and ", role, " ", self.sizes());
}

// The index as the loops want it. On the meta device only its shape matters.
Tensor plain_index(const Tensor& index) {
  if (index.is_meta()) return index;
  return at_least_1d(index.dtype() == DType::Int64 ? index : dense_int64(index));
}

void check_scatter_shapes(const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  if (index.numel() == 0) return;
  if (src && std::max<int64_t>(src->dim(), 1) != std::max<int64_t>(index.dim(), 1))
    runtime_error(
        "Index tensor must have the same number of dimensions as src tensor, but index has "
        "shape ",
        index.sizes(), " and src ", src->sizes());
  for (int64_t d = 0; d < std::max<int64_t>(self.dim(), 1); ++d) {
    bool fits = d == dim || extent(index, d) <= extent(self, d);
    if (src) fits = fits && extent(index, d) <= extent(*src, d);
    if (fits) continue;
    if (src)
      runtime_error("Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
                    " apart from dimension ", dim, " and to be no larger size than src ",
                    src->sizes());
    runtime_error("Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
                  " apart from dimension ", dim);
  }
}

void check_source(const Tensor& self, const Tensor& src) {
  if (self.dtype() != src.dtype())
    runtime_error("Expected self.dtype to be equal to src.dtype, but got ", self.dtype(), " and ",
                  src.dtype(), ". Convert one of them with .to(...)");
  if (self.device() != src.device()) device_error(self.device(), src.device());
}

// What all scatters do before they write: every check, then the copy to write into. Returns false
// when nothing is to be written.
bool begin_scatter(const Tensor& self, int64_t& dim, const Tensor& index, Tensor* src, Rets& rets,
                   Tensor& positions) {
  dim = wrap_dim(dim, self.dim());
  check_index_tensor(self, index, "self");
  if (src) check_source(self, *src);
  check_scatter_shapes(self, dim, index, src);
  positions = plain_index(index);
  // A given destination must not be half written when an index is bad.
  if (self.is_cpu() && index.numel() && rets.destination != Destination::New)
    cpu_check_scatter_index(positions, extent(self, dim), dim);
  if (rets.destination != Destination::New) {
    if (has_internal_overlap(rets.t[0].sizes(), rets.t[0].strides())) overlap_error();
    positions = apart_from(rets.t[0], positions);
    if (src) *src = apart_from(rets.t[0], *src);
  }
  start_from(self, rets, CopyLayout::Contiguous);
  return !self.is_meta() && index.numel() != 0;
}

void scatter_into(const Tensor& out, int64_t dim, const Tensor& positions, const Tensor& src,
                  Combine combine) {
  if (!out.is_cuda()) return cpu_scatter(out, dim, positions, src, combine);
  const PointSet points = points_along("scatter", out, dim, positions);
  if (combine == Combine::Assign) device_indexing.write(points, src);
  else device_indexing.combine(points, src, combine, Scalar(1));
}

// One number in the shape of the index, without memory for each.
Tensor spread_number(const Scalar& value, DType dtype, const Tensor& index) {
  Tensor number = index.is_cpu() ? number_tensor(value, dtype)
                                 : op::full(IntSpan(), value, dtype, std::nullopt, index.device());
  Dims still(size_t(index.dim()), 0);
  return alias_tensor(number, index.sizes(), still, number.offset());
}

// Sums of small floats are kept in float32 until all is added.
template <class F>
void in_wide_type(const Tensor& out, const Tensor& src, F&& f) {
  if (!is_reduced_float(out.dtype())) return f(out, src);
  GradGuard off(false);
  Tensor wide = op::_to_copy(out, DType::Float32);
  f(wide, op::_to_copy(src, DType::Float32));
  op::copy_(out, wide);
}

Scalar identity_of(Combine combine, DType dtype) {
  if (combine == Combine::Add) return Scalar(0);
  if (combine == Combine::Multiply) return Scalar(1);
  const bool lowest = combine == Combine::Maximum;
  return dispatch_dtype(dtype, [&](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      double inf = std::numeric_limits<double>::infinity();
      return Scalar(lowest ? -inf : inf);
    } else if constexpr (std::is_same_v<T, bool>) {
      return Scalar(!lowest);
    } else if constexpr (std::is_unsigned_v<T>) {
      return Scalar(
          uint64_t(lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max()));
    } else if constexpr (std::is_integral_v<T>) {
      return Scalar(
          int64_t(lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max()));
    } else {
      return Scalar(0);
    }
  });
}

}  // namespace

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  check_index_tensor(self, index, "input");
  if (index.numel())
    for (int64_t d = 0; d < self.dim(); ++d)
      if (d != dim && extent(index, d) > self.sizes()[d])
        runtime_error("Size does not match at dimension ", d, " expected index ", index.sizes(),
                      " to be no larger than self ", self.sizes(), " apart from dimension ", dim);
  Tensor positions = plain_index(index);
  if (self.is_cpu()) {
    // A given destination must not be half written when an index is bad.
    if (rets.destination != Destination::New && index.numel())
      cpu_check_scatter_index(positions, extent(self, dim), dim);
  }
  Tensor& out = exact_result(rets, 0, index.sizes(), self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return;
  Tensor from = self;
  if (rets.destination != Destination::New) {
    from = apart_from(out, self);
    positions = apart_from(out, positions);
  }
  if (out.is_cuda())
    return device_indexing.read(points_along("gather", at_least_1d(from), dim, positions),
                                at_least_1d(out));
  cpu_gather(at_least_1d(out), at_least_1d(from), dim, positions);
}

Tensor _gather_grad(const Tensor& grad, IntSpan sizes, int64_t dim, const Tensor& index) {
  Tensor zeros = op::new_zeros(grad, sizes);
  return op::scatter_add_(zeros, dim, index, grad);
}

// The gradient of a source that is larger than the index: zeros where nothing was read.
Tensor _fit_to_source(const Tensor& grad, IntSpan sizes) {
  if (same(grad.sizes(), sizes)) return grad;
  Tensor out = op::new_zeros(grad, sizes);
  if (grad.numel() == 0) return out;
  if (sizes.size() != size_t(grad.dim())) return op::reshape(grad, sizes);
  Tensor part = out;
  for (int64_t d = 0; d < grad.dim(); ++d) part = op::slice(part, d, 0, grad.sizes()[d], 1);
  op::copy_(part, grad);
  return out;
}

void scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 Rets& rets) {
  Tensor from = src, positions;
  if (!begin_scatter(self, dim, index, &from, rets, positions)) return;
  scatter_into(at_least_1d(rets.t[0]), dim, positions, at_least_1d(from), Combine::Assign);
}

void scatter_value(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                   Rets& rets) {
  value.check_fits(self.dtype());
  Tensor positions;
  if (!begin_scatter(self, dim, index, nullptr, rets, positions)) return;
  scatter_into(at_least_1d(rets.t[0]), dim, positions,
               spread_number(value, self.dtype(), positions), Combine::Assign);
}

void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 Rets& rets) {
  Tensor from = src, positions;
  if (!begin_scatter(self, dim, index, &from, rets, positions)) return;
  if (self.is_cuda())
    return scatter_into(at_least_1d(rets.t[0]), dim, positions, at_least_1d(from), Combine::Add);
  in_wide_type(rets.t[0], from, [&](const Tensor& to, const Tensor& source) {
    scatter_into(at_least_1d(to), dim, positions, at_least_1d(source), Combine::Add);
  });
}

void scatter_reduce_two(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self, Rets& rets) {
  const bool mean = reduce == "mean";
  Combine combine = Combine::Add;
  if (reduce == "prod") combine = Combine::Multiply;
  else if (reduce == "amax") combine = Combine::Maximum;
  else if (reduce == "amin") combine = Combine::Minimum;
  else if (reduce != "sum" && !mean)
    runtime_error("reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  if (self.is_complex() && (combine == Combine::Maximum || combine == Combine::Minimum))
    fail(ErrorKind::NotImplemented, "'", reduce, "' is not implemented for '",
         legacy_dtype_name(self.dtype()), "': complex numbers have no order");
  Tensor from = src, positions;
  if (!begin_scatter(self, dim, index, &from, rets, positions)) return;
  GradGuard off(false);
  in_wide_type(rets.t[0], from, [&](const Tensor& to, const Tensor& source) {
    Tensor target = at_least_1d(to);
    if (!include_self)
      scatter_into(target, dim, positions,
                   spread_number(identity_of(combine, to.dtype()), to.dtype(), positions),
                   Combine::Assign);
    scatter_into(target, dim, positions, at_least_1d(source), combine);
    if (!mean) return;
    DType counting = is_integral(to.dtype(), true) ? DType::Int64 : to.dtype();
    Tensor count = empty_tensor(target.sizes(), counting, target.device());
    op::fill_(count, include_self ? 1 : 0);
    scatter_into(count, dim, positions, spread_number(Scalar(1), counting, positions),
                 Combine::Add);
    count = op::masked_fill(count, op::eq(count, 0), 1);
    op::copy_(target,
              is_integral(to.dtype(), true) ? op::floor_divide(target, count) : target / count);
  });
}

// ---- scatter with reduce=, the older spelling

static Tensor scatter_combined(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src, std::string_view reduce) {
  if (reduce == "add") return op::scatter_add(self, dim, index, src);
  if (reduce == "multiply") return op::scatter_reduce_two(self, dim, index, src, "prod", true);
  runtime_error("reduce argument must be either add or multiply, got ", reduce);
}

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce) {
  return scatter_combined(self, dim, index, src, reduce);
}

Tensor scatter_value_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                            const Scalar& value, std::string_view reduce) {
  Tensor number = op::full(IntSpan(), value, self.dtype(), std::nullopt, self.device());
  return scatter_combined(self, dim, index, op::expand(number, index.sizes()), reduce);
}

// ---- derivatives of scatter_reduce

// src without what the index does not reach.
static Tensor used_source(const Tensor& src, const Tensor& index) {
  Tensor part = src;
  if (src.dim() == index.dim())
    for (int64_t d = 0; d < src.dim(); ++d)
      if (part.sizes()[d] != index.sizes()[d]) part = op::slice(part, d, 0, index.sizes()[d], 1);
  return part;
}

// How many elements share each gradient: all for a mean, those equal to the result for an extremum.
static Tensor sharers(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src, bool mean, bool include_self, const Tensor& result) {
  GradGuard off(false);  // counts have no derivative
  Tensor own = mean ? op::ones_like(grad) : op::_to_copy(op::eq(self, result), grad.dtype());
  if (!include_self) own = op::scatter_value(own, dim, index, 0);
  Tensor theirs = mean ? op::ones_like(src)
                       : op::_to_copy(op::eq(src, op::gather(result, dim, index)), grad.dtype());
  Tensor count = op::scatter_add(own, dim, index, theirs);
  // Of an extremum that is NaN nobody has a share, and the gradients are NaN.
  return mean ? op::masked_fill(count, op::eq(count, 0), 1) : count;
}

Tensor _scatter_reduce_self_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                 const Tensor& index, const Tensor& source, std::string_view reduce,
                                 bool include_self, const Tensor& result) {
  if (index.numel() == 0) return grad;
  // Without self, the result depends on it only where no index points.
  if (!include_self) return op::scatter_value(grad, dim, index, 0);
  Tensor src = used_source(source, index);
  if (reduce == "prod") {
    Tensor others = op::scatter_reduce_two(op::ones_like(self), dim, index, src, "prod", true);
    return grad * op::conj(others);
  }
  if (reduce == "mean") return grad / sharers(grad, self, dim, index, src, true, true, result);
  if (reduce == "sum") return grad;
  return op::eq(self, result) * (grad / sharers(grad, self, dim, index, src, false, true, result));
}

// The product of all others for every element of src, right also with zeros among them: one zero
// leaves a derivative only for itself, two leave none.
static Tensor product_of_others(const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& src, bool include_self, const Tensor& result) {
  Tensor zero = op::eq(src, 0);
  Tensor filled = op::masked_fill(src, zero, 1);
  Tensor own = include_self ? self : op::scatter_value(self, dim, index, 1);
  Tensor nonzero_product = op::scatter_reduce_two(own, dim, index, filled, "prod", true);
  Tensor zeros = op::scatter_add(op::zeros_like(self), dim, index, op::_to_copy(zero, src.dtype()));
  Tensor single = op::eq(op::gather(zeros, dim, index), 1);
  Tensor alone = op::gather(nonzero_product, dim, index) * op::logical_and(zero, single);
  return op::where(zero, alone, op::gather(result, dim, index) / filled);
}

Tensor _scatter_reduce_src_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                const Tensor& index, const Tensor& source, std::string_view reduce,
                                bool include_self, const Tensor& result) {
  if (index.numel() == 0) return op::zeros_like(source);
  Tensor src = used_source(source, index), g;
  if (reduce == "sum") {
    g = op::gather(grad, dim, index);
  } else if (reduce == "prod") {
    g = op::gather(grad, dim, index) *
        op::conj(product_of_others(self, dim, index, src, include_self, result));
  } else {
    bool mean = reduce == "mean";
    Tensor count = sharers(grad, self, dim, index, src, mean, include_self, result);
    g = op::gather(grad / count, dim, index);
    if (!mean) g = op::eq(src, op::gather(result, dim, index)) * g;
  }
  return op::_fit_to_source(g, source.sizes());
}

}  // namespace facula::kernels
