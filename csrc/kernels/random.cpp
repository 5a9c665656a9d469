// Random numbers drawn into tensors, and new tensors of them. The order of draws is PyTorch's, so a
// seed gives its CPU numbers.
#include <cmath>

#include "autograd/node.h"
#include "kernels/random_stream.h"
#include "op/elementwise.h"
#include "op/kernels/creation.h"
#include "op/kernels/random.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

bool is_sampled_float(DType d) {
  return d == DType::Float16 || d == DType::BFloat16 || d == DType::Float32 || d == DType::Float64;
}

void require_floating_or_complex(DType d) {
  if (!is_sampled_float(d) && !is_complex(d))
    dtype_error(d, "float16, bfloat16, float32, float64, complex64, complex128");
}

void require_continuous(const char* distribution, DType d) {
  if (!is_sampled_float(d))
    runtime_error(
        distribution,
        " distribution is a continuous probability distribution. dtype must be a floating "
        "point but you specified ",
        legacy_dtype_name(d));
}

// Complex numbers are drawn as their real and imaginary parts, one after the other.
Tensor real_parts(const Tensor& self) {
  if (!self.is_complex()) return self;
  Dims sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  self->storage->retain();
  return tensor_on_storage(self->storage, sizes, strides, 2 * self.offset(), to_real(self.dtype()));
}

double largest(DType d) {
  return dispatch_dtype(d, [](auto tag) -> double {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) return 0;
    else return double(std::numeric_limits<T>::max());
  });
}

void check_uniform(DType dtype, double from, double to) {
  require_floating_or_complex(dtype);
  const DType real = to_real(dtype);
  const double limit = largest(real);
  if (!(std::fabs(from) <= limit))
    runtime_error("from is out of bounds for ", real, ", got from=", from);
  if (!(std::fabs(to) <= limit)) runtime_error("to is out of bounds for ", real, ", got to=", to);
  if (from > to)
    runtime_error("uniform_ expects to return a [from, to) range, but found from=", from,
                  " > to=", to);
  if (to - from > limit)
    runtime_error("uniform_ expects to-from <= the largest ", real, " (", limit,
                  "), but found to=", to, " and from=", from,
                  " which result in to-from to exceed the limit");
}

void check_std(double std) {
  if (!(std >= 0)) runtime_error("normal expects std >= 0.0, but found std ", std);
}

template <class T>
void uniform_as(const Tensor& self, RandomStream& stream, double from, double to,
                void (*loop)(T*, const uint32_t*, int64_t, double, double)) {
  constexpr int64_t kWords = sizeof(T) == 8 ? 2 : 1;
  fill_in_memory_order<T>(
      self, [&](T* out, int64_t n) { loop(out, stream.words(n * kWords), n, from, to); });
}

void fill_uniform(const Tensor& self, Generator* generator, double from, double to) {
  const Tensor t = real_parts(self);
  fill_random(t, {.kind = Drawn::Uniform, .a = from, .b = to}, generator, [&] {
    RandomStream stream(generator, self.device());
    const RandomLoops& loops = random_loops();
    switch (t.dtype()) {
      case DType::Float16: return uniform_as(t, stream, from, to, loops.uniform_half);
      case DType::BFloat16: return uniform_as(t, stream, from, to, loops.uniform_bfloat16);
      case DType::Float32: return uniform_as(t, stream, from, to, loops.uniform_float);
      default: return uniform_as(t, stream, from, to, loops.uniform_double);
    }
  });
}

constexpr int64_t kBlock = 16;  // normals that are made together in contiguous memory

// PyTorch fills the whole memory with uniforms and then transforms it block by block. Elements
// beyond the last whole block are made in a block of their own, from fresh draws, that ends with
// the last element; the uniforms that lay there before are lost.
template <class T>
void normal_in_blocks(T* data, int64_t n, RandomStream& stream, double mean, double std,
                      void (*loop)(T*, const uint32_t*, int64_t, double, double)) {
  constexpr int64_t kWords = sizeof(T) == 8 ? 2 : 1;
  constexpr int64_t kAtOnce = RandomStream::kWords / (kBlock * kWords);
  const int64_t blocks = n / kBlock, rest = n % kBlock;
  for (int64_t done = 0; done < blocks; done += kAtOnce) {
    const int64_t m = std::min(kAtOnce, blocks - done);
    loop(data + done * kBlock, stream.words(m * kBlock * kWords), m, mean, std);
  }
  if (rest == 0) return;
  stream.words(rest * kWords);
  loop(data + n - kBlock, stream.words(kBlock * kWords), 1, mean, std);
}

