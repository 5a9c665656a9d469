#include "cpu/radix_sort.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/thread_pool.h"

namespace facula {
namespace {

constexpr int64_t kShort = 64;      // up to here a comparison sort wins
constexpr int64_t kPart = 1 << 15;  // entries per thread that make threads worth it
constexpr int64_t kCacheBytes = 1 << 18;
constexpr int kDigit = 8, kBuckets = 1 << kDigit;
// Of the first split: floats share most bits of their exponents.
constexpr int kWideDigit = 11, kMostBuckets = 1 << kWideDigit;

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

template <int kDigits, class E>
void count_digits(const E* entries, int64_t n, int low, uint32_t (*counts)[kBuckets]) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = key_of(entries[i]) >> low;
#pragma GCC unroll 8
    for (int d = 0; d < kDigits; ++d) ++counts[d][key >> (kDigit * d) & (kBuckets - 1)];
  }
}
template <class E>
void count_digits(const E* entries, int64_t n, int low, int digits, uint32_t (*counts)[kBuckets]) {
  switch (digits) {
    case 1: return count_digits<1>(entries, n, low, counts);
    case 2: return count_digits<2>(entries, n, low, counts);
    case 3: return count_digits<3>(entries, n, low, counts);
    case 4: return count_digits<4>(entries, n, low, counts);
    case 5: return count_digits<5>(entries, n, low, counts);
    case 6: return count_digits<6>(entries, n, low, counts);
    case 7: return count_digits<7>(entries, n, low, counts);
    default: return count_digits<8>(entries, n, low, counts);
  }
}

// Both return where the result lies: in `result`, or, if that is null, wherever it came to lie.

// From the lowest digit, for entries that lie in the cache. Digits that all share cost nothing.
template <class E>
E* sort_upwards(E* from, E* to, int64_t n, int low, int high, E* result) {
  constexpr int kMost = 64 / kDigit;
  const int digits = (high - low + kDigit - 1) / kDigit;
  uint32_t counts[kMost][kBuckets];
  std::memset(counts, 0, sizeof counts[0] * size_t(digits));
  count_digits(from, n, low, digits, counts);
  // The highest digit may reach into bits above `high`, which are equal.
  for (int d = 0; d < digits; ++d) {
    const int shift = low + d * kDigit;
    auto digit = [=](const E& e) { return (key_of(e) >> shift) & (kBuckets - 1); };
    if (counts[d][digit(from[0])] == uint32_t(n)) continue;
    uint32_t at[kBuckets], sum = 0;
    for (int b = 0; b < kBuckets; ++b) {
      at[b] = sum;
      sum += counts[d][b];
    }
    for (int64_t i = 0; i < n; ++i) to[at[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  if (!result) return from;
  copy(result, from, n);
  return result;
}

// Many entries are split by their highest digit on all threads, until each bucket fits the cache.
template <class E>
E* sort_downwards(E* entries, E* spare, int64_t n, int low, int high, E* result) {
  if (n <= kShort) {
    std::sort(entries, entries + n);
    if (!result) return entries;
    copy(result, entries, n);
    return result;
  }
  constexpr int64_t kInCache = kCacheBytes / int64_t(sizeof(E));
  if (n <= kInCache) return sort_upwards(entries, spare, n, low, high, result);

  const int shift = std::max(low, high - (n > 8 * kInCache ? kWideDigit : kDigit));
  const int buckets = 1 << (high - shift);
  const uint64_t mask = (uint64_t(1) << (high - shift)) - 1;
  auto digit = [=](const E& e) { return (key_of(e) >> shift) & mask; };
  const int64_t parts = in_parallel_region() ? 1 : std::clamp<int64_t>(n / kPart, 1, num_threads());
  std::vector<int64_t> place(size_t(parts * buckets), 0);
  // f(first entry, end, the part's own places)
  auto for_parts = [&](auto&& f) {
    parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
      for (; b < e; ++b)
        f(entries + n * b / parts, entries + n * (b + 1) / parts, place.data() + b * buckets);
    });
  };
  for_parts([digit](const E* from, const E* end, int64_t* own) {
    for (; from < end; ++from) ++own[digit(*from)];
  });
  int64_t starts[kMostBuckets + 1], sum = 0, largest = 0;
  for (int b = 0; b < buckets; ++b) {
    starts[b] = sum;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t count = place[size_t(p * buckets + b)];
      place[size_t(p * buckets + b)] = sum;
      sum += count;
    }
    largest = std::max(largest, sum - starts[b]);
  }
  starts[buckets] = n;
  if (largest == n) {
    if (shift > low) return sort_downwards(entries, spare, n, low, shift, result);
    if (!result) return entries;
    copy(result, entries, n);
    return result;
  }
  for_parts([digit, spare](const E* from, const E* end, int64_t* own) {
    for (; from < end; ++from) spare[own[digit(*from)]++] = *from;
  });
  if (shift == low) {
    if (!result) return spare;
    parallel_for(0, n, kPart, [&](int64_t b, int64_t e) { copy(result + b, spare + b, e - b); });
    return result;
  }
  if (!result) result = entries;
  auto sort_bucket = [&](int64_t b) {
    sort_downwards(spare + starts[b], entries + starts[b], starts[b + 1] - starts[b], low, shift,
                   result + starts[b]);
  };
  auto is_large = [&](int64_t b) { return starts[b + 1] - starts[b] > kInCache; };
  for (int64_t b = 0; b < buckets; ++b)
    if (is_large(b)) sort_bucket(b);
  parallel_for(0, buckets, std::max(1, buckets / 64), [&](int64_t b, int64_t e) {
    for (; b < e; ++b)
      if (!is_large(b)) sort_bucket(b);
  });
  return result;
}

}  // namespace

uint64_t* radix_sort(uint64_t* entries, uint64_t* spare, int64_t n, int low, int high) {
  return low < high ? sort_downwards<uint64_t>(entries, spare, n, low, high, nullptr) : entries;
}
WideEntry* radix_sort(WideEntry* entries, WideEntry* spare, int64_t n, int low, int high) {
  return low < high ? sort_downwards<WideEntry>(entries, spare, n, low, high, nullptr) : entries;
}

}  // namespace facula
