// Variances, means without NaN, extrema in pairs, covariance.
#include <algorithm>

#include "core/type_names.h"
#include "cpu/cast.h"
#include "cpu/line_loops.h"
#include "cpu/reduce.h"
#include "kernels/destination.h"
#include "op/elementwise.h"
#include "op/kernels/reductions.h"
#include "op/kernels/statistics.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/moments.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/statistics.h"
#include "op/ops/views.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

double correction_of(const Value& given) {
  return given.is_none() ? 1.0 : given.to_double();
}

Tensor in_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_copy(t, dtype);
}

Dims dims_in(uint64_t mask) {
  Dims dims;
  for (int64_t d = 0; mask >> d; ++d)
    if (mask >> d & 1) dims.push_back(d);
  return dims;
}

// What var, std and their pairs with the mean share. Squares of half precision numbers are added
// up in float32: they overflow long before their mean does.
struct Moments {
  Tensor mean, variance;
  DType result;

  Moments(const char* what, const Tensor& self, std::optional<IntSpan> dim, double correction,
          bool keepdim)
      : result(to_real(self.dtype())) {
    if (category(self.dtype()) < Category::Floating)
      runtime_error("std and var only support floating point and complex dtypes, got ",
                    self.dtype(), ". Convert the input with .float()");
    const uint64_t mask = dims_of(Value(dim), self.dim());
    int64_t count = 1;
    for (int64_t d = 0; d < self.dim(); ++d)
      if (mask >> d & 1) count *= self.sizes()[d];
    const double freedom = double(count) - correction;
    if (freedom <= 0)
      warn(text(what,
                "(): degrees of freedom is <= 0. Correction should be strictly less than the "
                "reduction factor (input numel divided by output numel).")
               .c_str());
    if (self.is_cuda() && !self.is_complex() && self.numel()) {  // one pass over memory
      auto [squares, average] = op::_moments(self, dims_in(mask), correction, keepdim);
      variance = squares;
      mean = in_dtype(average, self.dtype());
      return;
    }
    Tensor x = in_dtype(self, compute_dtype(self.dtype()));
    Tensor kept = op::mean_dim(x, dim, true), center = x - kept;
    Tensor squares = x.is_complex() ? op::square(op::real(center)) + op::square(op::imag(center))
                                    : op::square(center);
    variance = op::sum_dim(squares, dim, keepdim) / std::max(0.0, freedom);
    mean = in_dtype(keepdim ? kept : op::reshape(kept, reduced_shape(x.sizes(), mask, false)),
                    self.dtype());
  }

  Tensor var() const { return in_dtype(variance, result); }
  // Equal elements have no direction to go: their derivative is 0.
  Tensor std() const { return in_dtype(op::_safe_sqrt(variance), result); }
};

}  // namespace

Tensor var(const Tensor& self, std::optional<IntSpan> dim, Value correction, bool keepdim) {
  return Moments("var", self, dim, correction_of(correction), keepdim).var();
}
Tensor var_unbiased(const Tensor& self, bool unbiased) {
  return Moments("var", self, std::nullopt, unbiased, false).var();
}
Tensor var_unbiased_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                        bool keepdim) {
  return Moments("var", self, dim, unbiased, keepdim).var();
}
Tensor std(const Tensor& self, std::optional<IntSpan> dim, Value correction, bool keepdim) {
  return Moments("std", self, dim, correction_of(correction), keepdim).std();
}
Tensor std_unbiased(const Tensor& self, bool unbiased) {
  return Moments("std", self, std::nullopt, unbiased, false).std();
}
Tensor std_unbiased_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                        bool keepdim) {
  return Moments("std", self, dim, unbiased, keepdim).std();
}

Pair var_mean(const Tensor& self, std::optional<IntSpan> dim, Value correction, bool keepdim) {
  Moments m("var_mean", self, dim, correction_of(correction), keepdim);
  return {m.var(), m.mean};
}
Pair var_mean_unbiased(const Tensor& self, bool unbiased) {
  Moments m("var_mean", self, std::nullopt, unbiased, false);
  return {m.var(), m.mean};
}
Pair var_mean_unbiased_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                           bool keepdim) {
  Moments m("var_mean", self, dim, unbiased, keepdim);
  return {m.var(), m.mean};
}
Pair std_mean(const Tensor& self, std::optional<IntSpan> dim, Value correction, bool keepdim) {
  Moments m("std_mean", self, dim, correction_of(correction), keepdim);
  return {m.std(), m.mean};
}
Pair std_mean_unbiased(const Tensor& self, bool unbiased) {
  Moments m("std_mean", self, std::nullopt, unbiased, false);
  return {m.std(), m.mean};
}
Pair std_mean_unbiased_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                           bool keepdim) {
  Moments m("std_mean", self, dim, unbiased, keepdim);
  return {m.std(), m.mean};
}

