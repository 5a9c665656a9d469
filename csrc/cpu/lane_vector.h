// Vectors whose lanes hold numbers of different matrices.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/lanes.h"

namespace facula::FACULA_ISA {

template <class T>
struct Wide;
template <>
struct Wide<float> {
  typedef float Number __attribute__((vector_size(kLaneBytes)));
  typedef int32_t Integer __attribute__((vector_size(kLaneBytes)));
};
template <>
struct Wide<double> {
  typedef double Number __attribute__((vector_size(kLaneBytes)));
  typedef int64_t Integer __attribute__((vector_size(kLaneBytes)));
};

}  // namespace facula::FACULA_ISA
