#include "cuda/layout.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace facula::cuda {

void Layout::squeeze() {
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    sizes[kept] = sizes[d];
    for (int k = 0; k < operands; ++k) strides[k][kept] = strides[k][d];
    ++kept;
  }
  ndim = kept;
}

void Layout::sort() {
  // True if dimension x belongs outside of y. Broadcast strides (0) say nothing.
  auto outside = [&](int x, int y) {
    for (int k = 0; k < operands; ++k) {
      const int64_t sx = std::llabs(strides[k][x]), sy = std::llabs(strides[k][y]);
      if (sx != sy && sx != 0 && sy != 0) return sx > sy;
    }
    return false;
  };
  // Insertion: few dimensions, mostly in order, and equal ones keep their order.
  for (int d = 1; d < ndim; ++d) {
    for (int at = d; at > 0 && outside(at, at - 1); --at) {
      std::swap(sizes[at], sizes[at - 1]);
      for (int k = 0; k < operands; ++k) std::swap(strides[k][at], strides[k][at - 1]);
    }
  }
}

void Layout::merge() {
  if (ndim < 2) return;
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool mergeable = true;
    for (int k = 0; k < operands; ++k) {
      mergeable = mergeable && strides[k][last] == strides[k][d] * sizes[d];
    }
    if (mergeable) {
      sizes[last] *= sizes[d];
    } else {
      sizes[++last] = sizes[d];
    }
    for (int k = 0; k < operands; ++k) strides[k][last] = strides[k][d];
  }
  ndim = last + 1;
}

int64_t Layout::reach() const {
  int64_t farthest = 0;
  for (int k = 0; k < operands; ++k) {
    int64_t distance = 0;
    for (int d = 0; d < ndim; ++d) distance += (sizes[d] - 1) * std::llabs(strides[k][d]);
    farthest = std::max(farthest, distance);
  }
  return farthest;
}

Divider32 divider(uint32_t divisor) {
  uint32_t shift = 0;
  while (shift < 31 && (uint32_t(1) << shift) < divisor) ++shift;
  const uint64_t excess = (uint64_t(1) << shift) - divisor;
  return {divisor, uint32_t((excess << 32) / divisor + 1), shift};
}

void ArgumentWriter::put_slot(const unsigned char* slot) {
  size_ = (size_ + 15) / 16 * 16;
  std::memcpy(buffer_ + size_, slot, 16);
  size_ += 16;
}

}  // namespace facula::cuda
