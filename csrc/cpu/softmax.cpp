#include "cpu/softmax_loop.h"

#include <algorithm>
#include <vector>

#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/reduce_index.h"

namespace facula {

namespace baseline {
extern const SoftmaxLoops softmax_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const SoftmaxLoops softmax_loops;
}
namespace v4 {
extern const SoftmaxLoops softmax_loops;
}
#endif

static const SoftmaxLoops& loops() {
#ifdef FACULA_X86
  static const SoftmaxLoops* table[] = {&baseline::softmax_loops, &v3::softmax_loops,
                                        &v4::softmax_loops};
  return *table[isa_level()];
#else
  return baseline::softmax_loops;
#endif
}

template <class T>
static void run(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool logarithm) {
  auto rows = [&](auto... a) {
    if constexpr (sizeof(T) == 4) loops().rows_f32(a...);
    else loops().rows_f64(a...);
  };
  auto columns = [&](auto... a) {
    if constexpr (sizeof(T) == 4) loops().columns_f32(a...);
    else loops().columns_f64(a...);
  };
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / n),
                 [&](int64_t b, int64_t e) { rows(in + b * n, out + b * n, e - b, n, logarithm); });
    return;
  }
  parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / (n * inner)), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k)
      columns(in + k * n * inner, out + k * n * inner, n, inner, inner, logarithm);
  });
}

void cpu_softmax(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out) {
  int64_t n = in.dim() ? in.sizes()[dim] : 1, outer = 1, inner = 1;
  for (int64_t d = 0; d < in.dim(); ++d)
    (d < dim ? outer : d > dim ? inner : n) *= d == dim ? 1 : in.sizes()[d];
  if (in.dtype() == DType::Float32)
    return run(in.data_as<float>(), out.data_as<float>(), outer, n, inner, logarithm);
  if (in.dtype() == DType::Float64)
    return run(in.data_as<double>(), out.data_as<double>(), outer, n, inner, logarithm);
  std::vector<float> wide(size_t(in.numel())),
      result(wide.size());  // half types are computed in float32
  cast_loop(in.dtype(), DType::Float32)(reinterpret_cast<char*>(wide.data()), 4, in.data(),
                                        int64_t(in.item_size()), in.numel());
  run(wide.data(), result.data(), outer, n, inner, logarithm);
  cast_loop(DType::Float32, out.dtype())(out.data(), int64_t(out.item_size()),
                                         reinterpret_cast<char*>(result.data()), 4, in.numel());
}

}  // namespace facula
