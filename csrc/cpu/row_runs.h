// Long rows that meet operands which are repeated, such as a bias of 1,024 features, and rows that
// do not follow each other in memory: all that lie along one dimension are one call.
#pragma once
#include "cpu/iterate.h"
#include "op/loop_types.h"

namespace facula {

class RowRuns {
 public:
  // `items`: the item size of each operand.
  RowRuns(const Iteration& it, const int64_t* items);
  // Whether there are rows enough for all threads.
  explicit operator bool() const { return possible_; }
  void run_parallel(RowsLoop loop, const void* params) const;

 private:
  void run(int64_t from, int64_t to, RowsLoop loop, const void* params) const;

  const Iteration& it_;
  bool possible_ = false;
  int moved_ = 0;  // the operand whose row is read from another place; 0 is none
  int64_t row_bytes_ = 0;
};

}  // namespace facula
