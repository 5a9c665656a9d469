// Derivatives of gamma and Dirichlet samples by their parameters.
#include <cmath>

#include "core/thread_pool.h"
#include "cpu/vector_math.h"
#include "kernels/samplers.h"
#include "op/elementwise.h"
#include "op/hooks/random.h"
#include "op/kernels/sampling.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/sampling.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

#include "_kernels/implicit_gradients.h"

namespace facula::kernels {

namespace {

// f of every element of operands of one shape, computed in double.
template <class F>
Tensor compute_in_double(DType result, IntSpan shape, std::initializer_list<const Tensor*> operands,
                         F&& f) {
  GradGuard off(false);
  Tensor held[3];
  const double* p[3] = {};
  int count = 0;
  for (const Tensor* t : operands) {
    held[count] = op::contiguous(op::_to_copy(op::expand(*t, shape), DType::Float64));
    p[count] = held[count].data_as<double>();
    ++count;
  }
  Tensor out = empty_tensor(shape, DType::Float64, Device{});
  double* to = out.data_as<double>();
  parallel_for(0, out.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = f(p, i);
  });
  return result == DType::Float64 ? out : op::_to_copy(out, result);
}

Tensor on_device(DType result, IntSpan shape, const Tensor& first, const Tensor& second,
                 const Tensor& third) {
  const Tensor* both[] = {&first, &second};
  Tensor out = empty_tensor(shape, result, common_device(both, 2));
  if (out.numel()) device_random.sample_gradient(out, first, second, third);
  return out;
}

DType common_float(std::initializer_list<const Tensor*> operands) {
  Promotion promotion;
  for (const Tensor* t : operands) promotion.add(*t);
  const DType d = promotion.result();
  if (!is_floating(d) || item_size(d) < 2) dtype_error(d, "float16, bfloat16, float32, float64");
  return d;
}

}  // namespace

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  const DType d = common_float({&self, &output});
  const Dims shape = broadcast_shapes(self.sizes(), output.sizes());
  if (self.is_meta() || output.is_meta()) return empty_tensor(shape, d, Device{DeviceType::Meta});
  if (self.is_cuda()) return on_device(d, shape, self, output, Tensor());
  return compute_in_double(d, shape, {&self, &output}, [](const double* const* p, int64_t i) {
    return samplers::gamma_gradient(p[0][i], p[1][i]);
  });
}

Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  const DType d = common_float({&x, &alpha, &total});
  const Dims shape = broadcast_shapes(broadcast_shapes(x.sizes(), alpha.sizes()), total.sizes());
  if (x.is_meta() || alpha.is_meta() || total.is_meta())
    return empty_tensor(shape, d, Device{DeviceType::Meta});
  if (x.is_cuda()) return on_device(d, shape, x, alpha, total);
  return compute_in_double(d, shape, {&x, &alpha, &total}, [](const double* const* p, int64_t i) {
    return samplers::beta_gradient(p[0][i], p[1][i], p[2][i] - p[1][i]);
  });
}

// A Dirichlet sample is beta distributed in each component; what the component gains the others
// lose in proportion to their size.
Tensor _sample_dirichlet_grad(const Tensor& grad, const Tensor& concentration,
                              const Tensor& sample) {
  const Dims last{-1};
  const Tensor total = op::expand(op::sum_dim(concentration, last, true), concentration.sizes());
  const Tensor mean = op::sum_dim(grad * sample, last, true);
  return op::_dirichlet_grad(sample, concentration, total) * (grad - mean);
}

}  // namespace facula::kernels