Tensor nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType dtype) {
  if (is_integral(self.dtype(), true)) return op::sum_dim(self, dim, keepdim, dtype);
  const Tensor x = dtype == DType::None ? self : in_dtype(self, dtype);
  if (!is_floating(x.dtype()) || x.dim() == 0)
    return op::sum_dim(op::where(op::isnan(self), 0, self), dim, keepdim, dtype);
  return op::_nansum(x, dims_in(dims_of(Value(dim), x.dim())), keepdim);
}

Tensor _nansum(const Tensor& self, IntSpan dim, bool keepdim) {
  if (self.is_cuda()) return op::sum_dim(op::_without_nan(self), dim, keepdim);
  const uint64_t mask = dim_mask(dim, self.dim());
  Tensor out =
      empty_tensor(reduced_shape(self.sizes(), mask, keepdim), self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const DType acc = compute_dtype(self.dtype());
  cpu_reduce(
      *defs::sum_dim.reduce, self, mask, keepdim, acc, out,
      {defs::_without_nan.elementwise->loops[isa_level()][int(acc)], nullptr,
       line_loops().sum_numbers[int(self.dtype())], line_loops().fold_numbers[int(self.dtype())]});
  return out;
}

Tensor nanmean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType dtype) {
  if (category(self.dtype()) < Category::Floating)
    runtime_error("expected input to have floating point or complex dtype but got ",
                  legacy_dtype_name(self.dtype()), ". Convert the input with .float()");
  Tensor count = op::sum_dim(op::logical_not(op::isnan(self)), dim, keepdim);
  return op::nansum(self, dim, keepdim, dtype) / count;
}

// Both extremes of all elements, block by block, so that memory is read once.
static Pair extremes_of_all(const Tensor& self) {
  const DType acc = compute_dtype(self.dtype());
  const ReduceLoop least = defs::amin.reduce->loops[isa_level()][int(acc)],
                   most = defs::amax.reduce->loops[isa_level()][int(acc)];
  const CastLoop load = acc == self.dtype() ? nullptr : cast_loop(self.dtype(), acc);
  const int64_t n = self.numel(), item = int64_t(self.item_size()), wide = int64_t(item_size(acc));
  constexpr int64_t kBlock = 2048, kBlocks = 32, kMostBytes = 16;
  const int64_t pieces = (n - 1) / (kBlock * kBlocks) + 1;
  std::vector<char> partial(size_t(2 * pieces * wide));
  char *lows = partial.data(), *highs = lows + pieces * wide;
  parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
    alignas(64) char buffer[kBlock * 8];
    for (; b < e; ++b)
      for (int64_t k = 0; k < kBlocks; ++k) {
        const int64_t at = (b * kBlocks + k) * kBlock, m = std::min(kBlock, n - at);
        if (m <= 0) break;
        const char* x = self.data() + at * item;
        if (load) {
          load(buffer, wide, x, item, m);
          x = buffer;
        }
        least(lows + b * wide, x, wide, m, k == 0);
        most(highs + b * wide, x, wide, m, k == 0);
      }
  });
  Tensor low = empty_tensor({}, self.dtype(), Device{}),
         high = empty_tensor({}, self.dtype(), Device{});
  alignas(16) char total[kMostBytes];
  const CastLoop store = cast_loop(acc, self.dtype());
  least(total, lows, wide, pieces, true);
  store(low.data(), 0, total, 0, 1);
  most(total, highs, wide, pieces, true);
  store(high.data(), 0, total, 0, 1);
  return {low, high};
}

void aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Rets& rets) {
  if (!dim && self.numel() == 0)
    runtime_error(
        "cannot compute aminmax over an empty dimension as the operation has no identity; the "
        "input has shape ",
        self.sizes());
  if (self.is_complex())
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "': complex numbers have no order");
  const Dims dims = dim ? Dims{*dim} : Dims();
  for (const Tensor& given : rets.t)
    if (given.defined() && given.dtype() != self.dtype())
      runtime_error("Expected out tensor to have dtype ", cpp_type_name(self.dtype()), ", but got ",
                    cpp_type_name(given.dtype()), " instead");
  Tensor least, most;
  if (!dim && !keepdim && self.is_cpu() && self.is_contiguous() && self.dtype() != DType::Bool) {
    std::tie(least, most) = extremes_of_all(self);
  } else {
    least = op::amin(self, dims, keepdim);
    most = op::amax(self, dims, keepdim);
  }
  if (rets.destination == Destination::New) {
    rets.t[0] = least;
    rets.t[1] = most;
    return;
  }
  op::copy_(exact_result(rets, 0, least.sizes(), self.dtype(), self.device()), least);
  op::copy_(exact_result(rets, 1, most.sizes(), self.dtype(), self.device()), most);
}

