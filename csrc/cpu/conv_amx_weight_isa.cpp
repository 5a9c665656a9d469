// The gradient by the weights, by matrix tiles: output channels are rows, channels of x are
// columns, and the depth are pixels. Pixels that follow each other are pairs of the right side; a
// tap that begins at an odd pixel reads a second copy, whose pairs begin one pixel later. What lies
// between two rows of outputs is zero in y.
#include "cpu/conv_amx_layout.h"

#include "cpu/conv_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kSide = 2 * kTileSide;
constexpr int64_t kBlockSums = kSide * kSide;
constexpr int64_t kSteps = 8;  // of a block of the depth

struct Gradient {
  ImageLayout l;
  int64_t lines;  // of a packed block of x, an even number
  int64_t copy;   // bytes of the pairs of one block that begin at even lines, or at odd ones
  int64_t depth;  // steps of one plane of outputs
  explicit Gradient(const Conv& v)
      : l(v),
        lines(l.block / 2 * 2),
        copy(lines * kLine * 2),
        depth(parts_of(l.outputs(v), kTileDepth)) {}
  int64_t strips(const Conv& v) const { return parts_of(v.out, kTileSide); }
  int64_t strip_bytes(const Conv& v) const { return v.axis[0].out * depth * kTileElements * 2; }
};

int64_t pairs_bytes(const Conv& v) {
  const Gradient g(v);
  return g.l.blocks * 2 * g.copy;
}
int64_t rows_bytes(const Conv& v) {
  const Gradient g(v);
  return g.strips(v) * g.strip_bytes(v);
}
int64_t scratch_bytes(const Conv& v) {
  const Gradient g(v);
  const int64_t image = g.l.bytes() + g.l.staged_elements(v) * 2;
  const int64_t rows = kTileSide * g.depth * kTileDepth * 2;
  return (image > rows ? image : rows) + 128;
}
int64_t blocks(const Conv& v) {
  return parts_of(v.out, kSide) * ImageLayout(v).blocks;
}
int64_t taps(const Conv& v) {
  const ImageLayout l(v);
  return l.taps[0] * l.taps[1] * l.taps[2];
}

// (block, copy, half of the block, pair, 16, 2)
bool pack_pairs(const Conv& v, int64_t image, void* scratch, char* to) {
  const Gradient g(v);
  uint16_t* const packed = static_cast<uint16_t*>(scratch);
  pack_image(v, g.l, image, packed + g.l.bytes() / 2, packed);
  const __m512i exponent = _mm512_set1_epi16(v.dtype == DType::BFloat16 ? 0x7f80 : 0x7c00);
  __mmask32 endless = 0;
  for (int64_t b = 0; b < g.l.blocks; ++b) {
    uint16_t* const from = packed + b * g.l.block * kLine;
    __builtin_memset(from + (g.l.block - kSpareLines) * kLine, 0, size_t(kSpareLines * kLine * 2));
    for (int64_t odd = 0; odd < 2; ++odd, to += g.copy) {
      const int64_t half = g.copy / 2;
      for (int64_t i = 0; i + 1 < g.lines; i += 2) {
        const __m512i x = _mm512_loadu_si512(from + (i + odd) * kLine);
        const __m512i y = i + odd + 1 < g.lines ? _mm512_loadu_si512(from + (i + odd + 1) * kLine)
                                                : _mm512_setzero_si512();
        endless |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(x, exponent), exponent) |
                   _mm512_cmpeq_epi16_mask(_mm512_and_si512(y, exponent), exponent);
        auto pairs = [](__m256i low, __m256i high) __attribute__((always_inline)) {
          return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                                 _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
        };
        _mm512_storeu_si512(to + i * kLine,
                            pairs(_mm512_castsi512_si256(x), _mm512_castsi512_si256(y)));
        _mm512_storeu_si512(to + half + i * kLine, pairs(_mm512_extracti64x4_epi64(x, 1),
                                                         _mm512_extracti64x4_epi64(y, 1)));
      }
    }
  }
  return endless == 0;
}

