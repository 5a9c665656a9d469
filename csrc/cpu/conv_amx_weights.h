// Weights of convolutions as matrix tiles read them: tiles of 16 output channels and 32 elements,
// for each tap and block of elements.
#pragma once
#include "cpu/conv_amx_layout.h"

#ifdef FACULA_HAS_TILES

namespace facula::FACULA_ISA {
namespace {

// Weights whose taps lie together in records of few elements, one record for each channel of one
// side: a tile takes every record's element of one tap, so blocks of records are turned first.
constexpr int64_t kMostRecord = 32;
struct Records {
  int64_t size = 0;   // 0: taps do not lie so
  int64_t first = 0;  // the least offset of a tap
  Records(const Conv& v, const ImageLayout& l, int64_t apart) {
    int64_t most = 0;
    for (const ConvAxis& a : v.axis) {
      const int64_t reach = (a.taps - 1) * a.w_stride;
      (reach < 0 ? first : most) += reach;
    }
    if (!l.wide && apart > 1 && apart <= kMostRecord && most - first < apart) size = apart;
  }
};

// to[p * pitch + i] = from[i * apart + p] for 16 rows i, of which `rows` are not zero, and p <
// count.
void turn_rows(const uint16_t* from, int64_t apart, int64_t rows, int64_t count, int64_t pitch,
               uint16_t* to) {
  for (int64_t p = 0; p < count; p += 32) {
    const __mmask32 mask = first_elements(count - p);
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      r[i] =
          i < rows ? _mm512_maskz_loadu_epi16(mask, from + i * apart + p) : _mm512_setzero_si512();
    turn_registers(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      auto write = [&](int64_t at, __m512i words) __attribute__((always_inline)) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at * pitch),
                            _mm512_maskz_cvtepi32_epi16(0xffff, words));
      };
      write(p + 2 * i, r[i]);
      write(p + 2 * i + 1, _mm512_srli_epi32(r[i], 16));
    }
  }
}

class WeightPacker {
 public:
  WeightPacker(const Conv& v, const ImageLayout& layout, int64_t out)
      : v_(v),
        l_(layout),
        of_elements_(v, l_, v.w_in),
        of_lanes_(v, l_, v.w_out),
        w_(static_cast<const uint16_t*>(v.w) + out * v.w_out),
        lanes_(less(kTileSide, v.out - out)) {}

  // Tiles are so far from those of the next tap, and of the next block of elements.
  void pack(int64_t tap, int64_t block, uint16_t* to) const {
    alignas(64) uint16_t turned[(kMostRecord + 2) * kLine * kTileSide];
    const ConvAxis* a = v_.axis;
    for (int64_t b = 0; b < l_.blocks; ++b, to += block * kTileElements) {
      const int64_t first = b * kLine, count = less(kLine, l_.elements - first);
      turn(first, count, turned);
      uint16_t* at = to;
      for (int64_t j0 = 0; j0 < l_.taps[0]; ++j0)
        for (int64_t j1 = 0; j1 < l_.taps[1]; ++j1)
          for (int64_t j2 = 0; j2 < l_.taps[2]; ++j2, at += tap * kTileElements)
            tile(j0 * a[0].w_stride + j1 * a[1].w_stride + j2 * a[2].w_stride, first, count, turned,
                 at);
    }
  }

 private:
  void turn(int64_t first, int64_t count, uint16_t* turned) const {
    if (of_elements_.size) {  // (element, tap, lane)
      turn_rows(w_ + first * v_.w_in + of_elements_.first, v_.w_out, lanes_,
                count * of_elements_.size - of_elements_.size + record_end(of_elements_), kTileSide,
                turned);
    } else if (of_lanes_.size) {  // (lane, tap, element)
      const uint16_t* const from = w_ + first * v_.w_in + of_lanes_.first;
      const int64_t end = lanes_ * of_lanes_.size - of_lanes_.size + record_end(of_lanes_);
      for (int64_t i = 0; i < kLine; i += 16)
        turn_rows(from + less(i, count - 1) * v_.w_in, v_.w_in, count - i, end, kLine, turned + i);
    }
  }
  // Elements of the last record that belong to taps.
  int64_t record_end(const Records& r) const {
    int64_t most = 0;
    for (const ConvAxis& a : v_.axis) most += (a.taps - 1) * (a.w_stride < 0 ? 0 : a.w_stride);
    return most - r.first + 1;
  }

  FACULA_INLINE void tile(int64_t offset, int64_t first, int64_t count, const uint16_t* turned,
                          uint16_t* to) const {
    const uint16_t* const tap = w_ + offset;
    if (!l_.wide && v_.w_in == 1) {
      pack_tile<true>(tap + first, 1, v_.w_out, count, lanes_, to);
    } else if (!l_.wide && v_.w_out == 1) {
      pack_two_tiles<true>(tap + first * v_.w_in, v_.w_in, count, lanes_, to, nullptr);
    } else if (of_elements_.size) {
      const uint16_t* const from = turned + (offset - of_elements_.first) * kTileSide;
      pack_two_tiles<true>(from, of_elements_.size * kTileSide, count, kTileSide, to, nullptr);
    } else if (of_lanes_.size) {
      const uint16_t* const from = turned + (offset - of_lanes_.first) * kLine;
      pack_tile<true>(from, 1, of_lanes_.size * kLine, kLine, lanes_, to);
    } else {
      alignas(64) uint16_t each[kTileElements] = {};
      for (int64_t i = 0; i < lanes_; ++i)
        for (int64_t e = 0, c = first % v_.in, j = first / v_.in; e < count; ++e) {
          each[i * kLine + e] = tap[i * v_.w_out + c * v_.w_in + j * v_.axis[2].w_stride];
          if (++c == v_.in) c = 0, ++j;
        }
      pack_tile<true>(each, 1, kLine, kLine, kTileSide, to);
    }
  }

  const Conv& v_;
  const ImageLayout& l_;
  const Records of_elements_, of_lanes_;
  const uint16_t* const w_;
  const int64_t lanes_;
};

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
