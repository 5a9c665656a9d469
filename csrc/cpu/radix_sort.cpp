#include "cpu/radix_sort.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/thread_pool.h"

namespace facula {
namespace {

constexpr int64_t kShort = 256;     // up to here a comparison sort wins
constexpr int64_t kPart = 1 << 15;  // entries per thread that make threads worth it
constexpr int64_t kCacheBytes = 1 << 18;
constexpr int kDigit = 8, kBuckets = 1 << kDigit;

inline uint64_t key_of(uint64_t e) {
  return e;
}
inline uint64_t key_of(const WideEntry& e) {
  return e.order;
}

template <class E>
void copy(E* to, const E* from, int64_t n) {
  if (to != from) std::memcpy(to, from, size_t(n) * sizeof(E));
}

// From the lowest digit, for entries that lie in the cache. Digits that all share cost nothing.
template <class E>
void sort_upwards(E* from, E* to, int64_t n, int low, int high, E* result) {
  constexpr int kMost = 64 / kDigit;
  const int digits = (high - low + kDigit - 1) / kDigit;
  uint32_t counts[kMost][kBuckets];
  std::memset(counts, 0, sizeof counts[0] * size_t(digits));
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = key_of(from[i]) >> low;
    for (int d = 0; d < digits; ++d, key >>= kDigit) ++counts[d][key & (kBuckets - 1)];
  }
  // The highest digit may reach into bits above `high`, which are equal.
  for (int d = 0; d < digits; ++d) {
    const int shift = low + d * kDigit;
    auto digit = [&](const E& e) { return (key_of(e) >> shift) & (kBuckets - 1); };
    if (counts[d][digit(from[0])] == uint32_t(n)) continue;
    uint32_t at[kBuckets], sum = 0;
    for (int b = 0; b < kBuckets; ++b) {
      at[b] = sum;
      sum += counts[d][b];
    }
    for (int64_t i = 0; i < n; ++i) to[at[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  copy(result, from, n);
}

// Many entries are split by their highest digit on all threads, until each bucket fits the cache.
// The result lies in `spare` or in `entries`.
template <class E>
void sort_downwards(E* entries, E* spare, int64_t n, int low, int high, bool into_spare) {
  E* result = into_spare ? spare : entries;
  if (n <= kShort) {
    std::sort(entries, entries + n);
    return copy(result, entries, n);
  }
  constexpr int64_t kInCache = kCacheBytes / int64_t(sizeof(E));
  if (n <= kInCache) return sort_upwards(entries, spare, n, low, high, result);

  const int shift = std::max(low, high - kDigit);
  const uint64_t mask = (uint64_t(1) << (high - shift)) - 1;
  auto digit = [&](const E& e) { return (key_of(e) >> shift) & mask; };
  const int64_t parts = in_parallel_region() ? 1 : std::clamp<int64_t>(n / kPart, 1, num_threads());
  auto bound = [&](int64_t i) { return n * i / parts; };
  std::vector<int64_t> place(size_t(parts * kBuckets), 0);
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      int64_t* own = place.data() + p * kBuckets;
      for (int64_t i = bound(p); i < bound(p + 1); ++i) ++own[digit(entries[i])];
    }
  });
  int64_t starts[kBuckets + 1], sum = 0, largest = 0;
  for (int b = 0; b < kBuckets; ++b) {
    starts[b] = sum;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t count = place[size_t(p * kBuckets + b)];
      place[size_t(p * kBuckets + b)] = sum;
      sum += count;
    }
    largest = std::max(largest, sum - starts[b]);
  }
  starts[kBuckets] = n;
  if (largest == n) {
    if (shift == low) return copy(result, entries, n);
    return sort_downwards(entries, spare, n, low, shift, into_spare);
  }
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      int64_t* own = place.data() + p * kBuckets;
      for (int64_t i = bound(p); i < bound(p + 1); ++i)
        spare[own[digit(entries[i])]++] = entries[i];
    }
  });
  if (shift == low) {
    if (!into_spare)
      parallel_for(0, n, kPart, [&](int64_t b, int64_t e) { copy(entries + b, spare + b, e - b); });
    return;
  }
  auto sort_bucket = [&](int64_t b) {
    sort_downwards(spare + starts[b], entries + starts[b], starts[b + 1] - starts[b], low, shift,
                   !into_spare);
  };
  auto is_large = [&](int64_t b) { return starts[b + 1] - starts[b] > kInCache; };
  for (int64_t b = 0; b < kBuckets; ++b)
    if (is_large(b)) sort_bucket(b);
  parallel_for(0, kBuckets, 4, [&](int64_t b, int64_t e) {
    for (; b < e; ++b)
      if (!is_large(b)) sort_bucket(b);
  });
}

}  // namespace

void radix_sort(uint64_t* entries, uint64_t* spare, int64_t n, int low, int high) {
  if (low < high) sort_downwards(entries, spare, n, low, high, false);
}
void radix_sort(WideEntry* entries, WideEntry* spare, int64_t n, int low, int high) {
  if (low < high) sort_downwards(entries, spare, n, low, high, false);
}

}  // namespace facula
