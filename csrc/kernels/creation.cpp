// New tensors: sequences, fills, and tensors like others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "cpu/cast.h"
#include "cpu/index_loops.h"
#include "cpu/iterate.h"
#include "op/elementwise.h"
#include "op/hooks/creation.h"
#include "op/hooks/memory.h"
#include "op/kernels/creation.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/settings.h"
#include "op/tensor_operators.h"

namespace facula {

static thread_local Device t_default_device{DeviceType::CPU, -1};
static Device with_index(Device device) {
  if (device.is_cuda() && device.index < 0) device.index = int8_t(device_memory.current_device());
  return device;
}

Device default_device() {
  return with_index(t_default_device);
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
        device(v.type == DeviceType::None ? default_device() : with_index(v)) {}
  Like(const Tensor& t, DType d, Device v)
      : dtype(d == DType::None ? t.dtype() : d),
        device(v.type == DeviceType::None ? t.device() : with_index(v)) {}
};

// As empty_tensor, in page-locked memory where that is asked for.
static Tensor allocated(IntSpan size, IntSpan strides, const Like& like, std::optional<bool> pin) {
  if (!pin.value_or(false)) return empty_tensor(size, strides, like.dtype, like.device);
  if (!like.device.is_cpu())
    runtime_error("Only dense CPU tensors can be pinned, not a tensor on ", like.device);
  const Tensor shape = empty_tensor(size, strides, like.dtype, Device{DeviceType::Meta, -1});
  return tensor_on_storage(device_memory.pinned_storage(shape->storage->nbytes), size, strides, 0,
                           like.dtype);
}
static Tensor allocated(IntSpan size, const Like& like, std::optional<bool> pin) {
  if (!pin.value_or(false)) return empty_tensor(size, like.dtype, like.device);
  return allocated(size, contiguous_strides(size), like, pin);
}

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
                if constexpr (std::is_integral_v<T>)
                  return Scalar(uint64_t(std::numeric_limits<T>::max()));
                else return Scalar(0);
              }));
  return t;
}

static Tensor filled(Tensor t, const Scalar& value) {
  GradGuard off(false);
  if (value.equals(0) && !std::signbit(value.to_double())) op::zero_(t);
  else op::fill_(t, value);
  t->storage->version = 0;  // filling new memory is no write that anybody could have missed
  return t;
}

