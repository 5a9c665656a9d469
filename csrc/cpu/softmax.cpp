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
static void run_rows(const T* in, T* out, int64_t rows, int64_t n, bool logarithm) {
  if constexpr (sizeof(T) == 4) loops().rows_f32(in, out, rows, n, logarithm);
  else loops().rows_f64(in, out, rows, n, logarithm);
}
template <class T>
static void run_columns(const T* in, T* out, int64_t n, int64_t inner, int64_t width,
                        bool logarithm) {
  if constexpr (sizeof(T) == 4) loops().columns_f32(in, out, n, inner, width, logarithm);
  else loops().columns_f64(in, out, n, inner, width, logarithm);
}

template <class T>
static void run(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool logarithm) {
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / n), [&](int64_t b, int64_t e) {
      run_rows(in + b * n, out + b * n, e - b, n, logarithm);
    });
    return;
  }
  constexpr int64_t kColumns = 128;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kGrain / 4 / (n * kColumns)),
               [&](int64_t b, int64_t e) {
                 for (int64_t k = b; k < e; ++k) {
                   const int64_t first = k % blocks * kColumns;
                   const int64_t at = k / blocks * n * inner + first;
                   run_columns(in + at, out + at, n, inner, std::min(kColumns, inner - first),
                               logarithm);
                 }
               });
}

// Half types are computed in float32, some rows or one outer element at a time.
static void run_converted(const Tensor& in, const Tensor& out, int64_t outer, int64_t n,
                          int64_t inner, bool logarithm) {
  constexpr int64_t kTogether = 4096;  // elements, where rows are short
  const CastLoop widen = cast_loop(in.dtype(), DType::Float32);
  const CastLoop narrow = cast_loop(DType::Float32, out.dtype());
  const int64_t size = n * inner, item = int64_t(in.item_size());
  const int64_t group = inner == 1 ? std::max<int64_t>(1, kTogether / n) : 1;
  parallel_for(0, outer, std::max(group, kGrain / 4 / size), [&](int64_t b, int64_t e) {
    std::vector<float> wide(size_t(group * size)), result(wide.size());
    for (int64_t k = b; k < e; k += group) {
      const int64_t rows = std::min(group, e - k), at = k * size * item;
      widen(reinterpret_cast<char*>(wide.data()), 4, in.data() + at, item, rows * size);
      if (inner == 1) run_rows(wide.data(), result.data(), rows, n, logarithm);
      else run_columns(wide.data(), result.data(), n, inner, inner, logarithm);
      narrow(out.data() + at, item, reinterpret_cast<char*>(result.data()), 4, rows * size);
    }
  });
}

void cpu_softmax(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out) {
  int64_t n = in.dim() ? in.sizes()[dim] : 1, outer = 1, inner = 1;
  for (int64_t d = 0; d < in.dim(); ++d)
    (d < dim ? outer : d > dim ? inner : n) *= d == dim ? 1 : in.sizes()[d];
  if (in.numel() == 0) return;
  if (in.dtype() == DType::Float32)
    return run(in.data_as<float>(), out.data_as<float>(), outer, n, inner, logarithm);
  if (in.dtype() == DType::Float64)
    return run(in.data_as<double>(), out.data_as<double>(), outer, n, inner, logarithm);
  run_converted(in, out, outer, n, inner, logarithm);
}

}  // namespace facula
