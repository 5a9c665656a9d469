#include "cuda/creation.h"

#include "cuda/elementwise.h"
#include "cuda/translate.h"
#include "op/hooks/creation.h"

namespace facula::cuda {
namespace {

// A launch over the elements of a dense tensor, by their positions.
ElementwiseLaunch by_position(const Tensor& out, const char* name, const char* body,
                              DType compute) {
  ElementwiseLaunch launch;
  launch.name = name;
  launch.body = body;
  launch.compute = compute;
  launch.uses_index = true;
  launch.ptrs[0] = out.data();
  launch.dtypes[0] = out.dtype();
  launch.ndim = 1;
  launch.sizes[0] = out.numel();
  launch.strides[0][0] = int64_t(out.item_size());
  return launch;
}

void run(const ElementwiseLaunch& launch, const Tensor& out) {
  const int device = out.device().index;
  launch_elementwise(launch, device, current_stream(device));
}

void progression(const Tensor& out, const Scalar& first, const Scalar& step) {
  const bool integers = !first.is_float() && !step.is_float();
  const DType compute = integers ? DType::Int64 : DType::Float64;
  ElementwiseLaunch launch = by_position(out, "arange", "first + T(index) * step", compute);
  first.store(compute, launch.params.next(compute, "first"));
  step.store(compute, launch.params.next(compute, "step"));
  run(launch, out);
}

void spaced(const Tensor& out, double first, double last) {
  const int64_t n = out.numel();
  ElementwiseLaunch launch = by_position(
      out, "linspace",
      "where(index < half, first + T(index) * step, last - T(count - 1 - index) * step)",
      DType::Float64);
  launch.params.add(DType::Float64, first, "first");
  launch.params.add(DType::Float64, last, "last");
  launch.params.add(DType::Float64, n > 1 ? (last - first) / double(n - 1) : 0.0, "step");
  launch.params.add(DType::Int64, n, "count");
  launch.params.add(DType::Int64, n == 1 ? int64_t(1) : n / 2, "half");
  run(launch, out);
}

}  // namespace

void register_creation() {
  device_creation.progression.set(translate<progression>);
  device_creation.spaced.set(translate<spaced>);
}

}  // namespace facula::cuda
