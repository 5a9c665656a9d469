// Convolutions by matrix tiles on all threads. Each part packs the images that it reads, so these
// stay in its second-level cache; weights are packed once. How the work is cut depends on the
// number of threads, how sums are taken does not.
#include "cpu/conv_amx.h"

#include <algorithm>
#include <atomic>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace {

constexpr int64_t kStrip = 16;             // output channels that are packed together
constexpr int64_t kSide = 32;              // of a block of sums
constexpr int64_t kEnoughPixels = 256;     // of a part, which is worth reading the weights
constexpr int64_t kImageBytes = 1 << 20;   // of a part's images, at most, where rows divide
constexpr int64_t kPackedBytes = 8 << 20;  // of what a gradient packs at a time
constexpr double kParallelWork = 1 << 20;  // multiplications that are worth a second thread
constexpr int64_t kPartsPerThread = 4;

#ifdef FACULA_X86
#define FACULA_LOOPS(dtype, name) \
  (*(amx_available(dtype) ? v4::name##_of_tiles : v4::name##_of_dots))
#else
#define FACULA_LOOPS(dtype, name) (*baseline::name##_of_tiles)
#endif

class Block {
 public:
  explicit Block(int64_t bytes)
      : bytes_(size_t(bytes)), data_(bytes ? host_allocate(bytes_) : nullptr) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { host_free(data_, bytes_); }
  char* data() const { return static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

const uint16_t* advance(const void* p, int64_t elements) {
  return static_cast<const uint16_t*>(p) + elements;
}
uint16_t* advance(void* p, int64_t elements) {
  return static_cast<uint16_t*>(p) + elements;
}

Conv group_of(const Conv& v, int64_t group) {
  Conv g = v;
  g.groups = 1;
  g.x = advance(v.x, group * v.in * v.x_channel);
  g.w = advance(v.w, group * v.w_group);
  g.y = advance(v.y, group * v.out * v.y_channel);
  if (v.bias) g.bias = advance(v.bias, group * v.out);
  return g;
}

double work_of(const Conv& v) {
  return double(v.batch * v.pixels()) * double(v.groups * v.out) * double(v.in * v.taps());
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Parts of one group: images, rows (planes of volumes, pixels of sequences) and output channels.
struct Cut {
  int axis;  // that is cut into bands
  int64_t images, rows, channels;
  int64_t image_parts, bands, channel_parts;

  Cut(const Conv& v, int64_t image_bytes)
      : axis(v.axis[0].out > 1   ? 0
             : v.axis[1].out > 1 ? 1
                                 : 2) {
    const int threads = in_parallel_region() ? 1 : num_threads();
    const int64_t wanted =
        threads == 1 || work_of(v) < kParallelWork ? 1 : threads * kPartsPerThread;
    const int64_t high = v.axis[axis].out, row = v.pixels() / high;
    images = std::clamp<int64_t>(2 * kEnoughPixels / v.pixels(), 1, v.batch);
    const int64_t fitting = image_bytes ? high * kImageBytes / image_bytes : high;
    rows = std::min(std::max(fitting, ceil_div(64, row)), high);
    channels = v.out;
    for (;;) {
      image_parts = ceil_div(v.batch, images);
      bands = ceil_div(high, rows);
      channel_parts = ceil_div(v.out, channels);
      if (v.groups * image_parts * bands * channel_parts >= wanted) break;
      if (images > 1 && images * v.pixels() > kEnoughPixels) images = ceil_div(images, 2);
      else if (images == 1 && rows > 1 && rows * row > kEnoughPixels) rows = ceil_div(rows, 2);
      else if (channels > 2 * kSide) channels = ceil_div(channels / 2, kSide) * kSide;
      else break;
    }
    images = ceil_div(v.batch, image_parts);
    rows = ceil_div(high, bands);
  }
};

Conv part_of(const Conv& v, const Cut& cut, int64_t image, int64_t band, int64_t channel) {
  Conv part = v;
  part.batch = std::min(cut.images, v.batch - image);
  part.out = std::min(cut.channels, v.out - channel);
  ConvAxis& a = part.axis[cut.axis];
  const int64_t row = band * cut.rows;
  a.start += row * a.step;
  a.out = std::min(cut.rows, a.out - row);
  part.x = advance(v.x, image * v.x_batch);
  part.y = advance(v.y, image * v.y_batch + row * a.y_stride + channel * v.y_channel);
  if (v.bias) part.bias = advance(v.bias, channel);
  return part;
}

}  // namespace

bool conv_amx_available(DType dtype) {
  return amx_available(dtype) || fast_dots_available(dtype);
}

bool suits_conv_amx(const Conv& v) {
  constexpr int64_t kFewestDepth = 16, kFewestPixels = 32;
  constexpr double kLeastWork = 1 << 18;
  if (!conv_amx_available(v.dtype)) return false;
  // Tiles are so fast that most of one may stay empty.
  const int64_t fewest_out = amx_available(v.dtype) ? 3 : 16;
  for (const ConvAxis& a : v.axis)
    if (a.spread <= 0 || a.gap != 1) return false;
  return !v.transposed && v.out >= fewest_out && v.in * v.taps() >= kFewestDepth &&
         v.batch * v.pixels() >= kFewestPixels && work_of(v) >= kLeastWork;
}

void conv_amx_forward(const Conv& v) {
  const ConvAmxLoops& loops = FACULA_LOOPS(v.dtype, conv);
  const int64_t strip = loops.weight_elements(v), strips = ceil_div(v.out, kStrip);
  const Block weights(v.groups * strips * strip * 2);
  uint16_t* const packed = reinterpret_cast<uint16_t*>(weights.data());
  const int64_t grain = std::max<int64_t>(1, 32768 / strip);
  parallel_for(0, v.groups * strips, grain, [&](int64_t i, int64_t end) {
    for (; i < end; ++i)
      loops.pack_weights(group_of(v, i / strips), i % strips * kStrip, packed + i * strip);
  });
  const Conv one = group_of(v, 0);
  const Cut cut(v, loops.image_bytes(one));
  const Conv largest = part_of(one, cut, 0, 0, 0);
  const int64_t bytes = loops.scratch_bytes(largest) + largest.batch * loops.image_bytes(largest);
  const int64_t parts = v.groups * cut.image_parts * cut.bands * cut.channel_parts;
  parallel_for(0, parts, work_of(v) < kParallelWork ? parts : 1, [&](int64_t i, int64_t end) {
    const Block memory(bytes);
    for (; i < end; ++i) {
      const int64_t group = i / (cut.image_parts * cut.bands * cut.channel_parts);
      const int64_t channel = i % cut.channel_parts * cut.channels;
      const int64_t band = i / cut.channel_parts % cut.bands;
      const int64_t image = i / cut.channel_parts / cut.bands % cut.image_parts * cut.images;
      loops.forward(part_of(group_of(v, group), cut, image, band, channel),
                    packed + (group * strips + channel / kStrip) * strip, memory.data());
    }
  });
}

bool conv_amx_weight_gradient(const Conv& v) {
  const ConvAmxGradientLoops& loops = FACULA_LOOPS(v.dtype, conv_gradient);
  const Conv one = group_of(v, 0);
  const int64_t pairs_bytes = loops.pairs_bytes(one), rows_bytes = loops.rows_bytes(one);
  const int64_t at_once =
      std::clamp<int64_t>(kPackedBytes / (pairs_bytes + rows_bytes), 1, v.batch);
  const int64_t blocks = loops.blocks(one), taps = loops.taps(one), block = taps * kSide * kSide;
  const int threads = in_parallel_region() ? 1 : num_threads();
  const Block sums(v.groups * blocks * block * 4);
  const Block packed(at_once * (pairs_bytes + rows_bytes));
  const int64_t scratch = loops.scratch_bytes(one);
  std::atomic<bool> finite = true;
  ConvAmxGradient g;
  g.pairs = packed.data(), g.rows = packed.data() + at_once * pairs_bytes;
  g.tap_groups = threads == 1 ? 1 : std::clamp<int64_t>(2 * threads / blocks, 1, taps);
  for (int64_t group = 0; group < v.groups; ++group) {
    g.sums = reinterpret_cast<float*>(sums.data()) + group * blocks * block;
    for (int64_t first = 0; first < v.batch; first += at_once) {
      Conv part = group_of(v, group);
      g.images = part.batch = std::min(at_once, v.batch - first);
      part.x = advance(part.x, first * v.x_batch);
      part.y = advance(part.y, first * v.y_batch);
      parallel_for(0, 2 * part.batch, 1, [&](int64_t i, int64_t end) {
        const Block memory(scratch);
        for (; i < end; ++i) {
          const int64_t image = i / 2;
          if (i % 2)
            loops.pack_rows(part, image, memory.data(),
                            packed.data() + at_once * pairs_bytes + image * rows_bytes);
          else if (!loops.pack_pairs(part, image, memory.data(),
                                     packed.data() + image * pairs_bytes))
            finite = false;
        }
      });
      if (!finite) return false;
      g.go_on = first > 0;
      parallel_for(0, blocks * g.tap_groups, 1, [&](int64_t i, int64_t end) {
        for (; i < end; ++i) loops.add(part, g, i);
      });
    }
  }
  parallel_for(0, v.groups * blocks, std::max<int64_t>(1, 16384 / block),
               [&](int64_t i, int64_t end) {
                 for (; i < end; ++i)
                   loops.store(group_of(v, i / blocks), i % blocks,
                               reinterpret_cast<float*>(sums.data()) + i * block);
               });
  return true;
}

}  // namespace facula