Tensor _aminmax_grad(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self,
                     const Tensor& min, const Tensor& max, std::optional<int64_t> dim,
                     bool keepdim) {
  const Dims dims = dim ? Dims{*dim} : Dims();
  return op::_share_ties(grad_min, self, min, dims, keepdim, false) +
         op::_share_ties(grad_max, self, max, dims, keepdim, false);
}

// ---- covariance

static void check_weights(const Tensor& weights, const char* name, bool integers,
                          int64_t observations) {
  if (weights.dim() > 1)
    runtime_error("expected ", name, " to have one or fewer dimensions but got ", name, " with ",
                  weights.dim(), " dimensions");
  if (integers ? !is_integral(weights.dtype()) : !is_floating(weights.dtype()))
    runtime_error("expected ", name, " to have ", integers ? "integral" : "floating point",
                  " dtype but got ", name, " with ", legacy_dtype_name(weights.dtype()), " dtype");
  if (weights.numel() != observations)
    runtime_error("expected ", name,
                  " to have the same numel as there are observations in the input but got ",
                  weights.numel(), " != ", observations);
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  if (self.dim() > 2)
    runtime_error("expected input to have two or fewer dimensions but got an input with ",
                  self.dim(), " dimensions");
  if (self.dtype() == DType::Bool)
    runtime_error("bool dtype is not supported for input; convert it with .float()");
  Tensor x = self.dim() < 2 ? op::reshape(self, Dims{1, -1}) : self;  // (variables, observations)
  const int64_t observations = x.sizes()[1];
  const Dims along{1};
  Tensor weights, total;
  if (fweights.defined()) {
    check_weights(fweights, "fweights", true, observations);
    weights = op::_frequencies(fweights);
  }
  if (aweights.defined()) {
    check_weights(aweights, "aweights", false, observations);
    Tensor importance = op::_frequencies(aweights);
    weights = weights.defined() ? weights * importance : importance;
  }
  Tensor mean;
  if (weights.defined()) {
    weights = op::reshape(weights, Dims{-1});
    total = op::sum(weights);
    if (observations) total = op::_weight_total(total);
    mean = op::sum_dim(x * weights, IntSpan(along), true) / total;
  } else {
    mean = op::sum_dim(x, IntSpan(along), true) / observations;
  }
  Tensor center = x - mean;
  Tensor weighted = weights.defined() ? center * weights : center;
  if (weighted.dtype() != center.dtype()) center = op::_to_copy(center, weighted.dtype());
  Tensor sums = op::mm(center, op::conj(op::t(weighted)));
  if (!weights.defined() || correction == 0 || !aweights.defined()) {
    if (!weights.defined() && observations <= correction)
      warn(
          "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
          "of observations.");
    if (!weights.defined())
      return op::squeeze(sums / double(std::max<int64_t>(observations - correction, 0)));
    return op::squeeze(sums / op::clamp_min(total - correction, 0));
  }
  Tensor share = op::sum(weights * op::reshape(aweights, Dims{-1})) / total;
  return op::squeeze(sums / op::clamp_min(total - share * correction, 0));
}

Tensor corrcoef(const Tensor& self) {
  if (self.dim() > 2)
    runtime_error("expected input to have two or fewer dimensions but got an input with ",
                  self.dim(), " dimensions");
  Tensor c = op::cov(self);
  if (c.dim() == 0) return c / c;  // 1, or NaN without variation
  Tensor variances = op::diagonal(c);
  Tensor deviations = op::sqrt(c.is_complex() ? op::real(variances) : variances);
  c = c / op::unsqueeze(deviations, 1) / op::unsqueeze(deviations, 0);
  if (!c.is_complex()) return op::clamp(c, -1, 1);
  // Rounding may leave the unit interval; each part is limited on its own.
  return op::complex(op::clamp(op::real(c), -1, 1), op::clamp(op::imag(c), -1, 1));
}

}  // namespace facula::kernels
