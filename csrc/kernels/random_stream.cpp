#include "kernels/random_stream.h"

#include "core/thread_generator.h"
#include "kernels/destination.h"
#include "op/elementwise.h"
#include "op/kernels/creation.h"

namespace facula {

namespace baseline {
extern const RandomLoops random_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const RandomLoops random_loops;
}
namespace v4 {
extern const RandomLoops random_loops;
}
#endif

namespace kernels {

const RandomLoops& random_loops() {
#ifdef FACULA_X86
  static const RandomLoops* const by_level[] = {&baseline::random_loops, &v3::random_loops,
                                                &v4::random_loops};
  return *by_level[isa_level()];
#else
  return baseline::random_loops;
#endif
}

Generator& RandomStream::choose(Generator* given, Device device) {
  if (!given) return thread_generator ? *thread_generator : default_generator();
  if (given->device.type != device.type)
    runtime_error("Expected a '", device_type_name(device.type),
                  "' device type for generator but found '", device_type_name(given->device.type),
                  "'. Make one with facula.Generator(device='", device_type_name(device.type),
                  "')");
  return *given;
}

void RandomStream::normals(double* out, int64_t n) {
  std::optional<double>& kept = generator_.kept_normal;
  if (n > 0 && kept) {
    *out++ = *kept;
    kept.reset();
    --n;
  }
  while (n > 1) {
    const int64_t pairs = std::min(n / 2, kWords / 4);
    random_loops().normal_pairs(out, words(4 * pairs), pairs);
    out += 2 * pairs;
    n -= 2 * pairs;
  }
  if (n == 1) {
    double pair[2];
    random_loops().normal_pairs(pair, words(4), 1);
    *out = pair[0];
    kept = pair[1];
  }
}

bool begins_writing(const Tensor& self) {
  if (has_internal_overlap(self.sizes(), self.strides())) overlap_error();
  return !self.is_meta() && self.numel() != 0;
}

DType CreationOptions::resolve_dtype(const Rets& rets, DType fallback) const {
  if (rets.destination != Destination::Out) return dtype == DType::None ? fallback : dtype;
  const DType given = rets.t[0].dtype();
  if (dtype != DType::None && dtype != given)
    runtime_error("dtype ", legacy_dtype_name(dtype), " does not match dtype of out parameter (",
                  legacy_dtype_name(given), "). Leave dtype away, or pass an out tensor of it");
  return given;
}

const Tensor& CreationOptions::destination(Rets& rets, IntSpan size, DType resolved) const {
  if (rets.destination == Destination::Out) {
    const Device given = rets.t[0].device();
    const bool open =
        device.type == DeviceType::None || (device.type == given.type && device.index < 0);
    prepare_samples(rets, size, resolved, open ? given : device);
  } else {
    rets.t[0] = empty(size, resolved, layout, device, pin_memory, false, MemoryFormat::None);
  }
  return rets.t[0];
}

}  // namespace kernels
}  // namespace facula
