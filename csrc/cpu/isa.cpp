// Chooses, once, which build of the loop files runs.
#include <cstdlib>
#include <cstring>

#include "cpu/cast.h"

namespace facula {

#define X(e, t, n, c) extern const CastRow cast_from_##e;
namespace baseline {
FACULA_DTYPES(X)
}
#ifdef FACULA_X86
namespace v3 {
FACULA_DTYPES(X)
}
namespace v4 {
FACULA_DTYPES(X)
}
#endif
#undef X

static int detect() {
#ifdef FACULA_X86
  int level = 0;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c"))
    level = 1;
  if (level == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    level = 2;
  if (const char* cap = std::getenv("FACULA_ISA")) {  // for tests: never above what the CPU has
    int wanted = !std::strcmp(cap, "baseline") ? 0 : !std::strcmp(cap, "v3") ? 1 : 2;
    if (wanted < level) level = wanted;
  }
  return level;
#else
  return 0;
#endif
}

int isa_level() {
  static const int level = detect();
  return level;
}

CastLoop cast_loop(DType from, DType to) {
#define X(e, t, n, c) &FACULA_TABLE::cast_from_##e,
#define FACULA_TABLE baseline
  static const CastRow* const base[] = {FACULA_DTYPES(X)};
#undef FACULA_TABLE
#ifdef FACULA_X86
#define FACULA_TABLE v3
  static const CastRow* const wide[] = {FACULA_DTYPES(X)};
#undef FACULA_TABLE
#define FACULA_TABLE v4
  static const CastRow* const widest[] = {FACULA_DTYPES(X)};
#undef FACULA_TABLE
  static const CastRow* const* const tables[] = {base, wide, widest};
  return tables[isa_level()][int(from)]->loops[int(to)];
#else
  return base[int(from)]->loops[int(to)];
#endif
#undef X
}

}  // namespace facula
