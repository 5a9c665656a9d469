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

template <class S>
static void run_row_grads(const S* grad, const S* result, S* out, int64_t rows, int64_t n,
                          bool logarithm) {
  if constexpr (std::is_same_v<S, float>)
    loops().row_grads_f32(grad, result, out, rows, n, logarithm);
  else if constexpr (std::is_same_v<S, double>)
    loops().row_grads_f64(grad, result, out, rows, n, logarithm);
  else if constexpr (std::is_same_v<S, Half>)
    loops().row_grads_f16(grad, result, out, rows, n, logarithm);
  else loops().row_grads_bf16(grad, result, out, rows, n, logarithm);
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

// Half types are computed in float32, some rows or columns at a time: f(elements read as float32,
// from one or two tensors, where results go, rows, columns).
template <class F>
static void run_converted(std::initializer_list<const Tensor*> in, const Tensor& out, int64_t outer,
                          int64_t n, int64_t inner, F f) {
  constexpr int64_t kTogether = 2048;  // elements, where rows are short: the nearest cache
  const CastLoop widen = cast_loop(out.dtype(), DType::Float32);
  const CastLoop narrow = cast_loop(DType::Float32, out.dtype());
  const int64_t item = int64_t(out.item_size());
  const int64_t group = inner == 1 ? std::max<int64_t>(1, kTogether / n) : 1;
  const int64_t most = std::max<int64_t>(128, 32768 / n / 64 * 64);  // the second cache
  const int64_t blocks = (inner + most - 1) / most, columns = std::min(inner, most);
  parallel_for(
      0, outer * blocks, std::max(group, kGrain / 4 / (n * columns)), [&](int64_t b, int64_t e) {
        std::vector<float> wide[2], result(size_t(group * n * columns));
        for (size_t i = 0; i < in.size(); ++i) wide[i].resize(result.size());
        for (int64_t k = b; k < e; k += group) {
          const int64_t rows = std::min(group, e - k), first = k % blocks * columns;
          const int64_t width = std::min(columns, inner - first);
          const int64_t at = (k / blocks * n * inner + first) * item;
          // Rows follow each other; lines of columns are `inner` elements apart.
          const int64_t lines = inner == 1 ? 1 : n, length = inner == 1 ? rows * n : width;
          auto for_each_line = [&](auto convert) {
            for (int64_t l = 0; l < lines; ++l) convert(at + l * inner * item, l * length);
          };
          for (size_t i = 0; i < in.size(); ++i)
            for_each_line([&](int64_t from, int64_t to) {
              widen(reinterpret_cast<char*>(wide[i].data() + to), 4, in.begin()[i]->data() + from,
                    item, length);
            });
          f(wide[0].data(), wide[1].data(), result.data(), rows, width);
          for_each_line([&](int64_t to, int64_t from) {
            narrow(out.data() + to, item, reinterpret_cast<char*>(result.data() + from), 4, length);
          });
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
                [&, n = n, inner = inner](const float* x, const float*, float* y, int64_t rows,
                                          int64_t width) {
                  if (inner == 1) run_rows(x, y, rows, n, logarithm);
                  else run_columns(x, y, n, width, width, logarithm);
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
  auto by_rows = [&, n = n]<class S>(S) {
    const S *g = grad.data_as<S>(), *y = result.data_as<S>();
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / n), [&](int64_t b, int64_t e) {
      run_row_grads(g + b * n, y + b * n, out.data_as<S>() + b * n, e - b, n, logarithm);
    });
  };
  if (inner == 1 && out.dtype() == DType::Float16) return by_rows(Half{});
  if (inner == 1 && out.dtype() == DType::BFloat16) return by_rows(BFloat16{});
  run_converted({&grad, &result}, out, outer, n, inner,
                [&, n = n, inner = inner](const float* g, const float* y, float* to, int64_t rows,
                                          int64_t width) {
                  if (inner == 1) run_row_grads(g, y, to, rows, n, logarithm);
                  else run_column_grads(g, y, to, n, width, width, logarithm);
                });
}

}  // namespace facula
