// Loops over the rows of a sparse matrix in CSR form, times a dense one.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// Matrices have `width` columns and dense rows; both loops run over the rows first to last.
struct SparseRowLoops {
  // out(i, :) = sum over k of values[k] * matrix(columns[k], :)
  void (*multiply)(const int64_t* starts, const int64_t* columns, const void* values,
                   const void* matrix, void* out, int64_t width, int64_t first, int64_t last);
  // out[k] = inner product of a(i, :) and b(columns[k], :)
  void (*sample)(const int64_t* starts, const int64_t* columns, const void* a, const void* b,
                 void* out, int64_t width, int64_t first, int64_t last);
};
// Null functions where the dtype has no loops.
SparseRowLoops sparse_row_loops(DType dtype);

}  // namespace facula
