// 3x3 convolutions with step 1 by Winograd's algorithm: tiles of 4x4 outputs are made from 36
// products instead of 144, tiles of 2x2 outputs from 16 instead of 36. Every tile of the input and
// every kernel is transformed, products are summed over the channels as a matrix product for each
// point, and the sums are transformed back.
#include "cpu/conv_winograd.h"

#include "cpu/conv_kernels.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kInner = 64;             // input channels whose products are summed at once
constexpr int64_t kOuter = 64;             // output channels that are computed at once
constexpr int64_t kMostTiles = 96;         // of a task; a multiple of every tile height
constexpr int64_t kInputBytes = 3 << 20;   // of transformed input
constexpr int64_t kKernelBytes = 4 << 20;  // of transformed weights that are kept for all tasks

// ---- layout of the transformed operands

struct Layout {
  int64_t inner, inner_pitch;    // input channels, padded; of a row of transformed tiles
  int64_t tiles;                 // of a task
  int64_t input_step, sum_step;  // between two points

  explicit Layout(const Conv& v, const ConvPlan& p) : tiles(p.column_block) {
    inner = round_up(v.in, kWide);
    inner_pitch = inner % 256 == 0 ? inner + kWide : inner;  // rows must not share cache sets
    input_step = odd_lines(tiles * inner_pitch);
    sum_step = odd_lines(tiles * kOuter);
  }
};

// Transformed kernels of a block of kOuter channels: [point][panel][input channel][lane].
int64_t kernel_step(int64_t depth) {  // between two points
  return odd_lines(depth * kOuter);
}
template <int M>
int64_t kernel_floats(int64_t depth) {
  return kPoints<M> * kernel_step(depth);
}

// ---- kernels

// Taps of kWide input and as many output channels: to[tap][input][output], zero where there are
// none. `in` and `out` channels exist.
template <class S>
void gather_taps(const Conv& v, const S* w, int64_t in, int64_t out, float* to) {
  const int64_t h = v.axis[1].w_stride, k = v.axis[2].w_stride;
  auto tap_at = [&](int64_t t) { return w + t / 3 * h + t % 3 * k; };
  if (v.w_out == 1) {
    for (int64_t t = 0; t < 9; ++t) {
      for (int64_t c = 0; c < in; ++c) {
        store(to + (t * kWide + c) * kWide, load_first(tap_at(t) + c * v.w_in, out));
      }
    }
    return;
  }
  if constexpr (kTurnable<S>) {
    if (v.w_in == 1) {
      for (int64_t t = 0; t < 9; ++t) {
        transpose_square(tap_at(t), v.w_out, out, in, to + t * kWide * kWide, kWide);
      }
      return;
    }
    // Nine neighbours, in order or (for the transposed operator) from the last to the first.
    if (h == 3 * k && (k == 1 || k == -1)) {
      float* const first = k == 1 ? to : to + 8 * kWide * kWide;
      const S* const from = k == 1 ? w : w - 8;
      const int64_t apart = k * kWide * kWide;
      for (int64_t c = 0; c < in; ++c) {
        for (int64_t t = 0; t < 9; t += kSquare) {
          transpose_square(from + c * v.w_in + t, v.w_out, out, smaller(kSquare, 9 - t),
                           first + c * kWide + t * apart, apart);
        }
      }
      return;
    }
  }
  for (int64_t t = 0; t < 9; ++t) {
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t o = 0; o < kWide; ++o) {
        to[(t * kWide + c) * kWide + o] =
            o < out ? widen<float>(tap_at(t)[o * v.w_out + c * v.w_in]) : 0;
      }
    }
  }
}

// Transforms the kernels of kWide input channels from `first` on and of output channels
// [out, out + kOuter); `to` is the place of the first one, with `depth` channels to a panel.
template <int M, class S>
void transform_kernels(const Conv& v, const S* w, int64_t out, int64_t first, int64_t depth,
                       float* to) {
  constexpr int64_t width = kTileColumns<float>;
  constexpr int side = kSide<M>;
  const int64_t step = kernel_step(depth), in = smaller(kWide, v.in - first);
  alignas(64) float taps[9 * kWide * kWide];
  for (int64_t o = 0; o < kOuter; o += kWide) {
    float* lane = to + o / width * depth * width + o % width;
    const int64_t channels = smaller(kWide, v.out - out - o);
    if (channels > 0) gather_taps(v, w + (out + o) * v.w_out + first * v.w_in, in, channels, taps);
    for (int64_t c = 0; c < kWide; ++c, lane += width) {
      if (channels <= 0 || c >= in) {
        for (int e = 0; e < kPoints<M>; ++e) store(lane + e * step, Floats{});
        continue;
      }
      Floats g[3], half[3 * side], points[side];
#pragma GCC unroll 3
      for (int q = 0; q < 3; ++q) {
#pragma GCC unroll 3
        for (int r = 0; r < 3; ++r) g[r] = load(taps + ((3 * r + q) * kWide + c) * kWide);
        Winograd<M>::kernel(g, half + q, 3);
      }
#pragma GCC unroll 6
      for (int r = 0; r < side; ++r) {
        Winograd<M>::kernel(half + 3 * r, points, 1);
#pragma GCC unroll 6
        for (int q = 0; q < side; ++q) store(lane + (side * r + q) * step, points[q]);
      }
    }
  }
}

