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

// Tiles of the steps: taps within blocks of elements.
class WeightPacker {
 public:
  WeightPacker(const Conv& v, int64_t out)
      : v_(v),
        l_(v),
        of_elements_(v, l_, v.w_in),
        of_lanes_(v, l_, v.w_out),
        w_(static_cast<const uint16_t*>(v.w) + out * v.w_out),
        lanes_(less(kTileSide, v.out - out)) {}

  void pack(uint16_t* to) const {
    alignas(64) uint16_t turned[(kMostRecord + 2) * kLine * kTileSide];
    const ConvAxis* a = v_.axis;
    for (int64_t b = 0; b < l_.blocks; ++b) {
      const int64_t first = b * kLine, count = less(kLine, l_.elements - first);
      turn(first, count, turned);
      for (int64_t j0 = 0; j0 < l_.taps[0]; ++j0)
        for (int64_t j1 = 0; j1 < l_.taps[1]; ++j1)
          for (int64_t j2 = 0; j2 < l_.taps[2]; ++j2, to += kTileElements)
            tile(j0 * a[0].w_stride + j1 * a[1].w_stride + j2 * a[2].w_stride, first, count, turned,
                 to);
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
  const ImageLayout l_;
  const Records of_elements_, of_lanes_;
  const uint16_t* const w_;
  const int64_t lanes_;
};

void pack_weights(const Conv& v, int64_t out, uint16_t* to) {
  WeightPacker(v, out).pack(to);
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

template <class Products>
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

  const Products products(less(l.elements, kTileDepth));
  const Store<typename Products::Element> store(v, l);
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
            products.sum(l.outputs(v) - place, columns - j, steps,
                         TileSource<decltype(at)>{at, kLine * 2, kTileSide * kLine * 2}, right, sum,
                         p > 0);
            if (p + steps == l.steps)
              store.block(n, t0, place, j0 + j, less(kSide, columns - j), sum);
          }
        }
      }
}

void forward(const Conv& v, const uint16_t* weights, void* memory) {
  if (v.dtype == DType::BFloat16) forward_as<TileProducts<BFloat16>>(v, weights, memory);
  else forward_as<TileProducts<Half>>(v, weights, memory);
}

constexpr ConvAmxLoops tile_loops = {weight_elements, image_bytes, scratch_bytes, pack_weights,
                                     forward};
constexpr ConvAmxLoops dot_loops = {weight_elements, image_bytes, scratch_bytes, pack_weights,
                                    forward_as<DotProducts>};

}  // namespace

const ConvAmxLoops *const conv_of_tiles = &tile_loops, *const conv_of_dots = &dot_loops;
#else
const ConvAmxLoops *const conv_of_tiles = nullptr, *const conv_of_dots = nullptr;
#endif

}  // namespace facula::FACULA_ISA
