// Convolutions of one group with few input or few output channels, of images that lie by planes
// (NCHW). Vectors run along pixels. What a block of outputs sees is copied once, with its padding:
// every tap is an offset then, and rows of outputs follow each other, so that vectors may run over
// their ends. No matrix of what pixels see is made. The derivative by the weights reads the same
// copy, with pixels as the depth of a product whose vectors run along output channels.
//
// For vectors of up to 32 bytes: with wider ones that are stored in part, matrices are made fast.
#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kPlaneBytes = 96 << 10;  // of the input that a task holds
constexpr int64_t kSumBytes = 64 << 10;    // of one group of outputs
constexpr int64_t kColumns = 2048;         // of a block, at most
constexpr int64_t kFewColumns = 256;
constexpr int64_t kFewInputs = 8;  // which are held at once
constexpr int64_t kChain = 96;     // products in one partial sum, see conv_tile_isa.cpp
constexpr int kOutputs = 6;        // channels at once

// The input of a block of outputs. Rows and columns that are a step apart lie side by side, so that
// output (r, q) sees, through any tap, what is r * pitch + q behind what output (0, 0) sees.
struct Planes {
  Planes(const Conv& v, int64_t rows, int64_t columns)
      : pitch(columns + (v.axis[2].taps - 1) * v.axis[2].spread / v.axis[2].step),
        lines(rows + (v.axis[1].taps - 1) * v.axis[1].spread / v.axis[1].step),
        channel(v.axis[0].taps * v.axis[1].step * v.axis[2].step * lines * pitch),
        outputs((rows - 1) * pitch + columns) {}
  int64_t pitch, lines;
  int64_t channel;  // elements of one channel
  int64_t outputs;  // and what lies between their rows

  int64_t offset(const Conv& v, int64_t c, const TapPlace& tap) const {
    const ConvAxis &h = v.axis[1], &w = v.axis[2];
    const int64_t row = tap.h * h.spread, column = tap.w * w.spread;
    const int64_t part = (tap.d * h.step + row % h.step) * w.step + column % w.step;
    return c * channel + (part * lines + row / h.step) * pitch + column / w.step;
  }
};

// A block of outputs: `rows` by `columns` of one plane.
struct PlaneBlock {
  PlaneBlock(const Conv& v, const ConvPlan& p, int64_t number) {
    column = number % p.column_blocks * p.column_block;
    number /= p.column_blocks;
    row = number % p.row_blocks * p.row_block;
    number /= p.row_blocks;
    depth = number % v.axis[0].out;
    batch = number / v.axis[0].out;
    rows = smaller(p.row_block, v.axis[1].out - row);
    columns = smaller(p.column_block, v.axis[2].out - column);
  }
  int64_t batch, depth, row, column, rows, columns;
  int64_t y_offset(const Conv& v) const {
    return batch * v.y_batch + depth * v.axis[0].y_stride + row * v.axis[1].y_stride +
           column * v.axis[2].y_stride;
  }
};
int64_t block_count(const Conv& v, const ConvPlan& p) {
  return v.batch * v.axis[0].out * p.row_blocks * p.column_blocks;
}

// What a block sees of one channel, whose first element is x.
template <class S, class A>
void copy_channel(const Conv& v, const Planes& planes, const PlaneBlock& b, const S* x, A* to) {
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  for (int64_t part = 0; part < d.taps * h.step * w.step; ++part) {
    const int64_t z = b.depth * d.step + d.start + part / (h.step * w.step) * d.spread;
    const int64_t first_row = b.row * h.step + h.start + part / w.step % h.step;
    const int64_t at = b.column * w.step + w.start + part % w.step;
    const int64_t seen = at < w.in ? (w.in - 1 - at) / w.step + 1 : 0;
    const int64_t high = smaller(planes.pitch, seen);
    const int64_t low = smaller(high, at < 0 ? divide_up(-at, w.step) : 0);
    for (int64_t i = 0; i < planes.lines; ++i, to += planes.pitch) {
      const int64_t y = first_row + i * h.step;
      const bool inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
      const S* const from = inside ? x + z * d.x_stride + y * h.x_stride + at * w.x_stride : x;
      copy_span(from, w.step * w.x_stride, inside ? low : 0, inside ? high : 0, planes.pitch, to);
    }
  }
}

