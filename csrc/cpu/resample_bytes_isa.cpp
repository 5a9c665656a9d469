// One axis of images of bytes; built once per ISA.
#include "cpu/resample_bytes.h"

namespace facula::FACULA_ISA {
namespace {

FACULA_INLINE uint8_t finished(int32_t sum, int shift) {
  const int32_t v = sum >> shift;
  return uint8_t(v < 0 ? 0 : v > 255 ? 255 : v);
}

void planes(const ByteAxis& a, const uint8_t* x, uint8_t* y, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  int32_t sums[kBlock];
  const int32_t half = 1 << (a.shift - 1);
  for (; begin < end; ++begin) {
    const uint8_t* from = x + begin * a.in * a.inner;
    uint8_t* to = y + begin * a.out * a.inner;
    for (int64_t t = 0; t < a.out; ++t) {
      const int32_t* weight = a.weight + t * a.width;
      const uint8_t* first = from + a.start[t] * a.inner;
      const int64_t count = a.count[t];
      if (a.inner == 1) {
        int32_t sum = half;
        for (int64_t k = 0; k < count; ++k) sum += weight[k] * int32_t(first[k]);
        to[t] = finished(sum, a.shift);
        continue;
      }
      for (int64_t at = 0; at < a.inner; at += kBlock) {
        const int64_t n = a.inner - at < kBlock ? a.inner - at : kBlock;
        for (int64_t i = 0; i < n; ++i) sums[i] = half;
        for (int64_t k = 0; k < count; ++k) {
          const uint8_t* row = first + k * a.inner + at;
          const int32_t w = weight[k];
          for (int64_t i = 0; i < n; ++i) sums[i] += w * int32_t(row[i]);
        }
        uint8_t* out = to + t * a.inner + at;
        for (int64_t i = 0; i < n; ++i) out[i] = finished(sums[i], a.shift);
      }
    }
  }
}

}  // namespace

extern const ByteLoops byte_loops;
const ByteLoops byte_loops = {planes};

}  // namespace facula::FACULA_ISA