// ---- output

template <class S, int M>
void transform_outputs(const Conv& v, const Layout& layout, const Tiles<M>& tiles, int64_t group,
                       int64_t begin, int64_t count, int64_t out, const float* sums, float* strip) {
  constexpr int side = kSide<M>;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  for_each_tile_run(tiles, begin, count, [&](const TileRun& run) {
    const int64_t rows = smaller(M, h.out - run.row * M);
    const int64_t columns = smaller(run.count * M, w.out - run.column * M);
    for (int64_t o = 0; o < kOuter && out + o < v.out; o += kWide) {
      const int64_t channel = group * v.out + out + o, channels = smaller(kWide, v.out - out - o);
      const Floats bias =
          v.bias ? load_first(static_cast<const S*>(v.bias) + channel, channels) : Floats{};
      S* y = static_cast<S*>(v.y) + run.batch * v.y_batch + channel * v.y_channel +
             run.row * M * h.y_stride + run.column * M * w.y_stride;
      const bool turn = v.y_channel != 1;
      for (int64_t i = 0; i < run.count; ++i) {
        const float* from = sums + (run.first + i) * kOuter + o;
        const int64_t seen = smaller(M, columns - i * M);
        Floats m[side], half[M * side], pixels[M];
#pragma GCC unroll 6
        for (int q = 0; q < side; ++q) {
#pragma GCC unroll 6
          for (int r = 0; r < side; ++r) m[r] = load(from + (side * r + q) * layout.sum_step);
          Winograd<M>::output(m, half + q, side);
        }
#pragma GCC unroll 4
        for (int r = 0; r < M; ++r) {
          Winograd<M>::output(half + side * r, pixels, 1);
          if (turn) {
            float* to = strip + (r * run.count * M + i * M) * kWide;
#pragma GCC unroll 4
            for (int q = 0; q < M; ++q) store(to + q * kWide, pixels[q] + bias);
          } else if (r < rows) {
            S* to = y + r * h.y_stride + i * M * w.y_stride;
#pragma GCC unroll 4
            for (int q = 0; q < M; ++q) {
              if (q < seen) store_elements(to + q * w.y_stride, channels, pixels[q] + bias);
            }
          }
        }
      }
      for (int64_t r = 0; turn && r < rows; ++r) {
        turn_pixels(strip + r * run.count * M * kWide, columns, channels, y + r * h.y_stride,
                    v.y_channel);
      }
    }
  });
}

// ---- the task

template <int M>
bool keeps_kernels(const Conv& v, const Layout& layout) {
  const int64_t blocks = v.groups * divide_up(v.out, kOuter);
  return blocks * kernel_floats<M>(layout.inner) * int64_t(sizeof(float)) <= kKernelBytes;
}

// Cuts `tiles` into column blocks, at least `fewest`, and blocks of output channels into row
// blocks, such that the threads are done soonest. Whoever has other channels of the same tiles
// transforms their input again, whoever has other tiles reads the kernels again; times are those of
// the products of one tile with one block of channels.
void cut_into_tasks(int64_t groups, int64_t tiles, int64_t fewest, int64_t blocks, int threads,
                    ConvPlan& p) {
  constexpr double kInput = 0.25, kKernels = 4;
  double least = 0;
  for (int64_t n = fewest; n < fewest + threads; ++n) {
    const int64_t columns = divide_up(tiles, n), column_blocks = divide_up(tiles, columns);
    for (int64_t rows = blocks;; rows = divide_up(rows, 2)) {
      const int64_t row_blocks = divide_up(blocks, rows);
      const int64_t tasks = groups * column_blocks * row_blocks;
      const double time = double(divide_up(tasks, threads)) *
                          (double(columns) * (kInput + double(rows)) + kKernels * double(rows));
      if (!p.tasks || time < least) {
        least = time;
        p.tasks = tasks;
        p.column_block = columns, p.column_blocks = column_blocks;
        p.row_block = rows, p.row_blocks = row_blocks;
      }
      if (rows == 1) break;
    }
  }
}

