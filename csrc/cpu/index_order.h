// The order of elements. Sorting is stable by itself, needs no comparison function per dtype, and
// has one answer whichever algorithm finds it. NaN is above every number; -0 and 0 are equal.
// Complex dtypes have no order and must not come here.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// A line is n elements of one dtype, `stride` bytes apart.
struct Line {
  DType dtype;
  const char* data;
  int64_t stride, n;
};

// Where results along a line go, and how many bytes apart.
struct SortedLine {
  char* values;
  int64_t value_step;
  char* positions;  // int64
  int64_t position_step;
};

// Writes the k lowest elements, in order, and their positions. `descending` turns the order around
// but keeps that of equal elements. A long line is sorted on all threads.
void sort_line(const Line& line, bool descending, int64_t k, const SortedLine& out);

enum class Pick : uint8_t { Kth, Median, NanMedian, Mode };
// The position of one element of a line that is not empty; k counts from 1 and is for Kth only.
int64_t pick_position(const Line& line, Pick pick, int64_t k);

void load_keys(const Line& line, uint64_t* keys);
// The key of NaN in a floating-point dtype; integers may have it as an ordinary one.
constexpr uint64_t nan_key(DType d) {
  return item_size(d) == 8 ? ~uint64_t(0) : 0xffffffffu;
}

}  // namespace facula
