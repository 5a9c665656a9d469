// Reductions that are more than one fold: means, variances, positions of extrema, scans, softmax.
#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "core/type_names.h"
#include "cpu/reduce_index.h"
#include "kernels/destination.h"
#include "op/device_hooks.h"
#include "op/hooks/softmax.h"
#include "op/hooks/sorting.h"
#include "op/kernels/reductions.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static void require_floating(const Tensor& self, DType dtype) {
  if (dtype == DType::None && category(self.dtype()) < Category::Floating)
    runtime_error(
        "could not infer output dtype. Input dtype must be either a floating point "
        "or complex dtype. Got: ",
        legacy_dtype_name(self.dtype()), ". Pass dtype=facula.float32, or convert the input.");
  if (dtype != DType::None && category(dtype) < Category::Floating)
    runtime_error(
        "could not infer output dtype. Optional dtype must be either a floating "
        "point or complex dtype. Got: ",
        legacy_dtype_name(dtype));
}

static int64_t reduced_count(IntSpan sizes, std::optional<IntSpan> dim) {
  uint64_t mask = dims_of(Value(dim), int64_t(sizes.size()));
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) n *= sizes[d];
  return n;
}

static void mean_into(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType dtype,
                      Rets& rets) {
  require_floating(self, dtype);
  if (rets.destination == Destination::Out && category(rets.t[0].dtype()) < Category::Floating)
    cast_error(dtype == DType::None ? self.dtype() : dtype,
               rets.t[0].dtype());  // before the sum is written
  double n = double(reduced_count(self.sizes(), dim));
  const bool into = rets.destination == Destination::Out;
  const DType result = into ? rets.t[0].dtype() : dtype == DType::None ? self.dtype() : dtype;
  if (is_reduced_float(result)) {
    // A sum may be out of range, or lose digits, where the mean does not.
    Value args[] = {Value(self), Value(dim), Value(keepdim), Value(DType::Float32)};
    Rets wide;
    reduce_kernel(defs::sum_dim, args, wide);
    op::div_(wide.t[0], n);
    if (!into) {
      rets.t[0] = op::_to_copy(wide.t[0], result);
      return;
    }
    prepare_result(rets, 0, wide.t[0].sizes(), result, self.device());
    op::copy_(rets.t[0], wide.t[0]);
    return;
  }
  Value args[] = {Value(self), Value(dim), Value(keepdim), Value(dtype)};
  reduce_kernel(defs::sum_dim, args, rets);
  Tensor& out = rets.t[0];
  op::div_(out, n);
}

void mean(const Tensor& self, DType dtype, Rets& rets) {
  mean_into(self, std::nullopt, false, dtype, rets);
}
void mean_dim(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType dtype,
              Rets& rets) {
  mean_into(self, dim, keepdim, dtype, rets);
}

Tensor _expand_reduced(const Tensor& grad, IntSpan sizes, std::optional<IntSpan> dim,
                       bool keepdim) {
  Tensor g = grad;
  if (!keepdim && !sizes.empty()) {
    uint64_t mask = dims_of(Value(dim), int64_t(sizes.size()));
    g = op::reshape(g, reduced_shape(sizes, mask, true));
  }
  return op::expand(g, sizes);
}

Tensor _mean_grad(const Tensor& grad, IntSpan sizes, std::optional<IntSpan> dim, bool keepdim) {
  const double count = double(reduced_count(sizes, dim));
  if (grad_enabled() || grad.is_wrapped())
    return op::expand(op::_expand_reduced(grad, sizes, dim, keepdim), sizes) / count;
  const Tensor share = grad / count;
  share->flags |= kSpreadGrad;
  return op::expand(op::_expand_reduced(share, sizes, dim, keepdim), sizes);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  if (!is_expandable(size, self.sizes()))
    runtime_error("size {", size, "} is not expandable to size {", self.sizes(), "}.");
  if (size.empty()) return op::sum(self);
  Dims dims;
  int64_t lead = self.dim() - int64_t(size.size());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d < lead || (size[d - lead] == 1 && self.sizes()[d] != 1)) dims.push_back(d);
  if (dims.empty()) return self;
  Tensor out = op::sum_dim(self, IntSpan(dims), true);
  return lead ? op::view(out, size) : out;
}

