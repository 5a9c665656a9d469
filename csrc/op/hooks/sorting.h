// What a device backend does for order and running totals (kernels/sorting.cpp, scans.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

enum class Scan : uint8_t { Sum, Product, LogSumExp };

struct SortingHooks {
  // The k first elements of each line in order, and their positions; like cpu_sort.
  DeviceHook<void(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
                  const Tensor& indices)>
      sort{"sort"};
  // Running totals; like cpu_cumsum and its kin. `out` has the dtype to add up in, or a small
  // float.
  DeviceHook<void(const Tensor& in, int64_t dim, Scan scan, const Tensor& out)> scan{"cumsum"};
  // Extrema so far and the last positions they were at; like cpu_cumulative_extreme.
  DeviceHook<void(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                  const Tensor& indices)>
      cumulative_extreme{"cummax"};
  // Position of the first extremum along dim; out has size 1 there.
  DeviceHook<void(const Tensor& in, int64_t dim, bool largest, const Tensor& out)> arg_extreme{
      "argmax"};
};
inline constinit SortingHooks device_sorting;

}  // namespace facula
