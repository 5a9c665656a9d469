// The loops of normalisation; built once per ISA.
#include "cpu/norm_loops.h"
#include "cpu/reduce_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

struct Sum {
  static constexpr Extreme extreme = Extreme::None;
  template <class T>
  static T combine(T a, T b) {
    return a + b;
  }
  template <class T>
  static constexpr T init() {
    return T(0);
  }
};

template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
constexpr int kLanes = 64 / sizeof(T);

template <class T>
T fold(Wide<T> v) {
  T lane[kLanes<T>];
  __builtin_memcpy(lane, &v, 64);
  for (int width = kLanes<T> / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

// Two sums over i at once: term(i, wide) returns 64 bytes of each, term(i, single) one value.
struct AsWide {};
struct AsSingle {};
template <class T>
struct Pair {
  T first, second;
};
template <class T, class F>
Pair<T> two_sums(int64_t n, F&& term) {
  constexpr int L = kLanes<T>;
  Wide<T> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const auto p = term(i, AsWide{}), q = term(i + L, AsWide{});
    a += p.first, b += p.second;
    c += q.first, d += q.second;
  }
  Pair<T> sums{fold<T>(a + c), fold<T>(b + d)};
  for (; i < n; ++i) {
    const auto p = term(i, AsSingle{});
    sums.first += p.first, sums.second += p.second;
  }
  return sums;
}

template <class T>
Wide<T> read(const T* x, int64_t i, AsWide) {
  return wide_at(x + i);
}
template <class T>
T read(const T* x, int64_t i, AsSingle) {
  return x[i];
}

// ---- runs

// In pieces that stay in the cache, where the second pass costs little and no digits are lost.
template <class T>
Moments<T> moments(const T* x, int64_t n) {
  constexpr int64_t kPiece = 16384;
  Moments<T> all{0, 0, 0};
  for (int64_t done = 0; done < n; done += kPiece) {
    const int64_t m = n - done < kPiece ? n - done : kPiece;
    const T* piece = x + done;
    const T mean = reduce_pairwise<Sum>(piece, m) / T(m);
    const auto sums = two_sums<T>(m, [&](int64_t i, auto as) {
      const auto d = read(piece, i, as) - mean;
      return Pair<std::remove_const_t<decltype(d)>>{d, d * d};
    });
    // What the mean lost to rounding comes back with the sum of the differences.
    all = combined(all, {T(m), mean, sums.second - sums.first * (sums.first / T(m))});
  }
  return all;
}

template <class T>
void scale(const T* x, T* y, int64_t n, T center, T scale, T shift) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = math::madd(x[i] - center, scale, shift);
}

template <class T>
void gradient_sums(const T* g, const T* x, int64_t n, T center, T* of_g, T* of_gx) {
  constexpr int64_t kPiece = 16384;  // sums of many values are sums of pieces
  *of_g = *of_gx = 0;
  for (int64_t done = 0; done < n; done += kPiece) {
    const int64_t m = n - done < kPiece ? n - done : kPiece;
    const auto sums = two_sums<T>(m, [&, done](int64_t i, auto as) {
      const auto v = read(g, done + i, as);
      return Pair<std::remove_const_t<decltype(v)>>{v, v * (read(x, done + i, as) - center)};
    });
    *of_g += sums.first;
    *of_gx += sums.second;
  }
}

template <class T>
void gradient(const T* g, const T* x, T* dx, int64_t n, T center, T a, T b, T c) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = math::madd(g[i], a, math::madd(x[i] - center, b, c));
}

// ---- rows

