// Convolutions by matrix tiles: pixels are rows, output channels are columns, and the depth is cut
// into blocks of channels that all taps meet one after the other, since taps read nearly the same
// lines.
#include "cpu/conv_amx_layout.h"

#include "cpu/conv_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kSide = 2 * kTileSide;  // of a block of sums
constexpr int64_t kBlockSums = kSide * kSide;
constexpr int64_t kMostSteps = 10;   // of a block of the depth: its tiles stay in the first cache
constexpr int64_t kBlocksDown = 16;  // of sums that are held, where the depth has several blocks
constexpr int64_t kBlocksAcross = 4;

int64_t weight_elements(const Conv& v) {
  return ImageLayout(v).steps * kTileElements;
}
int64_t image_bytes(const Conv& v) {
  return ImageLayout(v).bytes();
}

struct Room {
  int64_t staged, starts, sums;
  explicit Room(const Conv& v, const ImageLayout& l)
      : staged((l.staged_elements(v) * 2 + 63) / 64 * 64),
        starts((l.steps * 8 + 63) / 64 * 64),
        sums((l.steps > kMostSteps ? kBlocksDown * kBlocksAcross : 1) * kBlockSums * 4) {}
};

int64_t scratch_bytes(const Conv& v) {
  const ImageLayout l(v);
  const Room room(v, l);
  return room.staged + room.starts + room.sums;
}

// Offsets of the weights of each step: taps within blocks of elements.
void pack_weights(const Conv& v, int64_t out, uint16_t* to) {
  const ImageLayout l(v);
  const int64_t lanes = v.out - out;
  const uint16_t* const w = static_cast<const uint16_t*>(v.w) + out * v.w_out;
  const ConvAxis* a = v.axis;
  for (int64_t b = 0; b < l.blocks; ++b) {
    const int64_t first = b * kLine, count = less(kLine, l.elements - first);
    for (int64_t j0 = 0; j0 < l.taps[0]; ++j0)
      for (int64_t j1 = 0; j1 < l.taps[1]; ++j1)
        for (int64_t j2 = 0; j2 < l.taps[2]; ++j2, to += kTileElements) {
          const uint16_t* const tap =
              w + j0 * a[0].w_stride + j1 * a[1].w_stride + j2 * a[2].w_stride;
          if (!l.wide && v.w_in == 1) {
            pack_tile<true>(tap + first, 1, v.w_out, count, lanes, to);
          } else if (!l.wide && v.w_out == 1) {
            pack_two_tiles<true>(tap + first * v.w_in, v.w_in, count, less(kTileSide, lanes), to,
                                 nullptr);
          } else {
            alignas(64) uint16_t each[kTileElements] = {};
            for (int64_t i = 0; i < lanes && i < kTileSide; ++i)
              for (int64_t e = 0, c = first % v.in, j = first / v.in; e < count; ++e) {
                each[i * kLine + e] = tap[i * v.w_out + c * v.w_in + j * a[2].w_stride];
                if (++c == v.in) c = 0, ++j;
              }
            pack_tile<true>(each, 1, kLine, kLine, kTileSide, to);
          }
        }
  }
}

// Sums of up to 32 pixels and channels: to their places, with the bias.
template <class S>
class Store {
 public:
  Store(const Conv& v, const ImageLayout& l) : v_(v), pitch_(l.size[2]) {}

