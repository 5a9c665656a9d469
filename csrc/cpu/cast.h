// Conversion between any two element types, strided: the copy kernel and the way in and out of
// the compute type.
#pragma once
#include "core/dtype.h"

namespace facula {

using CastLoop = void (*)(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                          int64_t n);
CastLoop cast_loop(DType from, DType to);

struct CastRow {  // the conversions from one type
  CastLoop loops[kDTypes];
};

// Which build of the loop files this machine runs: 0 baseline, 1 x86-64-v3, 2 x86-64-v4.
int isa_level();

}  // namespace facula