template <class S, int M>
void plan_winograd(const Conv& v, int threads, ConvPlan& p) {
  const Tiles<M> tiles(v);
  const int64_t row_bytes = kPoints<M> * Layout(v, p).inner_pitch * int64_t(sizeof(float));
  const int64_t most = smaller(kMostTiles, kInputBytes / row_bytes) / kTileRows * kTileRows;
  const int64_t blocks = divide_up(v.out, kOuter);
  cut_into_tasks(v.groups, tiles.all, divide_up(tiles.all, larger(kTileRows, most)), blocks,
                 threads, p);
  const Layout layout(v, p);
  if (keeps_kernels<M>(v, layout)) {
    p.prepare_tasks = v.groups * blocks * divide_up(layout.inner, kWide);
    p.shared_bytes = size_t(v.groups * blocks * kernel_floats<M>(layout.inner)) * sizeof(float);
  }
  p.scratch_bytes = Scratch::bytes<float>(kPoints<M> * layout.input_step) +
                    Scratch::bytes<float>(kPoints<M> * layout.sum_step) +
                    Scratch::bytes<float>(strip_floats(tiles, layout.tiles)) +
                    (p.prepare_tasks ? 0 : Scratch::bytes<float>(kernel_floats<M>(kInner)));
}

template <class S, int M>
void prepare_winograd(const Conv& v, const ConvPlan& p, int64_t task, void* shared) {
  const Layout layout(v, p);
  const int64_t parts = divide_up(layout.inner, kWide), blocks = divide_up(v.out, kOuter);
  const int64_t part = task % parts, block = task / parts % blocks, group = task / parts / blocks;
  float* to =
      static_cast<float*>(shared) + (group * blocks + block) * kernel_floats<M>(layout.inner);
  transform_kernels<M>(v, static_cast<const S*>(v.w) + group * v.w_group, block * kOuter,
                       part * kWide, layout.inner, to + part * kWide * kTileColumns<float>);
}

template <class S, int M>
void run_winograd(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  constexpr int64_t width = kTileColumns<float>;
  const Layout layout(v, p);
  const Tiles<M> tiles(v);
  const bool kept = p.prepare_tasks != 0;
  Scratch scratch(memory);
  float* const input = scratch.take<float>(kPoints<M> * layout.input_step);
  float* const sums = scratch.take<float>(kPoints<M> * layout.sum_step);
  float* const strip = scratch.take<float>(strip_floats(tiles, layout.tiles));
  float* const own = kept ? nullptr : scratch.take<float>(kernel_floats<M>(kInner));

  const int64_t blocks = divide_up(v.out, kOuter);
  const int64_t begin = task % p.column_blocks * p.column_block;
  const int64_t first_block = task / p.column_blocks % p.row_blocks * p.row_block;
  const int64_t group = task / p.column_blocks / p.row_blocks;
  const int64_t count = smaller(p.column_block, tiles.all - begin);
  const int64_t tile_rows = divide_up(count, divide_up(count, kTileRows));
  transform_inputs<S>(v, tiles, group, begin, count, 0, layout.inner, strip, input,
                      layout.inner_pitch, layout.input_step);
  for (int64_t block = first_block; block < smaller(blocks, first_block + p.row_block); ++block) {
    const int64_t columns = smaller(kOuter, v.out - block * kOuter);
    for (int64_t c = 0; c < layout.inner; c += kInner) {
      const int64_t depth = smaller(kInner, layout.inner - c);
      const int64_t all = kept ? layout.inner : depth;
      const float* kernels = own;
      if (kept) {
        kernels = static_cast<const float*>(shared) +
                  (group * blocks + block) * kernel_floats<M>(layout.inner) + c * width;
      } else {
        for (int64_t k = 0; k < depth; k += kWide) {
          transform_kernels<M>(v, static_cast<const S*>(v.w) + group * v.w_group, block * kOuter,
                               c + k, depth, own + k * width);
        }
      }
      for (int e = 0; e < kPoints<M>; ++e) {
        for (int64_t j = 0; j < columns; j += width) {
          const float* b = kernels + e * kernel_step(all) + j * all;
          const int vectors = columns - j > kWide ? 2 : 1;
          for (int64_t i = 0; i < count; i += tile_rows) {
            const int64_t height = smaller(tile_rows, count - i);
            float* sum = sums + e * layout.sum_step + i * kOuter + j;
            conv_tile<float>(vectors, height)(
                depth, input + e * layout.input_step + i * layout.inner_pitch + c,
                layout.inner_pitch, 1, b, width, sum, kOuter, c ? sum : nullptr, kOuter);
          }
        }
      }
    }
    transform_outputs<S>(v, layout, tiles, group, begin, count, block * kOuter, sums, strip);
  }
}

struct Tables {
  ConvTable large, small;
  constexpr Tables() : large{}, small{} {
#define X(e, t, name, c)                                                            \
  if constexpr (std::is_same_v<Accumulator<t>, float> && c == 2 && sizeof(t) > 1) { \
    large.of[int(DType::e)] = functions<t, 4>();                                    \
  }
    FACULA_DTYPES(X)
#undef X
    small.of[int(DType::Float32)] = functions<float, 2>();
  }
  template <class S, int M>
  static constexpr ConvFunction functions() {
    return {plan_winograd<S, M>, run_winograd<S, M>, nullptr, prepare_winograd<S, M>};
  }
};
constexpr Tables tables;

}  // namespace

const ConvTable* const conv_winograd_table = &tables.large;
const ConvTable* const conv_small_winograd_table = &tables.small;

}  // namespace facula::FACULA_ISA