// (strip of 16 channels, plane, step, 16, 32)
void pack_rows(const Conv& v, int64_t image, void* scratch, char* bytes) {
  const Gradient g(v);
  uint16_t* to = reinterpret_cast<uint16_t*>(bytes);
  const ConvAxis* a = v.axis;
  const int64_t pitch = g.l.size[2], room = g.depth * kTileDepth;
  uint16_t* const staged = static_cast<uint16_t*>(scratch);
  for (int64_t o = 0; o < v.out; o += kTileSide) {
    const int64_t channels = less(kTileSide, v.out - o);
    for (int64_t t0 = 0; t0 < a[0].out; ++t0, to += g.depth * kTileElements) {
      const uint16_t* const y = static_cast<const uint16_t*>(v.y) + image * v.y_batch +
                                t0 * a[0].y_stride + o * v.y_channel;
      __builtin_memset(staged, 0, size_t(room * kTileSide * 2));
      if (v.y_channel == 1) {  // (pixel, channel)
        const __mmask16 mask = __mmask16(first_elements(channels));
        for (int64_t t1 = 0; t1 < a[1].out; ++t1)
          for (int64_t t2 = 0; t2 < a[2].out; ++t2)
            _mm256_storeu_si256(
                reinterpret_cast<__m256i*>(staged + (t1 * pitch + t2) * kTileSide),
                _mm256_maskz_loadu_epi16(mask, y + t1 * a[1].y_stride + t2 * a[2].y_stride));
        for (int64_t p = 0; p < g.depth; ++p)
          pack_two_tiles<false>(staged + p * kTileDepth * kTileSide, kTileSide, kTileDepth,
                                kTileSide, to + p * kTileElements, nullptr);
        continue;
      }
      for (int64_t i = 0; i < channels; ++i) {  // (channel, pixel)
        uint16_t* const row = staged + i * room;
        for (int64_t t1 = 0; t1 < a[1].out; ++t1) {
          const uint16_t* from = y + i * v.y_channel + t1 * a[1].y_stride;
          uint16_t* const at = row + t1 * pitch;
          if (a[2].y_stride == 1)
            for (int64_t t2 = 0; t2 < a[2].out; t2 += 32)
              _mm512_mask_storeu_epi16(
                  at + t2, first_elements(a[2].out - t2),
                  _mm512_maskz_loadu_epi16(first_elements(a[2].out - t2), from + t2));
          else
            for (int64_t t2 = 0; t2 < a[2].out; ++t2) at[t2] = from[t2 * a[2].y_stride];
        }
      }
      for (int64_t p = 0; p < g.depth; ++p)
        for (int64_t i = 0; i < kTileSide; ++i)
          _mm512_storeu_si512(to + p * kTileElements + i * kTileDepth,
                              _mm512_loadu_si512(staged + i * room + p * kTileDepth));
    }
  }
}