template <class A>
int64_t channel_bytes(const Conv& v, const ConvPlan& p) {
  return Planes(v, p.row_block, p.column_block).channel * int64_t(sizeof(A));
}

// Chooses blocks of at most `columns` columns that are as large as fits() allows.
template <class F>
void cut_planes(const Conv& v, int64_t columns, ConvPlan& p, F fits) {
  p.row_block = 1;
  p.column_blocks = cut(v.axis[2].out, columns, 1, p.column_block);
  while (!fits() && p.column_block > kFewColumns) {
    p.column_blocks = cut(v.axis[2].out, divide_up(p.column_block, 2), 1, p.column_block);
  }
  int64_t most = 1;
  while (p.row_block < v.axis[1].out && fits()) most = p.row_block, p.row_block *= 2;
  if (fits()) most = p.row_block;
  p.row_blocks = cut(v.axis[1].out, most, 1, p.row_block);
}

// ---- forward

// Vectors of pixels in a tile of some channels: enough sums to hide their latency, and as many as
// leave registers for what is multiplied.
constexpr int tile_vectors(int outputs) {
  constexpr int sums = kTileVectors * kTileRows;
  const int some = outputs == 1 ? 8 : (outputs <= 3 ? sums - 2 : sums) / outputs;
  return some < 1 ? 1 : some > 8 ? 8 : some;
}

// sum[o] = the sum over k of w[k][o] * x[offsets[k]], for V vectors of pixels.
template <class A, int O, int V>
FACULA_INLINE void sum_taps(const A* x, const int64_t* offsets, int64_t count, const A* w,
                            Vector<A> (&sum)[O][V]) {
  for (int64_t k = 0; k < count; ++k, w += O) {
    const A* const from = x + offsets[k];
    if constexpr (O < V) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        Vector<A> seen = load(from + v * kLanes<A>);
        if constexpr (O > 1) keep_in_register<A>(seen);
#pragma GCC unroll 8
        for (int o = 0; o < O; ++o) sum[o][v] = multiply_add(w[o], seen, sum[o][v]);
      }
    } else {
      Vector<A> seen[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        seen[v] = load(from + v * kLanes<A>);
        keep_in_register<A>(seen[v]);
      }
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[o][v] = multiply_add(w[o], seen[v], sum[o][v]);
      }
    }
  }
}

// A row of results: y[o][i] = bias[o] + the sum, in tiles of two vectors that may overlap.
template <class A, int O>
void apply_taps(const A* x, const int64_t* offsets, int64_t count, const A* w, const A* bias,
                int64_t columns, A* y, int64_t y_channel) {
  constexpr int V = kTileVectors;
  for (int64_t i = 0; i < columns; i += kTileColumns<A>) {
    i = smaller(i, columns - kTileColumns<A>);
    Vector<A> sum[O][V] = {};
    sum_taps<A, O, V>(x + i, offsets, count, w, sum);
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        store(y + o * y_channel + i + v * kLanes<A>, bias[o] + sum[o][v]);
      }
    }
  }
}
template <class A>
constexpr decltype(&apply_taps<A, 1>) kApplyTaps[kOutputs] = {apply_taps<A, 1>, apply_taps<A, 2>,
                                                              apply_taps<A, 3>, apply_taps<A, 4>,
                                                              apply_taps<A, 5>, apply_taps<A, 6>};

// sums[o][i] += a part of the sum, for whole tiles.
template <class A, int O>
void add_taps(const A* x, const int64_t* offsets, int64_t count, const A* w, int64_t outputs,
              A* sums, int64_t pitch) {
  constexpr int V = tile_vectors(O);
  for (int64_t i = 0; i < outputs; i += V * kLanes<A>) {
    Vector<A> sum[O][V] = {};
    sum_taps<A, O, V>(x + i, offsets, count, w, sum);
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        A* const to = sums + o * pitch + i + v * kLanes<A>;
        store(to, load(to) + sum[o][v]);
      }
    }
  }
}
template <class A>
constexpr decltype(&add_taps<A, 1>) kAddTaps[kOutputs] = {
    add_taps<A, 1>, add_taps<A, 2>, add_taps<A, 3>, add_taps<A, 4>, add_taps<A, 5>, add_taps<A, 6>};

