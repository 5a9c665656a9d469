// Gamma and Dirichlet samples, in the order in which PyTorch draws them.
#include <cmath>
#include <vector>

#include "kernels/random_stream.h"
#include "kernels/samplers.h"
#include "op/elementwise.h"
#include "op/kernels/sampling.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

void require_sampled_float(DType d) {
  if (!is_floating(d) || item_size(d) < 2) dtype_error(d, "float16, bfloat16, float32, float64");
}

double smallest_normal(DType d) {
  return d == DType::Float64   ? std::numeric_limits<double>::min()
         : d == DType::Float16 ? 0x1p-14
                               : double(std::numeric_limits<float>::min());
}

// The largest number below 1.
double below_one(DType d) {
  return d == DType::Float64    ? 1 - 0x1p-53
         : d == DType::Float32  ? 1 - 0x1p-24
         : d == DType::BFloat16 ? 1 - 0x1p-8
                                : 1 - 0x1p-11;
}

Tensor as_doubles(const Tensor& host) {
  GradGuard off(false);
  return op::contiguous(op::_to_copy(host, DType::Float64));
}

}  // namespace

Tensor _standard_gamma(const Tensor& self, Generator* generator) {
  const DType d = self.dtype();
  require_sampled_float(d);
  Tensor out = empty_tensor(self.sizes(), d, self.device());
  if (!begins_writing(out)) return out;
  if (out.is_cuda()) {
    device_random.sample(out, Sampled::Gamma, self, Tensor(), generator);
    return out;
  }
  const Tensor shapes = as_doubles(self);
  const double* shape = shapes.data_as<double>();
  const double least = smallest_normal(d);  // a sample of 0 has no finite log_prob
  RandomStream stream(generator, self.device());
  fill_in_memory_order<double>(out, [&](double* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double sample = samplers::gamma(*shape++, stream);
      to[i] = sample < least ? least : sample;
    }
  });
  return out;
}

Tensor _sample_dirichlet(const Tensor& self, Generator* generator) {
  const DType d = self.dtype();
  require_sampled_float(d);
  if (self.dim() == 0) runtime_error("the concentrations need at least one dimension");
  Tensor out = empty_tensor(self.sizes(), d, self.device());
  if (!begins_writing(out)) return out;
  GradGuard off(false);
  const double least = smallest_normal(d), most = below_one(d);
  Tensor drawn = empty_tensor(self.sizes(), DType::Float64, self.device());
  if (out.is_cuda()) {
    device_random.sample(drawn, Sampled::Gamma, self, Tensor(), generator);
    const int64_t last = -1;
    op::copy_(out, op::clamp(drawn / op::sum_dim(drawn, IntSpan(&last, 1), true), least, most));
    return out;
  }
  const Tensor shapes = as_doubles(self);
  const double* shape = shapes.data_as<double>();
  const int64_t k = self.sizes().back(), rows = self.numel() / k;
  double* row = drawn.data_as<double>();
  {
    RandomStream stream(generator, self.device());
    for (int64_t i = 0; i < self.numel(); ++i) row[i] = samplers::gamma(shape[i], stream);
  }
  for (int64_t r = 0; r < rows; ++r, row += k) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += row[i];
    for (int64_t i = 0; i < k; ++i) {
      const double share = row[i] / sum;
      row[i] = share < least ? least : share > most ? most : share;
    }
  }
  op::copy_(out, drawn);
  return out;
}

}  // namespace facula::kernels