template <class T>
void rows(const T* x, const T* weight, const T* bias, T* y, T* mean, T* rstd, int64_t rows,
          int64_t n, double eps) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    T center = 0, square;
    if (mean) {
      const Moments<T> m = moments(x, n);
      center = mean[r] = m.mean;
      square = m.squares / T(n);
    } else {
      square = two_sums<T>(n,
                           [&](int64_t i, auto as) {
                             const auto v = read(x, i, as);
                             return Pair<std::remove_const_t<decltype(v)>>{v, v * v};
                           })
                   .second /
               T(n);
    }
    const T factor = rstd[r] = T(1) / math::sqrt(square + T(eps));
    if (weight && bias) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        y[i] = math::madd((x[i] - center) * factor, weight[i], bias[i]);
    } else if (weight) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * factor * weight[i];
    } else {
      scale(x, y, n, center, factor, T(0));
      if (bias)
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) y[i] += bias[i];
    }
  }
}

template <bool kWeight, class T>
void row_backward(const T* g, const T* x, const T* weight, T center, T factor, bool centred, T* dx,
                  int64_t n) {
  const auto sums = two_sums<T>(n, [&](int64_t i, auto as) {
    auto v = read(g, i, as);
    if constexpr (kWeight) v = v * read(weight, i, as);
    return Pair<decltype(v)>{v, v * (read(x, i, as) - center)};
  });
  // factor (v - mean(v) - xhat mean(v xhat)), with xhat = (x - center) factor
  const T b = -factor * factor * factor * (sums.second / T(n));
  const T c = centred ? -factor * (sums.first / T(n)) : T(0);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T v = kWeight ? g[i] * weight[i] : g[i];
    dx[i] = math::madd(v, factor, math::madd(x[i] - center, b, c));
  }
}

template <class T>
void rows_backward(const T* g, const T* x, const T* weight, const T* mean, const T* rstd, T* dx,
                   T* weight_grad, T* bias_grad, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, g += n, x += n) {
    const T center = mean ? mean[r] : T(0), factor = rstd[r];
    if (dx) {
      if (weight) row_backward<true>(g, x, weight, center, factor, mean != nullptr, dx, n);
      else row_backward<false>(g, x, weight, center, factor, mean != nullptr, dx, n);
      dx += n;
    }
    if (weight_grad && bias_grad) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        weight_grad[i] = math::madd(g[i], (x[i] - center) * factor, weight_grad[i]);
        bias_grad[i] += g[i];
      }
    } else if (weight_grad) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        weight_grad[i] = math::madd(g[i], (x[i] - center) * factor, weight_grad[i]);
    } else if (bias_grad) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) bias_grad[i] += g[i];
    }
  }
}

// ---- columns

// f(column, V, K) for blocks of K vectors V of columns, whose sums stay in registers while rows
// pass, and for the single columns that are left.
template <class V, int K>
struct ColumnBlock {
  using Vector = V;
  static constexpr int vectors = K;
};
template <class T, class F>
FACULA_INLINE void for_column_blocks(int64_t n, F f) {
  constexpr int L = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * L <= n; c += 4 * L) f(c, ColumnBlock<Wide<T>, 4>{});
  for (; c + L <= n; c += L) f(c, ColumnBlock<Wide<T>, 1>{});
  for (; c < n; ++c) f(c, ColumnBlock<T, 1>{});
}
template <class V, class T>
FACULA_INLINE V vector_at(const T* x, int k) {
  V v;
  __builtin_memcpy(&v, x + k * int(sizeof(V) / sizeof(T)), sizeof(V));
  return v;
}
template <class V, class T>
FACULA_INLINE void store_at(T* x, int k, V v) {
  __builtin_memcpy(x + k * int(sizeof(V) / sizeof(T)), &v, sizeof(V));
}
// The sum of term(row, k) over the rows of a block, for each of its vectors, in four chains.
template <class B, class F>
FACULA_INLINE void sum_rows(int64_t rows, typename B::Vector* sums, F term) {
  constexpr int K = B::vectors, U = 4 / K;
  typename B::Vector part[U][K] = {};
  int64_t r = 0;
  for (; r + U <= rows; r += U)
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) part[u][k] += term(r + u, k);
  for (; r < rows; ++r)
    for (int k = 0; k < K; ++k) part[0][k] += term(r, k);
  for (int k = 0; k < K; ++k) {
    sums[k] = part[0][k];
    for (int u = 1; u < U; ++u) sums[k] += part[u][k];
  }
}

