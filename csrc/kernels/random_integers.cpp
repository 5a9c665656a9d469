// Uniform integers and permutations.
#include <bit>

#include "autograd/node.h"
#include "kernels/random_stream.h"
#include "op/elementwise.h"
#include "op/kernels/creation.h"
#include "op/kernels/random.h"
#include "op/ops/copying.h"
#include "op/ops/indexing.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// Bits with which a float dtype holds every integer up to 2**digits; 0 for the other dtypes.
int float_digits(DType d) {
  switch (d) {
    case DType::Float16: return 11;
    case DType::BFloat16: return 8;
    case DType::Float32: return 24;
    case DType::Float64: return 53;
    default: return 0;
  }
}

void require_integers(DType d) {
  if (!is_integral(d, true) && !float_digits(d))
    runtime_error("handles only integral, floating-point and boolean types, but the dtype is ", d,
                  "; draw in a real dtype and convert");
}

int64_t lowest(DType d) {
  return dispatch_dtype(d, [](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) return 0;
    else if constexpr (std::is_integral_v<T>) return int64_t(std::numeric_limits<T>::min());
    else return convert<int64_t>(std::numeric_limits<T>::lowest());  // -2**63 for the wide ones
  });
}
uint64_t highest(DType d) {
  return dispatch_dtype(d, [](auto tag) -> uint64_t {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) return 0;
    else if constexpr (std::is_integral_v<T>) return uint64_t(std::numeric_limits<T>::max());
    else if constexpr (sizeof(T) >= 4 || std::is_same_v<T, BFloat16>) return uint64_t(INT64_MAX);
    else return convert<uint64_t>(std::numeric_limits<T>::max());
  });
}

// A value that `d` cannot hold is refused; one that it holds only rounded is warned about.
void check_bound(const char* name, int64_t value, DType d) {
  if (value < lowest(d) || (value > 0 && uint64_t(value) > highest(d)))
    runtime_error(name, " is out of bounds for ", d, ", which holds ", lowest(d), " to ",
                  highest(d), "; got ", value);
  const int digits = float_digits(d);
  if (digits && (value < -(int64_t(1) << digits) || value > int64_t(1) << digits) && warn)
    warn(text(name, " is out of bounds [-(2^", digits, "), 2^", digits,
              "]. Due to precision limitations ", d,
              " can support discrete uniform distribution only within this range.")
             .c_str());
}

int64_t rounded(int64_t value, DType d) {
  return dispatch_dtype(
      d, [&](auto tag) { return convert<int64_t>(convert<typename decltype(tag)::type>(value)); });
}
int64_t spacing(int64_t value, int digits) {  // of the floats next to `value`, beyond 2**digits
  const uint64_t magnitude = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
  return int64_t(1) << (std::bit_width(magnitude) - digits);
}

// Beyond 2**digits a float dtype has gaps: bounds move inwards to numbers that it holds, so that no
// sample rounds out of the range.
int64_t inward_from(int64_t from, DType d) {
  const int digits = float_digits(d);
  if (!digits) return from;
  const int64_t above = rounded(from + 1, d);
  return above < from ? above + spacing(from + 1, digits) : from;
}
int64_t inward_to(int64_t to, DType d) {
  const int digits = float_digits(d);
  if (!digits) return to;
  const int64_t below = rounded(to - 1, d);
  return below >= to ? below - spacing(to - 1, digits) : to;
}

// Uniform on [base, base + range); a range of 0 stands for all 2**64 values.
struct IntegerRange {
  int64_t base;
  uint64_t range;
};

// x % d for 32-bit x by two multiplications instead of a division (Lemire, Kaser and Kurz, 2019).
class Remainder {
 public:
  explicit Remainder(uint32_t d) : inverse_(UINT64_MAX / d + 1), d_(d) {}  // 0 for d = 1, rightly
  uint32_t operator()(uint32_t x) const {
    return uint32_t((unsigned __int128)(inverse_ * x) * d_ >> 64);
  }

 private:
  uint64_t inverse_, d_;
};

constexpr uint64_t kWideRange = uint64_t(1) << 28;  // from here on a sample takes 64 bits

