// Distances between all pairs of rows of two matrices, and their derivative.
#pragma once
#include <cstdint>

namespace facula {

// out(i, j) = p-norm of x1[i] - x2[j]; x1 is (rows, width), x2 (columns, width), all dense.
// slopes: out(i, m) = sum over j of grad(i, j) times the derivative of distance(i, j) by x1(i, m).
struct DistanceLoops {
  void (*rows_f32)(const float* x1, const float* x2, float* out, int64_t rows, int64_t columns,
                   int64_t width, double p);
  void (*rows_f64)(const double* x1, const double* x2, double* out, int64_t rows, int64_t columns,
                   int64_t width, double p);
  void (*slopes_f32)(const float* grad, const float* distances, const float* x1, const float* x2,
                     float* out, int64_t rows, int64_t columns, int64_t width, double p);
  void (*slopes_f64)(const double* grad, const double* distances, const double* x1,
                     const double* x2, double* out, int64_t rows, int64_t columns, int64_t width,
                     double p);
};
const DistanceLoops& distance_loops();

}  // namespace facula