Tensor empty(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad,
             MemoryFormat format) {
  Like like(dtype, device);
  if (format == MemoryFormat::Preserve)
    runtime_error("unsupported memory format Preserve: there is no tensor whose format to keep");
  if (format == MemoryFormat::None || format == MemoryFormat::Contiguous)
    return finish(unwritten(allocated(size, like, pin)), grad);
  checked_numel(size);
  return finish(unwritten(allocated(size, strides_for(size, format), like, pin)), grad);
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

Tensor zeros(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad) {
  Like like(dtype, device);
  return finish(filled(allocated(size, like, pin), Scalar(0)), grad);
}
Tensor ones(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad) {
  Like like(dtype, device);
  return finish(filled(allocated(size, like, pin), Scalar(1)), grad);
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

// Fills a fresh host tensor with values that f(values, first, n) writes, double or int64, and moves
// it to its device.
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
  // Each value is rounded from double, as PyTorch's accumulate type does.
  return finish(progression(n, like, a, s), grad);
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

static DType sequence_dtype(const Scalar& start, const Scalar& end, DType dtype) {
  const bool complex = start.is_complex() || end.is_complex();
  if (dtype == DType::None) return complex ? default_complex_dtype() : default_dtype();
  if (complex && !is_complex(dtype))
    runtime_error("inferred dtype ", default_complex_dtype(),
                  " can't be safely cast to passed dtype ", dtype);
  if (dtype == DType::Bool)
    fail(ErrorKind::NotImplemented, "not implemented for 'Bool'; ask for an integer dtype");
  return dtype;
}

// Evenly spaced values, counted from both ends so that the last one is exact.
template <class T, class F>
static Tensor spaced(T a, T b, int64_t steps, const Like& like, F f) {
  const int64_t half = steps / 2;
  const T step = steps > 1 ? T((b - a) / T(steps - 1)) : T(0);
  const T last = steps == 1 ? a : b;
  using V = decltype(f(a));
  return sequence<V>(Dims{steps}, like, [=](V* x, int64_t first, int64_t n) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int64_t kBlock = 512;
      T values[kBlock];
      auto ramp = [](auto... what) {
        if constexpr (std::is_same_v<T, float>) index_loops().ramp_f32(what...);
        else index_loops().ramp_f64(what...);
      };
      for (int64_t done = 0; done < n; done += kBlock) {
        const int64_t m = std::min(kBlock, n - done), at = first + done;
        const int64_t rising = std::clamp<int64_t>(half - at, 0, m);
        ramp(static_cast<T*>(values), rising, a, step, at, int64_t(1));
        ramp(values + rising, m - rising, last, -step, steps - 1 - at - rising, int64_t(-1));
        for (int64_t i = 0; i < m; ++i) x[done + i] = f(values[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = first + i;
        x[i] = f(at < half ? T(a + step * T(at)) : T(last - step * T(steps - 1 - at)));
      }
    }
  });
}

Tensor linspace(Value start_value, Value end_value, int64_t steps, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  if (steps < 0) runtime_error("number of steps must be non-negative, got ", steps);
  const Scalar start = bound_of(start_value, "start"), end = bound_of(end_value, "end");
  const Like like(sequence_dtype(start, end, dtype), device);
  auto same_value = [](auto v) { return v; };
  auto as_double = [](auto v) { return double(v); };
  if (is_complex(like.dtype))
    return finish(spaced(start.to_complex(), end.to_complex(), steps, like, same_value), grad);
  if (like.device.is_cuda()) {
    Tensor t = empty_tensor(Dims{steps}, like.dtype, like.device);
    const bool cut = is_integral(like.dtype);
    if (steps)
      device_creation.spaced(t, cut ? double(start.to_int()) : start.to_double(),
                             cut ? double(end.to_int()) : end.to_double());
    return finish(t, grad);
  }
  if (is_integral(like.dtype))  // the ends are cut to integers, what lies between is not
    return finish(spaced(double(start.to_int()), double(end.to_int()), steps, like, same_value),
                  grad);
  if (like.dtype == DType::Float64)
    return finish(spaced(start.to_double(), end.to_double(), steps, like, same_value), grad);
  return finish(spaced(float(start.to_double()), float(end.to_double()), steps, like, as_double),
                grad);
}

Tensor logspace(Value start_value, Value end_value, int64_t steps, double base, DType dtype, Value,
                Device device, std::optional<bool>, bool grad) {
  if (steps < 0) runtime_error("number of steps must be non-negative, got ", steps);
  const Scalar start = bound_of(start_value, "start"), end = bound_of(end_value, "end");
  const Like like(sequence_dtype(start, end, dtype), device);
  auto power = [base](auto v) { return std::pow(base, double(v)); };
  if (is_complex(like.dtype)) {
    auto complex_power = [base](Complex<double> v) {
      const double size = std::pow(base, v.re), angle = v.im * std::log(base);
      return Complex<double>(size * std::cos(angle), size * std::sin(angle));
    };
    return finish(spaced(start.to_complex(), end.to_complex(), steps, like, complex_power), grad);
  }
  if (is_integral(like.dtype) && steps != 1)
    return finish(spaced(double(start.to_int()), double(end.to_int()), steps, like, power), grad);
  if (is_integral(like.dtype) || like.dtype == DType::Float64)
    return finish(spaced(start.to_double(), end.to_double(), steps, like, power), grad);
  return finish(spaced(float(start.to_double()), float(end.to_double()), steps, like, power), grad);
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
  if (like.dtype != DType::Int64 && like.dtype != DType::Int32)
    dtype_error(like.dtype, "int32, int64");
  // Row i has the columns from begin(i) up to end(i); rows outside of [first, last) have none.
  using Wide = __int128;  // the numbers may be any
  const auto place = [&](Wide i) { return int64_t(std::clamp<Wide>(i + offset, 0, columns)); };
  const auto begin = [&](int64_t i) { return lower ? 0 : place(i); };
  const auto end = [&](int64_t i) { return lower ? place(Wide(i) + 1) : columns; };
  const auto row_at = [&](Wide i) { return int64_t(std::clamp<Wide>(i, 0, rows)); };
  const int64_t first = lower ? row_at(-Wide(offset)) : 0;
  const int64_t last = !columns ? first : lower ? rows : row_at(Wide(columns) - offset);
  Wide total = 0;
  if (first < last) {  // counts differ by one from row to row, except those of the largest
    const int64_t a = end(first) - begin(first), b = end(last - 1) - begin(last - 1);
    const Wide least = std::min(a, b), most = std::max(a, b), steps = most - least;
    total = steps * (least + most - 1) / 2 + (Wide(last) - first - steps) * most;
  }
  if (total > std::numeric_limits<int64_t>::max() / 32)
    runtime_error("the indices of a triangle of ", rows, " by ", columns, " are too many");
  const int64_t n = int64_t(total);
  if (like.device.is_meta()) return empty_tensor(Dims{2, n}, like.dtype, like.device);
  const Tensor t = empty_tensor(Dims{2, n}, DType::Int64, Device{});
  int64_t *row = t.data_as<int64_t>(), *column = row + n;
  for (int64_t i = first; i < last; ++i) {
    const int64_t count = end(i) - begin(i);
    row = std::fill_n(row, count, i);
    index_loops().count_up(column, count, begin(i), 1);
    column += count;
  }
  return like.dtype == DType::Int64 && like.device.is_cpu()
             ? t
             : op::_to_copy(t, like.dtype, like.device);
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

Tensor empty_like(const Tensor& self, DType dtype, Value, Device device, std::optional<bool> pin,
                  bool grad, MemoryFormat format) {
  Like like(self, dtype, device);
  if (format != MemoryFormat::None && format != MemoryFormat::Preserve)
    return finish(unwritten(allocated(self.sizes(), strides_for(self.sizes(), format), like, pin)),
                  grad);
  const Tensor* in[] = {&self};
  const bool dense =
      self.is_contiguous() || non_overlapping_and_dense(self.sizes(), self.strides());
  const Dims strides = dense ? Dims(self.strides()) : result_strides(self.sizes(), in, 1);
  return finish(unwritten(allocated(self.sizes(), strides, like, pin)), grad);
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
