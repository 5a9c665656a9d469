// The functions of the fft namespace: promotion, padding, names of norms; then one transform.
#include <algorithm>

#include "autograd/node.h"
#include "op/kernels/fft.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/fft.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

using Sizes = std::optional<IntSpan>;

static Tensor promoted(const Tensor& t, bool complex) {
  DType d = t.dtype();
  if (!is_floating(d) && !is_complex(d)) d = default_dtype();
  if (is_reduced_float(d))
    runtime_error("Unsupported dtype ", legacy_dtype_name(d), " (", d,
                  "): transforms are computed in float32 and float64, complex64 and complex128; "
                  "convert the input with .float() first");
  if (complex) d = to_complex(d);
  return d == t.dtype() ? t : op::_to_copy(t, d);
}

static Tensor promoted_real(const Tensor& t, const char* what) {
  if (t.is_complex())
    runtime_error(what, " expects a real input tensor, but got ", legacy_dtype_name(t.dtype()));
  return promoted(t, false);
}

// What "backward", "ortho" and "forward" mean for a transform in one direction.
static int64_t normalization_of(std::string_view norm, bool forward) {
  if (!norm.data() || norm == "backward") return forward ? 0 : 2;
  if (norm == "forward") return forward ? 2 : 0;
  if (norm == "ortho") return 1;
  runtime_error("Invalid normalization mode: \"", norm,
                "\"; expected \"backward\", \"ortho\" or \"forward\"");
}

static void check_points(int64_t n) {
  if (n < 1)
    runtime_error("Invalid number of data points (", n, ") specified; at least 1 is needed");
}

// Cuts off what is too long and puts zeros behind what is too short.
static Tensor resized(Tensor t, int64_t dim, int64_t size) {
  const int64_t given = t.sizes()[size_t(dim)];
  if (given > size) return op::slice(t, dim, 0, size, 1);
  if (given == size) return t;
  Dims missing(t.sizes());
  missing[size_t(dim)] = size - given;
  return op::cat(std::vector<Tensor>{t, op::new_zeros(t, missing)}, dim);
}

// ---- along one dimension

static int64_t one_dim(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) index_error("Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, self.dim());
}

static Tensor complex_transform(const Tensor& self, std::optional<int64_t> n, int64_t dim,
                                std::string_view norm, bool forward) {
  const Tensor x = promoted(self, false);
  dim = one_dim(x, dim);
  const int64_t points = n.value_or(x.sizes()[size_t(dim)]);
  check_points(points);
  const int64_t normalization = normalization_of(norm, forward);
  const Tensor input = resized(x, dim, points);
  if (input.is_complex()) return op::_fft_c2c(input, Dims{dim}, normalization, forward);
  const Tensor result = op::_fft_r2c(input, Dims{dim}, normalization, false);
  return forward ? result : op::conj(result);
}

static Tensor real_transform(const char* what, const Tensor& self, std::optional<int64_t> n,
                             int64_t dim, std::string_view norm, bool forward) {
  const Tensor x = promoted_real(self, what);
  dim = one_dim(x, dim);
  const int64_t points = n.value_or(x.sizes()[size_t(dim)]);
  check_points(points);
  const Tensor result =
      op::_fft_r2c(resized(x, dim, points), Dims{dim}, normalization_of(norm, forward), true);
  return forward ? result : op::conj(result);
}

static Tensor hermitian_transform(const Tensor& self, std::optional<int64_t> n, int64_t dim,
                                  std::string_view norm, bool forward) {
  const Tensor x = promoted(self, true);
  dim = one_dim(x, dim);
  const int64_t points = n.value_or(2 * (x.sizes()[size_t(dim)] - 1));
  check_points(points);
  const Tensor input = resized(x, dim, points / 2 + 1);
  return op::_fft_c2r(forward ? op::conj(input) : input, Dims{dim}, normalization_of(norm, forward),
                      points);
}