// Half and bfloat16 are made in float, block by block; the rest costs only its own block of draws.
void small_normal_in_blocks(const Tensor& self, RandomStream& stream, double mean, double std) {
  const CastLoop cast = cast_loop(DType::Float32, self.dtype());
  const int64_t n = self.numel(), whole = n / kBlock * kBlock;
  auto make = [&](int64_t at, int64_t count) {
    alignas(64) float buffer[RandomStream::kWords];
    random_loops().normal_blocks_float(buffer, stream.words(count), count / kBlock, mean, std);
    cast(self.data() + 2 * at, 2, reinterpret_cast<const char*>(buffer), sizeof(float), count);
  };
  for (int64_t done = 0; done < whole; done += RandomStream::kWords)
    make(done, std::min(RandomStream::kWords, whole - done));
  if (whole != n) make(n - kBlock, kBlock);
}

void fill_normal(const Tensor& self, Generator* generator, double mean, double std) {
  if (self.is_complex()) std *= std::sqrt(0.5);  // shared by the two parts
  const Tensor t = real_parts(self);
  fill_random(t, {.kind = Drawn::Normal, .a = mean, .b = std}, generator, [&] {
    RandomStream stream(generator, self.device());
    const int64_t n = t.numel();
    if (n < kBlock || !t.is_contiguous()) {
      fill_in_memory_order<double>(t, [&](double* out, int64_t m) {
        stream.normals(out, m);
        for (int64_t i = 0; i < m; ++i) out[i] = out[i] * std + mean;
      });
      return;
    }
    const RandomLoops& loops = random_loops();
    switch (t.dtype()) {
      case DType::Float32:
        return normal_in_blocks(t.data_as<float>(), n, stream, mean, std,
                                loops.normal_blocks_float);
      case DType::Float64:
        return normal_in_blocks(t.data_as<double>(), n, stream, mean, std,
                                loops.normal_blocks_double);
      default: return small_normal_in_blocks(t, stream, mean, std);
    }
  });
}

// Distributions of one 53-bit uniform each.
template <class Loop, class... P>
void fill_from_draws(const Tensor& self, Drawn kind, Generator* generator, Loop loop,
                     P... parameters) {
  const double given[] = {parameters..., 0};
  const double second = sizeof...(P) > 1 ? given[1] : 0;
  fill_random(self, {.kind = kind, .a = given[0], .b = second}, generator, [&] {
    RandomStream stream(generator, self.device());
    fill_in_memory_order<double>(
        self, [&](double* out, int64_t n) { loop(out, stream.words(2 * n), n, parameters...); });
  });
}

}  // namespace

// ---- in place

void uniform_(const Tensor& self, double from, double to, Generator* generator, Rets&) {
  check_uniform(self.dtype(), from, to);
  fill_uniform(self, generator, from, to);
}

void normal_(const Tensor& self, double mean, double std, Generator* generator, Rets&) {
  check_std(std);
  require_floating_or_complex(self.dtype());
  fill_normal(self, generator, mean, std);
}

