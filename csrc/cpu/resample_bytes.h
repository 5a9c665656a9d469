// Images of bytes at another size, in whole numbers: weights of 15 bits, and bytes again between
// the two passes. This is how Pillow and PyTorch compute them, so results are equal to the last
// bit.
#pragma once
#include "cpu/resample.h"

namespace facula {

// x is (outer, height, width, inner), dense; the width comes first, then the height.
void resample_bytes(int64_t outer, int64_t inner, const ResampleTable& height,
                    const ResampleTable& width, const uint8_t* x, uint8_t* y);

// ---- what resample_bytes_isa.cpp offers

// One axis: x is (outer, in, inner), y (outer, out, inner).
struct ByteAxis {
  int64_t in, out, inner, width;
  const int64_t* start;
  const int64_t* count;
  const int32_t* weight;  // times 2 to the power of shift
  int shift;
};

struct ByteLoops {
  void (*planes)(const ByteAxis&, const uint8_t* x, uint8_t* y, int64_t begin, int64_t end);
};

}  // namespace facula