  void block(int64_t image, int64_t t0, int64_t at, int64_t column, int64_t columns,
             const float* sums) const {
    const ConvAxis* a = v_.axis;
    const float* row[kSide];
    int64_t place[kSide], count = 0;
    int64_t t1 = at / pitch_, t2 = at % pitch_;
    for (int64_t i = 0; i < kSide && t1 < a[1].out; ++i) {
      if (t2 < a[2].out) {
        row[count] = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
        place[count++] = t1 * a[1].y_stride + t2 * a[2].y_stride;
      }
      if (++t2 == pitch_) t2 = 0, ++t1;
    }
    S* const y =
        static_cast<S*>(v_.y) + image * v_.y_batch + t0 * a[0].y_stride + column * v_.y_channel;
    const S* const bias = v_.bias ? static_cast<const S*>(v_.bias) + column : nullptr;
    if (v_.y_channel == 1) by_pixels(y, bias, row, place, count, columns);
    else by_planes(y, bias, row, place, count, columns);
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
        const bool dense = place[i + pixels - 1] - place[i] == pixels - 1;
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
  int64_t pitch_;
};

template <class S>
void forward_as(const Conv& v, const uint16_t* weights, void* memory) {
  const ImageLayout l(v);
  const Room room(v, l);
  char* const base = static_cast<char*>(memory);
  uint16_t* const staged = reinterpret_cast<uint16_t*>(base);
  int64_t* const starts = reinterpret_cast<int64_t*>(base + room.staged);  // of steps, in bytes
  float* const sums = reinterpret_cast<float*>(base + room.staged + room.starts);
  char* const images = base + room.staged + room.starts + room.sums;
  const int64_t image_size = l.bytes();
  for (int64_t n = 0; n < v.batch; ++n)
    pack_image(v, l, n, staged, reinterpret_cast<uint16_t*>(images + n * image_size));
  int64_t step = 0;
  for (int64_t b = 0; b < l.blocks; ++b)
    for (int64_t j0 = 0; j0 < l.taps[0]; ++j0)
      for (int64_t j1 = 0; j1 < l.taps[1]; ++j1)
        for (int64_t j2 = 0; j2 < l.taps[2]; ++j2)
          starts[step++] = (b * l.block + l.tap_line(v, j0, j1, j2)) * kLine * 2;

  const TilesInUse tiles;
  const Store<S> store(v, l);
  const int64_t blocks_of_depth = parts_of(l.steps, kMostSteps);
  const int64_t deep = parts_of(l.steps, blocks_of_depth);
  const int64_t plane_blocks = parts_of(l.outputs(v), kSide);
  const int64_t down = v.batch * v.axis[0].out * plane_blocks;
  const int64_t weight_strip = l.steps * kTileElements;
  for (int64_t i0 = 0; i0 < down; i0 += kBlocksDown)
    for (int64_t j0 = 0; j0 < v.out; j0 += kBlocksAcross * kSide)
      for (int64_t p = 0; p < l.steps; p += deep) {
        const int64_t steps = less(deep, l.steps - p),
                      columns = less(v.out - j0, kBlocksAcross * kSide);
        for (int64_t j = 0; j < columns; j += kSide) {
          const auto right = packed_tiles(
              weights + (j0 + j) / kTileSide * weight_strip + p * kTileElements, weight_strip * 2);
          for (int64_t i = 0; i < kBlocksDown && i0 + i < down; ++i) {
            const int64_t place = (i0 + i) % plane_blocks * kSide;
            const int64_t plane = (i0 + i) / plane_blocks;
            const int64_t n = plane / v.axis[0].out, t0 = plane % v.axis[0].out;
            const char* const from =
                images + n * image_size + (t0 * l.size[1] * l.size[2] + place) * kLine * 2;
            const int64_t* const start = starts + p;
            auto at = [&](int64_t q) __attribute__((always_inline)) { return from + start[q]; };
            float* const sum =
                sums + (l.steps > kMostSteps ? (i * kBlocksAcross + j / kSide) * kBlockSums : 0);
            sum_of_tiles<S>(l.outputs(v) - place, columns - j, steps,
                            TileSource<decltype(at)>{at, kLine * 2, kTileSide * kLine * 2}, right,
                            sum, p > 0);
            if (p + steps == l.steps)
              store.block(n, t0, place, j0 + j, less(kSide, columns - j), sum);
          }
        }
      }
}

void forward(const Conv& v, const uint16_t* weights, void* memory) {
  if (v.dtype == DType::BFloat16) forward_as<BFloat16>(v, weights, memory);
  else forward_as<Half>(v, weights, memory);
}

constexpr ConvAmxLoops loops = {weight_elements, image_bytes, scratch_bytes, pack_weights, forward};

}  // namespace

const ConvAmxLoops* const conv_of_tiles = &loops;
#else
const ConvAmxLoops* const conv_of_tiles = nullptr;
#endif

}  // namespace facula::FACULA_ISA