// Tiles are whole: they go so many elements beyond the last output.
template <class A>
constexpr int64_t kBeyond = 8 * kLanes<A>;
template <class A>
int64_t sum_pitch(const Planes& planes) {
  return round_up(planes.outputs, 16) + kBeyond<A>;
}
int64_t outputs_at_once(const Conv& v) {
  return divide_up(v.out, divide_up(v.out, kOutputs));
}

// The depth is cut into blocks of channels by the shape alone: it decides the order of sums.
template <class S>
void plan_forward(const Conv& v, int threads, ConvPlan& p) {
  using A = Accumulator<S>;
  p.depth_block = v.in <= kFewInputs ? v.in : larger(1, kChain / v.taps());
  p.depth_chunks = divide_up(v.in, p.depth_block);
  cut_planes(v, kColumns, p, [&] {
    const Planes planes(v, p.row_block, p.column_block);
    return p.depth_block * channel_bytes<A>(v, p) <= kPlaneBytes &&
           outputs_at_once(v) * planes.outputs * int64_t(sizeof(A)) <= kSumBytes;
  });
  const int64_t wanted = wanted_tasks(v, threads);
  while (block_count(v, p) < wanted) {
    if (p.row_block > 1)
      p.row_blocks = cut(v.axis[1].out, divide_up(p.row_block, 2), 1, p.row_block);
    else if (p.column_block > kFewColumns)
      p.column_blocks = cut(v.axis[2].out, divide_up(p.column_block, 2), 1, p.column_block);
    else break;
  }
  set_tasks(v, block_count(v, p), p);
  const Planes planes(v, p.row_block, p.column_block);
  p.prepare_tasks = 1;
  p.shared_bytes = sizeof(A) * size_t(v.in * v.taps() * v.out);
  p.scratch_bytes = Scratch::bytes<A>(p.depth_block * planes.channel + kBeyond<A>) +
                    Scratch::bytes<A>(outputs_at_once(v) * sum_pitch<A>(planes)) +
                    Scratch::bytes<int64_t>(p.depth_block * v.taps());
}

// The weights of some outputs after those of the others, [channel][tap][output].
template <class S>
void prepare_forward(const Conv& v, const ConvPlan&, int64_t, void* shared) {
  using A = Accumulator<S>;
  A* to = static_cast<A*>(shared);
  const int64_t height = outputs_at_once(v), taps = v.taps();
  for (int64_t o = 0; o < v.out; o += height) {
    for (int64_t k = 0; k < v.in * taps; ++k) {
      const S* const from = weight_at<S>(v, 0, o, k / taps, k % taps);
      for (int64_t i = 0; i < smaller(height, v.out - o); ++i) *to++ = widen<A>(from[i * v.w_out]);
    }
  }
}

