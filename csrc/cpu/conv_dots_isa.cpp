// Convolutions of bfloat16 by dot products (AVX512_BF16): pixels are rows, output channels are
// columns. For each tap every pixel has a pointer to the line that it meets, so only pixels that
// are wanted are computed, and images with their channels side by side are read where they lie.
#include "cpu/conv_amx_store.h"
#include "cpu/conv_amx_weights.h"

#include "cpu/conv_amx.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kRows = 8;            // times two vectors of columns, in registers
constexpr int64_t kFewestInPlace = 16;  // channels: with fewer, loops over one tap are too short

// Pixels of x whose channels are whole pairs.
bool lie_in_place(const Conv& v) {
  return v.x_channel == 1 && v.in % 2 == 0 && v.in >= kFewestInPlace;
}

struct DotLayout {
  bool in_place;
  ImageLayout l;
  int64_t taps;
  int64_t runs, run_bytes;  // of one pixel and tap
  int64_t pairs;            // of elements in one of these

  explicit DotLayout(const Conv& v)
      : in_place(lie_in_place(v)), l(v, !in_place), taps(l.taps[0] * l.taps[1] * l.taps[2]) {
    runs = in_place ? 1 : l.blocks;
    run_bytes = l.block * kLine * 2;
    pairs = in_place ? v.in / 2 : parts_of(less(l.elements, kLine), 2);
  }
  int64_t image_bytes() const { return in_place ? 0 : l.bytes(); }
  int64_t staged_bytes(const Conv& v) const {
    return parts_of((in_place ? v.in : l.staged_elements(v)) * 2, 64) * 64;
  }
  int64_t pointer_bytes() const { return taps * kSide * int64_t(sizeof(char*)); }
};

int64_t weight_elements(const Conv& v) {
  return DotLayout(v).l.steps * kTileElements;
}
int64_t image_bytes(const Conv& v) {
  return DotLayout(v).image_bytes();
}
int64_t scratch_bytes(const Conv& v) {
  const DotLayout d(v);
  return d.staged_bytes(v) + d.pointer_bytes();
}

// (tap, block of elements, 16, 16, 2)
void pack_weights(const Conv& v, int64_t out, uint16_t* to) {
  const DotLayout d(v);
  WeightPacker(v, d.l, out).pack(d.l.blocks, 1, to);
}

