// The derivative of a 3x3 convolution with step 1 by its weights, by Winograd's algorithm: tiles of
// 4x4 gradients (or 2x2) and the inputs that they saw are transformed, multiplied point by point,
// summed over all tiles as a matrix product for each point, and the sums become 3x3 weights.
#include "cpu/conv_winograd.h"

#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kInner = 128;      // input channels of a task
constexpr int64_t kOuter = 64;       // output channels of a task
constexpr int64_t kTiles = 96;       // that are transformed at once
constexpr int64_t kLeastTiles = 48;  // of a chunk
constexpr int64_t kMostChunks = 8;   // of all tiles, where there are few channels to share

// One tile of M x M vectors that lie `row` and kWide apart.
template <int M>
FACULA_INLINE void transform_gradient_tile(const float* y, int64_t row, float* to, int64_t step) {
  constexpr int side = kSide<M>;
  Floats g[side], t[M * side];
#pragma GCC unroll 4
  for (int q = 0; q < M; ++q) {
#pragma GCC unroll 4
    for (int r = 0; r < M; ++r) g[r] = load(y + r * row + q * kWide);
    Winograd<M>::gradient(g, t + q, M);
  }
#pragma GCC unroll 6
  for (int r = 0; r < side; ++r) {
    Winograd<M>::gradient(t + M * r, g, 1);
#pragma GCC unroll 6
    for (int q = 0; q < side; ++q) store(to + (side * r + q) * step, g[q]);
  }
}

// Transforms the gradient of output channels [first, first + channels), like transform_inputs.
template <class S, int M>
void transform_gradients(const Conv& v, const Tiles<M>& tiles, int64_t group, int64_t begin,
                         int64_t count, int64_t first, int64_t channels, float* strip, float* to,
                         int64_t pitch, int64_t step) {
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  for_each_tile_run(tiles, begin, count, [&](const TileRun& run) {
    const int64_t columns = run.count * M;
    for (int64_t c = 0; c < channels; c += kWide) {
      const int64_t exist = smaller(kWide, v.out - first - c);
      const Image<S> image{static_cast<const S*>(v.y) + run.batch * v.y_batch +
                               (group * v.out + first + c) * v.y_channel,
                           h.out,
                           w.out,
                           h.y_stride,
                           w.y_stride,
                           v.y_channel};
      for (int64_t r = 0; r < M; ++r) {
        image.gather(run.row * M + r, run.column * M, columns, exist, strip + r * columns * kWide);
      }
      for (int64_t i = 0; i < run.count; ++i) {
        transform_gradient_tile<M>(strip + i * M * kWide, columns * kWide,
                                   to + (run.first + i) * pitch + c, step);
      }
    }
  });
}

// What a task keeps: [point][tile][channel] of both sides, and the sums [point][channel][channel].
struct Layout {
  int64_t inner, outer;  // channels of a task, in whole vectors
  int64_t input_step = 0, gradient_step = 0, sum_step = 0;

  explicit Layout(const ConvPlan& p) : inner(p.row_block), outer(p.column_block) {
    input_step = odd_lines(kTiles * inner);
    gradient_step = odd_lines(kTiles * outer);
    sum_step = odd_lines(inner * outer);
  }
};

template <class S, int M>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  const Tiles<M> tiles(v);
  const int64_t blocks = divide_up(v.in, kInner);
  p.row_block = round_up(divide_up(v.in, blocks), kWide);
  p.row_blocks = divide_up(v.in, p.row_block);
  p.column_block = smaller(kOuter, round_up(v.out, kTileColumns<float>));
  p.column_blocks = divide_up(v.out, p.column_block);
  const int64_t parts = v.groups * p.row_blocks * p.column_blocks;
  p.depth_chunks = cut(tiles.all, larger(kLeastTiles, divide_up(tiles.all * parts, kMostChunks)), 1,
                       p.depth_block);
  p.tasks = parts * p.depth_chunks;
  plan_sums<float>(v, p);
  const Layout layout(p);
  p.scratch_bytes = Scratch::bytes<float>(kPoints<M> * layout.input_step) +
                    Scratch::bytes<float>(kPoints<M> * layout.gradient_step) +
                    Scratch::bytes<float>(kPoints<M> * layout.sum_step) +
                    Scratch::bytes<float>(strip_floats(tiles, kTiles)) +
                    Scratch::bytes<float>(9 * layout.inner * layout.outer);
}

