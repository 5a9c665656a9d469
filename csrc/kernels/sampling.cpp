// Samples whose distribution is given by tensors: coin flips, categories, counts.
#include <cmath>
#include <memory>

#include "kernels/destination.h"
#include "kernels/random_stream.h"
#include "kernels/samplers.h"
#include "op/elementwise.h"
#include "op/kernels/creation.h"
#include "op/kernels/random.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/indexing.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// ---- Bernoulli

namespace {

void check_coin_dtype(DType d) {
  if (is_complex(d) || d == DType::Float8E4M3 || d == DType::Float8E5M2)
    dtype_error(d, "bool, the integral types, float16, bfloat16, float32, float64");
}

void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) runtime_error("bernoulli_ expects p to be in [0, 1], but got p=", p);
}

// One coin for every element, in memory order of `self`; `p` is broadcast. The precision of p
// decides how many bits a draw has.
template <class P, class Loop>
void flip_coins(const Tensor& self, const Tensor& p, RandomStream& stream, Loop loop) {
  constexpr int64_t kDraws = RandomStream::kDraws, kWords = sizeof(P) == 8 ? 2 : 1;
  const CastLoop read = cast_loop(p.dtype(), DTypeOf<P>::value);
  const CastLoop write = cast_loop(DType::Bool, self.dtype());
  Iteration it;
  it.begin(self.sizes());
  it.add(self.data(), self.sizes(), self.strides(), int64_t(self.item_size()));
  it.add(p.data(), p.sizes(), p.strides(), int64_t(p.item_size()));
  it.finish();
  it.run(0, it.numel, [&](char* const* at, const int64_t* s, int64_t n) {
    alignas(64) P probabilities[kDraws];
    alignas(64) bool heads[kDraws];
    for (int64_t done = 0; done < n; done += kDraws) {
      const int64_t m = std::min(kDraws, n - done);
      read(reinterpret_cast<char*>(probabilities), sizeof(P), at[1] + done * s[1], s[1], m);
      loop(heads, stream.words(m * kWords), m, probabilities);
      write(at[0] + done * s[0], s[0], reinterpret_cast<const char*>(heads), 1, m);
    }
  });
}

void fill_coins(const Tensor& self, const Tensor& p, Generator* generator) {
  const DType d = p.dtype();
  if (!is_floating(d) || item_size(d) < 2)
    dtype_error(d, "float16, bfloat16, float32, float64 for p");
  if (!is_expandable(p.sizes(), self.sizes())) {
    const Dims shape = broadcast_shapes(self.sizes(), p.sizes());
    runtime_error("p of shape ", p.sizes(), " cannot be broadcast to the shape ", self.sizes(),
                  " of the tensor that is filled; together they give ", IntSpan(shape));
  }
  const Tensor* both[] = {&self, &p};
  if (const Device device = common_device(both, 2); device != self.device())
    device_error(self.device(), device);
  if (self.is_cuda()) {
    if (!begins_writing(self)) return;
    GradGuard off(false);
    const Tensor there = p.is_cuda() ? p : op::_to_copy(p, DType::None, self.device());
    const Tensor apart = check_overlap(self, there) ? op::clone(there) : there;
    device_random.sample(self, Sampled::Coins, apart, Tensor(), generator);
    return;
  }
  if (!p.is_meta())
    for_each_value(p, [](double v) {
      if (!(v >= 0 && v <= 1))
        runtime_error("Expected p_in >= 0 && p_in <= 1 to be true, but got p=", v,
                      "; every element of p must be a probability");
    });
  if (!begins_writing(self)) return;
  const Tensor apart = check_overlap(self, p) ? op::clone(p) : p;
  RandomStream stream(generator, self.device());
  if (d == DType::Float64) flip_coins<double>(self, apart, stream, random_loops().bernoulli_double);
  else flip_coins<float>(self, apart, stream, random_loops().bernoulli_float);
}

void fill_coins(const Tensor& self, double p, Generator* generator) {
  fill_random(self, {.kind = Drawn::Coin, .a = p}, generator, [&] {
    RandomStream stream(generator, self.device());
    fill_in_memory_order<bool>(self, [&](bool* out, int64_t n) {
      random_loops().bernoulli(out, stream.words(2 * n), n, p);
    });
  });
}

}  // namespace

void bernoulli_(const Tensor& self, double p, Generator* generator, Rets&) {
  check_probability(p);
  check_coin_dtype(self.dtype());
  fill_coins(self, p, generator);
}

void bernoulli__tensor(const Tensor& self, const Tensor& p, Generator* generator, Rets&) {
  check_coin_dtype(self.dtype());
  fill_coins(self, p, generator);
}

void bernoulli(const Tensor& self, Generator* generator, Rets& rets) {
  const DType d = rets.destination == Destination::Out ? rets.t[0].dtype() : self.dtype();
  check_coin_dtype(d);
  prepare_samples(rets, self.sizes(), d, self.device());
  fill_coins(rets.t[0], self, generator);
}

Tensor bernoulli_p(const Tensor& self, double p, Generator* generator) {
  check_probability(p);
  check_coin_dtype(self.dtype());
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  fill_coins(out, p, generator);
  return out;
}

