// Sequences of numbers. Floats are rounded as PyTorch rounds them on processors with AVX2, bit for
// bit: products and sums are fused in arange and linspace, not in range and logspace.
#include <algorithm>
#include <cmath>
#include <complex>

#include "cpu/cast.h"
#include "cpu/index_loops.h"
#include "cpu/iterate.h"
#include "kernels/new_tensor.h"
#include "op/hooks/creation.h"
#include "op/kernels/creation.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// Fills a fresh host tensor with values that f(values, first, n) writes, of a dtype's C++ type,
// and moves it to its device.
template <class V, class F>
static Tensor sequence(IntSpan size, const Like& like, F f) {
  Device host;
  Tensor t = empty_tensor(size, like.dtype, like.device.is_meta() ? like.device : host);
  if (like.device.is_meta()) return t;
  constexpr int64_t kBlock = 512;
  constexpr DType computed = DTypeOf<V>::value;
  const CastLoop store = cast_loop(computed, like.dtype);
  const int64_t item = int64_t(t.item_size());
  parallel_for(0, t.numel(), kGrain, [&](int64_t b, int64_t e) {
    if (like.dtype == computed) return f(t.data_as<V>() + b, b, e - b);
    V block[kBlock];
    for (; b < e; b += kBlock) {
      const int64_t m = std::min(kBlock, e - b);
      f(static_cast<V*>(block), b, m);
      store(t.data() + b * item, item, reinterpret_cast<const char*>(block), sizeof(V), m);
    }
  });
  return like.device.is_cpu() ? t : op::_to_copy(t, DType::None, like.device);
}

// first, first + step, ... on whatever device.
template <class V>
static Tensor progression(int64_t n, const Like& like, V first, V step) {
  if (!like.device.is_cuda())
    return sequence<V>(Dims{n}, like, [=](V* x, int64_t b, int64_t m) {
      if constexpr (std::is_same_v<V, int64_t>)
        index_loops().count_up(x, m, first + b * step, step);
      else index_loops().ramp_f64(x, m, first, step, b, 1);
    });
  Tensor t = empty_tensor(Dims{n}, like.dtype, like.device);
  if (n) device_creation.progression(t, Scalar(first), Scalar(step));
  return t;
}

// The same for floats: pairs of vectors of 32 bytes, then the rest one by one.
static Tensor steps_of_floats(int64_t n, const Like& like, double start, double step) {
  const auto elements = [&](auto from, auto by, auto vectors, auto one_by_one) {
    using V = decltype(from);
    const int64_t in_pairs = n - n % (64 / int64_t(item_size(like.dtype)));
    return sequence<V>(Dims{n}, like, [=](V* x, int64_t first, int64_t m) {
      const int64_t whole = std::clamp<int64_t>(in_pairs - first, 0, m);
      vectors(x, whole, from, by, first);
      one_by_one(x + whole, m - whole, from, by, first + whole, int64_t(1));
    });
  };
  const IndexLoops& loops = index_loops();
  if (!like.device.is_cuda()) {
    if (like.dtype == DType::Float64)
      return elements(start, step, loops.ramp_for_doubles, loops.fused_ramp_f64);
    if (like.dtype == DType::Float32)
      return elements(start, step, loops.ramp_for_floats, loops.fused_ramp_f64);
    if (like.dtype == DType::Float16)
      return elements(float(start), float(step), loops.ramp_for_halves, loops.fused_ramp_f32);
    if (like.dtype == DType::BFloat16)
      return elements(float(start), float(step), loops.ramp_for_bfloats, loops.fused_ramp_f32);
  }
  return progression(n, like, start, step);
}

