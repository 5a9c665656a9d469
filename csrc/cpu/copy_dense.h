// Copies of long runs of memory by vectors. The memcpy of C libraries may leave these sizes to
// `rep movsb`, which on some processors (AMD Zen 3) takes ten times as long where source and target
// are at certain distances.
#pragma once
#include <cstdint>

#include "cpu/few_bytes.h"
#include "cpu/lanes.h"

namespace facula::FACULA_ISA {

inline void copy_dense(char* to, const char* from, int64_t bytes) {
  constexpr int64_t V = kLaneBytes;
  if (bytes < kManyBytes) return copy_few_bytes(to, from, bytes);
  typedef uint64_t Vector __attribute__((vector_size(V), aligned(1), may_alias));
  auto at = [](const char* p) { return *reinterpret_cast<const Vector*>(p); };
  auto write = [](char* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; };
  const Vector first = at(from), last = at(from + bytes - V);
  // Whole vectors of the target between the first and the last one.
  int64_t i = V - int64_t(reinterpret_cast<uintptr_t>(to) & (V - 1));
  for (; i + 4 * V <= bytes; i += 4 * V) {
    const Vector a = at(from + i), b = at(from + i + V), c = at(from + i + 2 * V),
                 d = at(from + i + 3 * V);
    write(to + i, a);
    write(to + i + V, b);
    write(to + i + 2 * V, c);
    write(to + i + 3 * V, d);
  }
  for (; i + V <= bytes; i += V) write(to + i, at(from + i));
  write(to, first);
  write(to + bytes - V, last);
}

}  // namespace facula::FACULA_ISA
