// Window functions. Each is computed in double precision from its formula and rounded once.
#include <cmath>
#include <numbers>

#include "autograd/node.h"
#include "op/kernels/signal.h"
#include "op/ops/copying.h"

namespace facula::kernels {

static constexpr double kPi = std::numbers::pi;

namespace {

struct Options {  // of a new tensor
  DType dtype;
  Device device;
  bool grad;
};

}  // namespace

// Values f(0) .. f(n - 1), on the host first.
template <class F>
static Tensor filled(int64_t n, const Options& options, F f) {
  const Device device = options.device.type == DeviceType::None ? default_device() : options.device;
  Tensor t = empty_tensor(Dims{n}, options.dtype, device.is_meta() ? device : Device{});
  if (!device.is_meta()) {
    dispatch_dtype(options.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* p = t.data_as<T>();
      for (int64_t i = 0; i < n; ++i) p[i] = convert<T>(double(f(i)));
    });
    if (!device.is_cpu()) t = op::_to_copy(t, DType::None, device);
  }
  if (options.grad) set_requires_grad(t, true);
  return t;
}

// The modified Bessel function of order 0 by its power series, whose terms are all positive.
static double bessel_i0(double x) {
  const double quarter = 0.25 * x * x;
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum && k < 5000; ++k) {
    term *= quarter / (double(k) * k);
    sum += term;
  }
  return sum;
}

// ---- shapes on n points; `period` points later the periodic ones begin again

static Tensor cosines(int64_t n, double period, std::span<const double> a, const Options& options) {
  return filled(n, options, [&](int64_t i) {
    double sum = 0, sign = 1;
    for (size_t k = 0; k < a.size(); ++k, sign = -sign)
      sum += n == 1 ? 0 : sign * a[k] * std::cos(2 * kPi * double(k) * double(i) / period);
    return n == 1 ? 1 : sum;
  });
}

static Tensor triangle(int64_t n, double period, const Options& options) {
  return filled(n, options,
                [&](int64_t i) { return n == 1 ? 1 : 1 - std::abs(2 * double(i) / period - 1); });
}

static Tensor kaiser(int64_t n, double period, double beta, const Options& options) {
  const double whole = bessel_i0(beta);
  return filled(n, options, [&](int64_t i) {
    const double x = n == 1 ? 0 : 2 * double(i) / period - 1;
    return n == 1 ? 1 : bessel_i0(beta * std::sqrt(std::max(0.0, 1 - x * x))) / whole;
  });
}

static const double kHann[] = {0.5, 0.5}, kBlackman[] = {0.42, 0.5, 0.08},
                    kNuttall[] = {0.3635819, 0.4891775, 0.1365995, 0.0106411};

// ---- facula.*_window

static Options checked_window(int64_t length, DType dtype, Device device, bool grad) {
  if (length < 0) runtime_error("requires non-negative window_length, got window_length=", length);
  if (dtype == DType::None) dtype = default_dtype();
  if (!is_floating(dtype)) runtime_error("expects floating point dtypes, got ", dtype);
  return {dtype, device, grad};
}
static double period_of(int64_t length, bool periodic) {
  return double(periodic ? length : length - 1);
}

Tensor bartlett_window(int64_t length, bool periodic, DType dtype, Value, Device device,
                       std::optional<bool>, bool grad) {
  const Options options = checked_window(length, dtype, device, grad);
  return triangle(length, period_of(length, periodic), options);
}
Tensor blackman_window(int64_t length, bool periodic, DType dtype, Value, Device device,
                       std::optional<bool>, bool grad) {
  const Options options = checked_window(length, dtype, device, grad);
  return cosines(length, period_of(length, periodic), kBlackman, options);
}
Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, DType dtype, Value,
                      Device device, std::optional<bool>, bool grad) {
  const Options options = checked_window(length, dtype, device, grad);
  const double a[] = {alpha, beta};
  return cosines(length, period_of(length, periodic), a, options);
}
Tensor hann_window(int64_t length, bool periodic, DType dtype, Value, Device device,
                   std::optional<bool>, bool grad) {
  const Options options = checked_window(length, dtype, device, grad);
  return cosines(length, period_of(length, periodic), kHann, options);
}
Tensor kaiser_window(int64_t length, bool periodic, double beta, DType dtype, Value, Device device,
                     std::optional<bool>, bool grad) {
  const Options options = checked_window(length, dtype, device, grad);
  return kaiser(length, period_of(length, periodic), beta, options);
}

