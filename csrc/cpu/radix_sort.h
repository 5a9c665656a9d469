// Sorting of entries that carry an unsigned key, by a range of its bits.
#pragma once
#include <cstdint>

namespace facula {

struct WideEntry {
  uint64_t order, position;
  bool operator<(const WideEntry& o) const {
    return order != o.order ? order < o.order : position < o.position;
  }
};

// Sorts by bits [low, high) of the entry (of its order); entries that agree there stay as they are,
// or, where there are few, are sorted by the rest of the entry. So they must come in that order.
// `spare` has room for n; the result lies there or in `entries`. Many entries are sorted on all
// threads, with the same result.
uint64_t* radix_sort(uint64_t* entries, uint64_t* spare, int64_t n, int low, int high);
WideEntry* radix_sort(WideEntry* entries, WideEntry* spare, int64_t n, int low, int high);

}  // namespace facula
