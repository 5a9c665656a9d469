// What a device backend draws (kernels/random.cpp, random_integers.cpp, sampling.cpp and others).
#pragma once
#include "core/generator.h"
#include "op/device_hook.h"

namespace facula {

// A distribution whose parameters are numbers.
enum class Drawn : uint8_t {
  Uniform,      // on [a, b)
  Normal,       // mean a, deviation b
  LogNormal,    // exp of that
  Exponential,  // rate a
  Cauchy,       // median a, sigma b
  Geometric,    // probability a
  Coin,         // true with probability a
  Integer,      // base + (32 random bits) % range
  WideInteger,  // base + (64 random bits) % range; a range of 0 stands for 2**64
};
struct DrawnNumbers {
  Drawn kind;
  double a = 0, b = 0;
  int64_t base = 0;
  uint64_t range = 0;
};

// A distribution whose parameters are tensors.
enum class Sampled : uint8_t {
  Coins,     // true with probability `first`
  Poisson,   // rate `first`
  Gamma,     // shape `first`; never less than the smallest normal number
  Binomial,  // `first` trials of probability `second`
};

struct RandomHooks {
  // `out` is any tensor of a real dtype, not empty. A null generator means the device's own.
  DeviceHook<void(const Tensor& out, const DrawnNumbers& numbers, Generator* generator)> draw{
      "random numbers"};
  // The parameters have the shape of `out`; `second` is undefined where there is one. What no
  // distribution has for a parameter is noted as a fault (cuda/fault.h).
  DeviceHook<void(const Tensor& out, Sampled kind, const Tensor& first, const Tensor& second,
                  Generator* generator)>
      sample{"random samples"};
  // How samples move with their parameters: of a gamma sample `second` with the shape `first`, or
  // of a component `first` of a Dirichlet sample with its concentration `second`, `third` being the
  // sum of all concentrations. The operands broadcast to the shape of `out`.
  DeviceHook<void(const Tensor& out, const Tensor& first, const Tensor& second,
                  const Tensor& third)>
      sample_gradient{"_standard_gamma_grad"};
  // out = self * (scale or 0) and mask, by coins that keep with probability `keep`. All are dense,
  // of one layout, and aligned to four elements.
  DeviceHook<void(const Tensor& self, double keep, double scale, const Tensor& out,
                  const Tensor& mask, Generator* generator)>
      dropout{"dropout"};
};
inline constinit RandomHooks device_random;

}  // namespace facula
