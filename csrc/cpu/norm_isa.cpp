// The loops of normalisation; built once per ISA.
#include "cpu/norm_loops.h"
#include "cpu/stored_lanes.h"

namespace facula::FACULA_ISA {
namespace {

// Two sums over i at once: term(i, wide) returns a vector of each, term(i, single) one value.
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
  Pair<T> sums{sum_of_lanes<T>(a + c), sum_of_lanes<T>(b + d)};
  for (; i < n; ++i) {
    const auto p = term(i, AsSingle{});
    sums.first += p.first, sums.second += p.second;
  }
  return sums;
}

template <class T, class S>
T sum(const S* x, int64_t n) {
  constexpr int L = kLanes<T>;
  Wide<T> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a += read(x, i, AsWide{}), b += read(x, i + L, AsWide{});
    c += read(x, i + 2 * L, AsWide{}), d += read(x, i + 3 * L, AsWide{});
  }
  for (; i + L <= n; i += L) a += read(x, i, AsWide{});
  T all = sum_of_lanes<T>((a + b) + (c + d));
  for (; i < n; ++i) all += T(x[i]);
  return all;
}

// ---- runs

// In pieces that stay in the cache, where the second pass costs little and no digits are lost.
template <class T, class S>
Moments<T> moments(const S* x, int64_t n) {
  constexpr int64_t kPiece = 16384;
  Moments<T> all{0, 0, 0};
  for (int64_t done = 0; done < n; done += kPiece) {
    const int64_t m = n - done < kPiece ? n - done : kPiece;
    const S* piece = x + done;
    const T mean = sum<T>(piece, m) / T(m);
    const auto sums = two_sums<T>(m, [&](int64_t i, auto as) {
      const auto d = read(piece, i, as) - mean;
      return Pair<std::remove_const_t<decltype(d)>>{d, d * d};
    });
    // What the mean lost to rounding comes back with the sum of the differences.
    all = combined(all, {T(m), mean, sums.second - sums.first * (sums.first / T(m))});
  }
  return all;
}

template <class T, class S>
void scale(const S* x, S* y, int64_t n, T center, T scale, T shift) {
  write_each(y, n, [&](int64_t i, auto as) { return madd(read(x, i, as) - center, scale, shift); });
}

template <class T, class S>
void gradient_sums(const S* g, const S* x, int64_t n, T center, T* of_g, T* of_gx) {
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

template <class T, class S>
void gradient(const S* g, const S* x, S* dx, int64_t n, T center, T a, T b, T c) {
  write_each(dx, n, [&](int64_t i, auto as) {
    return madd(read(g, i, as), a, madd(read(x, i, as) - center, b, c));
  });
}

// ---- rows

template <class T, class S>
void rows(const S* x, const T* weight, const T* bias, S* y, T* mean, T* rstd, int64_t rows,
          int64_t n, double eps) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    T center = 0, square;
    if (mean) {
      const Moments<T> m = moments<T>(x, n);
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
    write_each(y, n, [&](int64_t i, auto as) {
      const auto v = (read(x, i, as) - center) * factor;
      if (weight && bias) return madd(v, read(weight, i, as), read(bias, i, as));
      return weight ? v * read(weight, i, as) : bias ? v + read(bias, i, as) : v;
    });
  }
}

template <class T, class S>
void row_backward(const S* g, const S* x, const T* weight, T center, T factor, bool centred, S* dx,
                  int64_t n) {
  auto weighted = [&](int64_t i, auto as) {
    const auto v = read(g, i, as);
    return weight ? v * read(weight, i, as) : v;
  };
  const auto sums = two_sums<T>(n, [&](int64_t i, auto as) {
    const auto v = weighted(i, as);
    return Pair<std::remove_const_t<decltype(v)>>{v, v * (read(x, i, as) - center)};
  });
  // factor (v - mean(v) - xhat mean(v xhat)), with xhat = (x - center) factor
  const T b = -factor * factor * factor * (sums.second / T(n));
  const T c = centred ? -factor * (sums.first / T(n)) : T(0);
  write_each(dx, n, [&](int64_t i, auto as) {
    return madd(weighted(i, as), factor, madd(read(x, i, as) - center, b, c));
  });
}

template <class T, class S>
void rows_backward(const S* g, const S* x, const T* weight, const T* mean, const T* rstd, S* dx,
                   T* weight_grad, T* bias_grad, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, g += n, x += n) {
    const T center = mean ? mean[r] : T(0), factor = rstd[r];
    if (dx) {
      row_backward(g, x, weight, center, factor, mean != nullptr, dx, n);
      dx += n;
    }
    if (!weight_grad && !bias_grad) continue;
    each<T>(n, [&](int64_t i, auto as) {
      const auto v = read(g, i, as);
      if (weight_grad)
        write(weight_grad, i,
              madd(v, (read(x, i, as) - center) * factor, read(weight_grad, i, as)));
      if (bias_grad) write(bias_grad, i, read(bias_grad, i, as) + v);
    });
  }
}

// ---- columns