void log_normal_(const Tensor& self, double mean, double std, Generator* generator, Rets&) {
  if (!(std > 0)) runtime_error("log_normal_ expects std > 0.0, but found std=", std);
  if (!is_sampled_float(self.dtype()))
    dtype_error(self.dtype(), "float16, bfloat16, float32, float64");
  fill_random(self, {.kind = Drawn::LogNormal, .a = mean, .b = std}, generator, [&] {
    RandomStream stream(generator, self.device());
    fill_in_memory_order<double>(self, [&](double* out, int64_t n) {
      stream.normals(out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = std::exp(out[i] * std + mean);
    });
  });
}

void exponential_(const Tensor& self, double lambd, Generator* generator, Rets&) {
  if (!(lambd > 0)) runtime_error("exponential_ expects lambda > 0.0, but found lambda=", lambd);
  require_continuous("Exponential", self.dtype());
  fill_from_draws(self, Drawn::Exponential, generator, random_loops().exponential, lambd);
}

void cauchy_(const Tensor& self, double median, double sigma, Generator* generator, Rets&) {
  if (!(sigma > 0)) runtime_error("cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  require_continuous("Cauchy", self.dtype());
  fill_from_draws(self, Drawn::Cauchy, generator, random_loops().cauchy, median, sigma);
}

void geometric_(const Tensor& self, double p, Generator* generator, Rets&) {
  if (!(p > 0 && p < 1)) runtime_error("geometric_ expects p to be in (0, 1), but got p=", p);
  if (!is_integral(self.dtype()) && !is_sampled_float(self.dtype()))
    dtype_error(self.dtype(), "the integral types, float16, bfloat16, float32, float64");
  fill_from_draws(self, Drawn::Geometric, generator, random_loops().geometric, p);
}

// ---- new tensors

void rand(IntSpan size, Generator* generator, DType dtype, Value layout, Device device,
          std::optional<bool> pin_memory, bool requires_grad, Rets& rets) {
  const CreationOptions options{dtype, layout, device, pin_memory};
  const DType resolved = options.resolve_dtype(rets, default_dtype());
  check_uniform(resolved, 0, 1);
  fill_uniform(options.destination(rets, size, resolved), generator, 0, 1);
  if (requires_grad) set_requires_grad(rets.t[0], true);
}

void randn(IntSpan size, Generator* generator, DType dtype, Value layout, Device device,
           std::optional<bool> pin_memory, bool requires_grad, Rets& rets) {
  normal_float_float(0, 1, size, generator, dtype, layout, device, pin_memory, requires_grad, rets);
}

void normal_float_float(double mean, double std, IntSpan size, Generator* generator, DType dtype,
                        Value layout, Device device, std::optional<bool> pin_memory,
                        bool requires_grad, Rets& rets) {
  const CreationOptions options{dtype, layout, device, pin_memory};
  const DType resolved = options.resolve_dtype(rets, default_dtype());
  check_std(std);
  require_floating_or_complex(resolved);
  fill_normal(options.destination(rets, size, resolved), generator, mean, std);
  if (requires_grad) set_requires_grad(rets.t[0], true);
}

Tensor rand_like(const Tensor& self, Generator* generator, DType dtype, Value layout, Device device,
                 std::optional<bool> pin_memory, bool requires_grad, MemoryFormat format) {
  check_uniform(dtype == DType::None ? self.dtype() : dtype, 0, 1);
  Tensor out = empty_like(self, dtype, layout, device, pin_memory, false, format);
  fill_uniform(out, generator, 0, 1);
  if (requires_grad) set_requires_grad(out, true);
  return out;
}

Tensor randn_like(const Tensor& self, Generator* generator, DType dtype, Value layout,
                  Device device, std::optional<bool> pin_memory, bool requires_grad,
                  MemoryFormat format) {
  require_floating_or_complex(dtype == DType::None ? self.dtype() : dtype);
  Tensor out = empty_like(self, dtype, layout, device, pin_memory, false, format);
  fill_normal(out, generator, 0, 1);
  if (requires_grad) set_requires_grad(out, true);
  return out;
}

// ---- normals around tensors: drawn in mean's dtype (std's where the mean is a number), then
// scaled and shifted.

namespace {

void check_stds(const Tensor& std) {
  if (std.is_complex()) runtime_error("normal expects standard deviation to be non-complex");
  if (std.is_meta() || std.numel() == 0) return;
  if (std.is_cuda()) {  // one number comes back: the least of them, or NaN
    const double least = item_of(op::_to_copy(op::min(std), DType::Float64)).to_double();
    if (!(least >= 0))
      runtime_error("normal expects all elements of std >= 0.0, but found std ", least);
    return;
  }
  for_each_value(std, [](double value) {
    if (!(value >= 0))
      runtime_error("normal expects all elements of std >= 0.0, but found std ", value);
  });
}

// Draws straight into an out= tensor where that is possible: its layout decides the order of draws.
template <class Draw>
void around_tensors(Rets& rets, IntSpan shape, DType dtype, Device device,
                    std::initializer_list<const Tensor*> read, Draw&& draw) {
  GradGuard off(false);
  prepare_result(rets, 0, shape, dtype, device);
  const Tensor& given = rets.t[0];
  bool straight = given.dtype() == dtype;
  for (const Tensor* t : read) straight = straight && !may_share_memory(given, *t);
  if (straight) return draw(given);
  Tensor apart = empty_tensor(shape, dtype, device);
  draw(apart);
  op::copy_(given, apart);
}

}  // namespace

void normal_tensor_tensor(const Tensor& mean, const Tensor& std, Generator* generator, Rets& rets) {
  require_floating_or_complex(mean.dtype());
  const Dims shape = broadcast_shapes(mean.sizes(), std.sizes());
  const Tensor* both[] = {&mean, &std};
  const Device device = common_device(both, 2);
  check_stds(std);
  around_tensors(rets, shape, mean.dtype(), device, {&mean, &std}, [&](const Tensor& out) {
    fill_normal(out, generator, 0, 1);
    op::mul_(out, std);
    op::add_(out, mean);
  });
}

void normal_tensor_float(const Tensor& mean, double std, Generator* generator, Rets& rets) {
  check_std(std);
  require_floating_or_complex(mean.dtype());
  around_tensors(rets, mean.sizes(), mean.dtype(), mean.device(), {&mean}, [&](const Tensor& out) {
    fill_normal(out, generator, 0, std);
    op::add_(out, mean);
  });
}

void normal_float_tensor(double mean, const Tensor& std, Generator* generator, Rets& rets) {
  check_stds(std);
  require_floating_or_complex(std.dtype());
  around_tensors(rets, std.sizes(), std.dtype(), std.device(), {&std}, [&](const Tensor& out) {
    fill_normal(out, generator, 0, 1);
    op::mul_(out, std);
    op::add_(out, mean);
  });
}

}  // namespace facula::kernels
