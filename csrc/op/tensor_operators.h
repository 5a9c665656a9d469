// Arithmetic on tensors and numbers, for derivatives and composites.
#pragma once
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"

namespace facula {

inline Tensor operator+(Value a, Value b) {
  return op::add(a, b);
}
inline Tensor operator-(Value a, Value b) {
  return op::sub(a, b);
}
inline Tensor operator*(Value a, Value b) {
  return op::mul(a, b);
}
inline Tensor operator/(Value a, Value b) {
  return op::div(a, b);
}
inline Tensor operator-(Value a) {
  return op::neg(a);
}
inline Tensor operator<(Value a, Value b) {
  return op::lt(a, b);
}
inline Tensor operator>(Value a, Value b) {
  return op::gt(a, b);
}
inline Tensor operator<=(Value a, Value b) {
  return op::le(a, b);
}
inline Tensor operator>=(Value a, Value b) {
  return op::ge(a, b);
}

}  // namespace facula
