// What softmax and the losses over classes share: the largest logit and the sum of exponentials.
#pragma once
#include "cpu/stored_lanes.h"

namespace facula::FACULA_ISA {

// NaN need not be kept: the exponential of one makes the whole row NaN.
struct LargestOfNumbers {
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
  Wide<T> sum{};
  for (int j = 0; j < L; j += 2 * kLanes<T>)
    sum += wide_at(lane + j) + wide_at(lane + j + kLanes<T>);
  return sum_of_lanes<T>(sum);
}

}  // namespace facula::FACULA_ISA