template <class S>
void run_forward(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  const PlaneBlock b(v, p, task);
  const Planes most(v, p.row_block, p.column_block), planes(v, b.rows, b.columns);
  const int64_t height = outputs_at_once(v), taps = v.taps(), pitch = sum_pitch<A>(planes);
  Scratch scratch(memory);
  A* const x = scratch.take<A>(p.depth_block * most.channel + kBeyond<A>);
  A* const sums = scratch.take<A>(height * sum_pitch<A>(most));
  int64_t* const offsets = scratch.take<int64_t>(p.depth_block * taps);
  for (int64_t k = 0; k < p.depth_block * taps; ++k) {
    offsets[k] = planes.offset(v, k / taps, TapPlace(v, k % taps));
  }
  for (int64_t i = 0; i < kBeyond<A>; ++i) x[p.depth_block * planes.channel + i] = A(0);
  const S* const image = static_cast<const S*>(v.x) + b.batch * v.x_batch;
  S* const y = static_cast<S*>(v.y) + b.y_offset(v);
  const A* w = static_cast<const A*>(shared);
  // Where few products make a result, it is not worth keeping elsewhere.
  const bool direct = kInPlace<S> && v.in * taps <= kChain && p.depth_chunks == 1 &&
                      v.axis[2].y_stride == 1 && b.columns >= kTileColumns<A>;
  for (int64_t o = 0; o < v.out; o += height) {
    const int64_t outputs = smaller(height, v.out - o);
    A bias[kOutputs];
    for (int64_t i = 0; i < outputs; ++i) {
      bias[i] = v.bias ? widen<A>(static_cast<const S*>(v.bias)[o + i]) : A(0);
    }
    if (direct) {
      for (int64_t i = 0; o == 0 && i < v.in; ++i) {
        copy_channel(v, planes, b, image + i * v.x_channel, x + i * planes.channel);
      }
      for (int64_t i = 0; i < b.rows; ++i) {
        S* const row = y + o * v.y_channel + i * v.axis[1].y_stride;
        kApplyTaps<A>[outputs - 1](x + i* planes.pitch, offsets, v.in* taps, w, bias, b.columns,
                                   reinterpret_cast<A*>(row), v.y_channel);
      }
      w += v.in * taps * outputs;
      continue;
    }
    for (int64_t i = 0; i < outputs; ++i) {
      for (int64_t j = 0; j < pitch; ++j) sums[i * pitch + j] = bias[i];
    }
    for (int64_t c = 0; c < v.in; c += p.depth_block) {
      const int64_t channels = smaller(p.depth_block, v.in - c), depth = channels * taps;
      for (int64_t i = 0; (o == 0 || p.depth_chunks > 1) && i < channels; ++i) {
        copy_channel(v, planes, b, image + (c + i) * v.x_channel, x + i * planes.channel);
      }
      const int64_t piece = divide_up(depth, divide_up(depth, kChain));
      for (int64_t k = 0; k < depth; k += piece) {
        const int64_t count = smaller(piece, depth - k);
        kAddTaps<A>[outputs - 1](x, offsets + k, count, w, planes.outputs, sums, pitch);
        w += count * outputs;
      }
    }
    for (int64_t i = 0; i < outputs * b.rows; ++i) {
      const int64_t channel = i / b.rows, row = i % b.rows;
      store_row(sums + channel * pitch + row * planes.pitch, b.columns,
                y + (o + channel) * v.y_channel + row * v.axis[1].y_stride, v.axis[2].y_stride);
    }
  }
}

// ---- the derivative by the weights

constexpr int64_t kBlockPixels = 256;
constexpr int64_t kChainColumns = 128;
constexpr int64_t kMostChunks = 16, kMostSums = 1 << 20;
constexpr int kRows = 6;  // taps at once

