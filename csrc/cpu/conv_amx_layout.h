// Images as matrix tiles read them: lines of 32 channels (64 bytes), one for each pixel, with the
// padding made explicit. Sixteen lines that follow each other are a tile, whatever tap sees them,
// so no matrix of what pixels see is made. Pixels of a row of outputs are as far apart as those of
// the padded input, and what lies between two rows is computed and dropped.
//
// With steps, positions are sorted by their remainder (phase), and each tap meets one of them. With
// few channels a line holds all taps of a row, (tap, channel), and there is a line for each output.
#pragma once
#include "cpu/conv.h"
#include "cpu/pair_products.h"

#ifdef FACULA_HAS_TILES

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kLine = kTileDepth;                           // elements
constexpr int64_t kSpareLines = 32;                             // that a last tile reads and drops
constexpr int64_t kMostWideStep = 16, kMostSpread = 8 * kLine;  // for lines that hold taps

FACULA_INLINE int64_t parts_of(int64_t n, int64_t part) {
  return (n + part - 1) / part;
}
FACULA_INLINE int64_t less(int64_t a, int64_t b) {
  return a < b ? a : b;
}

struct ImageLayout {
  bool wide;  // lines hold the taps of a row
  int64_t wide_step;
  int64_t elements;   // of a pixel, of which a line has 32
  int64_t blocks;     // lines of a pixel
  int64_t taps[3];    // that are apart
  int64_t phases[3];  // remainders that taps meet, all or only 0
  int64_t size[3];    // positions of each remainder
  int64_t plane;      // lines of one remainder
  int64_t block;      // lines of one block of elements
  int64_t positions;  // of a row of x that are seen, from its start on
  int64_t steps;      // of the depth of a product

  FACULA_INLINE explicit ImageLayout(const Conv& v, bool may_be_wide = true) {
    const ConvAxis& last = v.axis[2];
    wide = may_be_wide && last.taps > 1 && last.step <= kMostWideStep &&
           (last.spread == 1 || v.in * last.taps <= kMostSpread) &&
           parts_of(v.in * last.taps, kLine) < last.taps * parts_of(v.in, kLine);
    wide_step = last.step;
    elements = wide ? v.in * last.taps : v.in;
    blocks = parts_of(elements, kLine);
    for (int i = 0; i < 3; ++i) {
      const ConvAxis& a = v.axis[i];
      taps[i] = wide && i == 2 ? 1 : a.taps;
      phases[i] = 1;
      for (int64_t j = 0; j < taps[i]; ++j)
        if (j * a.spread % a.step != 0) phases[i] = a.step;
      size[i] = a.out + (taps[i] - 1) * a.spread / a.step;
    }
    plane = size[0] * size[1] * size[2];
    block = phases[0] * phases[1] * phases[2] * plane + kSpareLines;
    positions = wide ? (last.out - 1) * last.step + (last.taps - 1) * last.spread + 1
                     : (size[2] - 1) * last.step + phases[2];
    steps = blocks * taps[0] * taps[1] * taps[2];
  }
  int64_t bytes() const { return blocks * block * kLine * 2; }
  // Where the first output of a plane meets its tap, in lines.
  FACULA_INLINE int64_t tap_line(const Conv& v, int64_t j0, int64_t j1, int64_t j2) const {
    const int64_t at[3] = {j0, j1, j2};
    int64_t phase = 0, line = 0;
    for (int i = 0; i < 3; ++i) {
      const int64_t position = at[i] * v.axis[i].spread;
      phase = phase * phases[i] + (phases[i] > 1 ? position % v.axis[i].step : 0);
      line = line * size[i] + position / v.axis[i].step;
    }
    return phase * plane + line;
  }
  // Lines from one output to another of the same plane: rows are size[2] apart.
  int64_t outputs(const Conv& v) const { return (v.axis[1].out - 1) * size[2] + v.axis[2].out; }

  // Of a staged row of x: (channel, position), or (position, channel) for images by pixels.
  int64_t pitch() const { return (positions + 31) / 32 * 32 + 64 + (wide ? 16 * wide_step : 0); }
  int64_t staged_elements(const Conv& v) const {
    return wide ? v.in * pitch() + 64 : kLine * pitch() + 64;
  }
};

FACULA_INLINE bool lies_by_pixels(const Conv& v) {
  return v.x_channel == 1 && (v.in > 1 || v.axis[2].x_stride != 1);
}

FACULA_INLINE __mmask32 first_elements(int64_t n) {
  return n >= 32 ? ~0u : n <= 0 ? 0u : (1u << n) - 1;
}

