// Vectors whose lanes hold numbers of different matrices. In the ISA's namespace, so that no build
// can end up with another one's code.
#pragma once
#include <cstdint>
#include <cstring>

namespace facula::FACULA_ISA {

#if defined(__AVX512F__)
constexpr int kLaneBytes = 64;
#elif defined(__AVX2__)
constexpr int kLaneBytes = 32;
#else
constexpr int kLaneBytes = 16;
#endif
template <class T>
constexpr int kLanes = kLaneBytes / int(sizeof(T));

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