// sums[i][j] += the sum over a block's outputs of x[offsets[i] + output] * y[output][j].
template <class A, int R, int V>
void add_outputs(const A* x, const int64_t* offsets, int64_t x_row, int64_t rows, int64_t columns,
                 const A* y, A* sums, int64_t pitch) {
  const int64_t chain = larger(1, kChain / columns);  // rows of a partial sum
  for (int64_t r = 0; r < rows;) {
    Vector<A> sum[R][V] = {};
    for (const int64_t end = smaller(rows, r + chain); r < end; ++r, x += x_row) {
      const A* from[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) from[i] = x + offsets[i];
      for (int64_t q = 0; q < columns; ++q, y += kTileColumns<A>) {
        Vector<A> row[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) {
          row[v] = load(y + v * kLanes<A>);
          keep_in_register<A>(row[v]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          const A seen = from[i][q];
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(seen, row[v], sum[i][v]);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        A* const to = sums + i * pitch + v * kLanes<A>;
        store(to, load(to) + sum[i][v]);
      }
    }
  }
}
template <class A>
using AddOutputs = decltype(&add_outputs<A, 1, 1>);
template <class A, int V>
constexpr AddOutputs<A> kAddOutputs[kRows] = {add_outputs<A, 1, V>, add_outputs<A, 2, V>,
                                              add_outputs<A, 3, V>, add_outputs<A, 4, V>,
                                              add_outputs<A, 5, V>, add_outputs<A, 6, V>};

// Chunks of blocks, by the shape alone, have sums of their own: [tap][channel][output].
template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  cut_planes(v, kChainColumns, p, [&] {
    return v.in * channel_bytes<A>(v, p) <= kPlaneBytes &&
           p.row_block * p.column_block <= kBlockPixels;
  });
  const int64_t blocks = block_count(v, p);
  const int64_t count = v.in * v.taps() * round_up(v.out, kTileColumns<A>);
  const int64_t most = smaller(kMostChunks, larger(1, kMostSums / count));
  p.depth_chunks = cut(blocks, divide_up(blocks, most), 1, p.depth_block);
  set_tasks(v, p.depth_chunks, p);
  p.shared_bytes = sizeof(A) * size_t(p.depth_chunks * count);
  p.scratch_bytes = Scratch::bytes<A>(v.in * Planes(v, p.row_block, p.column_block).channel) +
                    Scratch::bytes<A>((p.row_block * p.column_block + kLanes<A>)*kTileColumns<A>) +
                    Scratch::bytes<int64_t>(v.in * v.taps());
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t depth = v.in * v.taps(), pitch = round_up(v.out, width);
  Scratch scratch(memory);
  A* const x = scratch.take<A>(v.in * Planes(v, p.row_block, p.column_block).channel);
  A* const gradient = scratch.take<A>((p.row_block * p.column_block + kLanes<A>)*width);
  int64_t* const offsets = scratch.take<int64_t>(depth);
  A* const sums = static_cast<A*>(shared) + task * depth * pitch;
  for (int64_t i = 0; i < depth * pitch; ++i) sums[i] = A(0);
  const int64_t height = divide_up(depth, divide_up(depth, kRows));
  const int64_t end = smaller(block_count(v, p), (task + 1) * p.depth_block);
  for (int64_t number = task * p.depth_block; number < end; ++number) {
    const PlaneBlock b(v, p, number);
    const Planes planes(v, b.rows, b.columns);
    const S* const image = static_cast<const S*>(v.x) + b.batch * v.x_batch;
    for (int64_t c = 0; c < v.in; ++c) {
      copy_channel(v, planes, b, image + c * v.x_channel, x + c * planes.channel);
    }
    for (int64_t k = 0; k < depth; ++k) {
      offsets[k] = planes.offset(v, k % v.in, TapPlace(v, k / v.in));
    }
    for (int64_t j = 0; j < v.out; j += width) {
      const S* const y = static_cast<const S*>(v.y) + b.y_offset(v) + j * v.y_channel;
      for (int64_t r = 0; r < b.rows; ++r) {
        transpose_panel(y + r * v.axis[1].y_stride, v.axis[2].y_stride, v.y_channel, b.columns,
                        smaller(width, v.out - j), gradient + r * b.columns * width);
      }
      const auto* const add = v.out - j > kLanes<A> ? kAddOutputs<A, 2> : kAddOutputs<A, 1>;
      for (int64_t k = 0; k < depth; k += height) {
        add[smaller(height, depth - k) - 1](x, offsets + k, planes.pitch, b.rows, b.columns,
                                            gradient, sums + k * pitch + j, pitch);
      }
    }
  }
}

// Adds the sums of the chunks, in order.
template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  const int64_t pitch = round_up(v.out, kTileColumns<A>), count = v.in * v.taps() * pitch;
  A* const sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
  }
  store_weights<S>(v, sums, {v.in * pitch, pitch}, 0, 0, v.taps(), 0, v.in, 0, v.out);
}

struct Table : ConvTable {
  explicit constexpr Table(bool gradient) : ConvTable{} {
    if constexpr (kLaneBytes <= 32) {
#define X(e, t, name, c)                                                                     \
  if constexpr (c == 2 && sizeof(t) > 1) {                                                   \
    if (gradient) of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_weight<t>};     \
    else of[int(DType::e)] = {plan_forward<t>, run_forward<t>, nullptr, prepare_forward<t>}; \
  }
      FACULA_DTYPES(X)
#undef X
    }
  }
};
constexpr Table forward_table(false), weight_table(true);

}  // namespace

const ConvTable* const conv_few_planes_table = &forward_table;
const ConvTable* const conv_few_planes_weight_table = &weight_table;

}  // namespace facula::FACULA_ISA
