// New tensors: sequences, fills, and tensors like others.
#include <cmath>

#include "autograd/node.h"
#include "op/elementwise.h"
#include "op/kernels/creation.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/settings.h"
#include "op/tensor_operators.h"

namespace facula {

static thread_local Device t_default_device{DeviceType::CPU, -1};
Device default_device() {
  return t_default_device;
}
void set_default_device(Device d) {
  t_default_device = d;
}

namespace kernels {

struct Like {  // what an argument left open
  DType dtype;
  Device device;
  Like(DType d, Device v)
      : dtype(d == DType::None ? default_dtype() : d),
        device(v.type == DeviceType::None ? default_device() : v) {
    if (device.is_cuda() && device.index < 0) device.index = 0;
  }
  Like(const Tensor& t, DType d, Device v)
      : dtype(d == DType::None ? t.dtype() : d),
        device(v.type == DeviceType::None ? t.device() : v) {
    if (device.is_cuda() && device.index < 0) device.index = 0;
  }
};

static Tensor finish(Tensor t, bool grad) {
  if (grad) set_requires_grad(t, true);
  return t;
}

// Under use_deterministic_algorithms, memory that is read before it is written reads the same.
static Tensor unwritten(Tensor t) {
  if (!settings.deterministic || !settings.fill_uninitialized_memory || t.is_meta()) return t;
  GradGuard off(false);
  const DType d = t.dtype();
  if (is_floating(d) || is_complex(d)) op::fill_(t, Scalar(NAN));
  else
    op::fill_(t, dispatch_dtype(d, [](auto tag) {
                using T = typename decltype(tag)::type;
                if constexpr (std::is_integral_v<T>) return Scalar(uint64_t(std::numeric_limits<T>::max()));
                else return Scalar(0);
              }));
  return t;
}

static Tensor filled(Tensor t, const Scalar& value) {
  GradGuard off(false);
  if (value.equals(0) && !std::signbit(value.to_double())) op::zero_(t);
  else op::fill_(t, value);
  return t;
}

Tensor empty(IntSpan size, DType dtype, Value, Device device, std::optional<bool>, bool grad,
             MemoryFormat format) {
  Like like(dtype, device);
  if (format == MemoryFormat::None || format == MemoryFormat::Contiguous)
    return finish(unwritten(empty_tensor(size, like.dtype, like.device)), grad);
  checked_numel(size);
  return finish(unwritten(empty_tensor(size, strides_for(size, format), like.dtype, like.device)),
                grad);
}

Tensor empty_strided(IntSpan size, IntSpan stride, DType dtype, Device device) {
  Like like(dtype, device);
  if (size.size() != stride.size())
    runtime_error("dimensionality of sizes (", size.size(),
                  ") must match dimensionality of strides (", stride.size(), ")");
  for (int64_t s : stride)
    if (s < 0) runtime_error("empty_strided: strides must not be negative, got ", stride);
  return unwritten(empty_tensor(size, stride, like.dtype, like.device));
}
Tensor empty_strided_public(IntSpan size, IntSpan stride, DType dtype, Value, Device device,
                            std::optional<bool>, bool grad) {
  return finish(empty_strided(size, stride, dtype, device), grad);
}

Tensor zeros(IntSpan size, DType dtype, Value, Device device, std::optional<bool>, bool grad) {
  Like like(dtype, device);
  return finish(filled(empty_tensor(size, like.dtype, like.device), Scalar(0)), grad);
}
Tensor ones(IntSpan size, DType dtype, Value, Device device, std::optional<bool>, bool grad) {
  Like like(dtype, device);
  return finish(filled(empty_tensor(size, like.dtype, like.device), Scalar(1)), grad);
}

static DType natural_dtype(const Scalar& s) {
  return s.is_bool()      ? DType::Bool
         : s.is_float()   ? default_dtype()
         : s.is_complex() ? default_complex_dtype()
                          : DType::Int64;
}

Tensor full(IntSpan size, const Scalar& value, DType dtype, Value, Device device,
            std::optional<bool>, bool grad) {
  Like like(dtype == DType::None ? natural_dtype(value) : dtype, device);
  return finish(filled(empty_tensor(size, like.dtype, like.device), value), grad);
}

// Fills a fresh host tensor from f(i) in double or int64 and moves it to its device.
template <class V, class F>
static Tensor sequence(IntSpan size, const Like& like, F f) {
  Device host;
  Tensor t = empty_tensor(size, like.dtype, like.device.is_meta() ? like.device : host);
  if (like.device.is_meta()) return t;
  dispatch_dtype(like.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* p = t.data_as<T>();
    for (int64_t i = 0; i < t.numel(); ++i) p[i] = convert<T>(V(f(i)));
  });
  return like.device.is_cpu() ? t : op::_to_copy(t, DType::None, like.device);
}

Tensor arange_start(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype, Value,
                    Device device, std::optional<bool>, bool grad) {
  if (start.is_complex() || end.is_complex() || step.is_complex())
    runtime_error("arange does not support complex bounds");
  bool integral = !start.is_float() && !end.is_float() && !step.is_float();
  Like like(dtype == DType::None ? (integral ? DType::Int64 : default_dtype()) : dtype, device);
  if (like.dtype == DType::Bool) fail(ErrorKind::NotImplemented, "not implemented for 'Bool'");
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (s == 0) runtime_error("step must be nonzero");
  if (!std::isfinite(a) || !std::isfinite(b)) runtime_error("unsupported range: ", a, " -> ", b);
  if (!((s > 0 && b >= a) || (s < 0 && b <= a)))
    runtime_error("upper bound and lower bound inconsistent with step sign: from ", a, " to ", b,
                  " in steps of ", s);
  int64_t n;
  if (is_integral(like.dtype) && step.to_int() == 0)
    runtime_error("step must be nonzero: ", s, " is 0 as ", like.dtype);
  if (like.dtype == DType::Int64 || (integral && is_integral(like.dtype))) {
    // The bounds are cut to integers first; for narrower dtypes PyTorch counts before it cuts.
    int64_t ia = start.to_int(), ib = end.to_int(), is = step.to_int();
    int64_t sign = is > 0 ? 1 : -1;
    n = int64_t((__int128(ib) - ia + is - sign) / is);
    return finish(sequence<int64_t>(Dims{n}, like, [=](int64_t i) { return ia + i * is; }), grad);
  }
  double count = std::ceil((b - a) / s);
  if (count > 9e18) runtime_error("invalid size, possible overflow?");
  n = int64_t(count);
  if (is_integral(like.dtype)) {
    int64_t ia = start.to_int(), is = step.to_int();
    return finish(sequence<int64_t>(Dims{n}, like, [=](int64_t i) { return ia + i * is; }), grad);
  }
  // Each value is rounded from double, as PyTorch's accumulate type does.
  return finish(sequence<double>(Dims{n}, like, [=](int64_t i) { return a + double(i) * s; }),
                grad);
}
Tensor arange(const Scalar& end, DType dtype, Value layout, Device device, std::optional<bool> pin,
              bool grad) {
  return arange_start(end.is_float() ? Scalar(0.0) : Scalar(0), end, Scalar(1), dtype, layout,
                      device, pin, grad);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  if (steps < 0) runtime_error("number of steps must be non-negative, got ", steps);
  DType natural = start.is_complex() || end.is_complex() ? default_complex_dtype() : DType::None;
  Like like(dtype == DType::None ? natural : dtype, device);
  Dims size{steps};
  int64_t half = steps / 2;
  if (is_complex(like.dtype)) {
    Complex<double> a = start.to_complex(), b = end.to_complex();
    Complex<double> step = steps > 1 ? (b - a) / double(steps - 1) : Complex<double>(0, 0);
    return finish(sequence<Complex<double>>(size, like,
                                            [=](int64_t i) {
                                              return i < half ? a + step * double(i)
                                                              : b - step * double(steps - 1 - i);
                                            }),
                  grad);
  }
  // Counted from both ends, so that the last value is exact.
  auto real = [&](auto zero) {
    using T = decltype(zero);
    T a = T(start.to_double()), b = T(end.to_double());
    T step = steps > 1 ? T((b - a) / T(steps - 1)) : T(0);
    return sequence<double>(size, like, [=](int64_t i) -> double {
      return steps == 1 ? a : i < half ? T(a + step * T(i)) : T(b - step * T(steps - 1 - i));
    });
  };
  if (is_integral(like.dtype)) {
    double a = double(start.to_int()), b = double(end.to_int()),
           step = steps > 1 ? (b - a) / double(steps - 1) : 0;
    return finish(sequence<double>(size, like,
                                   [=](int64_t i) {
                                     return steps == 1 ? a
                                            : i < half ? a + step * double(i)
                                                       : b - step * double(steps - 1 - i);
                                   }),
                  grad);
  }
  return finish(like.dtype == DType::Float64 ? real(double(0)) : real(float(0)), grad);
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, DType dtype,
                Value layout, Device device, std::optional<bool> pin, bool grad) {
  Like like(dtype, device);
  bool wide = like.dtype == DType::Float64 || is_integral(like.dtype);
  GradGuard off(false);
  Tensor exponents = linspace(start, end, steps, DType::Float64, layout, like.device, pin, false);
  if (!wide && !is_complex(like.dtype))
    exponents =
        op::_to_copy(linspace(start, end, steps, DType::Float32, layout, like.device, pin, false),
                     DType::Float64);
  return finish(op::_to_copy(op::pow(base, exponents), like.dtype), grad);
}

Tensor eye_m(int64_t n, int64_t m, DType dtype, Value, Device device, std::optional<bool>,
             bool grad) {
  if (n < 0) runtime_error("n must be greater or equal to 0, got ", n);
  if (m < 0) runtime_error("m must be greater or equal to 0, got ", m);
  Like like(dtype, device);
  Tensor t = filled(empty_tensor(Dims{n, m}, like.dtype, like.device), Scalar(0));
  GradGuard off(false);
  if (n && m) op::fill_(op::diagonal(t), Scalar(1));
  return finish(t, grad);
}
Tensor eye(int64_t n, DType dtype, Value layout, Device device, std::optional<bool> pin,
           bool grad) {
  return eye_m(n, n, dtype, layout, device, pin, grad);
}

Tensor scalar_tensor(const Scalar& s, DType dtype, Value layout, Device device,
                     std::optional<bool> pin, bool grad) {
  return full({}, s, dtype == DType::None ? default_dtype() : dtype, layout, device, pin, grad);
}

static Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, bool lower,
                               DType dtype, Device device) {
  if (rows < 0) runtime_error("row must be non-negative, got ", rows);
  if (columns < 0) runtime_error("col must be non-negative, got ", columns);
  Like like(dtype == DType::None ? DType::Int64 : dtype, device);
  std::vector<int64_t> r, c;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t from = lower ? 0 : std::max<int64_t>(0, i + offset),
            to = lower ? std::min(columns, i + offset + 1) : columns;
    for (int64_t j = from; j < to; ++j) r.push_back(i), c.push_back(j);
  }
  int64_t n = int64_t(r.size());
  return sequence<int64_t>(Dims{2, n}, like,
                           [&](int64_t i) { return i < n ? r[size_t(i)] : c[size_t(i - n)]; });
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Value, Device device,
                    std::optional<bool>, bool) {
  return triangle_indices(row, col, offset, true, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Value, Device device,
                    std::optional<bool>, bool) {
  return triangle_indices(row, col, offset, false, dtype, device);
}

// ---- like another tensor

Tensor empty_like(const Tensor& self, DType dtype, Value, Device device, std::optional<bool>,
                  bool grad, MemoryFormat format) {
  Like like(self, dtype, device);
  if (format != MemoryFormat::None && format != MemoryFormat::Preserve)
    return finish(unwritten(empty_tensor(self.sizes(), strides_for(self.sizes(), format),
                                         like.dtype, like.device)),
                  grad);
  const Tensor* in[] = {&self};
  const bool dense =
      self.is_contiguous() || non_overlapping_and_dense(self.sizes(), self.strides());
  const Dims strides = dense ? Dims(self.strides()) : result_strides(self.sizes(), in, 1);
  return finish(unwritten(empty_tensor(self.sizes(), strides, like.dtype, like.device)), grad);
}
Tensor full_like(const Tensor& self, const Scalar& value, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad, MemoryFormat format) {
  return finish(filled(empty_like(self, dtype, layout, device, pin, false, format), value), grad);
}
Tensor zeros_like(const Tensor& self, DType dtype, Value layout, Device device,
                  std::optional<bool> pin, bool grad, MemoryFormat format) {
  return full_like(self, Scalar(0), dtype, layout, device, pin, grad, format);
}
Tensor ones_like(const Tensor& self, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad, MemoryFormat format) {
  return full_like(self, Scalar(1), dtype, layout, device, pin, grad, format);
}

Tensor new_empty(const Tensor& self, IntSpan size, DType dtype, Value, Device device,
                 std::optional<bool>, bool grad) {
  Like like(self, dtype, device);
  return finish(unwritten(empty_tensor(size, like.dtype, like.device)), grad);
}
Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride, DType dtype, Value,
                         Device device, std::optional<bool>, bool grad) {
  Like like(self, dtype, device);
  return finish(empty_strided(size, stride, like.dtype, like.device), grad);
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& value, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  Like like(self, dtype, device);
  return finish(filled(empty_tensor(size, like.dtype, like.device), value), grad);
}
Tensor new_zeros(const Tensor& self, IntSpan size, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad) {
  return new_full(self, size, Scalar(0), dtype, layout, device, pin, grad);
}
Tensor new_ones(const Tensor& self, IntSpan size, DType dtype, Value layout, Device device,
                std::optional<bool> pin, bool grad) {
  return new_full(self, size, Scalar(1), dtype, layout, device, pin, grad);
}

}  // namespace kernels
}  // namespace facula
