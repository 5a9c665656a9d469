// What index_loops_isa.cpp offers: passes over index values and elements that gain from wide
// vectors.
#pragma once
#include <cstdint>

namespace facula {

struct IndexLoops {
  // Whether all n values lie in [low, low + range), as numbers without sign.
  bool (*all_inside)(const int64_t* x, int64_t n, uint64_t low, uint64_t range);
  // Widens [low, high] by n values.
  void (*extremes)(const int64_t* x, int64_t n, int64_t* low, int64_t* high);
  // How many of n neighbours x[i], x[i + 1] differ; NaN differs from itself.
  int64_t (*changes_f32)(const float* x, int64_t n);
  int64_t (*changes_f64)(const double* x, int64_t n);
  int64_t (*changes_i32)(const int32_t* x, int64_t n);
  int64_t (*changes_i64)(const int64_t* x, int64_t n);
  // The first i in [from, n) with x[i] beyond a bound: not <= it when `above`, else not >= it, so
  // NaN is always beyond; n when there is none.
  int64_t (*beyond_f32)(const float* x, int64_t from, int64_t n, float bound, bool above);
  int64_t (*beyond_f64)(const double* x, int64_t from, int64_t n, double bound, bool above);
  int64_t (*beyond_i32)(const int32_t* x, int64_t from, int64_t n, int32_t bound, bool above);
  int64_t (*beyond_i64)(const int64_t* x, int64_t from, int64_t n, int64_t bound, bool above);
  int64_t (*beyond_halves)(const uint16_t* x, int64_t from, int64_t n, uint16_t bound, bool above,
                           uint16_t infinity);
  // Writes where elements in [low, high] stand, for which there is room for n + 16, and returns how
  // many there are; counts those below and NaN. Fewer than 2^31 elements.
  int64_t (*between_f32)(const float* x, int64_t n, float low, float high, int32_t* where,
                         int64_t* below, int64_t* nans);
  // n items of 1, 2, 4 or 8 bytes in reverse.
  void (*reverse_1)(char* to, const char* from, int64_t n);
  void (*reverse_2)(char* to, const char* from, int64_t n);
  void (*reverse_4)(char* to, const char* from, int64_t n);
  void (*reverse_8)(char* to, const char* from, int64_t n);
  // A sorting network on kSortLanes lines at once: entry i of line w is entries[i * kSortLanes +
  // w], and each step leaves the lower of two entries at `low`. Where entries have a second word,
  // it decides between equal ones and lies behind all the first ones, `second` words further on.
  static constexpr int64_t kSortLanes = 16, kShortLine = 128;
  struct Comparator {
    uint8_t low, high;
  };
  // Makes entries for it of n elements of each line, turned: the order of float32 and of words of
  // 32 bits (whose bits `flip` changes, which turns the order of floats around, or makes that of
  // integers) and the position, in one word.
  void (*load_floats)(const uint32_t* turned, int64_t n, uint32_t flip, int64_t* entries);
  void (*load_words)(const uint32_t* turned, int64_t n, uint32_t flip, int64_t* entries);
  void (*run_network)(const Comparator* steps, int64_t count, int64_t* entries);
  void (*run_wide_network)(const Comparator* steps, int64_t count, int64_t* entries,
                           int64_t second);
  // x[i] = first + i * step
  void (*count_up)(int64_t* x, int64_t n, int64_t first, int64_t step);
  // x[i] = base + step * (first + i * by), by being 1 or -1; fused, it is rounded once.
  void (*ramp_f64)(double* x, int64_t n, double base, double step, int64_t first, int64_t by);
  void (*fused_ramp_f32)(float* x, int64_t n, float base, float step, int64_t first, int64_t by);
  void (*fused_ramp_f64)(double* x, int64_t n, double base, double step, int64_t first, int64_t by);
  // x[i] = start + step * (first + i) for elements that will be stored as the named type, rounded
  // as by vectors of 32 bytes: each counts on from its first element, which it has as that type.
  void (*ramp_for_doubles)(double* x, int64_t n, double start, double step, int64_t first);
  void (*ramp_for_floats)(double* x, int64_t n, double start, double step, int64_t first);
  void (*ramp_for_halves)(float* x, int64_t n, float start, float step, int64_t first);
  void (*ramp_for_bfloats)(float* x, int64_t n, float start, float step, int64_t first);
  // Two to four rows of n items, `step` bytes apart, whose items alternate in one row: at `to`, or
  // taken apart at `from`. By the logarithm of the item size, up to 8 bytes.
  using Alternate = void (*)(char* to, const char* from, int64_t step, int64_t rows, int64_t n);
  Alternate interleave[4], deinterleave[4];
};

const IndexLoops& index_loops();

}  // namespace facula
