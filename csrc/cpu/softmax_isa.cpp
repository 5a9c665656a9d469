// Softmax along a dimension of a contiguous tensor; built once per ISA.
#include "cpu/exponential_sums.h"
#include "cpu/softmax_loop.h"
#include "cpu/stored_lanes.h"

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
template <bool kLogarithm, class T>
void columns_as(const T* in, T* out, int64_t n, int64_t inner, int64_t width) {
  constexpr int W = 64;
  T top[W], sum[W];
  // f(element, j) for all rows; it reads and writes what is apart from the other columns.
  auto for_each = [&](int64_t c, int64_t m, auto f) __attribute__((always_inline)) {
    for (int64_t at = c; at < n * inner + c; at += inner)
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) f(at + j, j);
  };
  for (int64_t c = 0; c < width; c += W) {
    const int64_t m = width - c < W ? width - c : W;
    for (int64_t j = 0; j < m; ++j) top[j] = Lowest<T>::value, sum[j] = 0;
    for_each(c, m, [&](int64_t i, int64_t j) __attribute__((always_inline)) {
      top[j] = LargestOfNumbers::combine(in[i], top[j]);
    });
    for (int64_t j = 0; j < m; ++j) top[j] = top[j] == -__builtin_inf() ? 0 : top[j];
    for_each(c, m, [&](int64_t i, int64_t j) __attribute__((always_inline)) {
      const T e = math::exp_of_negative(in[i] - top[j]);
      if constexpr (!kLogarithm) out[i] = e;
      sum[j] += e;
    });
    for (int64_t j = 0; j < m; ++j) sum[j] = kLogarithm ? math::log(sum[j]) : 1 / sum[j];
    for_each(c, m, [&](int64_t i, int64_t j) __attribute__((always_inline)) {
      out[i] = kLogarithm ? (in[i] - top[j]) - sum[j] : out[i] * sum[j];
    });
  }
}
template <class T>
void columns(const T* in, T* out, int64_t n, int64_t inner, int64_t width, bool logarithm) {
  if (logarithm) columns_as<true>(in, out, n, inner, width);
  else columns_as<false>(in, out, n, inner, width);
}

// y (g - sum(g y)), or g - e^y sum(g) for logarithms.
template <bool kLogarithm, class T>
FACULA_INLINE T term(T g, T y) {
  return kLogarithm ? g : g * y;
}
template <bool kLogarithm, class V, class T>
FACULA_INLINE V gradient(V g, V y, T sum) {
  if constexpr (kLogarithm) return g - math::exp(y) * sum;
  else return (g - sum) * y;
}

// Two vectors of terms at a time.
template <bool kLogarithm, class S>
Computed<S> sum_of_terms(const S* grad, const S* result, int64_t n) {
  using T = Computed<S>;
  constexpr int L = kLanes<T>;
  auto at = [&](int64_t i, auto as) {
    return term<kLogarithm>(read(grad, i, as), read(result, i, as));
  };
  Wide<T> a{}, b{};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) a += at(i, AsWide{}), b += at(i + L, AsWide{});
  for (; i + L <= n; i += L) a += at(i, AsWide{});
  T sum = sum_of_lanes<T>(a + b);
  for (; i < n; ++i) sum += at(i, AsSingle{});
  return sum;
}

// out = the gradient, where sum_at(i, as) is the sum that belongs to element i.
template <bool kLogarithm, class S, class F>
FACULA_INLINE void write_gradient(const S* grad, const S* result, S* out, int64_t n, F sum_at) {
  using T = Computed<S>;
  if constexpr (!kLogarithm) {
    write_each(out, n, [&](int64_t i, auto as) {
      return gradient<false>(read(grad, i, as), read(result, i, as), sum_at(i, as));
    });
  } else if constexpr (std::is_same_v<S, T>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      out[i] = gradient<true>(grad[i], result[i], sum_at(i, AsSingle{}));
  } else {
    constexpr int64_t kBlock = 128;  // exponentials are vectorised by the compiler, in float
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t m = n - done < kBlock ? n - done : kBlock;
      alignas(64) T of_result[kBlock];
      write_each(of_result, m, [&](int64_t i, auto as) { return read(result, done + i, as); });
      for (int64_t i = 0; i < m; ++i) of_result[i] = math::exp(of_result[i]);
      write_each(out + done, m, [&](int64_t i, auto as) {
        return read(grad, done + i, as) - read(of_result, i, as) * sum_at(done + i, as);
      });
    }
  }
}

template <bool kLogarithm, class S>
void row_grads_as(const S* grad, const S* result, S* out, int64_t count, int64_t n) {
  for (int64_t r = 0; r < count; ++r, grad += n, result += n, out += n) {
    const auto sum = sum_of_terms<kLogarithm>(grad, result, n);
    write_gradient<kLogarithm>(grad, result, out, n, [&](int64_t, auto) { return sum; });
  }
}
template <class S>
void row_grads(const S* grad, const S* result, S* out, int64_t count, int64_t n, bool logarithm) {
  if (logarithm) row_grads_as<true>(grad, result, out, count, n);
  else row_grads_as<false>(grad, result, out, count, n);
}

template <bool kLogarithm, class S>
void column_grads_as(const S* grad, const S* result, S* out, int64_t n, int64_t inner,
                     int64_t width) {
  using T = Computed<S>;
  constexpr int64_t W = is_small_float_v<S> ? 256 : 64;
  for (int64_t c = 0; c < width; c += W) {
    const int64_t m = width - c < W ? width - c : W, end = n * inner + c;
    alignas(64) T sum[W] = {};
    for (int64_t at = c; at < end; at += inner)
      write_each(sum, m, [&](int64_t j, auto as) {
        return read(sum, j, as) +
               term<kLogarithm>(read(grad, at + j, as), read(result, at + j, as));
      });
    for (int64_t at = c; at < end; at += inner)
      write_gradient<kLogarithm>(grad + at, result + at, out + at, m,
                                 [&](int64_t j, auto as) { return read(sum, j, as); });
  }
}
template <class S>
void column_grads(const S* grad, const S* result, S* out, int64_t n, int64_t inner, int64_t width,
                  bool logarithm) {
  if (logarithm) column_grads_as<true>(grad, result, out, n, inner, width);
  else column_grads_as<false>(grad, result, out, n, inner, width);
}

template <class S>
constexpr SoftmaxGradLoops<S> grads() {
  return {row_grads<S>, column_grads<S>};
}

}  // namespace

extern const SoftmaxLoops softmax_loops;
const SoftmaxLoops softmax_loops = {rows<float>,     rows<double>,     columns<float>,
                                    columns<double>, grads<float>(),   grads<double>(),
                                    grads<Half>(),   grads<BFloat16>()};

}  // namespace facula::FACULA_ISA