template <class Products>
void add_as(const Conv& v, const ConvAmxGradient& given, int64_t task) {
  const Gradient g(v);
  const Products products;
  const int64_t block = task / given.tap_groups, group = task % given.tap_groups;
  const int64_t all = g.l.taps[0] * g.l.taps[1] * g.l.taps[2];
  const int64_t first = group * all / given.tap_groups, end = (group + 1) * all / given.tap_groups;
  const int64_t o = block / g.l.blocks * kSide, b = block % g.l.blocks;
  const int64_t columns = less(kSide, g.l.elements - b * kSide);
  const int64_t image_pairs = g.l.blocks * 2 * g.copy, strip = g.strip_bytes(v);
  const int64_t image_rows = g.strips(v) * strip;
  bool go_on = given.go_on;
  for (int64_t n = 0; n < given.images; ++n)
    for (int64_t t0 = 0; t0 < v.axis[0].out; ++t0)
      for (int64_t p = 0; p < g.depth; p += kSteps, go_on = true) {
        const int64_t steps = less(kSteps, g.depth - p);
        const auto left = packed_tiles(given.rows + n * image_rows + o / kTileSide * strip +
                                           (t0 * g.depth + p) * kTileElements * 2,
                                       strip);
        for (int64_t tap = first; tap < end; ++tap) {
          const int64_t j2 = tap % g.l.taps[2], j1 = tap / g.l.taps[2] % g.l.taps[1];
          const int64_t line = g.l.tap_line(v, tap / g.l.taps[2] / g.l.taps[1], j1, j2) +
                               t0 * g.l.size[1] * g.l.size[2] + p * kTileDepth;
          const int64_t odd = line % 2;
          const auto right = packed_tiles(
              given.pairs + n * image_pairs + (b * 2 + odd) * g.copy + line / 2 * kLine * 2,
              g.copy / 2);
          products.sum(v.out - o, columns, steps, left, right,
                       given.sums + (block * all + tap) * kBlockSums, go_on);
        }
      }
}

void add(const Conv& v, const ConvAmxGradient& given, int64_t task) {
  if (v.dtype == DType::BFloat16) add_as<TileProducts<BFloat16>>(v, given, task);
  else add_as<TileProducts<Half>>(v, given, task);
}

template <class S>
void store_as(const Conv& v, int64_t block, const float* sums) {
  const ImageLayout l(v);
  const int64_t all = l.taps[0] * l.taps[1] * l.taps[2];
  const int64_t o = block / l.blocks * kSide, first = block % l.blocks * kSide;
  const int64_t rows = less(kSide, v.out - o), columns = less(kSide, l.elements - first);
  S* const w = static_cast<S*>(const_cast<void*>(v.w)) + o * v.w_out;
  for (int64_t tap = 0; tap < all; ++tap, sums += kBlockSums) {
    const int64_t j2 = tap % l.taps[2], j1 = tap / l.taps[2] % l.taps[1];
    S* const at = w + tap / l.taps[2] / l.taps[1] * v.axis[0].w_stride + j1 * v.axis[1].w_stride +
                  j2 * v.axis[2].w_stride;
    for (int64_t i = 0; i < rows; ++i) {
      alignas(64) S row[kSide];
      const float* from = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
      write_halves(row, load(from), load(from + kTileSums));
      if (v.w_in == 1 && !l.wide) {
        _mm512_mask_storeu_epi16(at + i * v.w_out + first, first_elements(columns),
                                 _mm512_load_si512(row));
        continue;
      }
      for (int64_t e = 0, c = first % v.in, j = first / v.in; e < columns; ++e) {
        at[i * v.w_out + c * v.w_in + j * v.axis[2].w_stride] = row[e];
        if (++c == v.in) c = 0, ++j;
      }
    }
  }
}

void store(const Conv& v, int64_t block, const float* sums) {
  if (v.dtype == DType::BFloat16) store_as<BFloat16>(v, block, sums);
  else store_as<Half>(v, block, sums);
}

constexpr ConvAmxGradientLoops loops_with(void (*add)(const Conv&, const ConvAmxGradient&,
                                                      int64_t)) {
  return {pairs_bytes, rows_bytes, scratch_bytes, blocks, taps, pack_pairs, pack_rows, add, store};
}
constexpr ConvAmxGradientLoops tile_loops = loops_with(add),
                               dot_loops = loops_with(add_as<DotProducts>);

}  // namespace

const ConvAmxGradientLoops *const conv_gradient_of_tiles = &tile_loops,
                                  *const conv_gradient_of_dots = &dot_loops;
#else
const ConvAmxGradientLoops *const conv_gradient_of_tiles = nullptr, *const conv_gradient_of_dots =
                                                                        nullptr;
#endif

}  // namespace facula::FACULA_ISA
