// The three Fourier transforms that the others are made of, and their derivatives. Dimensions are
// transformed one after the other; the last of `dim` is the one that is halved for real numbers.
#include <algorithm>
#include <cmath>

#include "cpu/fft.h"
#include "kernels/host_only.h"
#include "op/kernels/fft.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/fft.h"
#include "op/ops/joining.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// normalization: 0 nothing, 1 divide by the root of the number of points, 2 divide by the number.
static double scale_of(int64_t normalization, double points) {
  return normalization == 0 ? 1.0 : normalization == 1 ? 1.0 / std::sqrt(points) : 1.0 / points;
}

static Dims wrapped_dims(IntSpan dim, int64_t ndim) {
  Dims out;
  for (int64_t d : dim) out.push_back(wrap_dim(d, ndim));
  return out;
}

static void sort_by_stride(const Tensor& t, int64_t* begin, int64_t* end) {
  std::stable_sort(begin, end,
                   [&](int64_t a, int64_t b) { return t.strides()[a] > t.strides()[b]; });
}

// Transformed dimensions lie innermost in the result, in the order of `dims`.
static Tensor result_for(const Tensor& self, IntSpan sizes, DType dtype, const Dims& dims) {
  Dims order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  sort_by_stride(self, order.begin(), order.end());
  for (int64_t d : dims) order.push_back(d);
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = step;
    step *= std::max<int64_t>(sizes[size_t(order[i])], 1);
  }
  return empty_tensor(sizes, strides, dtype, self.device());
}

static void require(const Tensor& self, bool complex) {
  const DType d = self.dtype();
  const bool fits = complex ? is_complex(d) : d == DType::Float32 || d == DType::Float64;
  if (!fits) dtype_error(d, complex ? "complex64, complex128" : "float32, float64");
}

Tensor _fft_c2c(const Tensor& self, IntSpan dim, int64_t normalization, bool forward) {
  require(self, true);
  Dims dims = wrapped_dims(dim, self.dim());
  if (dims.empty()) {
    GradGuard off(false);
    return op::clone(self);
  }
  sort_by_stride(self, dims.begin(), dims.end());
  Tensor out = result_for(self, self.sizes(), self.dtype(), dims);
  if (self.is_meta() || self.numel() == 0) return out;
  require_host(self, "fft");
  double points = 1;
  for (int64_t d : dims) points *= double(self.sizes()[d]);
  Tensor from = self;
  for (size_t i = dims.size(); i-- > 0; from = out)
    cpu_fft_complex(from, out, dims[i], !forward,
                    i + 1 == dims.size() ? scale_of(normalization, points) : 1.0);
  return out;
}

Tensor _fft_r2c(const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  require(self, false);
  Dims dims = wrapped_dims(dim, self.dim());
  const int64_t last = dims.back(), n = self.sizes()[last];
  sort_by_stride(self, dims.begin(), dims.end() - 1);
  Dims half(self.sizes());
  half[last] = n / 2 + 1;
  const DType dtype = to_complex(self.dtype());
  Tensor out = result_for(self, onesided ? IntSpan(half) : self.sizes(), dtype, dims);
  if (self.is_meta() || self.numel() == 0) return out;
  require_host(self, "fft");
  double points = 1;
  for (int64_t d : dims) points *= double(self.sizes()[d]);
  Tensor computed = onesided ? out : alias_tensor(out, half, out.strides(), out.offset());
  cpu_fft_real(self, computed, last, scale_of(normalization, points));
  for (size_t i = dims.size() - 1; i-- > 0;)
    cpu_fft_complex(computed, computed, dims[i], false, 1.0);
  if (!onesided) cpu_fft_mirror(out, dims);
  return out;
}

Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  require(self, true);
  const Dims dims = wrapped_dims(dim, self.dim());
  const int64_t last = dims.back();
  if (self.sizes()[last] != last_dim_size / 2 + 1)
    runtime_error("needs ", last_dim_size / 2 + 1, " frequencies for ", last_dim_size,
                  " points, got ", self.sizes()[last]);
  Tensor from = self;
  if (dims.size() > 1)
    from = _fft_c2c(self, IntSpan(dims.data(), dims.size() - 1), normalization, false);
  Dims sizes(self.sizes());
  sizes[last] = last_dim_size;
  Tensor out = result_for(from, sizes, to_real(self.dtype()), Dims{last});
  if (self.is_meta() || self.numel() == 0) return out;
  require_host(self, "fft");
  cpu_fft_hermitian(from, out, last, scale_of(normalization, double(last_dim_size)));
  return out;
}

// Half a spectrum stands for a whole one: all but the frequencies 0 and n / 2 count twice.
static Tensor weighted(const Tensor& half, int64_t dim, int64_t points, double weight) {
  dim = wrap_dim(dim, half.dim());
  const int64_t middle = (points - 1) / 2;
  const DType dtype = to_real(half.dtype());
  const auto constant = [&](int64_t n, double value) {
    return op::full(Dims{n}, Scalar(value), dtype, std::nullopt, half.device());
  };
  std::vector<Tensor> parts{constant(1, 1), constant(middle, weight)};
  if (points % 2 == 0) parts.push_back(constant(1, 1));
  Dims shape(size_t(half.dim()), 1);
  shape[size_t(dim)] = points / 2 + 1;
  return half * op::reshape(op::cat(parts), shape);
}

Tensor _fft_r2c_grad(const Tensor& grad, IntSpan dim, int64_t normalization, bool onesided,
                     IntSpan sizes) {
  if (!onesided) return op::_fft_c2c(grad, dim, normalization, false);
  const int64_t last = dim.back(), points = sizes[size_t(wrap_dim(last, grad.dim()))];
  return op::_fft_c2r(weighted(grad, last, points, 0.5), dim, normalization, points);
}

Tensor _fft_c2r_grad(const Tensor& grad, IntSpan dim, int64_t normalization,
                     int64_t last_dim_size) {
  return weighted(op::_fft_r2c(grad, dim, normalization, true), dim.back(), last_dim_size, 2);
}

}  // namespace facula::kernels