// One row of x as lines, `to` being the line of its first position in the first block.
class RowPacker {
 public:
  RowPacker(const Conv& v, const ImageLayout& layout, uint16_t* staged)
      : v_(v), l_(layout), a_(v.axis[2]), staged_(staged), by_pixels_(lies_by_pixels(v)) {}

  void clear(uint16_t* to) const {
    for (int64_t b = 0; b < l_.blocks; ++b)
      for (int64_t r = 0; r < l_.phases[2]; ++r)
        __builtin_memset(to + (b * l_.block + r * l_.plane) * kLine, 0,
                         size_t(l_.size[2] * kLine * 2));
  }

  void pack(const uint16_t* x, uint16_t* to) const {
    if (l_.wide) by_pixels_ ? wide_from_pixels(x, to) : wide_from_planes(x, to);
    else by_pixels_ ? from_pixels(x, to) : from_planes(x, to);
  }

 private:
  void from_pixels(const uint16_t* x, uint16_t* to) const {
    for (int64_t r = 0; r < l_.phases[2]; ++r)
      for (int64_t q = 0; q < l_.size[2]; ++q) {
        const int64_t i = a_.start + q * a_.step + r;
        const bool inside = i >= 0 && i < a_.in;
        const uint16_t* pixel = x + (inside ? i : 0) * a_.x_stride;
        uint16_t* line = to + (r * l_.plane + q) * kLine;
        for (int64_t c = 0; c < v_.in; c += kLine, line += l_.block * kLine)
          _mm512_storeu_si512(
              line, _mm512_maskz_loadu_epi16(inside ? first_elements(v_.in - c) : 0, pixel + c));
      }
  }

  // Channels [first, first + count) as rows of positions, with zeros where x has none.
  void stage_planes(const uint16_t* x, int64_t first, int64_t count) const {
    const int64_t pitch = l_.pitch();
    const int64_t begin = a_.start < 0 ? less(-a_.start, l_.positions) : 0;
    const int64_t end =
        less(l_.positions, a_.in - a_.start) > begin ? less(l_.positions, a_.in - a_.start) : begin;
    for (int64_t c = 0; c < count; ++c) {
      uint16_t* row = staged_ + c * pitch;
      const uint16_t* from = x + (first + c) * v_.x_channel + (a_.start + begin) * a_.x_stride;
      __builtin_memset(row, 0, size_t(begin) * 2);
      if (a_.x_stride == 1) {
        for (int64_t i = begin; i < end; i += 32)
          _mm512_mask_storeu_epi16(
              row + i, first_elements(end - i),
              _mm512_maskz_loadu_epi16(first_elements(end - i), from + (i - begin)));
      } else {
        for (int64_t i = begin; i < end; ++i) row[i] = from[(i - begin) * a_.x_stride];
      }
      __builtin_memset(row + end, 0, size_t(pitch - end) * 2);
    }
  }