// ---- categories

namespace {

// Without replacement: the order in which exponential clocks of the given rates ring (Efraimidis
// and Spirakis, 2006), that is the largest quotients of weights and standard exponential draws.
void first_rings(double* quotients, int64_t categories, int64_t samples, int64_t* out) {
  for (int64_t i = 0; i < categories; ++i)  // 0 / 0 in a small dtype: no weight, and no order
    if (std::isnan(quotients[i])) quotients[i] = 0;
  auto index = std::make_unique<int64_t[]>(size_t(categories));
  for (int64_t i = 0; i < categories; ++i) index[size_t(i)] = i;
  int64_t* begin = index.get();
  auto larger = [&](int64_t a, int64_t b) { return quotients[a] > quotients[b]; };
  if (samples == 1) {
    *begin = std::max_element(quotients, quotients + categories) - quotients;
  } else if (samples * 64 <= categories) {  // few of many
    std::partial_sort(begin, begin + samples, begin + categories, larger);
  } else {
    std::nth_element(begin, begin + samples - 1, begin + categories, larger);
    std::sort(begin, begin + samples - 1, larger);
  }
  std::copy_n(begin, samples, out);
}

void check_weights(const Tensor& weights, int64_t categories) {
  bool valid = true;
  for_each_value(weights, [&](double w) { valid &= w >= 0 && w < HUGE_VAL; });
  if (!valid) runtime_error("probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor w = op::contiguous(op::_to_copy(weights, DType::Float64));
  const double* p = w.data_as<double>();
  for (int64_t row = 0; row * categories < w.numel(); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < categories; ++i) sum += p[row * categories + i];
    if (!(sum > 0)) runtime_error("invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

void sample_without_replacement(const Tensor& weights, int64_t categories, int64_t samples,
                                RandomStream& stream, int64_t* out) {
  check_weights(weights, categories);
  // Drawn and divided in the weights' own dtype and layout, as PyTorch does.
  Tensor clocks =
      empty_like(weights, DType::None, Value(), kNoDevice, std::nullopt, false, MemoryFormat::None);
  fill_in_memory_order<double>(clocks, [&](double* to, int64_t n) {
    random_loops().exponential(to, stream.words(2 * n), n, 1.0);
  });
  const Tensor quotients = op::contiguous(op::_to_copy(op::div(weights, clocks), DType::Float64));
  double* q = quotients.data_as<double>();
  for (int64_t row = 0; row * categories < quotients.numel(); ++row)
    first_rings(q + row * categories, categories, samples, out + row * samples);
}

// Running sums of `kRows` rows, which do not wait for each other; the last ones are their totals.
template <int kRows, class T>
void sum_weights(const T* p, T* sums, int64_t categories) {
  T so_far[kRows] = {};
  for (int64_t i = 0; i < categories; ++i)
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r * categories + i] = so_far[r] += p[r * categories + i];
}

template <class T>
void check_row(const T* p, int64_t n, T total) {
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] < 0)
      runtime_error("invalid multinomial distribution (encountering probability entry < 0)");
    if (!std::isfinite(p[i]))
      runtime_error(
          "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  }
  if (!(total > 0)) runtime_error("invalid multinomial distribution (sum of probabilities <= 0)");
}

// With replacement: the first category whose cumulative probability reaches a uniform draw. T is
// the precision of the sums. Every row is checked before the first draw; sums are divided by the
// total where they are looked at.
template <class T>
void sample_with_replacement(const Tensor& weights, int64_t categories, int64_t samples,
                             RandomStream& stream, int64_t* out) {
  constexpr int kTogether = 8;
  const Tensor w = op::contiguous(op::_to_copy(weights, DTypeOf<T>::value));
  const Tensor cumulative = empty_tensor(w.sizes(), DTypeOf<T>::value, Device{});
  const int64_t rows = w.numel() / categories;
  const T* p = w.data_as<T>();
  T* sums = cumulative.data_as<T>();
  parallel_for(
      0, rows, std::max<int64_t>(kTogether, kGrain / categories), [&](int64_t b, int64_t e) {
        int64_t row = b;
        for (; row + kTogether <= e; row += kTogether)
          sum_weights<kTogether>(p + row * categories, sums + row * categories, categories);
        for (; row < e; ++row)
          sum_weights<1>(p + row * categories, sums + row * categories, categories);
      });
  // What is wrong with any weight shows in the least of them or in its row's total.
  const bool some_negative = !(item_of(op::amin(w)).to_double() >= 0);
  for (int64_t row = 0; row < rows; ++row) {
    const T total = sums[(row + 1) * categories - 1];
    if (some_negative || !(total > 0 && std::isfinite(total)))
      check_row(p + row * categories, categories, total);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const T *c = sums + row * categories, *last = c + categories - 1, total = *last;
    for (int64_t k = 0; k < samples; ++k) {
      const double u = stream.uniform();
      *out++ =
          std::lower_bound(c, last, u, [total](T a, double b) { return double(a / total) < b; }) -
          c;
    }
  }
}

// On a device: the same two methods, made of operators. One number comes back to the host, whether
// the weights are any.
Tensor sample_on_device(const Tensor& weights, int64_t samples, bool replacement,
                        Generator* generator) {
  const Tensor w =
      weights.dtype() == DType::Float64 ? weights : op::_to_copy(weights, DType::Float32);
  const int64_t last = -1;
  const Tensor sums = op::sum_dim(w, IntSpan(&last, 1), true);
  const Tensor valid = op::logical_and(op::all(op::logical_and(op::ge(w, 0), op::isfinite(w))),
                                       op::all(op::gt(sums, 0)));
  if (!item_of(valid).to_int())
    runtime_error(
        "probability tensor contains either `inf`, `nan` or element < 0, or a row whose "
        "sum is not positive");
  if (!replacement || samples == 1) {
    const Tensor clocks = empty_tensor(w.sizes(), w.dtype(), w.device());
    device_random.draw(clocks, {.kind = Drawn::Exponential, .a = 1}, generator);
    return std::get<1>(op::topk(w / clocks, samples, -1, true, true));
  }
  Dims shape(w.sizes());
  shape[shape.size() - 1] = samples;
  const Tensor uniforms = empty_tensor(shape, w.dtype(), w.device());
  device_random.draw(uniforms, {.kind = Drawn::Uniform, .a = 0, .b = 1}, generator);
  // The first category whose sum exceeds the draw; rounding must not lead behind the last one that
  // has any weight.
  const Tensor cumulative = op::cumsum(w, -1);
  const Tensor total = op::narrow(cumulative, -1, w.size(-1) - 1, 1);
  const Tensor found = op::searchsorted(cumulative, uniforms * total, false, true);
  const Tensor positive = op::argmax(op::ge(cumulative, total), -1, true);
  return op::minimum(found, positive);
}

}  // namespace

void multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator,
                 Rets& rets) {
  const DType d = self.dtype();
  if (rets.destination == Destination::Out && rets.t[0].dtype() != DType::Int64)
    runtime_error("multinomial expects Long tensor out, got: ",
                  legacy_dtype_name(rets.t[0].dtype()));
  if (!is_floating(d) || item_size(d) < 2)
    runtime_error("multinomial only supports floating-point dtypes for input, got: ",
                  legacy_dtype_name(d));
  if (self.dim() != 1 && self.dim() != 2)
    runtime_error("prob_dist must be 1 or 2 dim, but the input has shape ", self.sizes());
  if (num_samples <= 0) runtime_error("cannot sample n_sample <= 0 samples, got ", num_samples);
  const int64_t categories = self.sizes().back();
  if (!replacement && num_samples > categories)
    runtime_error("cannot sample n_sample > prob_dist.size(-1) samples without replacement: ",
                  num_samples, " of ", categories);
  if (categories == 0) runtime_error("cannot sample from zero categories");
  if (categories > int64_t(1) << 24)
    runtime_error("number of categories cannot exceed 2^24, got ", categories);
  Dims shape(self.sizes());
  shape[shape.size() - 1] = num_samples;
  prepare_samples(rets, shape, DType::Int64, self.device());
  if (self.is_meta() || self.numel() == 0) return;

  GradGuard off(false);
  if (self.is_cuda()) {
    const Tensor drawn = sample_on_device(self, num_samples, replacement, generator);
    if (rets.destination == Destination::New) rets.t[0] = drawn;
    else op::copy_(rets.t[0], drawn);
    return;
  }
  const Tensor& weights = self;
  Tensor samples = empty_tensor(shape, DType::Int64, Device{});
  {
    RandomStream stream(generator, self.device());
    int64_t* out = samples.data_as<int64_t>();
    if (!replacement || num_samples == 1)
      sample_without_replacement(weights, categories, num_samples, stream, out);
    else if (d == DType::Float64)
      sample_with_replacement<double>(weights, categories, num_samples, stream, out);
    else sample_with_replacement<float>(weights, categories, num_samples, stream, out);
  }
  if (rets.destination == Destination::New) rets.t[0] = samples;
  else op::copy_(rets.t[0], samples);
}

// ---- counts

Tensor poisson(const Tensor& self, Generator* generator) {
  const DType d = self.dtype();
  if (!is_floating(d) || item_size(d) < 2) dtype_error(d, "float16, bfloat16, float32, float64");
  Tensor out = empty_tensor(self.sizes(), d, self.device());
  if (!begins_writing(out)) return out;
  if (out.is_cuda()) {
    device_random.sample(out, Sampled::Poisson, self, Tensor(), generator);
    return out;
  }
  for_each_value(self, [](double rate) {
    if (!(rate >= 0))
      runtime_error("invalid Poisson rate, expected rate to be non-negative, but found ", rate);
  });
  GradGuard off(false);
  const Tensor rates = op::contiguous(op::_to_copy(self, DType::Float64));
  const double* rate = rates.data_as<double>();
  RandomStream stream(generator, self.device());
  fill_in_memory_order<double>(out, [&](double* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i, ++rate) to[i] = samplers::poisson(*rate, stream);
  });
  return out;
}

}  // namespace facula::kernels
