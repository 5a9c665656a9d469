// Gamma and Dirichlet samples, in the order in which PyTorch draws them.
#include <cmath>
#include <vector>

#include "kernels/random_stream.h"
#include "op/elementwise.h"
#include "op/kernels/sampling.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// Marsaglia and Tsang (2000), squeezed rejection from a cubed normal. Shapes below 1 draw for the
// shape plus 1 and multiply by a power of a uniform.
double gamma_sample(double shape, RandomStream& stream) {
  if (std::isnan(shape)) return shape;
  if (shape <= 0) return 0;
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(1 - stream.uniform(), 1 / shape);
    shape += 1;
  }
  if (std::isinf(shape)) return shape;
  // The constants are floats in PyTorch, which shows in the ninth digit.
  const double d = shape - 1.0f / 3.0f, c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, root;
    do {
      stream.normals(&x, 1);
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - stream.uniform(), squared = x * x;
    if (u < 1 - 0.0331f * squared * squared) return scale * d * v;
    if (std::log(u) < 0.5 * squared + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

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
  fill_on_host(out, [&](const Tensor& t) {
    const Tensor shapes = as_doubles(on_host(self));
    const double* shape = shapes.data_as<double>();
    const double least = smallest_normal(d);  // a sample of 0 has no finite log_prob
    RandomStream stream(generator, self.device());
    fill_in_memory_order<double>(t, [&](double* to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const double sample = gamma_sample(*shape++, stream);
        to[i] = sample < least ? least : sample;
      }
    });
  });
  return out;
}

Tensor _sample_dirichlet(const Tensor& self, Generator* generator) {
  const DType d = self.dtype();
  require_sampled_float(d);
  if (self.dim() == 0) runtime_error("the concentrations need at least one dimension");
  Tensor out = empty_tensor(self.sizes(), d, self.device());
  fill_on_host(out, [&](const Tensor& t) {
    const Tensor shapes = as_doubles(on_host(self));
    const double* shape = shapes.data_as<double>();
    const int64_t k = self.sizes().back(), rows = self.numel() / k;
    Tensor drawn = empty_tensor(self.sizes(), DType::Float64, Device{});
    double* row = drawn.data_as<double>();
    const double least = smallest_normal(d), most = below_one(d);
    {
      RandomStream stream(generator, self.device());
      for (int64_t i = 0; i < self.numel(); ++i) row[i] = gamma_sample(shape[i], stream);
    }
    for (int64_t r = 0; r < rows; ++r, row += k) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += row[i];
      for (int64_t i = 0; i < k; ++i) {
        const double share = row[i] / sum;
        row[i] = share < least ? least : share > most ? most : share;
      }
    }
    GradGuard off(false);
    op::copy_(t, drawn);
  });
  return out;
}

}  // namespace facula::kernels