  // Two rows of 16 elements, `step` apart, as words of pairs.
  FACULA_INLINE static __m512i pairs_of(const uint16_t* low, const uint16_t* high, int64_t step) {
    if (step == 1)
      return _mm512_or_si512(
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low))),
          _mm512_slli_epi32(
              _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(high))),
              16));
    if (step == 2)
      return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_loadu_si512(low),
                                     _mm512_slli_epi32(_mm512_loadu_si512(high), 16));
    alignas(64) uint32_t words[16];
    for (int64_t i = 0; i < 16; ++i) words[i] = low[i * step] | uint32_t(high[i * step]) << 16;
    return _mm512_load_si512(words);
  }

  void from_planes(const uint16_t* x, uint16_t* to) const {
    const int64_t pitch = l_.pitch();
    for (int64_t b = 0; b < l_.blocks; ++b, to += l_.block * kLine) {
      const int64_t count = less(kLine, v_.in - b * kLine);
      stage_planes(x, b * kLine, count);
      __builtin_memset(staged_ + count * pitch, 0, size_t((kLine - count) * pitch) * 2);
      for (int64_t i = 0; i < l_.positions; i += 16) {
        __m512i r[16];
#pragma GCC unroll 16
        for (int c = 0; c < 16; ++c)
          r[c] = pairs_of(staged_ + 2 * c * pitch + i, staged_ + (2 * c + 1) * pitch + i, 1);
        turn_registers(r);
        alignas(64) uint16_t lines[kTileElements];
        write_tile(a_.step == 1 ? to + i * kLine : lines, r);
        if (a_.step == 1) continue;  // beyond the row: what comes next is written later
        for (int64_t j = 0; j < 16 && i + j < l_.positions; ++j) {
          const int64_t phase = (i + j) % a_.step, q = (i + j) / a_.step;
          if (phase < l_.phases[2] && q < l_.size[2])
            _mm512_storeu_si512(to + (phase * l_.plane + q) * kLine,
                                _mm512_load_si512(lines + j * kLine));
        }
      }
    }
  }

  void wide_from_planes(const uint16_t* x, uint16_t* to) const {
    const int64_t pitch = l_.pitch();
    stage_planes(x, 0, v_.in);
    for (int64_t b = 0; b < l_.blocks; ++b, to += l_.block * kLine) {
      const uint16_t* from[kLine];
      alignas(64) static constexpr uint16_t none[32 * kMostWideStep] = {};
      for (int64_t e = 0; e < kLine; ++e) {
        const int64_t element = b * kLine + e;
        from[e] = element < l_.elements
                      ? staged_ + element % v_.in * pitch + element / v_.in * a_.spread
                      : nullptr;
      }
      for (int64_t i = 0; i < l_.size[2]; i += 16) {
        __m512i r[16];
        const int64_t at = i * a_.step;
        auto row = [&](int64_t e)
                       __attribute__((always_inline)) { return from[e] ? from[e] + at : none; };
#pragma GCC unroll 16
        for (int c = 0; c < 16; ++c) r[c] = pairs_of(row(2 * c), row(2 * c + 1), a_.step);
        turn_registers(r);
        write_tile(to + i * kLine, r);
      }
    }
  }

  void wide_from_pixels(const uint16_t* x, uint16_t* to) const {
    const int64_t begin = less(a_.start < 0 ? -a_.start : 0, l_.positions);
    const int64_t end = less(l_.positions, a_.in - a_.start);
    __builtin_memset(staged_, 0, size_t(begin * v_.in) * 2);
    if (end > begin) {
      const uint16_t* from = x + (a_.start + begin) * a_.x_stride;
      if (a_.x_stride == v_.in)
        __builtin_memcpy(staged_ + begin * v_.in, from, size_t((end - begin) * v_.in) * 2);
      else
        for (int64_t p = begin; p < end; ++p, from += a_.x_stride)
          for (int64_t c = 0; c < v_.in; ++c) staged_[p * v_.in + c] = from[c];
    }
    const int64_t rest = end > begin ? end : begin;
    __builtin_memset(staged_ + rest * v_.in, 0, size_t((l_.positions - rest) * v_.in) * 2);
    for (int64_t q = 0; q < l_.size[2]; ++q) {
      const uint16_t* from = staged_ + q * a_.step * v_.in;
      alignas(64) uint16_t taps[kMostSpread + kLine];
      if (a_.spread != 1) {
        for (int64_t j = 0; j < a_.taps; ++j)
          for (int64_t c = 0; c < v_.in; ++c) taps[j * v_.in + c] = from[j * a_.spread * v_.in + c];
        from = taps;
      }
      for (int64_t b = 0; b < l_.blocks; ++b)
        _mm512_storeu_si512(
            to + (b * l_.block + q) * kLine,
            _mm512_maskz_loadu_epi16(first_elements(l_.elements - b * kLine), from + b * kLine));
    }
  }

  const Conv& v_;
  const ImageLayout& l_;
  const ConvAxis& a_;
  uint16_t* staged_;
  bool by_pixels_;
};

// Image `image` of x.
inline void pack_image(const Conv& v, const ImageLayout& l, int64_t image, uint16_t* staged,
                       uint16_t* to) {
  const RowPacker rows(v, l, staged);
  const uint16_t* const x = static_cast<const uint16_t*>(v.x) + image * v.x_batch;
  const ConvAxis *a0 = &v.axis[0], *a1 = &v.axis[1];
  for (int64_t r0 = 0; r0 < l.phases[0]; ++r0)
    for (int64_t r1 = 0; r1 < l.phases[1]; ++r1)
      for (int64_t q0 = 0; q0 < l.size[0]; ++q0)
        for (int64_t q1 = 0; q1 < l.size[1]; ++q1) {
          const int64_t i0 = a0->start + q0 * a0->step + r0, i1 = a1->start + q1 * a1->step + r1;
          const int64_t line =
              (r0 * l.phases[1] + r1) * l.phases[2] * l.plane + (q0 * l.size[1] + q1) * l.size[2];
          uint16_t* const row = to + line * kLine;
          if (i0 >= 0 && i0 < a0->in && i1 >= 0 && i1 < a1->in)
            rows.pack(x + i0 * a0->x_stride + i1 * a1->x_stride, row);
          else rows.clear(row);
        }
}

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
