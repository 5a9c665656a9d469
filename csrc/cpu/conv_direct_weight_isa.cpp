// The derivative of a convolution by its weights, as products whose left matrix is read where it
// lies: for each tap, rows are input channels, vectors run along output channels, and the sum goes
// over the pixels of output rows. Nothing is copied by taps.
#include "cpu/conv_direct.h"
#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBlockPixels = 512;  // whose gradient is packed at once
constexpr int64_t kWantedParts = 8;    // tasks that a result should be cut into

int64_t block_pixels(const ConvPlan& p) {
  return p.column_block * p.row_block * p.tap_block;
}
int64_t sum_floats(const Conv& v, int64_t channels) {
  return v.taps() * channels * round_up(v.out, kPanel);
}
int64_t most_spans(const ConvPlan& p) {
  return p.tap_block * p.row_block * (p.column_block / kChain + 2);
}
int64_t block_count(const Conv& v, const ConvPlan& p) {
  return v.batch * p.tap_blocks * p.row_blocks * p.column_blocks;
}

// A task has depth_block channels and one chunk of the blocks of outputs. Blocks and chunks, which
// decide the order of sums, follow from the shape alone.
template <class S>
void plan_weight(const Conv& v, int threads, ConvPlan& p) {
  const OutputAxes a(v);
  cut(v.in, larger(kWide, (1 << 18) / (v.taps() * round_up(v.out, kPanel))), kWide, p.depth_block);
  p.depth_block = smaller(p.depth_block, v.in);
  plan_blocks(a, p,
              [&] { return box_floats(a, p) <= kBoxFloats && block_pixels(p) <= kBlockPixels; });
  const int64_t parts = v.groups * divide_up(v.in, kWide), blocks = block_count(v, p);
  p.depth_chunks = smaller(blocks, divide_up(kWantedParts, parts));
  plan_sums<float>(v, p);
  const int64_t wanted = wanted_tasks(v, threads);
  auto tasks = [&] { return v.groups * p.depth_chunks * divide_up(v.in, p.depth_block); };
  while (tasks() < wanted && p.depth_block > kWide) {
    p.depth_block = round_up(divide_up(p.depth_block, 2), kWide);
  }
  set_tasks(v, tasks(), p);
  p.scratch_bytes = Scratch::bytes<float>(box_floats(a, p)) +
                    Scratch::bytes<float>(block_pixels(p) * round_up(v.out, kPanel)) +
                    Scratch::bytes<float>(sum_floats(v, p.depth_block)) +
                    Scratch::bytes<Span>(most_spans(p));
}

// The gradient of a block: [panel][pixel][output].
template <class S>
void pack_gradient(const Conv& v, const OutputBlock& block, const S* y, float* to) {
  const int64_t *count = block.count, stride = v.axis[2].y_stride;
  for (int64_t j = 0; j < v.out; j += kPanel) {
    const int64_t columns = smaller(kPanel, v.out - j);
    for (int64_t row = 0; row < count[0] * count[1]; ++row, to += count[2] * kPanel) {
      const S* from = y + j * v.y_channel + (block.first[0] + row / count[1]) * v.axis[0].y_stride +
                      (block.first[1] + row % count[1]) * v.axis[1].y_stride +
                      block.first[2] * stride;
      if (v.y_channel != 1) {
        transpose_panel(from, stride, v.y_channel, count[2], columns, to);
        continue;
      }
      for (int64_t i = 0; i < count[2]; ++i) {
        copy_span(from + i * stride, 1, 0, columns, kPanel, to + i * kPanel);
      }
    }
  }
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  const OutputAxes a(v);
  const int64_t outs = round_up(v.out, kPanel), taps = v.taps();
  Scratch scratch(memory);
  float* const memory_of_box = scratch.take<float>(box_floats(a, p));
  float* const gradient = scratch.take<float>(block_pixels(p) * outs);
  float* sums = scratch.take<float>(sum_floats(v, p.depth_block));
  Span* const spans = scratch.take<Span>(most_spans(p));

  const int64_t parts = divide_up(v.in, p.depth_block), blocks = block_count(v, p);
  const int64_t channel = task % parts * p.depth_block;
  const int64_t chunk = task / parts % p.depth_chunks, group = task / parts / p.depth_chunks;
  const int64_t channels = smaller(p.depth_block, v.in - channel);
  const S* const x = static_cast<const S*>(v.x) + (group * v.in + channel) * v.x_channel;
  const S* const y = static_cast<const S*>(v.y) + group * v.out * v.y_channel;

  SumStrides strides = sum_strides(v, channels, outs);
  // Sums of a chunk are held where they are shared, if they fill whole vectors.
  const bool in_place = p.depth_chunks > 1 && v.out % kWide == 0;
  if (in_place) {
    strides = sum_strides(v, v.in, v.out);
    sums = sums_of<float>(v, shared, chunk, group) + channel * strides.channel;
  }
  for (int64_t i = 0; i < taps * channels; ++i) {
    float* const row = sums + i / channels * strides.tap + i % channels * strides.channel;
    for (int64_t j = 0; j < (in_place ? v.out : outs); ++j) row[j] = 0;
  }
  for (int64_t number = chunk * blocks / p.depth_chunks;
       number < (chunk + 1) * blocks / p.depth_chunks; ++number) {
    int64_t batch = number;
    const OutputBlock block(a, p, batch);
    const int64_t *count = block.count, pixels = count[0] * count[1] * count[2];
    const InputBox input = load_box(v, a, block, x + batch * v.x_batch, channels,
                                    pixel_pitch(p.depth_block), memory_of_box);
    pack_gradient(v, block, y + batch * v.y_batch, gradient);
    const int64_t step = a.w.step * input.stride[2];
    for (int64_t tap = 0; tap < taps; ++tap) {
      const TapPlace at(v, tap);
      int64_t column, chain = 0;
      a.w.meets(block.first[2], at.w, column);
      Span* end = spans;
      for (int64_t row = 0, d, h; row < count[0] * count[1]; ++row) {
        if (a.d.meets_inside(block.first[0] + row / count[1], at.d, d) &&
            a.h.meets_inside(block.first[1] + row % count[1], at.h, h))
          end = add_span(end, input.offset(d, h), step, row * count[2] * kPanel, count[2], chain);
      }
      if (end == spans) continue;
      end[-1].ends_chain = true;
      const float* const left = input.data + (column - input.first[2]) * input.stride[2];
      for (int64_t j = 0; j < v.out; j += kPanel) {
        const int vectors = v.out - j > kWide ? 2 : 1;
        const int64_t height = tile_height(vectors, channels);
        for (int64_t i = 0; i < channels; i += height) {
          float* const sum = sums + tap * strides.tap + i * strides.channel + j;
          span_tiles.of(vectors, smaller(height, channels - i))(
              spans, end, left + i, 1, step, gradient + j * pixels, sum, strides.channel, sum,
              strides.channel);
        }
      }
    }
  }
  if (p.depth_chunks == 1)
    return store_weights<S>(v, sums, strides, group, 0, taps, channel, channels, 0, v.out);
  if (!in_place)
    share_sums(v, sums, strides, 0, taps, channel, channels, 0, v.out,
               sums_of<float>(v, shared, chunk, group));
}

struct Table : ConvTable {
  constexpr Table() : ConvTable{} {
#define X(e, t, name, c)                                                            \
  if constexpr (std::is_same_v<Accumulator<t>, float> && c == 2 && sizeof(t) > 1) { \
    of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_sums<t>};            \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const ConvTable* const conv_direct_weight_table = &table;

}  // namespace facula::FACULA_ISA
