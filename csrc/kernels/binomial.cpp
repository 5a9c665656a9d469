// Binomial counts, by the two methods whose draws PyTorch makes.
#include <cmath>

#include "kernels/random_stream.h"
#include "op/elementwise.h"
#include "op/kernels/random.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

// Few successes are expected: the trials between them are geometric (Devroye, 1986).
template <class T>
T count_by_gaps(T trials, T p, RandomStream& stream) {
  const double log_failure = std::log1p(-p);
  double used = 0;
  for (T successes = 0;; successes += 1) {
    used += std::ceil(std::log(stream.uniform()) / log_failure);
    if (used > trials) return successes;
  }
}

// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
double stirling_tail(double k) {
  static constexpr double kSmall[] = {
      0.0810614667953272582, 0.0413406959554092941, 0.0276779256849983391, 0.0207906721037650931,
      0.0166446911898211922, 0.0138761288230707480, 0.0118967099458917701, 0.0104112652619720965,
      0.0092554621827127329, 0.0083305634333628713};
  if (k <= 9) return kSmall[int(k)];
  const double squared = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (k + 1);
}

// Many successes: transformed rejection with squeeze, algorithm BTRS of Hoermann (1993), with p at
// most 1/2. Products of the arguments round to T, as in PyTorch.
template <class T>
T count_by_rejection(T trials, T p, RandomStream& stream) {
  const double deviation = std::sqrt(T(T(trials * p) * T(1 - p)));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = T(trials * p) + 0.5, v_r = 0.92 - 4.2 / b;
  const double odds = T(p / T(1 - p)), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor(T(T(trials + 1) * p)), n = trials;
  while (true) {
    const double u = stream.uniform() - 0.5, us = 0.5 - std::fabs(u);
    double v = stream.uniform();
    const double k = T(std::floor((2 * a / us + b) * u + centre));
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return T(k);
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) +
                         (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(n - mode) - stirling_tail(k) - stirling_tail(n - k);
    if (v <= bound) return T(k);
  }
}

template <class T>
T binomial_count(T trials, T p, RandomStream& stream) {
  if (std::isnan(p) || std::isnan(trials)) return std::numeric_limits<T>::quiet_NaN();
  if (trials <= 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  const bool mirrored = p > T(0.5);  // count the rarer outcome
  const T q = mirrored ? T(1 - p) : p;
  const T count =
      trials * q >= 10 ? count_by_rejection(trials, q, stream) : count_by_gaps(trials, q, stream);
  return mirrored ? trials - count : count;
}

template <class T>
void fill_counts(const Tensor& out, const Tensor& count, const Tensor& prob, RandomStream& stream) {
  const Tensor trials = op::contiguous(op::_to_copy(count, DTypeOf<T>::value));
  const Tensor odds = op::contiguous(op::_to_copy(prob, DTypeOf<T>::value));
  const T *n = trials.data_as<T>(), *p = odds.data_as<T>();
  fill_in_memory_order<T>(out, [&](T* to, int64_t m) {
    for (int64_t i = 0; i < m; ++i) to[i] = binomial_count(*n++, *p++, stream);
  });
}

}  // namespace

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  const DType d = count.dtype();
  for (DType given : {d, prob.dtype()})
    if (!is_floating(given) || item_size(given) < 2)
      value_error("count and prob must be float16, bfloat16, float32 or float64, got ", given);
  if (prob.dtype() != d)
    runtime_error("count and prob must have the same dtype, got ", d, " and ", prob.dtype());
  const Tensor* both[] = {&count, &prob};
  const Device device = common_device(both, 2);
  const Dims shape = broadcast_shapes(count.sizes(), prob.sizes());
  Tensor out = empty_tensor(shape, d, device);
  fill_on_host(out, [&](const Tensor& t) {
    GradGuard off(false);
    const Tensor n = op::expand(on_host(count), shape), p = op::expand(on_host(prob), shape);
    for_each_value(n, [](double trials) {  // the gaps between successes would never end
      if (std::isinf(trials) && trials > 0) value_error("count must be finite, got ", trials);
    });
    RandomStream stream(generator, device);
    if (d == DType::Float64) fill_counts<double>(t, n, p, stream);
    else fill_counts<float>(t, n, p, stream);
  });
  return out;
}

}  // namespace facula::kernels
