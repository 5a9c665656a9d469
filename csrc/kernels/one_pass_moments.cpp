// Variance and mean in one pass, for devices; on the host var and its kin are made of sums.
#include <algorithm>

#include "op/elementwise.h"
#include "op/hooks/moments.h"
#include "op/kernels/moments.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

// How many elements a result is made of.
double count_of(IntSpan sizes, uint64_t mask) {
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count *= sizes[d];
  return double(count);
}

}  // namespace

// `self` is of a real floating-point dtype; results are computed and returned in float32 for small
// ones.
std::tuple<Tensor, Tensor> _moments(const Tensor& self, IntSpan dim, double correction,
                                    bool keepdim) {
  const uint64_t mask = dim_mask(dim, self.dim());
  const DType wide = compute_dtype(self.dtype());
  const double freedom = std::max(0.0, count_of(self.sizes(), mask) - correction);
  const Dims shape = reduced_shape(self.sizes(), mask, keepdim);
  if (self.is_meta())
    return {empty_tensor(shape, wide, self.device()), empty_tensor(shape, wide, self.device())};
  GradGuard off(false);
  if (!self.is_cuda()) {
    const Tensor x = self.dtype() == wide ? self : op::_to_copy(self, wide);
    const Tensor mean = op::mean_dim(x, dim, true);
    const Tensor variance = op::sum_dim(op::square(x - mean), dim, keepdim) / freedom;
    return {variance, op::reshape(mean, shape)};
  }
  const Tensor pairs =
      empty_tensor(reduced_shape(self.sizes(), mask, true), to_complex(wide), self.device());
  if (pairs.numel()) device_moments.moments(self, mask, freedom, pairs);
  auto part = [&](const Tensor& view) { return op::reshape(op::contiguous(view), shape); };
  return {part(op::real(pairs)), part(op::imag(pairs))};
}

Tensor _moments_grad(const Tensor& grad_variance, const Tensor& grad_mean, const Tensor& self,
                     const Tensor& mean, IntSpan dim, double correction, bool keepdim) {
  const uint64_t mask = dim_mask(dim, self.dim());
  const double count = count_of(self.sizes(), mask);
  const Dims kept = reduced_shape(self.sizes(), mask, true);
  auto spread = [&](const Tensor& t) { return keepdim ? t : op::reshape(t, kept); };
  const double freedom = std::max(0.0, count - correction);
  return (self - spread(mean)) * (spread(grad_variance) * (2 / freedom)) +
         spread(grad_mean) / count;
}

}  // namespace facula::kernels