// Sums [point][channel][output] -> weights.
template <int M>
void transform_sums(const Layout& layout, const float* sums, int64_t channels, SumStrides strides,
                    float* to) {
  constexpr int side = kSide<M>;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t o = 0; o < layout.outer; o += kWide) {
      const float* from = sums + c * layout.outer + o;
      Floats m[side], half[3 * side], taps[3];
#pragma GCC unroll 6
      for (int q = 0; q < side; ++q) {
#pragma GCC unroll 6
        for (int r = 0; r < side; ++r) m[r] = load(from + (side * r + q) * layout.sum_step);
        Winograd<M>::weight(m, half + q, side);
      }
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) {
        Winograd<M>::weight(half + side * r, taps, 1);
#pragma GCC unroll 3
        for (int q = 0; q < 3; ++q) {
          store(to + (3 * r + q) * strides.tap + c * strides.channel + o, taps[q]);
        }
      }
    }
  }
}

template <class S, int M>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  constexpr int64_t width = kTileColumns<float>;
  const Layout layout(p);
  const Tiles<M> tiles(v);
  Scratch scratch(memory);
  float* const input = scratch.take<float>(kPoints<M> * layout.input_step);
  float* const gradient = scratch.take<float>(kPoints<M> * layout.gradient_step);
  float* const sums = scratch.take<float>(kPoints<M> * layout.sum_step);
  float* const strip = scratch.take<float>(strip_floats(tiles, kTiles));
  float* const weights = scratch.take<float>(9 * layout.inner * layout.outer);

  const int64_t out = task % p.column_blocks * p.column_block;
  task /= p.column_blocks;
  const int64_t in = task % p.row_blocks * p.row_block;
  task /= p.row_blocks;
  const int64_t chunk = task % p.depth_chunks, group = task / p.depth_chunks;
  const int64_t channels = smaller(p.row_block, v.in - in);
  const int64_t columns = smaller(p.column_block, v.out - out);
  const int64_t first = chunk * p.depth_block, end = smaller(tiles.all, first + p.depth_block);
  const int64_t tile_rows = divide_up(channels, divide_up(channels, kTileRows));
  int64_t block;
  cut(end - first, kTiles, 1, block);
  for (int64_t begin = first; begin < end; begin += block) {
    const int64_t count = smaller(block, end - begin);
    transform_inputs<S>(v, tiles, group, begin, count, in, round_up(channels, kWide), strip, input,
                        layout.inner, layout.input_step);
    transform_gradients<S>(v, tiles, group, begin, count, out, round_up(columns, kWide), strip,
                           gradient, layout.outer, layout.gradient_step);
    for (int e = 0; e < kPoints<M>; ++e) {
      for (int64_t j = 0; j < columns; j += width) {
        const int vectors = columns - j > kWide ? 2 : 1;
        for (int64_t i = 0; i < channels; i += tile_rows) {
          float* sum = sums + e * layout.sum_step + i * layout.outer + j;
          conv_tile<float>(vectors, smaller(tile_rows, channels - i))(
              count, input + e * layout.input_step + i, 1, layout.inner,
              gradient + e * layout.gradient_step + j, layout.outer, sum, layout.outer,
              begin == first ? nullptr : sum, layout.outer);
        }
      }
    }
  }
  const SumStrides strides = sum_strides(v, channels, layout.outer);
  transform_sums<M>(layout, sums, channels, strides, weights);
  if (p.depth_chunks == 1)
    return store_weights<S>(v, weights, strides, group, 0, 9, in, channels, out, columns);
  share_sums(v, weights, strides, 0, 9, in, channels, out, columns,
             sums_of<float>(v, shared, chunk, group));
}

struct Tables {
  ConvTable large, small;
  constexpr Tables() : large{}, small{} {
#define X(e, t, name, c)                                                             \
  if constexpr (std::is_same_v<Accumulator<t>, float> && c == 2 && sizeof(t) > 1) {  \
    large.of[int(DType::e)] = {plan_weight<t, 4>, run_weight<t, 4>, finish_sums<t>}; \
  }
    FACULA_DTYPES(X)
#undef X
    small.of[int(DType::Float32)] = {plan_weight<float, 2>, run_weight<float, 2>,
                                     finish_sums<float>};
  }
};
constexpr Tables tables;

}  // namespace

const ConvTable* const conv_winograd_weight_table = &tables.large;
const ConvTable* const conv_small_winograd_weight_table = &tables.small;

}  // namespace facula::FACULA_ISA