template <class T>
void column_moments(const T* x, int64_t rows, int64_t n, int64_t before, T* mean, T* squares) {
  constexpr int64_t kPiece = 32;  // rows at a time: read once into the cache, then again from it
  for (int64_t done = 0; done < rows; done += kPiece) {
    const int64_t m = rows - done < kPiece ? rows - done : kPiece;
    const T inverse = T(1) / T(m), seen = T(before + done), share = T(m) / (seen + T(m));
    for_column_blocks<T>(n, [&](int64_t c, auto block) {
      using B = decltype(block);
      using V = typename B::Vector;
      const T* piece = x + done * n + c;
      V average[B::vectors], square[B::vectors];
      sum_rows<B>(m, average, [&](int64_t r, int k) { return vector_at<V>(piece + r * n, k); });
      for (V& v : average) v *= inverse;
      sum_rows<B>(m, square, [&](int64_t r, int k) {
        const V d = vector_at<V>(piece + r * n, k) - average[k];
        return d * d;
      });
      for (int k = 0; k < B::vectors; ++k) {
        const V old = vector_at<V>(mean + c, k), difference = average[k] - old;
        store_at(mean + c, k, old + difference * share);
        store_at(
            squares + c, k,
            vector_at<V>(squares + c, k) + square[k] + difference * difference * (seen * share));
      }
    });
  }
}

template <class T>
void scale_columns(const T* x, T* y, int64_t rows, int64_t n, const T* center, const T* scale,
                   const T* shift) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n)
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c) y[c] = math::madd(x[c] - center[c], scale[c], shift[c]);
}

template <class T>
void column_gradient_sums(const T* g, const T* x, int64_t rows, int64_t n, const T* center, T* of_g,
                          T* of_gx) {
  constexpr int64_t kPiece = 32;  // rows whose columns are all read before the next ones
  for (; rows > 0; rows -= kPiece, g += kPiece * n, x += kPiece * n) {
    const int64_t m = rows < kPiece ? rows : kPiece;
    for_column_blocks<T>(n, [&](int64_t c, auto block) {
      using B = decltype(block);
      using V = typename B::Vector;
      V first[B::vectors], second[B::vectors], middle[B::vectors];
      for (int k = 0; k < B::vectors; ++k) middle[k] = vector_at<V>(center + c, k);
      sum_rows<B>(m, first, [&](int64_t r, int k) { return vector_at<V>(g + r * n + c, k); });
      sum_rows<B>(m, second, [&](int64_t r, int k) {
        return vector_at<V>(g + r * n + c, k) * (vector_at<V>(x + r * n + c, k) - middle[k]);
      });
      for (int k = 0; k < B::vectors; ++k) {
        store_at(of_g + c, k, vector_at<V>(of_g + c, k) + first[k]);
        store_at(of_gx + c, k, vector_at<V>(of_gx + c, k) + second[k]);
      }
    });
  }
}

template <class T>
void column_gradient(const T* g, const T* x, T* dx, int64_t rows, int64_t n, const T* center,
                     const T* a, const T* b, const T* c) {
  for (int64_t r = 0; r < rows; ++r, g += n, x += n, dx += n)
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      dx[i] = math::madd(g[i], a[i], math::madd(x[i] - center[i], b[i], c[i]));
}

template <class T>
constexpr NormLoops<T> table() {
  return {moments<T>,        scale<T>,         gradient_sums<T>,
          gradient<T>,       rows<T>,          rows_backward<T>,
          column_moments<T>, scale_columns<T>, column_gradient_sums<T>,
          column_gradient<T>};
}

}  // namespace

extern const NormLoops<float> norm_loops_f32;
extern const NormLoops<double> norm_loops_f64;
const NormLoops<float> norm_loops_f32 = table<float>();
const NormLoops<double> norm_loops_f64 = table<double>();

}  // namespace facula::FACULA_ISA
