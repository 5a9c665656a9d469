// Reading and writing a tensor at points: places that come from index values. Around each point
// lie the dimensions that no index touches, called the rest.
#pragma once
#include "cpu/iterate.h"

namespace facula {

struct PointWork {
  const int64_t* points = nullptr;  // index values or byte offsets, already checked
  int64_t count = 0;
  int64_t scale = 1;   // bytes per index value
  int64_t wrap = 0;    // bytes added to places of negative index values
  int64_t step = 0;    // bytes between the values of neighbouring points; 0 repeats one
  int64_t item = 0;    // item size
  int64_t places = 0;  // how many index values there can be; 0 when that is not known
  Iteration rest;      // operand 0: the indexed tensor at place 0; operand 1: the values

  int64_t place(int64_t i) const { return points[i] * scale + (points[i] < 0 ? wrap : 0); }
};

void cpu_read_points(const PointWork& work);   // values = tensor
void cpu_write_points(const PointWork& work);  // tensor = values; of equal points the last wins
// tensor += alpha * values, in the order of the points, or of parts of them when many fall on few
// places; small floats are summed in float32.
void cpu_add_points(const PointWork& work, DType dtype, const Scalar& alpha);

// The first of n index values outside [-size, size) (or [0, size)), or -1 when all are inside.
int64_t find_bad_index(const int64_t* index, int64_t n, int64_t size, bool negative_wraps);

}  // namespace facula
