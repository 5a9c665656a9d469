// Sums of table rows over bags of lookups, on the host.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// Bag i is lookups [offsets[i], offsets[i + 1]); rows are `width` elements, `apart` elements from
// each other. Lookups of `padding` do not count.
struct Bags {
  const int64_t *lookups, *offsets;
  int64_t begin, end;  // bags to sum
  int64_t width, apart, padding;
  bool mean;
};

// Half precision is summed in float and rounded once. `factors` has one number for each lookup, or
// is null; `sizes` takes how many lookups counted.
void sum_bags(DType dtype, const Bags&, const void* table, const void* factors, void* out,
              int64_t* sizes);

using SumBags = void (*)(DType, const Bags&, const void*, const void*, void*, int64_t*);

}  // namespace facula
