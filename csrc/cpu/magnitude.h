// Of which order the numbers of a matrix are, before it is decomposed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/numeric.h"

namespace facula {

// The largest magnitude, NaN if one number is infinite or NaN. In several lanes, which do not wait
// for each other.
template <class T>
T largest_magnitude(const T* x, int64_t n) {
  constexpr int kWidth = 16;
  T largest[kWidth] = {}, rest[kWidth] = {};  // a finite number times 0 is 0
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    for (int k = 0; k < kWidth; ++k) {
      const T size = std::abs(x[i + k]);
      largest[k] = largest[k] > size ? largest[k] : size;
      rest[k] += size * 0;
    }
  for (; i < n; ++i) {
    largest[0] = std::max(largest[0], std::abs(x[i]));
    rest[0] += x[i] * 0;
  }
  for (int k = 1; k < kWidth; ++k) {
    largest[0] = std::max(largest[0], largest[k]);
    rest[0] += rest[k];
  }
  return rest[0] == 0 ? largest[0] : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
bool is_finite(const T* x, int64_t n) {
  if constexpr (is_complex_v<T>) return is_finite(reinterpret_cast<const real_of_t<T>*>(x), 2 * n);
  else return !std::isnan(largest_magnitude(x, n));
}

// Whether squares of numbers up to `largest` neither overflow nor all vanish.
template <class T>
bool is_moderate(T largest) {
  const T least = std::sqrt(std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon());
  return largest == 0 || (largest > least && largest < 1 / least);
}

}  // namespace facula
