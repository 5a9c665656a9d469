// Householder reflections by vectors along columns, for files that are built per ISA. Columns end
// with zeros, so that loops need no remainder.
#pragma once
#include "cpu/gemm_block.h"

#include <cmath>
#include <limits>

namespace facula::FACULA_ISA {
namespace {

template <class T>
T sum_lanes(Vector<T> v) {
  T sum = 0;
  for (int l = 0; l < kLanes<T>; ++l) sum += v[l];
  return sum;
}

// Without overflow and underflow on the way.
template <class T>
T norm(int rows, const T* x) {
  Vector<T> squares{};
  for (int i = 0; i < rows; i += kLanes<T>) {
    const Vector<T> part = load(x + i);
    squares += part * part;
  }
  const T sum = sum_lanes<T>(squares);
  // Where no square was lost the plain sum is exact enough.
  if (sum > std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() &&
      sum < std::numeric_limits<T>::max())
    return std::sqrt(sum);
  T largest = 0;
  for (int i = 0; i < rows; ++i) {
    const T size = std::abs(x[i]);
    largest = size > largest || size != size ? size : largest;
  }
  if (!(largest > 0) || std::isinf(largest)) return largest;
  T scaled = 0;
  for (int i = 0; i < rows; ++i) scaled += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(scaled);
}

// H = I - tau v v^T with v[0] = 1 and H x = (beta, 0, ...): beta replaces x[0], v the rest.
template <class T>
T make_reflector(int rows, T* x) {
  const T below = norm(rows - 1, x + 1);
  if (below == 0) return T(0);
  const T alpha = x[0], beta = -std::copysign(std::hypot(alpha, below), alpha);
  constexpr T kLeast = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  if (std::abs(beta) < kLeast) {  // such numbers have lost digits, or their quotients would
    for (int i = 0; i < rows; ++i) x[i] /= kLeast;
    const T tau = make_reflector(rows, x);
    x[0] *= kLeast;
    return tau;
  }
  const T pivot = alpha - beta, scale = T(1) / pivot;
  for (int i = 1; i < rows; i += kLanes<T>) store(x + i, scale * load(x + i));
  x[0] = beta;
  return (beta - alpha) / beta;
}

// C columns -= factor * v (v^T column), where v[0] counts as 1.
template <int C, class T>
void reflect(int rows, const T* v, T factor, T* y, int64_t ld) {
  Vector<T> sums[C] = {};
  for (int i = 1; i < rows; i += kLanes<T>) {
    const Vector<T> part = load(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sums[c] += part * load(y + c * ld + i);
  }
  T along[C];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    along[c] = factor * (y[c * ld] + sum_lanes<T>(sums[c]));
    y[c * ld] -= along[c];
  }
  for (int i = 1; i < rows; i += kLanes<T>) {
    const Vector<T> part = load(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) store(y + c * ld + i, load(y + c * ld + i) - along[c] * part);
  }
}

}  // namespace
}  // namespace facula::FACULA_ISA
