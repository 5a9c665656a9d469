// What a device backend does for many tensors at once: steps of optimisers, norms, scaling.
#pragma once
#include "cpu/optim.h"
#include "op/device_hook.h"
#include "op/value.h"

namespace facula {

// A parameter whose scalar state lies on its device. The work has no coefficients.
struct CountedWork {
  OptimWork work;
  const Tensor* scalars;  // three, the first ones defined, of one dtype
  bool first;
};

// The options of a rule; those that lie on the device are float64 tensors.
struct DeviceOptions {
  double value[8];
  Tensor given[8];
};

struct ListHooks {
  // Updates parameters of one device. The operands of each work lie in memory in the same order,
  // without gaps.
  DeviceHook<void(OptimRule rule, unsigned slots, std::span<const OptimWork> works)> optimizer_step{
      "optimizer step"};
  // The same where counts of steps lie on the device: nothing is read back.
  DeviceHook<void(OptimRule rule, const DeviceOptions& options, std::span<const CountedWork> works)>
      counted_step{"optimizer step"};
  // Multiplies dense tensors of one device by a 0-dim tensor there. `found`, if defined, is a
  // float32 that becomes 1 where an element is infinite or NaN.
  DeviceHook<void(TensorSpan tensors, const Tensor& factor, const Tensor& found)> scale{"scale"};
  // result[i] = formula(inputs[0][i], ..., numbers[i]) over dense real tensors of one dtype and
  // device; tensors of one i have one layout. The formula is a text that lives for ever, over a, b,
  // c and, where there are numbers, p.
  DeviceHook<void(const char* formula, TensorSpan results, std::span<const TensorSpan> inputs,
                  std::span<const double> numbers)>
      formula{"formula of lists"};
  // Numbers whose sum is the sum of |x| ** order over all elements of dense tensors of one device,
  // or whose maximum is the largest |x| where the order is infinite.
  DeviceHook<Tensor(TensorSpan tensors, double order)> norm_parts{"norm"};
};
inline constinit ListHooks device_lists;

}  // namespace facula