// Products that are neither 0 nor beyond the numbers have no such factors: dividing one factor out
// gives the product of the others.
static bool divides(const Tensor& products) {
  if (products.is_wrapped() || products.is_cuda() || products.is_meta()) return false;
  GradGuard off(false);
  const Tensor known = op::logical_and(op::isfinite(products), op::ne(products, 0));
  return item_of(op::all(known)).to_int() != 0;
}

Tensor _prod_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (self.dim() == 0) return grad;
  if (!self.is_wrapped() && result.dtype() == self.dtype() && divides(result))
    return op::conj(result / self) * grad;
  Tensor flat = op::reshape(self, Dims{-1});
  return op::reshape(op::_prod_dim_grad(grad, flat, 0, false, result), self.sizes());
}

Tensor _prod_dim_grad(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim,
                      const Tensor& result) {
  if (self.dim() == 0) return grad;
  dim = wrap_dim(dim, self.dim());
  Tensor g = keepdim ? grad : op::unsqueeze(grad, dim);
  if (!self.is_wrapped() && result.dtype() == self.dtype() && divides(result))
    return op::conj((keepdim ? result : op::unsqueeze(result, dim)) / self) * g;
  // The product of all others, as prefix times suffix product: right also with zeros.
  int64_t n = self.size(dim);
  Dims one(self.sizes());
  one[dim] = 1;
  Tensor unit = op::ones(one, self.dtype(), std::nullopt, self.device());
  if (n == 0) return op::zeros_like(self);
  Tensor before =
      op::cumprod(op::cat(std::vector<Tensor>{unit, op::narrow(self, dim, 0, n - 1)}, dim), dim);
  Tensor flipped = op::flip(op::narrow(self, dim, 1, n - 1), Dims{dim});
  Tensor after =
      op::flip(op::cumprod(op::cat(std::vector<Tensor>{unit, flipped}, dim), dim), Dims{dim});
  return g * op::conj(before * after);
}

Tensor _share_ties(const Tensor& grad, const Tensor& self, const Tensor& result, IntSpan dim,
                   bool keepdim, bool nan_has_shares) {
  uint64_t mask = dim_mask(dim, self.dim());
  Dims kept = reduced_shape(self.sizes(), mask, true);
  Tensor g = keepdim ? grad : op::reshape(grad, kept),
         r = keepdim ? result : op::reshape(result, kept);
  Tensor equal = op::eq(self, r);  // nowhere for NaN, so that the gradient is NaN
  if (nan_has_shares) equal = op::logical_or(equal, op::logical_and(op::isnan(self), op::isnan(r)));
  Dims dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (mask >> d & 1) dims.push_back(d);
  if (dims.empty()) return g;
  Tensor ties = op::sum_dim(equal, IntSpan(dims), true, grad.dtype());
  // As in PyTorch, elements beside an extremum of everything have no gradient even if it is
  // infinite.
  if (nan_has_shares) return op::where(equal, g / ties, Scalar(0));
  return equal * (g / ties);
}

// ---- positions of extrema

// Where the extrema of a tensor with dimensions are on its device, with size 1 along dim.
static Tensor device_positions(const Tensor& in, int64_t dim, bool largest) {
  Dims shape(in.sizes());
  shape[size_t(dim)] = 1;
  Tensor index = empty_tensor(shape, DType::Int64, in.device());
  if (index.numel()) device_sorting.arg_extreme(in, dim, largest, index);
  return index;
}

// The positions are found first, and the values read there.
static void device_extreme(const Tensor& self, int64_t dim, bool largest, Rets& rets) {
  GradGuard off(false);
  const Tensor in = self.dim() ? self : op::reshape(self, Dims{1});
  const Tensor index = device_positions(in, dim, largest);
  auto deliver = [&](const Tensor& t, int i) {
    const Tensor shaped = op::reshape(t, rets.t[i].sizes());
    if (rets.destination == Destination::New) rets.t[i] = shaped;
    else op::copy_(rets.t[i], shaped);
  };
  deliver(op::gather(in, dim, index), 0);
  deliver(index, 1);
}