// ---- facula.signal.windows

static Options checked_signal(int64_t M, DType dtype, Device device, bool grad) {
  if (M < 0) value_error("requires non-negative window length, got M=", M);
  if (dtype == DType::None) dtype = default_dtype();
  if (dtype != DType::Float32 && dtype != DType::Float64)
    value_error("expects float32 or float64 dtypes, got: ", dtype);
  return {dtype, device, grad};
}

Tensor signal_windows_bartlett(int64_t M, bool sym, DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  return triangle(M, period_of(M, !sym), options);
}
Tensor signal_windows_general_cosine(int64_t M, std::span<const double> a, bool sym, DType dtype,
                                     Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  if (a.empty()) value_error("Coefficients cannot be empty: `a` needs at least one number");
  return cosines(M, period_of(M, !sym), a, options);
}
Tensor signal_windows_blackman(int64_t M, bool sym, DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  return cosines(M, period_of(M, !sym), kBlackman, options);
}
Tensor signal_windows_hann(int64_t M, bool sym, DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  return cosines(M, period_of(M, !sym), kHann, options);
}
Tensor signal_windows_nuttall(int64_t M, bool sym, DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  return cosines(M, period_of(M, !sym), kNuttall, options);
}
Tensor signal_windows_general_hamming(int64_t M, double alpha, bool sym, DType dtype, Value,
                                      Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  const double a[] = {alpha, 1 - alpha};
  return cosines(M, period_of(M, !sym), a, options);
}
Tensor signal_windows_hamming(int64_t M, bool sym, DType dtype, Value layout, Device device,
                              bool grad) {
  return signal_windows_general_hamming(M, 0.54, sym, dtype, layout, device, grad);
}

Tensor signal_windows_cosine(int64_t M, bool sym, DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  const double points = double(!sym && M > 1 ? M + 1 : M);
  return filled(M, options, [&](int64_t i) { return std::sin(kPi * (double(i) + 0.5) / points); });
}

// The middle of the window, where the periodic ones have one point more.
static double middle_of(int64_t M, bool sym) {
  return double(!sym && M > 1 ? M : M - 1) / 2;
}
Tensor signal_windows_exponential(int64_t M, std::optional<double> center, double tau, bool sym,
                                  DType dtype, Value, Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  if (!(tau > 0)) value_error("Tau must be positive, got: ", tau, " instead.");
  if (sym && center) value_error("Center must be None for symmetric windows, got: ", *center);
  const double middle = center.value_or(middle_of(M, sym));
  return filled(M, options,
                [&](int64_t i) { return std::exp(-std::abs(double(i) - middle) / tau); });
}
Tensor signal_windows_gaussian(int64_t M, double deviation, bool sym, DType dtype, Value,
                               Device device, bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  if (!(deviation > 0))
    value_error("Standard deviation must be positive, got: ", deviation, " instead.");
  const double middle = middle_of(M, sym);
  return filled(M, options, [&](int64_t i) {
    const double x = (double(i) - middle) / deviation;
    return std::exp(-0.5 * x * x);
  });
}
Tensor signal_windows_kaiser(int64_t M, double beta, bool sym, DType dtype, Value, Device device,
                             bool grad) {
  const Options options = checked_signal(M, dtype, device, grad);
  if (beta < 0) value_error("beta must be non-negative, got: ", beta, " instead.");
  return kaiser(M, period_of(M, !sym), beta, options);
}

}  // namespace facula::kernels
