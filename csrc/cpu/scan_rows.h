// Running values of dense rows of half precision: converted to float32 and back some at a time.
#pragma once
#include <algorithm>

#include "cpu/along_dim.h"
#include "cpu/cast.h"

namespace facula {

// W rows at once, whose chains of operations do not wait for each other: y[w][i] = combine(what was
// before, x[w][i]), beginning with `none`.
template <int W, class T, class Combine>
void scan_half_rows(const T* const* x, T* const* y, int64_t n, float none, Combine&& combine) {
  constexpr int64_t kChunk = 512;
  const CastLoop load = cast_loop(DTypeOf<T>::value, DType::Float32),
                 store = cast_loop(DType::Float32, DTypeOf<T>::value);
  alignas(64) float part[W][kChunk];
  float so_far[W];
  for (float& value : so_far) value = none;
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    for (int w = 0; w < W; ++w)
      load(reinterpret_cast<char*>(part[w]), 4, reinterpret_cast<const char*>(x[w] + i), sizeof(T),
           m);
    for (int64_t k = 0; k < m; ++k)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) part[w][k] = so_far[w] = combine(so_far[w], part[w][k]);
    for (int w = 0; w < W; ++w)
      store(reinterpret_cast<char*>(y[w] + i), sizeof(T), reinterpret_cast<const char*>(part[w]), 4,
            m);
  }
}

}  // namespace facula
