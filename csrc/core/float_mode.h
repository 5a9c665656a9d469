// The floating-point control word of a thread: rounding, and whether tiny numbers count as zero.
#pragma once
#include <cstdint>
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace facula {

inline uint64_t float_mode() {
#if defined(__x86_64__) || defined(__i386__)
  return _mm_getcsr() & ~0x3fu;  // without the flags of what has happened
#elif defined(__aarch64__)
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
#else
  return 0;
#endif
}

inline void set_float_mode([[maybe_unused]] uint64_t mode) {
#if defined(__x86_64__) || defined(__i386__)
  _mm_setcsr(uint32_t(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(mode));
#endif
}

// The bits that make subnormal results and operands zero; 0 where there are none.
#if defined(__x86_64__) || defined(__i386__)
inline constexpr uint64_t kFlushDenormal = 0x8040;
#elif defined(__aarch64__)
inline constexpr uint64_t kFlushDenormal = uint64_t(1) << 24;
#else
inline constexpr uint64_t kFlushDenormal = 0;
#endif

}  // namespace facula
