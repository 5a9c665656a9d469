// Weighted sums along the axes of images and volumes: averages of windows, interpolation, and the
// transposes of both, which are sums of the same kind.
#pragma once
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace facula {

// Element t of the result is the sum over k < count[t] of weight[t * width + k] times element
// start[t] + k of the input. start never decreases.
struct ResampleTable {
  int64_t in = 1, out = 1, width = 0;
  std::vector<int64_t> start, count;
  std::vector<double> weight;

  static ResampleTable identity(int64_t n);
  ResampleTable() = default;
  // A table without weights yet, with room for `width` of them for every element.
  ResampleTable(int64_t in, int64_t out, int64_t width)
      : in(in),
        out(out),
        width(width),
        start(size_t(out)),
        count(size_t(out)),
        weight(size_t(out * width)) {}
  ResampleTable transposed() const;
  bool is_identity() const;
};

// One axis as the loops see it; weights are of the type that sums are computed in.
struct ResampleAxis {
  int64_t in, out, width;
  const int64_t* start;
  const int64_t* count;
  const void* weight;
  bool identity;
  int64_t whole_begin, whole_end;  // elements between them are sums of `width` terms
};

struct Resample {
  DType dtype;
  int64_t outer, inner;  // x is (outer, in ..., inner) and y (outer, out ..., inner), dense
  ResampleAxis axis[3];  // depth, height, width
};

// float32, float64, half, bfloat16 and uint8 (rounded to the nearest).
void resample(DType dtype, int64_t outer, int64_t inner, const ResampleTable tables[3],
              const void* x, void* y);

// y(outer, inner) = the mean of x(outer, pixels, inner) over the pixels; dtypes as above, without
// uint8.
void mean_of_planes(DType dtype, int64_t outer, int64_t pixels, int64_t inner, const void* x,
                    void* y);

// ---- what resample_isa.cpp offers

struct ResampleLoops {
  // Bytes of scratch memory for one thread.
  int64_t (*scratch)(const Resample&);
  // Rows [begin, end) of one plane (outer, depth) of the result.
  void (*rows)(const Resample&, const void* x, void* y, int64_t plane, int64_t begin, int64_t end,
               void* scratch);
  // The means of planes [begin, end).
  void (*means)(DType dtype, int64_t pixels, int64_t inner, const void* x, void* y, int64_t begin,
                int64_t end);
};

}  // namespace facula