void fill_integers(const Tensor& self, Generator* generator, IntegerRange r, bool wide) {
  const DrawnNumbers numbers{
      .kind = wide ? Drawn::WideInteger : Drawn::Integer, .base = r.base, .range = r.range};
  fill_random(self, numbers, generator, [&] {
    const Tensor& t = self;
    RandomStream stream(generator, self.device());
    if (wide) {
      fill_in_memory_order<int64_t>(t, [&](int64_t* out, int64_t n) {
        const uint32_t* words = stream.words(2 * n);
        for (int64_t i = 0; i < n; ++i) {
          const uint64_t x = uint64_t(words[2 * i]) << 32 | words[2 * i + 1];
          out[i] = int64_t(uint64_t(r.base) + (r.range ? x % r.range : x));
        }
      });
    } else {
      const Remainder remainder{uint32_t(r.range)};
      fill_in_memory_order<int64_t>(t, [&](int64_t* out, int64_t n) {
        const uint32_t* words = stream.words(n);
        for (int64_t i = 0; i < n; ++i) out[i] = r.base + int64_t(remainder(words[i]));
      });
    }
  });
}

// [from, to) with what the dtype allows; without `to`, up to the largest value of the dtype (for
// floats the largest below which every integer is held).
IntegerRange checked_range(DType d, int64_t from, std::optional<int64_t> to) {
  require_integers(d);
  if (to) {
    if (from >= *to)
      runtime_error("random_ expects 'from' to be less than 'to', but got from=", from,
                    " >= to=", *to);
    check_bound("from", from, d);
    check_bound("to - 1", *to - 1, d);
    const int64_t first = inward_from(from, d), end = inward_to(*to, d);
    if (first >= end)
      runtime_error(
          "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
          "from=",
          first, " >= to=", end);
    return {first, uint64_t(end) - uint64_t(first)};
  }
  if (from == INT64_MIN) {
    if (lowest(d) != INT64_MIN) check_bound("from", from, d);
    return {0, 0};
  }
  check_bound("from", from, d);
  const int digits = float_digits(d);
  const uint64_t last = digits ? uint64_t(1) << digits : highest(d);
  if (from > 0 && uint64_t(from) > last)
    runtime_error(
        "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted "
        "to dtype, but got from=",
        from, " > to_inc=", last);
  const int64_t first = inward_from(from, d);
  return {first, last - uint64_t(first) + 1};
}

void fill_range(const Tensor& self, Generator* generator, IntegerRange r) {
  fill_integers(self, generator, r, r.range == 0 || r.range >= kWideRange);
}

}  // namespace

void random__from_to(const Tensor& self, int64_t from, std::optional<int64_t> to,
                     Generator* generator, Rets&) {
  fill_range(self, generator, checked_range(self.dtype(), from, to));
}

void random__to(const Tensor& self, int64_t to, Generator* generator, Rets&) {
  fill_range(self, generator, checked_range(self.dtype(), 0, to));
}

// From 0 to the largest value (floats: 2**digits); unlike above, 32-bit dtypes take one word.
void random_(const Tensor& self, Generator* generator, Rets&) {
  const DType d = self.dtype();
  require_integers(d);
  const int digits = float_digits(d);
  const uint64_t last = digits ? uint64_t(1) << digits : highest(d);
  if (d == DType::Int64 || d == DType::UInt64 || d == DType::Float64)
    return fill_integers(self, generator, {0, last + 1}, true);
  if (last < UINT32_MAX) return fill_integers(self, generator, {0, last + 1}, false);
  // uint32: the word itself
  const DrawnNumbers numbers{.kind = Drawn::WideInteger, .range = last + 1};
  fill_random(self, numbers, generator, [&] {
    RandomStream stream(generator, self.device());
    fill_in_memory_order<uint32_t>(
        self, [&](uint32_t* out, int64_t n) { std::copy_n(stream.words(n), n, out); });
  });
}

void randint_low(int64_t low, int64_t high, IntSpan size, Generator* generator, DType dtype,
                 Value layout, Device device, std::optional<bool> pin_memory, bool requires_grad,
                 Rets& rets) {
  const CreationOptions options{dtype, layout, device, pin_memory};
  const DType resolved = options.resolve_dtype(rets, DType::Int64);
  const IntegerRange range = checked_range(resolved, low, high);
  fill_range(options.destination(rets, size, resolved), generator, range);
  if (requires_grad) set_requires_grad(rets.t[0], true);
}

