// Sums of convolutions by pairs, rounded and written to where pixels and channels lie.
#pragma once
#include "cpu/conv_amx_layout.h"

#ifdef FACULA_HAS_TILES

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kSide = 2 * kTileSide;  // of a block of sums
constexpr int64_t kBlockSums = kSide * kSide;

// A pixel of a block of sums: its row, of which 16 columns and the next 16 are kTileSums apart, and
// where it lies in y.
struct PixelSums {
  const float* row[kSide];
  int64_t place[kSide];
  int64_t count = 0;

  FACULA_INLINE void add(const float* sums, int64_t i, int64_t at) {
    row[count] = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
    place[count++] = at;
  }
};

// Sums of up to 32 pixels and channels: to their places, with the bias.
template <class S>
class Store {
 public:
  explicit Store(const Conv& v) : v_(v) {}

  void block(const PixelSums& pixels, int64_t column) const {
    S* const y = static_cast<S*>(v_.y) + column * v_.y_channel;
    const S* const bias = v_.bias ? static_cast<const S*>(v_.bias) + column : nullptr;
    const int64_t columns = less(kSide, v_.out - column);
    if (v_.y_channel == 1) by_pixels(y, bias, pixels.row, pixels.place, pixels.count, columns);
    else by_planes(y, bias, pixels.row, pixels.place, pixels.count, columns);
  }

 private:
  void by_pixels(S* y, const S* bias, const float* const* row, const int64_t* place, int64_t count,
                 int64_t columns) const {
    Floats start[2] = {};
    if (bias) {
      S few[kSide] = {};
      __builtin_memcpy(few, bias, size_t(columns) * 2);
      start[0] = read_halves(few), start[1] = read_halves(few + kTileSide);
    }
    for (int64_t i = 0; i < count; ++i) {
      const Floats low = load(row[i]) + start[0], high = load(row[i] + kTileSums) + start[1];
      if (columns == kSide) {
        write_halves(y + place[i], low, high);
      } else {
        alignas(64) S few[kSide];
        write_halves(few, low, high);
        _mm512_mask_storeu_epi16(y + place[i], first_elements(columns), _mm512_load_si512(few));
      }
    }
  }

  void by_planes(S* y, const S* bias, const float* const* row, const int64_t* place, int64_t count,
                 int64_t columns) const {
    for (int64_t i = 0; i < count; i += kTileSide)
      for (int64_t j = 0; j < columns; j += kTileSide) {
        const int64_t pixels = less(kTileSide, count - i);
        __m512i r[16];
#pragma GCC unroll 16
        for (int q = 0; q < 16; ++q)
          r[q] = q < pixels ? _mm512_loadu_si512(row[i + q] + j / kTileSide * kTileSums)
                            : _mm512_setzero_si512();
        turn_registers(r);
        bool dense = true;
        for (int64_t p = 1; p < pixels; ++p) dense &= place[i + p] == place[i] + p;
        const auto mask = __mmask16(first_elements(pixels));
        alignas(64) S turned[16 * 16];
#pragma GCC unroll 16
        for (int q = 0; q < 16; ++q) {
          const float b = bias && j + q < columns ? float(bias[j + q]) : 0.0f;
          write_halves(turned + q * 16, Floats(r[q]) + lanes(b));
        }
        const int64_t channels = less(kTileSide, columns - j);
        for (int64_t q = 0; q < channels; ++q) {
          S* const out = y + (j + q) * v_.y_channel;
          if (dense)
            _mm256_mask_storeu_epi16(
                out + place[i], mask,
                _mm256_load_si256(reinterpret_cast<const __m256i*>(turned + q * 16)));
          else
            for (int64_t p = 0; p < pixels; ++p) out[place[i + p]] = turned[q * 16 + p];
        }
      }
  }

  const Conv& v_;
};

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
