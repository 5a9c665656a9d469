// The order of elements. Each is turned into an unsigned key of the same order and packed with its
// position; sorting these entries is stable by itself, needs no comparison function per dtype, and
// has one answer whichever algorithm finds it. NaN is above every number; -0 and 0 are equal.
// Complex dtypes have no order and must not come here.
#pragma once
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace facula {

// A line is n elements of one dtype, `stride` bytes apart.
struct Line {
  DType dtype;
  const char* data;
  int64_t stride, n;
};

// Writes the positions of the k lowest elements, in order, `step` bytes apart. `descending` turns
// the order around but keeps that of equal elements. A long line is sorted on all threads.
void sort_line(const Line& line, bool descending, int64_t k, char* positions, int64_t step);

enum class Pick : uint8_t { Kth, Median, NanMedian, Mode };
// The position of one element of a line that is not empty; k counts from 1 and is for Kth only.
int64_t pick_position(const Line& line, Pick pick, int64_t k);

// All positions in order, and where in them each group of equal elements begins; NaN equals
// nothing.
void group_line(const Line& line, std::vector<int64_t>& order, std::vector<int64_t>& starts);

void load_keys(const Line& line, uint64_t* keys);
// The key of NaN in a floating-point dtype; integers may have it as an ordinary one.
constexpr uint64_t nan_key(DType d) {
  return item_size(d) == 8 ? ~uint64_t(0) : 0xffffffffu;
}

}  // namespace facula
