// The three Fourier transforms that the others are made of, and their derivatives. Dimensions are
// transformed one after the other; the last of `dim` is the one that is halved for real numbers.
#include <algorithm>
#include <cmath>

#include "core/thread_pool.h"
#include "cpu/fft.h"
#include "op/hooks/fft.h"
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

// ---- on devices: dense row-major data with the transformed dimensions last

// Dimensions from the outermost to the innermost in memory; the last ones are `dims`.
static Dims memory_order(const Tensor& out, size_t transformed, const Dims& dims) {
  Dims order;
  for (int64_t d = 0; d < out.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  sort_by_stride(out, order.begin(), order.end());
  for (size_t i = 0; i < transformed; ++i) order.push_back(dims[i]);
  return order;
}

// Transforms the dimensions `dims` of `self` into `out`, whose innermost dimensions they are.
static void device_transform(const Tensor& self, const Tensor& out, const Dims& dims, bool forward,
                             double scale) {
  GradGuard off(false);
  const Dims order = memory_order(out, dims.size(), dims);
  // A copy, since transforms to real numbers overwrite what they read.
  Tensor from = op::clone(op::permute(self, order), MemoryFormat::Contiguous);
  Tensor to = op::permute(out, order);
  device_fft.transform(from, to, int(dims.size()), forward);
  if (scale != 1) op::mul_(to, Scalar(scale));
}

// Complex to complex along any number of dimensions, at most three at a time.
static void device_c2c(const Tensor& self, const Tensor& out, const Dims& dims, bool forward,
                       double scale) {
  Tensor from = self;
  for (size_t end = dims.size(); end > 0;) {
    const size_t begin = end > 3 ? end - 3 : 0;
    const Dims some(IntSpan(dims.data() + begin, end - begin));
    const bool last = begin == 0;
    Tensor to = result_for(from, from.sizes(), from.dtype(), some);
    device_transform(from, to, some, forward, last ? scale : 1.0);
    from = to;
    end = begin;
  }
  GradGuard off(false);
  op::copy_(out, from);
}

// f(in, out) over parts of a batch that stay in the second-level cache while one dimension after
// the other is transformed. How it is cut depends on the sizes alone.
template <class F>
static void for_parts(const Tensor& in, const Tensor& out, const Dims& dims, const F& f) {
  int64_t outer = -1;
  for (int64_t d = 0; d < out.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end() && out.sizes()[d] > 1 &&
        (outer < 0 || out.strides()[d] > out.strides()[outer]))
      outer = d;
  constexpr int64_t kPart = 1 << 19;
  const int64_t bytes = out.numel() * int64_t(item_size(out.dtype()));
  if (dims.size() < 2 || outer < 0 || bytes <= kPart) return f(in, out);
  const int64_t size = out.sizes()[outer], group = std::max<int64_t>(1, kPart * size / bytes),
                groups = (size + group - 1) / group;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const auto part = [&](const Tensor& t) {
        Dims sizes(t.sizes());
        sizes[size_t(outer)] = std::min(group, size - g * group);
        return alias_tensor(t, sizes, t.strides(), t.offset() + g * group * t.strides()[outer]);
      };
      f(part(in), part(out));
    }
  };
  // Few large parts are split over the threads one by one.
  if (groups < 2 * num_threads()) run(0, groups);
  else parallel_for(0, groups, 1, run);
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
  double points = 1;
  for (int64_t d : dims) points *= double(self.sizes()[d]);
  if (self.is_cuda()) {
    const double scale = scale_of(normalization, points);
    if (dims.size() <= 3) device_transform(self, out, dims, forward, scale);
    else device_c2c(self, out, dims, forward, scale);
    return out;
  }
  for_parts(self, out, dims, [&](Tensor from, const Tensor& to) {
    for (size_t i = dims.size(); i-- > 0; from = to)
      cpu_fft_complex(from, to, dims[i], !forward,
                      i + 1 == dims.size() ? scale_of(normalization, points) : 1.0);
  });
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
  double points = 1;
  for (int64_t d : dims) points *= double(self.sizes()[d]);
  if (self.is_cuda()) {
    const double scale = scale_of(normalization, points);
    GradGuard off(false);
    if (!onesided)
      return _fft_c2c(op::_to_copy(self, dtype, self.device()), dim, normalization, true);
    if (dims.size() <= 3) {
      device_transform(self, out, dims, true, scale);
      return out;
    }
    Tensor halved = result_for(self, half, dtype, Dims{last});
    device_transform(self, halved, Dims{last}, true, scale);
    device_c2c(halved, out, Dims(IntSpan(dims.data(), dims.size() - 1)), true, 1.0);
    return out;
  }
  Tensor computed = onesided ? out : alias_tensor(out, half, out.strides(), out.offset());
  for_parts(self, computed, dims, [&](const Tensor& from, const Tensor& to) {
    cpu_fft_real(from, to, last, scale_of(normalization, points));
    for (size_t i = dims.size() - 1; i-- > 0;) cpu_fft_complex(to, to, dims[i], false, 1.0);
  });
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
  if (self.is_cuda()) {
    device_transform(from, out, Dims{last}, false, scale_of(normalization, double(last_dim_size)));
    return out;
  }
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
