// Functions of half precision, which has 65,536 values, by tables of their results. Reading a table
// takes a fraction of the time of an exponential, and typical values lie on few lines of it.
#pragma once
#include "op/loop_types.h"

namespace facula {

struct LookUpLoops {
  // What the loops get as parameters.
  struct Params {
    const void* table;
    int64_t factors;
  };
  // results[bits] of one dense operand; the table has uint16_t.
  Loop result;
  // The product of one or two factors with results[bits] of the operand behind them, computed in
  // float32, which the table has. An operand with stride 0 is one float32. Null for dtypes other
  // than those of half precision.
  Loop product[kDTypes];
};

const LookUpLoops& look_up_loops();

}  // namespace facula
