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
static void run_row_grads(const T* grad, const T* result, T* out, int64_t rows, int64_t n,
                          bool logarithm) {
  if constexpr (sizeof(T) == 4) loops().row_grads_f32(grad, result, out, rows, n, logarithm);
  else loops().row_grads_f64(grad, result, out, rows, n, logarithm);
}
template <class T>
static void run_column_grads(const T* grad, const T* result, T* out, int64_t n, int64_t inner,
                             int64_t width, bool logarithm) {
  if constexpr (sizeof(T) == 4)
    loops().column_grads_f32(grad, result, out, n, inner, width, logarithm);
  else loops().column_grads_f64(grad, result, out, n, inner, width, logarithm);
}

// Calls rows(offset, count) for some rows at a time where the dimension is the last one, else
// columns(offset, width) for some columns of one outer element.
template <class R, class C>
static void for_each_part(int64_t outer, int64_t n, int64_t inner, R rows, C columns) {
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / n),
                 [&](int64_t b, int64_t e) { rows(b * n, e - b); });
    return;
  }
  constexpr int64_t kColumns = 128;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kGrain / 4 / (n * kColumns)),
               [&](int64_t b, int64_t e) {
                 for (int64_t k = b; k < e; ++k) {
                   const int64_t first = k % blocks * kColumns;
                   columns(k / blocks * n * inner + first, std::min(kColumns, inner - first));
                 }
               });
}

template <class T>
static void run(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool logarithm) {
  for_each_part(
      outer, n, inner,
      [&](int64_t at, int64_t count) { run_rows(in + at, out + at, count, n, logarithm); },
      [&](int64_t at, int64_t width) {
        run_columns(in + at, out + at, n, inner, width, logarithm);
      });
}

template <class T>
static void run_grads(const T* grad, const T* result, T* out, int64_t outer, int64_t n,
                      int64_t inner, bool logarithm) {
  for_each_part(
      outer, n, inner,
      [&](int64_t at, int64_t count) {
        run_row_grads(grad + at, result + at, out + at, count, n, logarithm);
      },
      [&](int64_t at, int64_t width) {
        run_column_grads(grad + at, result + at, out + at, n, inner, width, logarithm);
      });
}

// Half types are computed in float32, some rows or one outer element at a time: f(elements read as
// float32, from one or two tensors, where results go, rows).
template <class F>
static void run_converted(std::initializer_list<const Tensor*> in, const Tensor& out, int64_t outer,
                          int64_t n, int64_t inner, F f) {
  constexpr int64_t kTogether = 2048;  // elements, where rows are short: the nearest cache
  const CastLoop widen = cast_loop(out.dtype(), DType::Float32);
  const CastLoop narrow = cast_loop(DType::Float32, out.dtype());
  const int64_t size = n * inner, item = int64_t(out.item_size());
  const int64_t group = inner == 1 ? std::max<int64_t>(1, kTogether / n) : 1;
  parallel_for(0, outer, std::max(group, kGrain / 4 / size), [&](int64_t b, int64_t e) {
    std::vector<float> wide[2], result(size_t(group * size));
    for (size_t i = 0; i < in.size(); ++i) wide[i].resize(result.size());
    for (int64_t k = b; k < e; k += group) {
      const int64_t rows = std::min(group, e - k), at = k * size * item;
      for (size_t i = 0; i < in.size(); ++i)
        widen(reinterpret_cast<char*>(wide[i].data()), 4, in.begin()[i]->data() + at, item,
              rows * size);
      f(wide[0].data(), wide[1].data(), result.data(), rows);
      narrow(out.data() + at, item, reinterpret_cast<char*>(result.data()), 4, rows * size);
    }
  });
}

namespace {

// A contiguous tensor around a dimension.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
  Around(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d > dim ? inner : n) *= t.sizes()[d];
  }
};

}  // namespace

void cpu_softmax(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out) {
  if (in.numel() == 0) return;
  const auto [outer, n, inner] = Around(in, dim);
  if (in.dtype() == DType::Float32)
    return run(in.data_as<float>(), out.data_as<float>(), outer, n, inner, logarithm);
  if (in.dtype() == DType::Float64)
    return run(in.data_as<double>(), out.data_as<double>(), outer, n, inner, logarithm);
  run_converted({&in}, out, outer, n, inner,
                [&, n = n, inner = inner](const float* x, const float*, float* y, int64_t rows) {
                  if (inner == 1) run_rows(x, y, rows, n, logarithm);
                  else run_columns(x, y, n, inner, inner, logarithm);
                });
}

void cpu_softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim, bool logarithm,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  const auto [outer, n, inner] = Around(out, dim);
  if (out.dtype() == DType::Float32)
    return run_grads(grad.data_as<float>(), result.data_as<float>(), out.data_as<float>(), outer, n,
                     inner, logarithm);
  if (out.dtype() == DType::Float64)
    return run_grads(grad.data_as<double>(), result.data_as<double>(), out.data_as<double>(), outer,
                     n, inner, logarithm);
  run_converted({&grad, &result}, out, outer, n, inner,
                [&, n = n, inner = inner](const float* g, const float* y, float* to, int64_t rows) {
                  if (inner == 1) run_row_grads(g, y, to, rows, n, logarithm);
                  else run_column_grads(g, y, to, n, inner, inner, logarithm);
                });
}

}  // namespace facula
