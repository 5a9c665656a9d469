#include "cpu/index_points.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu/cast.h"
#include "cpu/index_items.h"
#include "op/elementwise.h"
#include "op/ops/arithmetic.h"
#include "op/tensor_operators.h"

namespace facula {
namespace {

// Rows of neighbouring elements are copied whole, point by point; strided ones element by element
// with the points inside, so that the row is walked once.
template <class T, bool kRead>
void move_run(const PointWork& w, char* tensor, char* values, int64_t ts, int64_t vs, int64_t n,
              int64_t from, int64_t to) {
  if (n > 1 && ts == int64_t(sizeof(T)) && vs == ts) {
    const size_t bytes = size_t(n) * sizeof(T);
    for (int64_t i = from; i < to; ++i) {
      char* t = tensor + w.place(i);
      char* v = values + i * w.step;
      if constexpr (kRead) std::memcpy(v, t, bytes);
      else std::memcpy(t, v, bytes);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j, tensor += ts, values += vs)
    for (int64_t i = from; i < to; ++i) {
      T& t = *reinterpret_cast<T*>(tensor + w.place(i));
      T& v = *reinterpret_cast<T*>(values + i * w.step);
      if constexpr (kRead) v = t;
      else t = v;
    }
}

template <class T>
void add_elements(const PointWork& w, char* tensor, const char* values, T alpha) {
  for (int64_t i = 0; i < w.count; ++i) {
    T& target = *reinterpret_cast<T*>(tensor + w.place(i));
    const T value = *reinterpret_cast<const T*>(values + i * w.step);
    if constexpr (std::is_same_v<T, bool>) target = target | (value & alpha);
    else target = T(target + value * alpha);
  }
}

// Equal places brought together, each group in the order of its points: a sum kept in float32 is
// then rounded once.
template <class T>
void add_grouped(const PointWork& w, float alpha) {
  std::vector<int64_t> order(static_cast<size_t>(w.count));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return w.place(a) < w.place(b); });
  auto body = [&](char* const* p, const int64_t* s, int64_t n) {
    constexpr int64_t kChunk = 256;
    float sum[kChunk];
    for (int64_t j = 0; j < n; j += kChunk) {
      const int64_t m = std::min(kChunk, n - j);
      for (int64_t i = 0; i < w.count;) {
        const int64_t place = w.place(order[size_t(i)]);
        char* t = p[0] + place + j * s[0];
        for (int64_t k = 0; k < m; ++k) sum[k] = float(*reinterpret_cast<const T*>(t + k * s[0]));
        for (; i < w.count && w.place(order[size_t(i)]) == place; ++i) {
          const char* v = p[1] + order[size_t(i)] * w.step + j * s[1];
          for (int64_t k = 0; k < m; ++k)
            sum[k] += alpha * float(*reinterpret_cast<const T*>(v + k * s[1]));
        }
        for (int64_t k = 0; k < m; ++k) *reinterpret_cast<T*>(t + k * s[0]) = T(sum[k]);
      }
    }
  };
  w.rest.run_parallel(body, std::max<int64_t>(16, kGrain / w.count));
}

}  // namespace

void cpu_read_points(const PointWork& w) {
  const int64_t rest = w.rest.numel;
  if (w.count == 0 || rest == 0) return;
  with_item_type(w.item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool rows =
        w.rest.ndim == 0 || (w.rest.strides[0][0] == w.item && w.rest.strides[1][0] == w.item);
    if (rows && (w.count >= 2 * num_threads() || w.count * rest <= kGrain)) {
      parallel_for(0, w.count, std::max<int64_t>(1, kGrain / rest), [&](int64_t b, int64_t e) {
        w.rest.run(0, rest, [&](char* const* p, const int64_t* s, int64_t n) {
          move_run<T, true>(w, p[0], p[1], s[0], s[1], n, b, e);
        });
      });
    } else {
      w.rest.run_parallel(
          [&](char* const* p, const int64_t* s, int64_t n) {
            move_run<T, true>(w, p[0], p[1], s[0], s[1], n, 0, w.count);
          },
          std::max<int64_t>(1, kGrain / w.count));
    }
  });
}

// Writes are split over the rest only: points may repeat, and their order decides.
void cpu_write_points(const PointWork& w) {
  if (w.count == 0 || w.rest.numel == 0) return;
  with_item_type(w.item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    w.rest.run_parallel(
        [&](char* const* p, const int64_t* s, int64_t n) {
          move_run<T, false>(w, p[0], p[1], s[0], s[1], n, 0, w.count);
        },
        std::max<int64_t>(16, kGrain / w.count));
  });
}

void cpu_add_points(const PointWork& w, DType dtype, const Scalar& alpha) {
  if (w.count == 0 || w.rest.numel == 0) return;
  const int64_t grain = std::max<int64_t>(16, kGrain / w.count);
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_small_float_v<T>) {
      add_grouped<T>(w, alpha.to<float>());
    } else {
      alignas(16) char factor[16];
      alpha.store(dtype, factor);
      const Loop add = defs::add.elementwise->loops[isa_level()][int(dtype)];  // a + factor * b
      w.rest.run_parallel(
          [&](char* const* p, const int64_t* s, int64_t n) {
            if (n > 1 && s[0] == w.item) {  // rows
              const int64_t steps[] = {s[0], s[0], s[1]};
              for (int64_t i = 0; i < w.count; ++i) {
                char* row = p[0] + w.place(i);
                char* const q[] = {row, row, p[1] + i * w.step};
                add(q, steps, n, factor);
              }
              return;
            }
            for (int64_t j = 0; j < n; ++j)
              add_elements(w, p[0] + j * s[0], p[1] + j * s[1],
                           *reinterpret_cast<const T*>(factor));
          },
          grain);
    }
  });
}

int64_t find_bad_index(const int64_t* index, int64_t n, int64_t size, bool negative_wraps) {
  const uint64_t low = uint64_t(negative_wraps ? -size : 0), range = uint64_t(size) - low;
  auto outside = [&](int64_t i) { return uint64_t(i) - low >= range; };
  std::atomic<bool> bad{false};
  parallel_for(0, n, kGrain, [&](int64_t b, int64_t e) {
    bool any = false;  // without an early exit the loop vectorises
    for (int64_t i = b; i < e; ++i) any |= outside(index[i]);
    if (any) bad.store(true, std::memory_order_relaxed);
  });
  if (!bad.load()) return -1;
  for (int64_t i = 0; i < n; ++i)
    if (outside(index[i])) return i;
  return -1;
}

}  // namespace facula