Tensor arange_start(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype, Value,
                    Device device, std::optional<bool>, bool grad) {
  if (start.is_complex() || end.is_complex() || step.is_complex())
    runtime_error("arange does not support complex bounds");
  bool integral = !start.is_float() && !end.is_float() && !step.is_float();
  Like like(dtype == DType::None ? (integral ? DType::Int64 : default_dtype()) : dtype, device);
  if (like.dtype == DType::Bool || is_complex(like.dtype))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(like.dtype), "'");
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (s == 0) runtime_error("step must be nonzero");
  if (!std::isfinite(a) || !std::isfinite(b)) runtime_error("unsupported range: ", a, " -> ", b);
  if (!((s > 0 && b >= a) || (s < 0 && b <= a)))
    runtime_error("upper bound and lower bound inconsistent with step sign: from ", a, " to ", b,
                  " in steps of ", s);
  int64_t n;
  if (like.dtype == DType::Int64 && step.to_int() == 0)
    value_error("step must be nonzero: ", s, " is 0 as ", like.dtype);
  if (like.dtype == DType::Int64 || (integral && is_integral(like.dtype))) {
    // The bounds are cut to integers first; for narrower dtypes PyTorch counts before it cuts.
    int64_t ia = start.to_int(), ib = end.to_int(), is = step.to_int();
    int64_t sign = is > 0 ? 1 : -1;
    n = int64_t((__int128(ib) - ia + is - sign) / is);
    return finish(progression(n, like, ia, is), grad);
  }
  double count = std::ceil((b - a) / s);
  if (count > 9e18) runtime_error("invalid size, possible overflow?");
  n = int64_t(count);
  if (is_integral(like.dtype)) {
    int64_t ia = start.to_int(), is = step.to_int();
    return finish(progression(n, like, ia, is), grad);
  }
  return finish(steps_of_floats(n, like, a, s), grad);
}
Tensor arange(const Scalar& end, DType dtype, Value layout, Device device, std::optional<bool> pin,
              bool grad) {
  return arange_start(end.is_float() ? Scalar(0.0) : Scalar(0), end, Scalar(1), dtype, layout,
                      device, pin, grad);
}

Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype, Value,
             Device device, std::optional<bool>, bool grad) {
  warn(
      "range is deprecated and will be removed in a future release because its behavior is "
      "inconsistent with Python's range builtin. Instead, use arange, which produces values in "
      "[start, end).");
  Like like(dtype, device);
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (s == 0) runtime_error("step must be nonzero");
  if (!std::isfinite(a) || !std::isfinite(b)) runtime_error("unsupported range: ", a, " -> ", b);
  if (!((s > 0 && b >= a) || (s < 0 && b <= a)))
    runtime_error("upper bound and lower bound inconsistent with step sign: from ", a, " to ", b,
                  " in steps of ", s);
  const double count = std::floor((b - a) / s) + 1;
  if (count > 9e18) runtime_error("invalid size, possible overflow?");
  return finish(progression(int64_t(count), like, a, s), grad);
}

// The start or the end of a sequence: a number, or a tensor that holds one.
static Scalar bound_of(const Value& v, const char* name) {
  if (!v.is_tensor()) return v.scalar();
  const Tensor& t = v.tensor();
  if (t.dim() != 0)
    runtime_error("only supports 0-dimensional start and end tensors, but got ", name, " with ",
                  t.dim(), " dimension(s).");
  if (t.is_wrapped())
    runtime_error("the ", name,
                  " must be known as a number, which a tensor inside of a function transform is "
                  "not. Pass a Python number");
  if (t.is_meta()) runtime_error("the ", name, " must have a value, which a meta tensor has not");
  return item_of(t.is_cpu() ? t : op::_to_copy(t, DType::None, Device{}));
}

static DType sequence_dtype(const Scalar& start, const Scalar& end, int64_t steps, DType dtype) {
  const bool complex = start.is_complex() || end.is_complex();
  if (dtype == DType::None) dtype = complex ? default_complex_dtype() : default_dtype();
  if (complex && !is_complex(dtype))
    runtime_error("inferred dtype ", default_complex_dtype(),
                  " can't be safely cast to passed dtype ", dtype);
  if (dtype == DType::Bool)
    fail(ErrorKind::NotImplemented, "not implemented for 'Bool'; ask for an integer dtype");
  if (steps > 0) start.check_fits(dtype);
  if (steps > 1) end.check_fits(dtype);
  return dtype;
}

// Evenly spaced values, counted from both ends so that the last one is exact.
template <class T>
struct Spaced {
  T first, last, step;
  int64_t count;

  Spaced(T start, T end, int64_t n)
      : Spaced(start, end, n > 1 ? T(T(end - start) / T(n - 1)) : T(0), n) {}
  Spaced(T start, T end, T each, int64_t n)
      : first(start), last(n == 1 ? start : end), step(each), count(n) {}

  // x[i] = value number `at` + i, by a ramp that writes base + step * (from + i * by).
  template <class Ramp>
  void write(T* x, int64_t at, int64_t n, Ramp ramp) const {
    const int64_t rising = std::clamp<int64_t>(count / 2 - at, 0, n);
    ramp(x, rising, first, step, at, int64_t(1));
    ramp(x + rising, n - rising, last, T(-step), count - 1 - at - rising, int64_t(-1));
  }
};

static void fused_ramp(float* x, int64_t n, float base, float step, int64_t from, int64_t by) {
  index_loops().fused_ramp_f32(x, n, base, step, from, by);
}
static void fused_ramp(double* x, int64_t n, double base, double step, int64_t from, int64_t by) {
  index_loops().fused_ramp_f64(x, n, base, step, from, by);
}
// Half precision rounds after every step, and its positions, too.
template <class T>
static void fused_ramp(T* x, int64_t n, T base, T step, int64_t from, int64_t by) {
  for (int64_t i = 0; i < n; ++i) x[i] = T(base + T(step * T(from + i * by)));
}

constexpr auto kFusedRamp = [](auto... what) { fused_ramp(what...); };

