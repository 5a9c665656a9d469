// Samples that take an unknown number of draws; shared by CPU and CUDA. A stream has uniform(), on
// [0, 1), and normal(). FACULA_SAMPLER stands before every function, and FACULA_CALLED_SAMPLER
// before those that are called from many places and long to compile for a device.
#pragma once

namespace facula {
namespace samplers {

FACULA_CALLED_SAMPLER double log_of(double x) {
  return ::log(x);
}

// Marsaglia and Tsang (2000), squeezed rejection from a cubed normal. Shapes below 1 draw for the
// shape plus 1 and multiply by a power of a uniform.
template <class Stream>
FACULA_SAMPLER double gamma(double shape, Stream& stream) {
  if (shape != shape) return shape;
  if (shape <= 0) return 0;
  double scale = 1;
  if (shape < 1) {
    scale = ::pow(1 - stream.uniform(), 1 / shape);
    shape += 1;
  }
  if (shape > 1.7976931348623157e308) return shape;
  // The constants are floats in PyTorch, which shows in the ninth digit.
  const double d = shape - 1.0f / 3.0f, c = 1 / ::sqrt(9 * d);
  while (true) {
    double x, root;
    do {
      x = stream.normal();
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - stream.uniform(), squared = x * x;
    if (u < 1 - 0.0331f * squared * squared) return scale * d * v;
    if (log_of(u) < 0.5 * squared + d * (1 - v + log_of(v))) return scale * d * v;
  }
}

// Small rates: how many uniforms can be multiplied before the product falls below exp(-rate)
// (Knuth).
template <class Stream>
FACULA_SAMPLER double poisson_by_products(double rate, Stream& stream) {
  const double limit = ::exp(-rate);
  double product = 1;
  for (double count = 0;; ++count) {
    product *= stream.uniform();
    if (product <= limit) return count;
  }
}

// Large rates: transformed rejection with squeeze, algorithm PTRS of Hoermann (1993).
template <class Stream>
FACULA_SAMPLER double poisson_by_rejection(double rate, Stream& stream) {
  const double log_rate = log_of(rate);
  const double b = 0.931 + 2.53 * ::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = stream.uniform() - 0.5, v = stream.uniform();
    const double us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log_of(v) + log_of(inverse_alpha) - log_of(a / (us * us) + b) <=
        k * log_rate - rate - ::lgamma(k + 1))
      return k;
  }
}

template <class Stream>
FACULA_SAMPLER double poisson(double rate, Stream& stream) {
  if (rate == 0) return 0;
  return rate < 10 ? poisson_by_products(rate, stream) : poisson_by_rejection(rate, stream);
}

// Few successes are expected: the trials between them are geometric (Devroye, 1986).
template <class T, class Stream>
FACULA_SAMPLER T binomial_by_gaps(T trials, T p, Stream& stream) {
  const double log_failure = T(::log1p(-double(p)));
  double used = 0;
  for (T successes = 0;; successes += 1) {
    used += ::ceil(log_of(stream.uniform()) / log_failure);
    if (used > trials) return successes;
  }
}

// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
FACULA_SAMPLER double stirling_tail(double k) {
  constexpr double kSmall[] = {0.0810614667953272582, 0.0413406959554092941, 0.0276779256849983391,
                               0.0207906721037650931, 0.0166446911898211922, 0.0138761288230707480,
                               0.0118967099458917701, 0.0104112652619720965, 0.0092554621827127329,
                               0.0083305634333628713};
  if (k <= 9) return kSmall[int(k)];
  const double squared = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (k + 1);
}

// Many successes: transformed rejection with squeeze, algorithm BTRS of Hoermann (1993), with p at
// most 1/2. Products of the arguments round to T, as in PyTorch.
template <class T, class Stream>
FACULA_SAMPLER T binomial_by_rejection(T trials, T p, Stream& stream) {
  const double deviation = T(::sqrt(double(T(T(trials * p) * T(1 - p)))));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = T(trials * p) + 0.5, v_r = 0.92 - 4.2 / b;
  const double odds = T(p / T(1 - p)), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = ::floor(double(T(T(trials + 1) * p))), n = trials;
  while (true) {
    const double u = stream.uniform() - 0.5, us = 0.5 - ::fabs(u);
    double v = stream.uniform();
    const double k = T(::floor((2 * a / us + b) * u + centre));
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return T(k);
    v = log_of(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * log_of((mode + 1) / (odds * (n - mode + 1))) +
                         (n + 1) * log_of((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * log_of(odds * (n - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(n - mode) - stirling_tail(k) - stirling_tail(n - k);
    if (v <= bound) return T(k);
  }
}

// Trials must be finite.
template <class T, class Stream>
FACULA_SAMPLER T binomial(T trials, T p, Stream& stream) {
  if (p != p || trials != trials) return p != p ? p : trials;
  if (trials <= 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  const bool mirrored = p > T(0.5);  // count the rarer outcome
  const T q = mirrored ? T(1 - p) : p;
  const T count = trials * q >= 10 ? binomial_by_rejection(trials, q, stream)
                                   : binomial_by_gaps(trials, q, stream);
  return mirrored ? trials - count : count;
}

}  // namespace samplers
}  // namespace facula
