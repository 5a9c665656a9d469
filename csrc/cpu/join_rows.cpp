#include "cpu/join_rows.h"

#include <bit>

namespace facula {

JoinedRows::JoinedRows(const Iteration& it, const int64_t* items) : it_(it) {
  // Elements of a row that is worth a call of its own; a number that changes with the row is laid
  // out anew each time, which pays for shorter ones only.
  constexpr int64_t kLong = 512, kLongOfNumber = 128;
  if (it.ndim < 2 || it.sizes[0] >= kLong || it.numel < kLong) return;
  length_ = it.sizes[0];
  together_ = it.sizes[1];
  bool repeated = false;
  for (int o = 0; o < it.operands; ++o) {
    const int64_t inner = it.strides[o][0], outer = it.strides[o][1], item = items[o];
    steps_[o] = item;
    if (inner == item && outer == inner * length_) {
      kind_[o] = Kind::Whole;
      continue;
    }
    bool still = true;
    for (int d = 0; d < it.ndim; ++d) still = still && it.strides[o][d] == 0;
    if (o == 0) return;
    if (still) {
      kind_[o] = Kind::Number;
      steps_[o] = 0;
      continue;
    }
    if (inner == item && outer == 0) kind_[o] = Kind::Row;
    else if (inner == 0 && length_ < kLongOfNumber) kind_[o] = Kind::Column;
    else return;
    repeated = true;
    repeat_[o] = line_loops().repeat_each[std::countr_zero(uint64_t(item))];
    together_ = std::min(together_, kTileBytes / (item * length_));
  }
  possible_ = repeated && together_ > 1;
}

}  // namespace facula
