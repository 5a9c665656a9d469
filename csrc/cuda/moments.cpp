#include "cuda/moments.h"

#include "cuda/reduce.h"
#include "cuda/translate.h"
#include "op/hooks/moments.h"

namespace facula::cuda {
namespace {

void moments(const Tensor& self, uint64_t dims, double freedom, const Tensor& pairs) {
  const int device = self.device().index;
  ReduceLaunch launch;
  launch.name = "var_mean";
  launch.formula.init = "return {0, 0, 0};";
  launch.formula.map = "moments(a)";
  launch.formula.combine = "merge(a, b)";
  launch.formula.finalise = "Complex<T>(a.squares / p0, a.mean)";
  launch.formula.accumulator = "Moments<T>";
  launch.compute = to_real(pairs.dtype());
  launch.formula.accumulator_bytes = 3 * int(item_size(launch.compute));
  launch.in = self.data();
  launch.out = pairs.data();
  launch.in_dtype = self.dtype();
  launch.out_dtype = pairs.dtype();
  launch.ndim = int(self.dim());
  launch.reduced = dims;
  for (int64_t d = 0; d < self.dim(); ++d) {
    launch.sizes[d] = self.size(d);
    launch.in_strides[d] = self.stride(d) * int64_t(self.item_size());
    launch.out_strides[d] = dims >> d & 1 ? 0 : pairs.stride(d) * int64_t(pairs.item_size());
  }
  launch.params.add(launch.compute, freedom);
  launch_reduce(launch, device, current_stream(device));
}

}  // namespace

void register_moments() {
  device_moments.moments.set(translate<moments>);
}

}  // namespace facula::cuda
