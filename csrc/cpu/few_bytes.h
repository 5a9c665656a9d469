// Copies of few bytes, which memcpy does best.
#pragma once
#include <cstdint>
#include <cstring>

namespace facula {

constexpr int64_t kManyBytes = 2048;  // from here on vectors do (cpu/copy_dense.h)

// Calls memcpy although the compiler knows a bound of the size: for bounded sizes GCC writes
// `rep movs` in its place, which takes as long to start as a short row to copy.
inline void copy_few_bytes(char* to, const char* from, int64_t bytes) {
  auto size = size_t(bytes);
#if defined(__GNUC__)
  asm("" : "+r"(size));
#endif
  std::memcpy(to, from, size);
}

}  // namespace facula
