#include "cpu/amx.h"

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "cpu/cast.h"

namespace facula {

namespace {

struct Support {
  bool brain = false, half = false;  // bfloat16, float16
};

#if defined(__x86_64__) && defined(__linux__)
// Bits 17 and 18 of XCR0: the system saves what describes the tiles, and the tiles.
bool system_saves_tiles() {
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3;
}

// Linux gives the 8 KB of tiles to processes that ask for them, which includes their threads.
bool ask_for_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

Support detect() {
  unsigned a, b, c, d;
  if (const char* set = std::getenv("FACULA_ISA")) {
    const bool claimed = !std::strcmp(set, "tiles");
    if (claimed) ask_for_tiles();  // refused where only an emulator has them
    return {claimed, claimed};
  }
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return {};  // OSXSAVE
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
  const bool tiles = d >> 24 & 1, brain = d >> 22 & 1;
  unsigned more = 0;
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) more = a;
  if (!tiles || !brain || !system_saves_tiles() || !ask_for_tiles()) return {};
  return {true, (more >> 21 & 1) != 0};
}
#else
Support detect() {
  return {};
}
#endif

}  // namespace

bool amx_available(DType dtype) {
  // The loops around tiles are those of AVX-512.
  static const Support support = isa_level() == 2 ? detect() : Support{};
  return (dtype == DType::BFloat16 && support.brain) || (dtype == DType::Float16 && support.half);
}

}  // namespace facula
