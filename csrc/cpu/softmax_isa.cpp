// Softmax along a dimension of a contiguous tensor; built once per ISA.
#include "cpu/softmax_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
void rows(const T* in, T* out, int64_t count, int64_t n, bool logarithm) {
  for (int64_t r = 0; r < count; ++r, in += n, out += n) {
    T top = in[0];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) top = math::maximum(top, in[i]);
    if (top == -__builtin_inf()) top = 0;  // a row of -inf gives NaN, as 0 / 0
    constexpr int L = 32;
    T lane[L] = {};
    int64_t i = 0;
    for (; i + L <= n; i += L)
      for (int j = 0; j < L; ++j) {
        T e = math::exp(in[i + j] - top);
        if (!logarithm) out[i + j] = e;
        lane[j] += e;
      }
    for (; i < n; ++i) {
      T e = math::exp(in[i] - top);
      if (!logarithm) out[i] = e;
      lane[0] += e;
    }
    for (int w = L / 2; w > 0; w /= 2)
      for (int j = 0; j < w; ++j) lane[j] += lane[j + w];
    if (logarithm) {
      T shift = top + math::log(lane[0]);
      for (int64_t k = 0; k < n; ++k) out[k] = in[k] - shift;
    } else {
      T scale = 1 / lane[0];
      for (int64_t k = 0; k < n; ++k) out[k] *= scale;
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
      for (int64_t j = 0; j < m; ++j) sum[j] = top[j] + math::log(sum[j]);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        T& o = out[i * inner + c + j];
        o = logarithm ? in[i * inner + c + j] - sum[j] : o / sum[j];
      }
  }
}

}  // namespace

extern const SoftmaxLoops softmax_loops;
const SoftmaxLoops softmax_loops = {rows<float>, rows<double>, columns<float>, columns<double>};

}  // namespace facula::FACULA_ISA
