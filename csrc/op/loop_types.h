// Loop signatures and type helpers for the files that are built per ISA; no STL containers.
#pragma once
#include "core/dtype.h"

namespace facula {

// The one loop signature: pointers and byte strides with the result first, and the parameters as
// 16-byte slots that hold values of the compute type (or int64 / double / bool as declared).
using Loop = void (*)(char* const* pointers, const int64_t* strides, int64_t n, const void* params);

// The same over rows of n elements; `steps` lead from one row to the next. What leads on stays in
// registers: between rows, a load would wait for stores of the row before whose addresses agree
// with it in the last 12 bits, as those of a row of 4 KB do with any.
using RowsLoop = void (*)(char* const* pointers, const int64_t* strides, const int64_t* steps,
                          int64_t n, int64_t rows, const void* params);

// Folds n values at `in` (byte stride) into the accumulator, which holds one value.
using ReduceLoop = void (*)(char* accumulator, const char* in, int64_t stride, int64_t n,
                            bool first);

}  // namespace facula
