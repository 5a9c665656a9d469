// Softmax along a dimension of a contiguous tensor; built once per ISA.
#include "cpu/reduce_loop.h"
#include "cpu/softmax_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

// NaN need not be kept: the exponential of one makes the whole row NaN.
struct Max {
  static constexpr Extreme extreme = Extreme::None;
  template <class T>
  static T combine(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  static constexpr T init() {
    return Lowest<T>::value;
  }
};

// The sum of e^(x - top); the terms go to `out` as well when it is given. Each lane adds its own.
template <bool kStore, class T>
T sum_of_exponentials(const T* in, T* out, int64_t n, T top) {
  constexpr int L = 256 / sizeof(T);
  T lane[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
#pragma GCC ivdep
    for (int j = 0; j < L; ++j) {
      const T e = math::exp_of_negative(in[i + j] - top);
      if constexpr (kStore) out[i + j] = e;
      lane[j] += e;
    }
  for (int j = 0; i + j < n; ++j) {
    const T e = math::exp_of_negative(in[i + j] - top);
    if constexpr (kStore) out[i + j] = e;
    lane[j] += e;
  }
  for (int width = L / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

// `in` and `out` are different memory: `out` holds the exponentials in between.
template <class T>
void rows(const T* in, T* out, int64_t count, int64_t n, bool logarithm) {
  for (int64_t r = 0; r < count; ++r, in += n, out += n) {
    T top = reduce_block<Max>(in, n);
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