// Sums of kRows pixels and V strips of 16 columns, `strip` bytes apart. Pointers to the pixels of
// one tap are kSide apart from those of the next.
template <int V>
__attribute__((target("avx512bf16"))) void add_rows(const DotLayout& d, const char* const* pixels,
                                                    const char* weights, int64_t strip,
                                                    float* sums) {
  __m512 sum[kRows][V];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = _mm512_setzero_ps();
  for (int64_t tap = 0; tap < d.taps; ++tap, pixels += kSide) {
    for (int64_t run = 0; run < d.runs; ++run) {
      const char* x[kRows];
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) x[i] = pixels[i] + run * d.run_bytes;
      const char* w = weights + (tap * d.l.blocks + run) * kTileElements * 2;
      const int64_t end = d.pairs * 4;
#pragma GCC unroll 2
      for (int64_t p = 0; p < end; p += 4, w += 64) {
        __m512bh column[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) column[v] = (__m512bh)_mm512_loadu_si512(w + v * strip);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          int pair;
          __builtin_memcpy(&pair, x[i] + p, sizeof pair);
          const __m512bh row = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], row, column[v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(sums + v * kTileSums + i * kTileSide, sum[i][v]);
}

// A block of successive pixels of all images.
class PixelBlock {
 public:
  PixelBlock(const Conv& v, const DotLayout& d) : v_(v), d_(d), left_(v.batch * v.pixels()) {}

  // Goes on to the next block, false behind the last.
  bool next(const float* sums) {
    sums_.count = 0;
    const ConvAxis* a = v_.axis;
    for (int64_t i = 0; i < kSide && left_; ++i, --left_) {
      sums_.add(
          sums, i,
          n_ * v_.y_batch + t_[0] * a[0].y_stride + t_[1] * a[1].y_stride + t_[2] * a[2].y_stride);
      if (d_.in_place) {
        offset_[i] = n_ * v_.x_batch;
        for (int k = 0; k < 3; ++k) {
          at_[k][i] = a[k].start + t_[k] * a[k].step;
          offset_[i] += at_[k][i] * a[k].x_stride;
        }
      } else {
        offset_[i] = n_ * d_.l.blocks * d_.l.block * kLine +
                     ((t_[0] * d_.l.size[1] + t_[1]) * d_.l.size[2] + t_[2]) * kLine;
      }
      advance();
    }
    for (int64_t i = sums_.count; i && i < kSide; ++i) {  // computed and dropped
      offset_[i] = offset_[i - 1];
      for (auto& at : at_) at[i] = at[i - 1];
    }
    return sums_.count;
  }
  const PixelSums& sums() const { return sums_; }

  // What they meet, (tap, kSide): lines of the packed images, or pixels of x or else zeros.
  void find(const uint16_t* images, const uint16_t* zeros, const char** to) const {
    const ConvAxis* a = v_.axis;
    for (int64_t j0 = 0; j0 < d_.l.taps[0]; ++j0)
      for (int64_t j1 = 0; j1 < d_.l.taps[1]; ++j1)
        for (int64_t j2 = 0; j2 < d_.l.taps[2]; ++j2, to += kSide) {
          if (!d_.in_place) {
            const uint16_t* const from = images + d_.l.tap_line(v_, j0, j1, j2) * kLine;
            for (int64_t i = 0; i < kSide; ++i)
              to[i] = reinterpret_cast<const char*>(from + offset_[i]);
            continue;
          }
          const int64_t d0 = j0 * a[0].spread, d1 = j1 * a[1].spread, d2 = j2 * a[2].spread;
          const int64_t all = d0 * a[0].x_stride + d1 * a[1].x_stride + d2 * a[2].x_stride;
          for (int64_t i = 0; i < kSide; ++i) {
            const bool inside = (uint64_t(at_[0][i] + d0) < uint64_t(a[0].in)) &
                                (uint64_t(at_[1][i] + d1) < uint64_t(a[1].in)) &
                                (uint64_t(at_[2][i] + d2) < uint64_t(a[2].in));
            to[i] = reinterpret_cast<const char*>(inside ? images + offset_[i] + all : zeros);
          }
        }
  }

 private:
  void advance() {
    for (int k = 2; k >= 0; --k) {
      if (++t_[k] < v_.axis[k].out) return;
      t_[k] = 0;
    }
    ++n_;
  }

  const Conv& v_;
  const DotLayout& d_;
  int64_t left_;
  int64_t n_ = 0, t_[3] = {};
  int64_t offset_[kSide], at_[3][kSide] = {};  // elements of x or its lines; positions in x
  PixelSums sums_;
};

void forward(const Conv& v, const uint16_t* weights, void* memory) {
  const DotLayout d(v);
  char* const base = static_cast<char*>(memory);
  uint16_t* const staged = reinterpret_cast<uint16_t*>(base);
  const char** const pointers = reinterpret_cast<const char**>(base + d.staged_bytes(v));
  uint16_t* const packed =
      reinterpret_cast<uint16_t*>(base + d.staged_bytes(v) + d.pointer_bytes());
  if (d.in_place) {
    __builtin_memset(staged, 0, size_t(v.in) * 2);
  } else {
    for (int64_t n = 0; n < v.batch; ++n)
      pack_image(v, d.l, n, staged, packed + n * d.l.blocks * d.l.block * kLine);
  }
  const uint16_t* const images = d.in_place ? static_cast<const uint16_t*>(v.x) : packed;
  alignas(64) float sums[kBlockSums];
  const int64_t strip = d.l.steps * kTileElements * 2;
  const Store<BFloat16> store(v);
  PixelBlock block(v, d);
  while (block.next(sums)) {
    block.find(images, staged, pointers);
    for (int64_t column = 0; column < v.out; column += kSide) {
      const char* const w = reinterpret_cast<const char*>(weights) + column / kTileSide * strip;
      for (int64_t i = 0; i < block.sums().count; i += kRows) {
        float* const to = sums + i / kTileSide * 2 * kTileSums + i % kTileSide * kTileSide;
        (v.out - column > kTileSide ? add_rows<2> : add_rows<1>)(d, pointers + i, w, strip, to);
      }
      store.block(block.sums(), column);
    }
  }
}

constexpr ConvAmxLoops loops = {weight_elements, image_bytes, scratch_bytes, pack_weights, forward};

}  // namespace

const ConvAmxLoops* const conv_of_dots = &loops;
#else
const ConvAmxLoops* const conv_of_dots = nullptr;
#endif

}  // namespace facula::FACULA_ISA