void randint(int64_t high, IntSpan size, Generator* generator, DType dtype, Value layout,
             Device device, std::optional<bool> pin_memory, bool requires_grad, Rets& rets) {
  randint_low(0, high, size, generator, dtype, layout, device, pin_memory, requires_grad, rets);
}

Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, Generator* generator,
                        DType dtype, Value layout, Device device, std::optional<bool> pin_memory,
                        bool requires_grad, MemoryFormat format) {
  const IntegerRange range = checked_range(dtype == DType::None ? self.dtype() : dtype, low, high);
  Tensor out = empty_like(self, dtype, layout, device, pin_memory, false, format);
  fill_range(out, generator, range);
  if (requires_grad) set_requires_grad(out, true);
  return out;
}

Tensor randint_like(const Tensor& self, int64_t high, Generator* generator, DType dtype,
                    Value layout, Device device, std::optional<bool> pin_memory, bool requires_grad,
                    MemoryFormat format) {
  return randint_like_low(self, 0, high, generator, dtype, layout, device, pin_memory,
                          requires_grad, format);
}

// ---- permutations

namespace {

// Fisher and Yates' shuffle of 0 ... n - 1. Short arrays take 32-bit draws, long ones 64-bit draws.
template <class T>
void shuffle(T* data, int64_t n, RandomStream& stream) {
  for (int64_t i = 0; i < n; ++i) data[i] = convert<T>(i);
  if (uint64_t(n) < UINT32_MAX / 20) {
    for (int64_t i = 0; i < n - 1; i += RandomStream::kWords) {
      const int64_t m = std::min(RandomStream::kWords, n - 1 - i);
      const uint32_t* words = stream.words(m);
      for (int64_t k = 0; k < m; ++k)
        std::swap(data[i + k], data[i + k + words[k] % uint32_t(n - i - k)]);
    }
  } else {
    for (int64_t i = 0; i < n - 1; ++i)
      std::swap(data[i], data[uint64_t(i) + stream.random64() % uint64_t(n - i)]);
  }
}

void shuffle_on_host(const Tensor& out, Generator* generator) {
  GradGuard off(false);
  Tensor dense = out.is_contiguous() ? out : empty_tensor(out.sizes(), out.dtype(), Device{});
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    RandomStream stream(generator, out.device());
    shuffle(dense.data_as<T>(), out.numel(), stream);
  });
  if (!dense.is(out)) op::copy_(out, dense);
}

// The order of random keys of 64 bits, which hardly ever meet.
void shuffle_on_device(const Tensor& out, Generator* generator) {
  GradGuard off(false);
  Tensor keys = empty_tensor(out.sizes(), DType::Int64, out.device());
  device_random.draw(keys, {.kind = Drawn::WideInteger}, generator);
  op::copy_(out, op::argsort(keys, 0, false));
}

}  // namespace

void randperm(int64_t n, Generator* generator, DType dtype, Value layout, Device device,
              std::optional<bool> pin_memory, bool requires_grad, Rets& rets) {
  if (n < 0) runtime_error("n must be non-negative, got ", n);
  const CreationOptions options{dtype, layout, device, pin_memory};
  const DType resolved = options.resolve_dtype(rets, DType::Int64);
  const int digits = float_digits(resolved);
  if (!is_integral(resolved) && !digits)
    dtype_error(resolved, "the integral types, float16, bfloat16, float32, float64");
  const uint64_t most = (digits ? uint64_t(1) << digits : highest(resolved)) + 1;
  if (most && uint64_t(n) > most)
    runtime_error("n cannot be greater than ", most, " for ", legacy_dtype_name(resolved),
                  " type: a value cannot be converted to type ", resolved,
                  " without overflow. Got n=", n);
  const Tensor& out = options.destination(rets, Dims{n}, resolved);
  if (begins_writing(out)) {
    if (out.is_cuda()) shuffle_on_device(out, generator);
    else shuffle_on_host(out, generator);
  }
  if (requires_grad) set_requires_grad(rets.t[0], true);
}

}  // namespace facula::kernels