static void extreme_dim(const Tensor& self, int64_t dim, bool keepdim, bool largest, Rets& rets) {
  check_rank(self.dim());
  dim = wrap_dim(dim, self.dim());
  if (self.is_complex())
    fail(ErrorKind::NotImplemented, "not implemented for complex numbers, which have no order");
  if (self.dim() && self.size(dim) == 0)
    index_error("Expected reduction dim ", dim, " to have non-zero size, but the input has shape ",
                self.sizes());
  Dims shape = self.dim() ? reduced_shape(self.sizes(), uint64_t(1) << dim, keepdim) : Dims();
  exact_result(rets, 0, shape, self.dtype(), self.device());
  exact_result(rets, 1, shape, DType::Int64, self.device());
  if (self.is_meta() || rets.t[0].numel() == 0) return;
  if (self.is_cuda()) return device_extreme(self, dim, largest, rets);
  cpu_reduce_index(self, dim, keepdim, largest, rets.t[0], rets.t[1]);
}
void max_dim(const Tensor& self, int64_t dim, bool keepdim, Rets& rets) {
  extreme_dim(self, dim, keepdim, true, rets);
}
void min_dim(const Tensor& self, int64_t dim, bool keepdim, Rets& rets) {
  extreme_dim(self, dim, keepdim, false, rets);
}
Tensor max_other(const Tensor& self, const Tensor& other) {
  return op::maximum(self, other);
}
Tensor min_other(const Tensor& self, const Tensor& other) {
  return op::minimum(self, other);
}

static void arg_extreme(const Tensor& self, std::optional<int64_t> dim, bool keepdim, bool largest,
                        Rets& rets) {
  Tensor in = self;
  int64_t d = dim.value_or(0);
  if (!dim) {
    if (self.numel() == 0)
      index_error(largest ? "argmax" : "argmin",
                  "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                  "reduction dim with the 'dim' argument.");
    GradGuard off(false);
    in = op::reshape(self, Dims{-1});
  }
  Tensor index;
  if (self.is_cuda() && in.dim() && !self.is_complex() && in.size(d) != 0) {
    GradGuard off(false);
    index = device_positions(in, wrap_dim(d, in.dim()), largest);
    if (!(dim && keepdim)) index = op::squeeze_dim(index, Dims{d});
  } else {
    Rets pair;
    extreme_dim(in, d, dim && keepdim, largest, pair);
    index = pair.t[1];
  }
  if (!dim && keepdim) index = op::reshape(index, Dims(size_t(self.dim()), 1));
  if (self.is_cuda() && rets.destination == Destination::New) {
    rets.t[0] = index;
    return;
  }
  exact_result(rets, 0, index.sizes(), DType::Int64, self.device());
  op::copy_(rets.t[0], index);
}
void argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Rets& rets) {
  arg_extreme(self, dim, keepdim, true, rets);
}
void argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Rets& rets) {
  arg_extreme(self, dim, keepdim, false, rets);
}

Tensor _put_along(const Tensor& grad, const Tensor& indices, int64_t dim, bool keepdim,
                  IntSpan sizes) {
  if (sizes.empty()) return grad;
  Tensor g = keepdim ? grad : op::unsqueeze(grad, dim);
  Tensor i = keepdim ? indices : op::unsqueeze(indices, dim);
  Tensor out = op::new_zeros(grad, sizes);
  return op::scatter_src(out, dim, i, g);
}

// ---- scans and softmax

void cumsum(const Tensor& self, int64_t dim, DType dtype, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  DType result = dtype != DType::None                   ? dtype
                 : rets.destination != Destination::New ? rets.t[0].dtype()
                 : is_integral(self.dtype(), true)      ? DType::Int64
                                                        : self.dtype();
  if (rets.destination == Destination::InPlace && result != self.dtype())
    runtime_error("Bad in-place call: input tensor dtype ", cpp_type_name(self.dtype()),
                  " and output tensor dtype ", cpp_type_name(result), " should match");
  if (result == DType::Bool)
    dtype_error(DType::Bool, "integers, floating-point and complex dtypes");
  prepare_result(rets, 0, self.sizes(), result, self.device());
  if (self.is_meta() || self.numel() == 0) return;
  if (self.is_cuda()) {
    auto line = [](const Tensor& t) {
      return t.dim() ? t : alias_tensor(t, Dims{1}, Dims{1}, t.offset());
    };
    return device_sorting.scan(line(self), dim, Scan::Sum, line(rets.t[0]));
  }
  cpu_cumsum(op::contiguous(self), dim, rets.t[0]);  // dense lines are added up by vectors
}