Tensor fft_fft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return complex_transform(self, n, dim, norm, true);
}
Tensor fft_ifft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return complex_transform(self, n, dim, norm, false);
}
Tensor fft_rfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return real_transform("rfft", self, n, dim, norm, true);
}
Tensor fft_ihfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return real_transform("ihfft", self, n, dim, norm, false);
}
Tensor fft_irfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return hermitian_transform(self, n, dim, norm, false);
}
Tensor fft_hfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return hermitian_transform(self, n, dim, norm, true);
}

// ---- along several dimensions

struct Signal {
  Dims dims, sizes;
};

// Which dimensions are transformed, and how many points each has. With `hermitian` the last one
// has the points of the real result.
static Signal signal_of(const char* what, const Tensor& self, Sizes s, Sizes dim, bool hermitian) {
  Signal out;
  if (dim) {
    for (int64_t d : *dim) {
      if (self.dim() == 0)
        index_error("Dimension specified as ", d, " but tensor has no dimensions");
      out.dims.push_back(wrap_dim(d, self.dim()));
    }
    for (size_t i = 0; i < out.dims.size(); ++i)
      if (std::find(out.dims.begin(), out.dims.begin() + i, out.dims[i]) != out.dims.begin() + i)
        runtime_error("FFT dims must be unique, got ", *dim);
  }
  if (s) {
    if (dim && s->size() != dim->size())
      runtime_error("When given, dim and shape arguments must have the same length, got s=", *s,
                    " and dim=", *dim);
    if (int64_t(s->size()) > self.dim())
      runtime_error("Got shape with ", s->size(), " values but input tensor only has ", self.dim(),
                    " dimensions.");
  }
  if (!dim) {
    const int64_t count = s ? int64_t(s->size()) : self.dim();
    for (int64_t d = self.dim() - count; d < self.dim(); ++d) out.dims.push_back(d);
  }
  if (what && out.dims.empty()) runtime_error(what, " must transform at least one axis");
  for (size_t i = 0; i < out.dims.size(); ++i) {
    const int64_t given = self.sizes()[size_t(out.dims[i])];
    const bool halved = hermitian && i + 1 == out.dims.size();
    const int64_t points = s && (*s)[i] != -1 ? (*s)[i] : halved ? 2 * (given - 1) : given;
    check_points(points);
    out.sizes.push_back(points);
  }
  return out;
}

static Tensor resized(Tensor t, const Signal& signal, bool hermitian) {
  for (size_t i = 0; i < signal.dims.size(); ++i) {
    const bool halved = hermitian && i + 1 == signal.dims.size();
    t = resized(t, signal.dims[i], halved ? signal.sizes[i] / 2 + 1 : signal.sizes[i]);
  }
  return t;
}

static Tensor complex_transform(const Tensor& self, Sizes s, Sizes dim, std::string_view norm,
                                bool forward) {
  const Tensor x = promoted(self, false);
  Signal signal = signal_of(nullptr, x, s, dim, false);
  const int64_t normalization = normalization_of(norm, forward);
  Tensor input = resized(x, signal, false);
  if (input.is_complex() || signal.dims.empty())
    return op::_fft_c2c(promoted(input, true), signal.dims, normalization, forward);
  // Repeated numbers have no order in memory; their copies do.
  if (std::find(input.strides().begin(), input.strides().end(), 0) != input.strides().end())
    input = op::clone(input);
  // The order of the dimensions decides about the layout of the result only.
  std::stable_sort(signal.dims.begin(), signal.dims.end(), [&](int64_t a, int64_t b) {
    return input.strides()[size_t(a)] > input.strides()[size_t(b)];
  });
  const Tensor result = op::_fft_r2c(input, signal.dims, normalization, false);
  return forward ? result : op::conj_physical(result);
}

Tensor fft_fftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  return complex_transform(self, s, dim, norm, true);
}
Tensor fft_ifftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  return complex_transform(self, s, dim, norm, false);
}

Tensor fft_rfftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  const Tensor x = promoted_real(self, "rfftn");
  const Signal signal = signal_of("rfftn", x, s, dim, false);
  return op::_fft_r2c(resized(x, signal, false), signal.dims, normalization_of(norm, true), true);
}

