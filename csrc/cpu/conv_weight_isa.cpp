// The derivative of a convolution by its weights: a product of the matrix of what pixels see, by
// tap and channel, with the output's gradient, by channel. Its depth is the number of output pixels
// of the whole batch. Rows are taps and input channels, vectors run along output channels.
#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kSumBytes = 1 << 20;
constexpr int64_t kMostChunks = 16;
constexpr int64_t kChunkPixels = 2 * kDepth;

// A task has row_block channels and tap_block taps.
template <class S>
void plan_weight(const Conv& v, int threads, ConvPlan& p) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t taps = v.taps(), pixels = v.batch * v.pixels();
  p.column_blocks = cut(v.out, kPanels * width, width, p.column_block);
  const int64_t most = larger(kTileRows, kSumBytes / int64_t(sizeof(A)) / p.column_block);
  p.tap_blocks = cut(taps, most, 1, p.tap_block);
  p.row_blocks = cut(v.in, larger(1, most / p.tap_block), 1, p.row_block);
  // Too small a result to share: the depth is cut too, by the shape alone, and the sums are added.
  const int64_t parts = v.groups * p.column_blocks * divide_up(v.in * taps, 2 * kTileRows);
  p.depth_chunks = 1;
  p.depth_block = pixels;
  if (parts < 8 && pixels >= 2 * kChunkPixels) {
    p.depth_chunks =
        cut(pixels, larger(kChunkPixels, divide_up(pixels, kMostChunks)), width, p.depth_block);
  }
  plan_sums<A>(v, p);
  const int64_t wanted = wanted_tasks(v, threads);
  auto tasks = [&] {
    return v.groups * p.row_blocks * p.tap_blocks * p.column_blocks * p.depth_chunks;
  };
  while (tasks() < wanted && p.row_block * p.tap_block > 2 * kTileRows) {
    if (p.row_block > 1) p.row_blocks = cut(v.in, divide_up(p.row_block, 2), 1, p.row_block);
    else p.tap_blocks = cut(taps, divide_up(p.tap_block, 2), 1, p.tap_block);
  }
  set_tasks(v, tasks(), p);
  p.scratch_bytes = Scratch::bytes<A>(kDepth * p.column_block) +
                    Scratch::bytes<A>(kTileRows * (kDepth + 16)) +
                    Scratch::bytes<A>((p.row_block * p.tap_block + kTileRows) * p.column_block) +
                    Scratch::bytes<PixelRun>(2 * kDepth);
}

// Where the gradient of pixels of one run begins.
FACULA_INLINE int64_t output_offset(const Conv& v, const PixelRun& run) {
  return run.batch * v.y_batch + run.place[0] * v.axis[0].y_stride +
         run.place[1] * v.axis[1].y_stride + run.place[2] * v.axis[2].y_stride;
}

// The gradient of all channels of the task: one row for each pixel of the runs.
template <class S, class A>
void pack_gradient(const Conv& v, const S* y, const PixelRun* runs, int64_t run_count,
                   int64_t columns, int64_t depth, A* to) {
  constexpr int64_t width = kTileColumns<A>;
  for (int64_t j = 0; j < columns; j += width, to += depth * width) {
    const int64_t count = smaller(width, columns - j);
    for (int64_t i = 0; i < run_count; ++i) {
      const S* from = y + output_offset(v, runs[i]) + j * v.y_channel;
      A* panel = to + runs[i].column * width;
      if (v.y_channel != 1) {
        transpose_panel(from, v.axis[2].y_stride, v.y_channel, runs[i].count, count, panel);
        continue;
      }
      for (int64_t q = 0; q < runs[i].count; ++q) {
        copy_span(from + q * v.axis[2].y_stride, 1, 0, count, width, panel + q * width);
      }
    }
  }
}

