// Convolutions by matrix tiles: pixels are rows, output channels are columns, and the depth is cut
// into blocks of channels that all taps meet one after the other, since taps read nearly the same
// lines.
#include "cpu/conv_amx_store.h"
#include "cpu/conv_amx_weights.h"

#include "cpu/conv_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

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

void pack_weights(const Conv& v, int64_t out, uint16_t* to) {
  const ImageLayout l(v);
  WeightPacker(v, l, out).pack(1, l.steps / l.blocks, to);
}

// Pixels of a plane of outputs from `at` on, without what lies between two rows.
PixelSums pixels_of(const Conv& v, int64_t pitch, int64_t at, int64_t plane, const float* sums) {
  const ConvAxis* a = v.axis;
  PixelSums pixels;
  int64_t t1 = at / pitch, t2 = at % pitch;
  for (int64_t i = 0; i < kSide && t1 < a[1].out; ++i) {
    if (t2 < a[2].out) pixels.add(sums, i, plane + t1 * a[1].y_stride + t2 * a[2].y_stride);
    if (++t2 == pitch) t2 = 0, ++t1;
  }
  return pixels;
}

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

  const TileProducts<S> products;
  const Store<S> store(v);
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
              store.block(
                  pixels_of(v, l.size[2], place, n * v.y_batch + t0 * v.axis[0].y_stride, sum),
                  j0 + j);
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