Tensor fft_irfftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  const Tensor x = promoted(self, true);
  const Signal signal = signal_of("irfftn", x, s, dim, true);
  return op::_fft_c2r(resized(x, signal, true), signal.dims, normalization_of(norm, false),
                      signal.sizes.back());
}

static IntSpan all_but_last(const Signal& signal) {
  return IntSpan(signal.dims.data(), signal.dims.size() - 1);
}

Tensor fft_hfftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  const Tensor x = promoted(self, true);
  const Signal signal = signal_of("hfftn", x, s, dim, true);
  const int64_t normalization = normalization_of(norm, true);
  Tensor t = resized(x, signal, true);
  if (signal.dims.size() > 1) t = op::_fft_c2c(t, all_but_last(signal), normalization, true);
  return op::_fft_c2r(op::conj(t), Dims{signal.dims.back()}, normalization, signal.sizes.back());
}

Tensor fft_ihfftn(const Tensor& self, Sizes s, Sizes dim, std::string_view norm) {
  const Tensor x = promoted_real(self, "ihfftn");
  const Signal signal = signal_of("ihfftn", x, s, dim, false);
  const int64_t normalization = normalization_of(norm, false);
  const Tensor t = op::conj(
      op::_fft_r2c(resized(x, signal, false), Dims{signal.dims.back()}, normalization, true));
  if (signal.dims.size() == 1) return t;
  return op::_fft_c2c(t, all_but_last(signal), normalization, false);
}

Tensor fft_fft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_fftn(self, s, dim, norm);
}
Tensor fft_ifft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_ifftn(self, s, dim, norm);
}
Tensor fft_rfft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_rfftn(self, s, dim, norm);
}
Tensor fft_irfft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_irfftn(self, s, dim, norm);
}
Tensor fft_hfft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_hfftn(self, s, dim, norm);
}
Tensor fft_ihfft2(const Tensor& self, Sizes s, IntSpan dim, std::string_view norm) {
  return fft_ihfftn(self, s, dim, norm);
}

// ---- frequencies

static Tensor frequencies(int64_t n, int64_t first_negative, int64_t points, double spacing,
                          DType dtype, Device device, bool grad) {
  if (dtype == DType::None) dtype = default_dtype();
  if (!is_floating(dtype) && !is_complex(dtype))
    runtime_error("requires a floating point or complex dtype, got ", dtype);
  if (n < 0) runtime_error("n must not be negative, got ", n);
  Tensor k = op::arange(Scalar(n), to_real(dtype), std::nullopt, device);
  if (first_negative < n)
    k = op::cat(std::vector<Tensor>{op::slice(k, 0, 0, first_negative, 1),
                                    op::slice(k, 0, first_negative, n, 1) - points});
  Tensor out = k * (1.0 / (double(points) * spacing));
  if (out.dtype() != dtype) out = op::_to_copy(out, dtype);
  if (grad) set_requires_grad(out, true);
  return out;
}
Tensor fft_fftfreq(int64_t n, double d, DType dtype, Value, Device device, std::optional<bool>,
                   bool grad) {
  return frequencies(n, (n + 1) / 2, n, d, dtype, device, grad);
}
Tensor fft_rfftfreq(int64_t n, double d, DType dtype, Value, Device device, std::optional<bool>,
                    bool grad) {
  if (n < 0) runtime_error("n must not be negative, got ", n);
  return frequencies(n / 2 + 1, n / 2 + 1, n, d, dtype, device, grad);
}

static Tensor rolled(const Tensor& self, Sizes dim, bool up) {
  Dims dims, shifts;
  for (int64_t d = 0; !dim && d < self.dim(); ++d) dims.push_back(d);
  if (dim)
    for (int64_t d : *dim) dims.push_back(wrap_dim(d, self.dim()));
  for (int64_t d : dims) shifts.push_back((self.sizes()[size_t(d)] + (up ? 1 : 0)) / 2);
  return op::roll(self, shifts, dims);
}
Tensor fft_fftshift(const Tensor& self, Sizes dim) {
  return rolled(self, dim, false);
}
Tensor fft_ifftshift(const Tensor& self, Sizes dim) {
  return rolled(self, dim, true);
}

}  // namespace facula::kernels
