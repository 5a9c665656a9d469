// Softmax along a dimension of a contiguous tensor; built once per ISA.
#include "cpu/exponential_sums.h"
#include "cpu/softmax_loop.h"

namespace facula::FACULA_ISA {
namespace {

// `in` and `out` are different memory: `out` holds the exponentials in between.
template <class T>
void rows(const T* in, T* out, int64_t count, int64_t n, bool logarithm) {
  for (int64_t r = 0; r < count; ++r, in += n, out += n) {
    T top = reduce_block<LargestOfNumbers>(in, n);
    if (top == -__builtin_inf()) top = 0;  // a row of -inf gives NaN, as 0 / 0
    const T sum = logarithm ? sum_of_exponentials<false>(in, out, n, top)
                            : sum_of_exponentials<true>(in, out, n, top);
    if (logarithm) {
      const T shift = math::log(sum);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - top) - shift;
    } else {
      const T scale = 1 / sum;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] *= scale;
    }
  }
}

// Along a dimension with `inner` elements between neighbours: a block of columns at a time.
template <class T>
void columns(const T* in, T* out, int64_t n, int64_t inner, int64_t width, bool logarithm) {
  constexpr int W = 64;
  for (int64_t c = 0; c < width; c += W) {
    int64_t m = width - c < W ? width - c : W;
    T top[W], sum[W];
    for (int64_t j = 0; j < m; ++j) top[j] = in[c + j], sum[j] = 0;
    for (int64_t i = 1; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) top[j] = math::maximum(top[j], in[i * inner + c + j]);
    for (int64_t j = 0; j < m; ++j) top[j] = top[j] == -__builtin_inf() ? 0 : top[j];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        T e = math::exp(in[i * inner + c + j] - top[j]);
        if (!logarithm) out[i * inner + c + j] = e;
        sum[j] += e;
      }
    if (logarithm)
      for (int64_t j = 0; j < m; ++j) sum[j] = math::log(sum[j]);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        T& o = out[i * inner + c + j];
        o = logarithm ? (in[i * inner + c + j] - top[j]) - sum[j] : o / sum[j];
      }
  }
}

}  // namespace

extern const SoftmaxLoops softmax_loops;
const SoftmaxLoops softmax_loops = {rows<float>, rows<double>, columns<float>, columns<double>};

}  // namespace facula::FACULA_ISA
