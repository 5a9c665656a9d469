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
static const SoftmaxGradLoops<S>& grad_loops() {
  if constexpr (std::is_same_v<S, float>) return loops().grads_f32;
  else if constexpr (std::is_same_v<S, double>) return loops().grads_f64;
  else if constexpr (std::is_same_v<S, Half>) return loops().grads_f16;
  else return loops().grads_bf16;
}

// Calls rows(offset, count) for some rows at a time where the dimension is the last one, else
// columns(offset, width) for some columns of one outer element.
template <class R, class C>
static void for_each_part(int64_t outer, int64_t n, int64_t inner, size_t item, R rows, C columns) {
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / 4 / n),
                 [&](int64_t b, int64_t e) { rows(b * n, e - b); });
    return;
  }
  const int64_t most = item == 2 ? 256 : 128, blocks = (inner + most - 1) / most;
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kGrain / 4 / (n * most)),
               [&](int64_t b, int64_t e) {
                 for (int64_t k = b; k < e; ++k) {
                   const int64_t first = k % blocks * most;
                   columns(k / blocks * n * inner + first, std::min(most, inner - first));
                 }
               });
}

template <class T>
static void run(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool logarithm) {
  for_each_part(
      outer, n, inner, sizeof(T),
      [&](int64_t at, int64_t count) { run_rows(in + at, out + at, count, n, logarithm); },
      [&](int64_t at, int64_t width) {
        run_columns(in + at, out + at, n, inner, width, logarithm);
      });
}

template <class T>
static void run_grads(const Tensor& grad, const Tensor& result, const Tensor& out, int64_t outer,
                      int64_t n, int64_t inner, bool logarithm) {
  const T *g = grad.data_as<T>(), *y = result.data_as<T>();
  T* to = out.data_as<T>();
  for_each_part(
      outer, n, inner, sizeof(T),
      [&](int64_t at, int64_t count) {
        grad_loops<T>().rows(g + at, y + at, to + at, count, n, logarithm);
      },
      [&](int64_t at, int64_t width) {
        grad_loops<T>().columns(g + at, y + at, to + at, n, inner, width, logarithm);
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
  // As many columns as the second cache holds; an odd number of lines of the cache from row to row.
  const int64_t most = std::max<int64_t>(128, 32768 / n / 32 * 32) + 16;
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
  switch (out.dtype()) {
    case DType::Float32: return run_grads<float>(grad, result, out, outer, n, inner, logarithm);
    case DType::Float64: return run_grads<double>(grad, result, out, outer, n, inner, logarithm);
    case DType::Float16: return run_grads<Half>(grad, result, out, outer, n, inner, logarithm);
    case DType::BFloat16: return run_grads<BFloat16>(grad, result, out, outer, n, inner, logarithm);
    default: break;
  }
  run_converted({&grad, &result}, out, outer, n, inner,
                [&, n = n, inner = inner](const float* g, const float* y, float* to, int64_t rows,
                                          int64_t width) {
                  if (inner == 1) grad_loops<float>().rows(g, y, to, rows, n, logarithm);
                  else grad_loops<float>().columns(g, y, to, n, width, width, logarithm);
                });
}

}  // namespace facula