// Row (tap, channel + i), i < rows, goes to to[i * row + pixel * column].
template <class S, class A>
void pack_seen(const Conv& v, const S* x, const PixelRun* runs, int64_t run_count, int64_t tap,
               int64_t channel, int64_t rows, A* to, int64_t row, int64_t column) {
  const int64_t stride = v.axis[2].step * v.axis[2].x_stride;
  const TapPlace at(v, tap);
  for (int64_t i = 0; i < run_count; ++i) {
    const PixelRun& run = runs[i];
    const Tap seen = find_tap(v, run, at.d, at.h, at.w);
    const S* from = x + run.batch * v.x_batch + channel * v.x_channel + seen.offset;
    A* out = to + run.column * column;
    if (column == 1) {
      for (int64_t r = 0; r < rows; ++r, from += v.x_channel, out += row) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
        if constexpr (kMaskable<S>) {
          if (stride == 1) {
            copy_some<1>(from, seen.mask, first_bits(run.count), out);
            continue;
          }
          if constexpr (std::is_same_v<S, float>) {
            if (stride == 2) {
              copy_some<2>(from, seen.mask, first_bits(run.count), out);
              continue;
            }
          }
        }
#endif
        copy_span(from, stride, seen.low, seen.high, run.count, out);
      }
    } else {
      for (int64_t q = 0; q < run.count; ++q, from += stride, out += column) {
        const bool inside = q >= seen.low && q < seen.high;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
        if constexpr (kMaskable<S>) {
          if (rows <= kLanes<A>) {
            const uint32_t all = first_bits(rows);
            store_some(out, all, load_some(inside ? all : 0, from));
            continue;
          }
        }
#endif
        copy_span(from, v.x_channel, 0, inside ? rows : 0, rows, out);
      }
    }
  }
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  Scratch scratch(memory);
  A* const right = scratch.take<A>(kDepth * p.column_block);
  A* const left = scratch.take<A>(kTileRows * (kDepth + 16));
  A* const sums = scratch.take<A>((p.row_block * p.tap_block + kTileRows) * p.column_block);
  PixelRun* const runs = scratch.take<PixelRun>(2 * kDepth);

  const int64_t column0 = task % p.column_blocks * p.column_block;
  task /= p.column_blocks;
  const int64_t channel0 = task % p.row_blocks * p.row_block;
  task /= p.row_blocks;
  const int64_t tap0 = task % p.tap_blocks * p.tap_block;
  task /= p.tap_blocks;
  const int64_t chunk = task % p.depth_chunks, group = task / p.depth_chunks;
  const int64_t channels = smaller(p.row_block, v.in - channel0);
  const int64_t taps = smaller(p.tap_block, v.taps() - tap0), rows = taps * channels;
  const int64_t columns = smaller(p.column_block, v.out - column0);
  const int64_t pixels = smaller(p.depth_block, v.batch * v.pixels() - chunk * p.depth_block);
  const S* x = static_cast<const S*>(v.x) + group * v.in * v.x_channel;
  const S* y = static_cast<const S*>(v.y) + (group * v.out + column0) * v.y_channel;
  const bool by_pixels = v.x_channel == 1 && v.axis[2].x_stride != 1;
  const int64_t pitch = by_pixels ? 1 : kDepth + 16, step = by_pixels ? kTileRows : 1;

  for (int64_t i = 0; pixels == 0 && i < rows * p.column_block; ++i) sums[i] = A(0);
  int64_t block;  // whole vectors, so that runs of pixels end with rows where they can
  cut(pixels, kDepth, width, block);
  for (int64_t done = 0; done < pixels; done += block) {
    const int64_t depth = smaller(block, pixels - done);
    int64_t run_count = 0;
    for_each_run(v, chunk * p.depth_block + done, depth, width,
                 [&](const PixelRun& run) { runs[run_count++] = run; });
    pack_gradient(v, y, runs, run_count, columns, depth, right);
    for (int64_t i = 0; i < rows;) {
      int64_t height = 0;
      while (height < kTileRows && i + height < rows) {  // a tile may reach over several taps
        const int64_t tap = (i + height) / channels, channel = (i + height) % channels;
        const int64_t count = smaller(channels - channel, kTileRows - height);
        pack_seen(v, x, runs, run_count, tap0 + tap, channel0 + channel, count,
                  left + height * pitch, pitch, step);
        height += count;
      }
      for (int64_t j = 0; j < columns; j += width) {
        const int vectors = columns - j > lanes ? 2 : 1;
        A* const sum = sums + i * p.column_block + j;
        conv_tile<A>(vectors, height)(depth, left, pitch, step, right + j * depth, width, sum,
                                      p.column_block, done ? sum : nullptr, p.column_block);
      }
      i += height;
    }
  }
  const SumStrides strides{channels * p.column_block, p.column_block};
  if (p.depth_chunks == 1) {
    store_weights<S>(v, sums, strides, group, tap0, taps, channel0, channels, column0, columns);
  } else {
    share_sums(v, sums, strides, tap0, taps, channel0, channels, column0, columns,
               sums_of<A>(v, shared, chunk, group));
  }
}

struct Table : ConvTable {
  constexpr Table() : ConvTable{} {
#define X(e, t, name, c)                                                  \
  if constexpr (c == 1 || (c == 2 && sizeof(t) > 1)) {                    \
    of[int(DType::e)] = {plan_weight<Storage<t>>, run_weight<Storage<t>>, \
                         finish_sums<Storage<t>>};                        \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const ConvTable* const conv_weight_table = &table;

}  // namespace facula::FACULA_ISA
