#include "cpu/index_order.h"

#include <algorithm>
#include <cstring>

#include "core/thread_pool.h"

namespace facula {
namespace {

constexpr int64_t kShort = 256;         // below this a comparison sort wins
constexpr int64_t kParallel = 1 << 16;  // per thread

// Radix sort from the lowest byte of the key; bytes that all keys share cost nothing.
template <class E>
void radix_sort(E* entries, E* spare, int64_t n) {
  uint32_t counts[E::kKeyBytes][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < E::kKeyBytes; ++d) ++counts[d][entries[i].digit(d)];
  E* from = entries;
  E* to = spare;
  for (int d = 0; d < E::kKeyBytes; ++d) {
    if (counts[d][from[0].digit(d)] == uint32_t(n)) continue;
    uint32_t at[256], sum = 0;
    for (int b = 0; b < 256; ++b) {
      at[b] = sum;
      sum += counts[d][b];
    }
    for (int64_t i = 0; i < n; ++i) to[at[from[i].digit(d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(E));
}

template <class E>
void sort_part(E* entries, E* spare, int64_t n) {
  if (n <= kShort || n > int64_t(UINT32_MAX)) std::sort(entries, entries + n);
  else radix_sort(entries, spare, n);
}

// Sorted parts, one per thread, are merged in pairs until one is left.
template <class E>
void sort_all(E* entries, E* spare, int64_t n) {
  const int64_t parts = in_parallel_region() ? 1 : std::min<int64_t>(num_threads(), n / kParallel);
  if (parts < 2) return sort_part(entries, spare, n);
  auto bound = [&](int64_t i) { return n * std::min(i, parts) / parts; };
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      sort_part(entries + bound(i), spare + bound(i), bound(i + 1) - bound(i));
  });
  E* from = entries;
  E* to = spare;
  for (int64_t width = 1; width < parts; width *= 2) {
    parallel_for(0, (parts + 2 * width - 1) / (2 * width), 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t left = bound(2 * i * width), middle = bound((2 * i + 1) * width),
                right = bound((2 * i + 2) * width);
        std::merge(from + left, from + middle, from + middle, from + right, to + left);
      }
    });
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(E));
}

template <class E>
void sort_front(E* entries, E* spare, int64_t n, int64_t k) {
  if (k * 64 <= n) {
    std::partial_sort(entries, entries + k, entries + n);
    return;
  }
  if (k < n) std::nth_element(entries, entries + k, entries + n);
  sort_all(entries, spare, k);
}

// Calls store(i, key) for the elements of a line.
template <class F>
void for_each_key(DType d, const char* line, int64_t stride, int64_t n, F&& store) {
  dispatch_dtype(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>)
      for (int64_t i = 0; i < n; ++i)
        store(i, order_key(*reinterpret_cast<const T*>(line + i * stride)));
  });
}

template <class E>
void load(DType d, E* to, const char* line, int64_t stride, int64_t n, bool descending) {
  for_each_key(d, line, stride, n, [&](int64_t i, auto key) {
    to[i] = E::make(descending ? decltype(key)(~key) : key, i);
  });
}

}  // namespace

void load_entries(DType d, NarrowEntry* to, const char* line, int64_t stride, int64_t n,
                  bool descending) {
  load(d, to, line, stride, n, descending);
}
void load_entries(DType d, WideEntry* to, const char* line, int64_t stride, int64_t n,
                  bool descending) {
  load(d, to, line, stride, n, descending);
}
void load_keys(DType d, uint64_t* to, const char* line, int64_t stride, int64_t n) {
  for_each_key(d, line, stride, n, [&](int64_t i, auto key) { to[i] = key; });
}

void sort_lowest(NarrowEntry* entries, NarrowEntry* spare, int64_t n, int64_t k) {
  sort_front(entries, spare, n, k);
}
void sort_lowest(WideEntry* entries, WideEntry* spare, int64_t n, int64_t k) {
  sort_front(entries, spare, n, k);
}

void sort_entries(NarrowEntry* entries, NarrowEntry* spare, int64_t n) {
  sort_all(entries, spare, n);
}
void sort_entries(WideEntry* entries, WideEntry* spare, int64_t n) { sort_all(entries, spare, n); }

}  // namespace facula
