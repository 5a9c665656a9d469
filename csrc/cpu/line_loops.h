// Loops along lines and over neighbouring lines (columns) that reductions and scans share; built
// once per ISA.
#pragma once
#include "op/loop_types.h"

namespace facula {

// The type in which a running value is kept: wider than the elements where rounding would add up.
template <class T>
using Running =
    std::conditional_t<std::is_same_v<T, float>, double,
                       std::conditional_t<std::is_same_v<T, Complex<float>>, Complex<double>,
                                          std::conditional_t<std::is_arithmetic_v<T> ||
                                                                 std::is_same_v<T, Complex<double>>,
                                                             T, float>>>;

struct LineLoops {
  static constexpr int64_t kColumns = 128;  // at most as many go together

  // Sums of dense elements of a narrow dtype, small floats in float32 and integers in int64, and
  // rows of them folded into a row of sums (see ReduceDef). Null for other dtypes.
  ReduceLoop sum[kDTypes];
  Loop fold_sum[kDTypes];
  // The same for floats of any width, where NaN counts as 0.
  ReduceLoop sum_numbers[kDTypes];
  Loop fold_numbers[kDTypes];
  // Folds dense rows of n elements, kShortestRow or more and not too many for one block, that lie
  // `row_bytes` apart: what the loop of the reduction gives for each. For float32 and float64,
  // extremes also for int32 and int64; null for other dtypes. False where an extreme may be wrong,
  // since not all elements are finite.
  static constexpr int64_t kShortestRow = 16;
  using FoldRows = bool (*)(char* to, const char* in, int64_t row_bytes, int64_t rows, int64_t n);
  FoldRows sum_rows[kDTypes], product_rows[kDTypes], largest_rows[kDTypes], smallest_rows[kDTypes];
  // Whether any, or all, of dense integers of one byte are not 0, as a bool.
  ReduceLoop any_byte, every_byte;
  // sum[i] += factor * x[i] for dense half types; null for other dtypes.
  using AddScaled = void (*)(float* sum, const char* x, int64_t n, float factor);
  AddScaled add_scaled[kDTypes];
  // The row in which each of `count` columns has its first extremum, or its first NaN. Fewer than
  // 2^31 rows. Null for complex dtypes.
  using ExtremeRows = void (*)(const char* in, int64_t row_bytes, int64_t rows, int64_t count,
                               int64_t* where);
  ExtremeRows largest[kDTypes], smallest[kDTypes];
  // Running sums and products of `count` columns of n elements.
  using ScanColumns = void (*)(const char* in, char* out, int64_t in_bytes, int64_t out_bytes,
                               int64_t n, int64_t count);
  ScanColumns running_sum[kDTypes], running_product[kDTypes];
  // The running extremum of a dense row and its last position; NaN wins and stays. Null for dtypes
  // that are not 4 or 8 bytes wide.
  using RunningExtreme = void (*)(const char* in, char* values, int64_t* where, int64_t n);
  RunningExtreme running_maximum[kDTypes], running_minimum[kDTypes];
  // Running sums of a row; returns the last one. y may be x.
  int64_t (*running_sum_i64)(const int64_t* x, int64_t* y, int64_t n, int64_t before);
  double (*running_sum_f32)(const float* x, float* y, int64_t n, double before);
  // `count` items that lie `step` bytes apart, each `times` over, dense at `to`; by the logarithm
  // of the item size.
  using RepeatEach = void (*)(char* to, const char* from, int64_t step, int64_t count,
                              int64_t times);
  RepeatEach repeat_each[5];
  // Copies `count` whole lines of the cache past it, in vectors as wide as there are; the target is
  // aligned to a line. See cpu/stream.h.
  void (*stream_lines)(char* to, const char* from, int64_t count);
  // memcpy of many bytes; see cpu/copy_dense.h.
  void (*copy)(char* to, const char* from, int64_t bytes);
  // Item j of row i of the target is item i of line j of the source; by the logarithm of the item
  // size. Whole vectors go past the cache if asked to, for which rows begin with a line of it.
  using Turn = void (*)(char* to, int64_t to_bytes, const char* from, int64_t from_bytes,
                        int64_t rows, int64_t columns, bool past_cache);
  Turn turn[5];
};

const LineLoops& line_loops();

}  // namespace facula
