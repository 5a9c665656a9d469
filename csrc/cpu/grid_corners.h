// The four pixels that each point of a block sees in linear interpolation, gathered in vectors.
#pragma once
#include "cpu/grid_sample.h"
#include "cpu/reduce_loop.h"

namespace facula::FACULA_ISA {

// Vectors of 16 bytes.
template <class T>
struct FewOf {
  typedef T type __attribute__((vector_size(16)));
};

template <class T>
FACULA_INLINE typename FewOf<T>::type few_at(const T* x) {
  typename FewOf<T>::type v;
  __builtin_memcpy(&v, x, 16);
  return v;
}

template <class V, int... I>
FACULA_INLINE auto joined(V low, V high, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(low, high, I...);
}

// Two neighbouring pixels of each of some points: those of the first half of every 16 / sizeof(T)
// points from `at` on, so that `lefts` and `rights` never leave 16 bytes. Loads of pairs, which are
// faster than gathers.
template <class T, int kBytes = kLaneBytes>
FACULA_INLINE auto pairs_at(const T* x, const int32_t* at) {
  constexpr int kNumbers = kBytes / int(sizeof(T));
  if constexpr (kBytes == 16) {
    if constexpr (sizeof(T) == 8) {
      return few_at(x + at[0]);
    } else {  // as two doubles, which the compiler does not put together in memory
      double pair[2];
      for (int i = 0; i < 2; ++i) __builtin_memcpy(pair + i, x + at[i], sizeof *pair);
      typedef double Pairs __attribute__((vector_size(16)));
      return typename FewOf<T>::type(Pairs{pair[0], pair[1]});
    }
  } else {
    return joined(pairs_at<T, kBytes / 2>(x, at), pairs_at<T, kBytes / 2>(x, at + kNumbers / 2),
                  std::make_integer_sequence<int, kNumbers>{});
  }
}
template <int kOdd, class T, class V, int... I>
FACULA_INLINE V one_of_pairs(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int kFew = 16 / int(sizeof(T)), kHalf = kFew / 2, L = kLanes<T>;
  return __builtin_shufflevector(
      a, b, (I / kFew * kFew + I % kHalf * 2 + kOdd + (I % kFew < kHalf ? 0 : L))...);
}

// The pixels of a vector of points, in the order of the taps.
template <class T>
struct Corners {
  typename WideOf<T>::type tap[4];

  FACULA_INLINE Corners(const T* x, int64_t row, const int32_t* at) {
    constexpr int kHalf = 8 / int(sizeof(T));
    constexpr std::make_integer_sequence<int, kLanes<T>> lanes;
#pragma GCC unroll 2
    for (int line = 0; line < 2; ++line, x += row) {
      const auto a = pairs_at(x, at), b = pairs_at(x, at + kHalf);
      tap[2 * line] = one_of_pairs<0, T>(a, b, lanes);
      tap[2 * line + 1] = one_of_pairs<1, T>(a, b, lanes);
    }
  }
  // Of the points from p on.
  FACULA_INLINE auto weighed(const T (*weight)[kGridBlock], int64_t p) const {
    return wide_at(weight[0] + p) * tap[0] + wide_at(weight[1] + p) * tap[1] +
           wide_at(weight[2] + p) * tap[2] + wide_at(weight[3] + p) * tap[3];
  }
};

// The same for a point at the edge: nothing is read outside.
template <class T>
struct EdgeCorners {
  T tap[4];

  FACULA_INLINE EdgeCorners(const GridBlock<T>& b, const T* x, int p) {
    for (int k = 0; k < 4; ++k) {
      const int32_t at = b.pixel[k][p];
      tap[k] = at < 0 ? T(0) : x[at];
    }
  }
  FACULA_INLINE T weighed(const T (*weight)[kGridBlock], int p) const {
    return weight[0][p] * tap[0] + weight[1][p] * tap[1] + weight[2][p] * tap[2] +
           weight[3][p] * tap[3];
  }
};

// Sums with one or several weights for each pixel, as if all points were inside; then those at the
// edges anew.
template <int kSums, class T>
void sum_corners(const GridBlock<T>& b, const T* x, const T (*weight)[kMostGridTaps][kGridBlock],
                 T (*sums)[kGridBlock]) {
  for (int64_t p = 0; p < kGridBlock; p += kLanes<T>) {
    const Corners<T> corners(x, b.row, b.corner + p);
#pragma GCC unroll 2
    for (int d = 0; d < kSums; ++d) {
      const auto sum = corners.weighed(weight[d], p);
      __builtin_memcpy(sums[d] + p, &sum, sizeof sum);
    }
  }
  for (int e = 0; e < b.edges; ++e) {
    const int p = b.edge[e];
    const EdgeCorners<T> corners(b, x, p);
    for (int d = 0; d < kSums; ++d) sums[d][p] = corners.weighed(weight[d], p);
  }
}

}  // namespace facula::FACULA_ISA