// A bound as an element of the result would have it: cut, wrapped around or rounded.
static double as_stored(const Scalar& bound, DType dtype) {
  alignas(16) char element[16];
  bound.store(dtype, element);
  return Scalar::load(dtype, element).to_double();
}

template <class T>
static Tensor spaced(const Scalar& start, const Scalar& end, int64_t steps, const Like& like) {
  const Spaced<T> values(T(as_stored(start, like.dtype)), T(as_stored(end, like.dtype)), steps);
  return sequence<T>(Dims{steps}, like,
                     [=](T* x, int64_t at, int64_t n) { values.write(x, at, n, kFusedRamp); });
}
template <class T>
static Tensor spaced_complex(const Scalar& start, const Scalar& end, int64_t steps,
                             const Like& like) {
  const Complex<double> a = start.to_complex(), b = end.to_complex();
  const Spaced<T> re(T(a.re), T(b.re), steps), im(T(a.im), T(b.im), steps);
  return sequence<Complex<T>>(Dims{steps}, like, [=](Complex<T>* x, int64_t at, int64_t n) {
    constexpr int64_t kBlock = 256;
    T parts[2][kBlock];
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t m = std::min(kBlock, n - done);
      re.write(parts[0], at + done, m, kFusedRamp);
      im.write(parts[1], at + done, m, kFusedRamp);
      for (int64_t i = 0; i < m; ++i) x[done + i] = {parts[0][i], parts[1][i]};
    }
  });
}

Tensor linspace(Value start_value, Value end_value, int64_t steps, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  if (steps < 0) runtime_error("number of steps must be non-negative, got ", steps);
  const Scalar start = bound_of(start_value, "start"), end = bound_of(end_value, "end");
  const Like like(sequence_dtype(start, end, steps, dtype), device);
  if (like.device.is_cuda() && !is_complex(like.dtype)) {
    Tensor t = empty_tensor(Dims{steps}, like.dtype, like.device);
    const bool cut = is_integral(like.dtype);
    if (steps)
      device_creation.spaced(t, cut ? double(start.to_int()) : start.to_double(),
                             cut ? double(end.to_int()) : end.to_double());
    return finish(t, grad);
  }
  constexpr int64_t kMostHalves = 65505;  // counts that float16 knows
  const auto make = is_integral(like.dtype) || like.dtype == DType::Float64 ? spaced<double>
                    : like.dtype == DType::Complex128                       ? spaced_complex<double>
                    : like.dtype == DType::Complex64                        ? spaced_complex<float>
                    : like.dtype == DType::BFloat16                         ? spaced<BFloat16>
                    : like.dtype == DType::Float16 && steps <= kMostHalves  ? spaced<Half>
                                                                            : spaced<float>;
  return finish(make(start, end, steps, like), grad);
}

// Powers are computed in float64; the ends, and their difference, are values of the dtype.
static Tensor powers(double base, const Scalar& start, const Scalar& end, int64_t steps,
                     const Like& like) {
  const bool one = steps == 1;  // of the exact exponent
  const double a = one ? start.to_double() : as_stored(start, like.dtype);
  const double b = one ? a : as_stored(end, like.dtype);
  const double apart = is_integral(like.dtype) ? b - a : as_stored(Scalar(b - a), like.dtype);
  const Spaced<double> exponents(a, b, steps > 1 ? apart / double(steps - 1) : 0.0, steps);
  return sequence<double>(Dims{steps}, like, [=](double* x, int64_t at, int64_t n) {
    exponents.write(x, at, n, index_loops().ramp_f64);
    for (int64_t i = 0; i < n; ++i) x[i] = std::pow(base, x[i]);
  });
}

template <class T>
static Tensor complex_powers(double base, const Scalar& start, const Scalar& end, int64_t steps,
                             const Like& like) {
  using C = std::complex<T>;
  const auto bound = [](const Complex<double>& z) { return C(T(z.re), T(z.im)); };
  const C a = bound(start.to_complex()), b = steps == 1 ? a : bound(end.to_complex());
  const C step = steps > 1 ? (b - a) * (T(1) / T(steps - 1)) : C(0);
  return sequence<Complex<T>>(Dims{steps}, like, [=](Complex<T>* x, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i, ++at) {
      const C z =
          std::pow(C(T(base)), at < steps / 2 ? a + step * T(at) : b - step * T(steps - 1 - at));
      x[i] = {z.real(), z.imag()};
    }
  });
}

Tensor logspace(Value start_value, Value end_value, int64_t steps, double base, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  if (steps < 0) runtime_error("number of steps must be non-negative, got ", steps);
  const Scalar start = bound_of(start_value, "start"), end = bound_of(end_value, "end");
  const Like like(sequence_dtype(start, end, steps, dtype), device);
  const auto make = like.dtype == DType::Complex128  ? complex_powers<double>
                    : like.dtype == DType::Complex64 ? complex_powers<float>
                                                     : powers;
  return finish(make(base, start, end, steps, like), grad);
}

}  // namespace facula::kernels