// f(column, block) for blocks of K vectors of columns, whose sums stay in registers while rows
// pass, and for the single columns that are left.
template <class T, class How, int K>
struct ColumnBlock {
  using As = How;
  using Value = decltype(read(std::declval<const T*>(), 0, How{}));
  static constexpr int vectors = K, width = int(sizeof(Value) / sizeof(T));
};
template <class T, class F>
FACULA_INLINE void for_column_blocks(int64_t n, F f) {
  constexpr int L = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * L <= n; c += 4 * L) f(c, ColumnBlock<T, AsWide, 4>{});
  for (; c + L <= n; c += L) f(c, ColumnBlock<T, AsWide, 1>{});
  for (; c < n; ++c) f(c, ColumnBlock<T, AsSingle, 1>{});
}
// The k-th vector of a block that begins at x[at].
template <class B, class S>
FACULA_INLINE typename B::Value vector_of(const S* x, int64_t at, int k) {
  return read(x, at + k * B::width, typename B::As{});
}
// The sum of term(row, k) over the rows of a block, for each of its vectors, in four chains.
template <class B, class F>
FACULA_INLINE void sum_rows(int64_t rows, typename B::Value* sums, F term) {
  constexpr int K = B::vectors, U = 4 / K;
  typename B::Value part[U][K] = {};
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

template <class T, class S>
void column_moments(const S* x, int64_t rows, int64_t n, int64_t before, T* mean, T* squares) {
  constexpr int64_t kPiece = 32;  // rows at a time: read once into the cache, then again from it
  for (int64_t done = 0; done < rows; done += kPiece) {
    const int64_t m = rows - done < kPiece ? rows - done : kPiece;
    const S* piece = x + done * n;
    const T inverse = T(1) / T(m), seen = T(before + done), share = T(m) / (seen + T(m));
    for_column_blocks<T>(n, [&](int64_t c, auto block) {
      using B = decltype(block);
      using V = typename B::Value;
      V average[B::vectors], square[B::vectors];
      sum_rows<B>(m, average, [&](int64_t r, int k) { return vector_of<B>(piece, r * n + c, k); });
      for (V& v : average) v *= inverse;
      sum_rows<B>(m, square, [&](int64_t r, int k) {
        const V d = vector_of<B>(piece, r * n + c, k) - average[k];
        return d * d;
      });
      for (int k = 0; k < B::vectors; ++k) {
        const V old = vector_of<B>(mean, c, k), difference = average[k] - old;
        write(mean, c + k * B::width, old + difference * share);
        write(squares, c + k * B::width,
              vector_of<B>(squares, c, k) + square[k] + difference * difference * (seen * share));
      }
    });
  }
}

template <class T, class S>
void scale_columns(const S* x, S* y, int64_t rows, int64_t n, const T* center, const T* scale,
                   const T* shift) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n)
    write_each(y, n, [&](int64_t c, auto as) {
      return madd(read(x, c, as) - read(center, c, as), read(scale, c, as), read(shift, c, as));
    });
}

template <class T, class S>
void column_gradient_sums(const S* g, const S* x, int64_t rows, int64_t n, const T* center, T* of_g,
                          T* of_gx) {
  constexpr int64_t kPiece = 32;  // rows whose columns are all read before the next ones
  for (; rows > 0; rows -= kPiece, g += kPiece * n, x += kPiece * n) {
    const int64_t m = rows < kPiece ? rows : kPiece;
    for_column_blocks<T>(n, [&](int64_t c, auto block) {
      using B = decltype(block);
      using V = typename B::Value;
      V first[B::vectors], second[B::vectors], middle[B::vectors];
      for (int k = 0; k < B::vectors; ++k) middle[k] = vector_of<B>(center, c, k);
      sum_rows<B>(m, first, [&](int64_t r, int k) { return vector_of<B>(g, r * n + c, k); });
      sum_rows<B>(m, second, [&](int64_t r, int k) {
        return vector_of<B>(g, r * n + c, k) * (vector_of<B>(x, r * n + c, k) - middle[k]);
      });
      for (int k = 0; k < B::vectors; ++k) {
        write(of_g, c + k * B::width, vector_of<B>(of_g, c, k) + first[k]);
        write(of_gx, c + k * B::width, vector_of<B>(of_gx, c, k) + second[k]);
      }
    });
  }
}

template <class T, class S>
void column_gradient(const S* g, const S* x, S* dx, int64_t rows, int64_t n, const T* center,
                     const T* a, const T* b, const T* c) {
  for (int64_t r = 0; r < rows; ++r, g += n, x += n, dx += n)
    write_each(dx, n, [&](int64_t i, auto as) {
      const auto line = madd(read(x, i, as) - read(center, i, as), read(b, i, as), read(c, i, as));
      return madd(read(g, i, as), read(a, i, as), line);
    });
}

template <class S>
constexpr NormLoops<Computed<S>, S> table() {
  using T = Computed<S>;
  return {moments<T, S>,        scale<T, S>,         gradient_sums<T, S>,
          gradient<T, S>,       rows<T, S>,          rows_backward<T, S>,
          column_moments<T, S>, scale_columns<T, S>, column_gradient_sums<T, S>,
          column_gradient<T, S>};
}

}  // namespace

extern const NormTable norm_loops;
const NormTable norm_loops = {table<float>(), table<double>(), table<Half>(), table<BFloat16>()};

}  // namespace facula::FACULA_ISA