Tensor logsumexp(const Tensor& self, IntSpan dim, bool keepdim) {
  Tensor x =
      category(self.dtype()) < Category::Floating ? op::_to_copy(self, default_dtype()) : self;
  if (x.numel() == 0) return op::log(op::sum_dim(op::exp(x), dim, keepdim));
  Tensor top;  // of complex numbers, the largest real part: it bounds the exponentials
  {
    GradGuard off(false);
    top = op::amax(x.is_complex() ? op::real(x) : x, dim, true);
    top = op::where(op::isinf(top), 0, top);  // inf - inf would be NaN
  }
  Tensor sum = op::log(op::sum_dim(op::exp(x - top), dim, true)) + top;
  if (keepdim) return sum;
  return op::reshape(sum, reduced_shape(self.sizes(), dim_mask(dim, self.dim()), false));
}

Tensor count_nonzero(const Tensor& self, std::optional<IntSpan> dim) {
  return op::sum_dim(self.dtype() == DType::Bool ? self : op::ne(self, 0), dim, false);
}

Tensor softmax(const Tensor& self, int64_t dim, DType dtype) {
  return op::_softmax(
      dtype != DType::None && dtype != self.dtype() ? op::_to_copy(self, dtype) : self, dim);
}
Tensor log_softmax(const Tensor& self, int64_t dim, DType dtype) {
  return op::_log_softmax(
      dtype != DType::None && dtype != self.dtype() ? op::_to_copy(self, dtype) : self, dim);
}

static Tensor softmax_of(const Tensor& self, int64_t dim, bool logarithm) {
  dim = wrap_dim(dim, self.dim());
  if (!is_floating(self.dtype()))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; pass dtype=facula.float32 or convert the input to a floating-point dtype");
  Tensor in =
      self.is_contiguous() || self.is_meta() ? self : op::clone(self, MemoryFormat::Contiguous);
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (self.is_meta() || self.numel() == 0) return out;
  if (self.is_cuda()) device_softmax.forward(in, dim, logarithm, out);
  else cpu_softmax(in, dim, logarithm, out);
  return out;
}
Tensor _softmax(const Tensor& self, int64_t dim) {
  return softmax_of(self, dim, false);
}
Tensor _log_softmax(const Tensor& self, int64_t dim) {
  return softmax_of(self, dim, true);
}

// In one kernel, unless the derivative is to be differentiated or transformed.
static Tensor fused_softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim,
                                 bool logarithm) {
  auto plain = [](const Tensor& t) {
    return !(t->keys & ~(kKeyCuda | kKeyGrad)) && is_floating(t.dtype()) &&
           !(grad_enabled() && t.needs_grad());
  };
  if (!plain(grad) || !plain(result) || grad.dtype() != result.dtype() ||
      grad.device() != result.device() || !same(grad.sizes(), result.sizes()))
    return Tensor();
  Tensor out = empty_tensor(result.sizes(), result.dtype(), result.device());
  if (out.numel() == 0) return out;
  const Tensor g = op::contiguous(grad), y = op::contiguous(result);
  dim = wrap_dim(dim, result.dim());
  if (out.is_cuda()) device_softmax.backward(g, y, dim, logarithm, out);
  else cpu_softmax_grad(g, y, dim, logarithm, out);
  return out;
}
Tensor _softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim) {
  if (Tensor out = fused_softmax_grad(grad, result, dim, false); out.defined()) return out;
  Tensor weighted = grad * result;
  return weighted - result * op::sum_dim(weighted, IntSpan(&dim, 1), true);
}
Tensor _log_softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim) {
  if (Tensor out = fused_softmax_grad(grad, result, dim, true); out.defined()) return out;
  return grad - op::exp(result) * op::sum_dim(grad, IntSpan(&dim, 1), true);
}

}  // namespace facula::kernels
