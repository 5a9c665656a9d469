// Convolutions of images with few input channels that lie by pixels (NHWC), like those of photos:
// what a pixel sees through one row of taps is contiguous, so register tiles read it where it lies,
// in a copy of some input rows with their padding. The derivatives, too:
//   by the weights: the same rows, with pixels as the depth of the product
//   by the input:   each output pixel's gradient times all weights, added to what the pixel saw
#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBandPixels = 512;  // outputs that share a copy of the input
constexpr int64_t kMostChunks = 16;
constexpr int64_t kMostSums = 1 << 20;
constexpr int64_t kSumBytes = 512 << 10;

// Elements that a pixel sees through one row of taps.
FACULA_INLINE int64_t tap_row(const Conv& v) {
  return v.axis[2].taps * v.in;
}
template <class A>
FACULA_INLINE int64_t panels_width(int64_t columns) {
  return round_up(columns, kTileColumns<A>);
}

// Input rows with their padding, of whole output rows.
struct Band {
  explicit Band(const Conv& v)
      : pitch(((v.axis[2].out - 1) * v.axis[2].step + v.axis[2].taps) * v.in),
        step(v.axis[1].step * pitch),
        rows(smaller(v.axis[1].out, larger(1, kBandPixels / larger(1, v.axis[2].out)))) {}
  int64_t pitch, step;  // between input rows, and between those of neighbouring output rows
  int64_t rows;         // of the output
  int64_t elements(const Conv& v) const {
    return ((rows - 1) * v.axis[1].step + (v.axis[1].taps - 1) * v.axis[1].spread + 1) * pitch;
  }
};

// The input of output rows [row, row + rows) of one image.
template <class S, class A>
void copy_band(const Conv& v, const Band& band, const S* x, int64_t row, int64_t rows, A* to) {
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const int64_t low = larger(0, -w.start * v.in);
  const int64_t high = larger(low, smaller(band.pitch, (w.in - w.start) * v.in));
  const int64_t in_rows = (rows - 1) * h.step + (h.taps - 1) * h.spread + 1;
  for (int64_t i = 0; i < in_rows; ++i, to += band.pitch) {
    const int64_t y = row * h.step + h.start + i;
    const bool inside = y >= 0 && y < h.in && low < band.pitch;
    copy_span(x + (inside ? y * h.x_stride + w.start * v.in : 0), 1, inside ? low : 0,
              inside ? high : 0, band.pitch, to);
  }
}

// ---- forward

template <class S>
void plan_forward(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  const Band band(v);
  p.row_block = band.rows;
  p.row_blocks = divide_up(v.axis[1].out, band.rows);
  set_tasks(v, v.batch * p.row_blocks, p);
  p.prepare_tasks = panels_width<A>(v.out) / kTileColumns<A>;
  p.shared_bytes = Scratch::bytes<A>((v.in * v.taps() + 1) * panels_width<A>(v.out));
  p.scratch_bytes =
      Scratch::bytes<A>(band.elements(v)) + Scratch::bytes<A>(kTileRows * kTileColumns<A>);
}

// A panel of weights, and the bias as its last row.
template <class S>
void prepare_forward(const Conv& v, const ConvPlan&, int64_t task, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t j = task * width, depth = v.in * v.taps(), count = smaller(width, v.out - j);
  A* const panel = static_cast<A*>(shared) + j * (depth + 1);
  pack_weight_panel(v, static_cast<const S*>(v.w) + j * v.w_out, 0, depth, count, panel);
  for (int64_t i = 0; i < width; ++i) {
    panel[depth * width + i] =
        v.bias && i < count ? widen<A>(static_cast<const S*>(v.bias)[j + i]) : A(0);
  }
}

template <class S>
void run_forward(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const Band band(v);
  Scratch scratch(memory);
  A* const x = scratch.take<A>(band.elements(v));
  A* const sums = scratch.take<A>(kTileRows * width);
  const int64_t n = task / p.row_blocks, row = task % p.row_blocks * p.row_block;
  const int64_t rows = smaller(p.row_block, h.out - row), depth = v.in * v.taps();
  copy_band(v, band, static_cast<const S*>(v.x) + n * v.x_batch, row, rows, x);
  S* const y = static_cast<S*>(v.y) + n * v.y_batch + row * h.y_stride;
  const TileDepth k(tap_row(v), h.taps, h.spread * band.pitch, tap_row(v) * width);
  const int64_t tile_rows = divide_up(w.out, divide_up(w.out, kTileRows));
  for (int64_t j = 0; j < v.out; j += width) {
    const int64_t columns = smaller(width, v.out - j);
    const int vectors = columns > lanes ? 2 : 1;
    const bool direct = kInPlace<S> && columns == vectors * lanes;
    const A* const b = static_cast<const A*>(shared) + j * (depth + 1);
    const A* const bias = v.bias ? b + depth * width : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t q = 0; q < w.out; q += tile_rows) {
        const int64_t height = smaller(tile_rows, w.out - q);
        const A* const a = x + i * band.step + q * w.step * v.in;
        S* const out = y + i * h.y_stride + q * w.y_stride + j;
        conv_tile<A>(vectors, height)(k, a, w.step * v.in, 1, b, width,
                                      direct ? reinterpret_cast<A*>(out) : sums,
                                      direct ? w.y_stride : width, bias, 0);
        for (int64_t r = 0; !direct && r < height; ++r) {
          store_row(sums + r * width, columns, out + r * w.y_stride, 1);
        }
      }
    }
  }
}

// ---- the derivative by the weights

// Chunks of output rows of the whole batch, by the shape alone, have sums of their own.
template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  const Band band(v);
  const int64_t rows = v.batch * v.axis[1].out;
  const int64_t count = v.in * v.taps() * panels_width<A>(v.out);
  const int64_t most = smaller(kMostChunks, larger(1, kMostSums / count));
  p.depth_chunks = cut(rows, larger(band.rows, divide_up(rows, most)), 1, p.depth_block);
  set_tasks(v, p.depth_chunks, p);
  p.shared_bytes = sizeof(A) * size_t(p.depth_chunks * count);
  p.scratch_bytes = Scratch::bytes<A>(band.elements(v)) +
                    Scratch::bytes<A>(band.rows * v.axis[2].out * kTileColumns<A>);
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const Band band(v);
  Scratch scratch(memory);
  A* const x = scratch.take<A>(band.elements(v));
  A* const copy = scratch.take<A>(band.rows * w.out * width);
  const int64_t pitch = panels_width<A>(v.out), count = v.in * v.taps() * pitch;
  const int64_t seen = tap_row(v), tile_rows = divide_up(seen, divide_up(seen, kTileRows));
  A* const sums = static_cast<A*>(shared) + task * count;
  for (int64_t i = 0; i < count; ++i) sums[i] = A(0);
  const int64_t end = smaller(v.batch * h.out, (task + 1) * p.depth_block);
  int64_t rows = 0;
  for (int64_t first = task * p.depth_block; first < end; first += rows) {
    const int64_t n = first / h.out, row = first % h.out;
    rows = smaller(smaller(band.rows, h.out - row), end - first);
    copy_band(v, band, static_cast<const S*>(v.x) + n * v.x_batch, row, rows, x);
    for (int64_t j = 0; j < v.out; j += width) {
      const S* const y = static_cast<const S*>(v.y) + n * v.y_batch + row * h.y_stride + j;
      const int64_t columns = smaller(width, v.out - j);
      const int vectors = columns > lanes ? 2 : 1;
      const bool direct = kInPlace<S> && columns == vectors * lanes;
      for (int64_t i = 0; !direct && i < rows * w.out; ++i) {
        copy_span(y + i / w.out * h.y_stride + i % w.out * w.y_stride, 1, 0, columns, width,
                  copy + i * width);
      }
      const A* const b = direct ? reinterpret_cast<const A*>(y) : copy;
      const TileDepth k(w.out, rows, band.step, direct ? h.y_stride : w.out * width);
      for (int64_t i = 0; i < h.taps * seen;) {
        const int64_t within = i % seen, height = smaller(tile_rows, seen - within);
        A* const sum = sums + i * pitch + j;
        conv_tile<A>(vectors, height)(k, x + i / seen * h.spread * band.pitch + within, 1,
                                      w.step * v.in, b, direct ? w.y_stride : width, sum, pitch,
                                      sum, pitch);
        i += height;
      }
    }
  }
}

template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  const int64_t pitch = panels_width<A>(v.out), count = v.in * v.taps() * pitch;
  A* const sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
  }
  store_weights<S>(v, sums, {v.in * pitch, pitch}, 0, 0, v.taps(), 0, v.in, 0, v.out);
}

// ---- the derivative by the input: a transposed problem, whose x is the gradient and whose y has
// few channels; its axes are those of the forward convolution

// Sums of some rows of y, with columns before and behind it that taps reach.
struct Sums {
  explicit Sums(const Conv& v)
      : before(larger(0, -v.axis[2].start)),
        pitch((before + larger(v.axis[2].in, (v.axis[2].out - 1) * v.axis[2].step +
                                                 v.axis[2].start + v.axis[2].taps)) *
              v.out) {}
  int64_t before, pitch;
};

template <class S>
void plan_input(const Conv& v, int threads, ConvPlan& p) {
  using A = Accumulator<S>;
  const int64_t rows = v.axis[1].in, width = panels_width<A>(v.out * v.taps()),
                pitch = Sums(v).pitch;
  p.row_block = larger(1, smaller(rows, kSumBytes / int64_t(sizeof(A)) / pitch));
  while (v.batch * divide_up(rows, p.row_block) < wanted_tasks(v, threads) &&
         p.row_block > 4 * v.axis[1].taps) {
    p.row_block = divide_up(p.row_block, 2);
  }
  p.row_blocks = divide_up(rows, p.row_block);
  set_tasks(v, v.batch * p.row_blocks, p);
  p.prepare_tasks = 1;
  p.shared_bytes = Scratch::bytes<A>(v.in * width);
  p.scratch_bytes = Scratch::bytes<A>(p.row_block * pitch + kLanes<A>) +
                    Scratch::bytes<A>(kTileRows * width + kLanes<A>) +
                    Scratch::bytes<A>(kTileRows * v.in);
}

// Panels of columns by tap and channel of y, with a row for each channel of x.
template <class S>
void prepare_input(const Conv& v, const ConvPlan&, int64_t, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  A* const to = static_cast<A*>(shared);
  for (int64_t column = 0; column < panels_width<A>(v.out * v.taps()); ++column) {
    const bool inside = column < v.out * v.taps();
    const S* from = weight_at<S>(v, 0, column % v.out, 0, inside ? column / v.out : 0);
    A* out = to + column / width * width * v.in + column % width;
    for (int64_t k = 0; k < v.in; ++k) out[k * width] = inside ? widen<A>(from[k * v.w_in]) : A(0);
  }
}

template <class S>
void run_input(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const Sums band(v);
  const int64_t columns = v.out * v.taps(), products_pitch = panels_width<A>(columns);
  const int64_t piece = w.taps * v.out;  // of y that a row of taps reaches
  Scratch scratch(memory);
  A* const sums = scratch.take<A>(p.row_block * band.pitch + lanes);
  A* const products = scratch.take<A>(kTileRows * products_pitch + lanes);
  A* const left = scratch.take<A>(kTileRows * v.in);
  const int64_t n = task / p.row_blocks, row = task % p.row_blocks * p.row_block;
  const int64_t rows = smaller(p.row_block, h.in - row);
  const S* const x = static_cast<const S*>(v.x) + n * v.x_batch;
  S* const y = static_cast<S*>(v.y) + n * v.y_batch + row * h.y_stride;
  for (int64_t i = 0; i < rows * band.pitch; ++i) sums[i] = A(0);

  for (int64_t o = 0; o < h.out; ++o) {
    const int64_t top = o * h.step + h.start - row;  // where the first row of taps meets the sums
    int64_t low = 0, high = h.taps;
    while (low < high && top + low * h.spread < 0) ++low;
    while (low < high && top + (high - 1) * h.spread >= rows) --high;
    if (low == high) continue;
    const int64_t first_panel = low * piece / width * width;
    for (int64_t q = 0; q < w.out; q += kTileRows) {
      const int64_t height = smaller(kTileRows, w.out - q);
      const S* const from = x + o * h.x_stride + q * w.x_stride;
      for (int64_t r = 0; !kInPlace<S> && r < height; ++r) {
        copy_span(from + r * w.x_stride, 1, 0, v.in, v.in, left + r * v.in);
      }
      for (int64_t j = first_panel; j < high * piece; j += width) {
        conv_tile<A>(columns - j > lanes ? 2 : 1, height)(
            v.in, kInPlace<S> ? reinterpret_cast<const A*>(from) : left,
            kInPlace<S> ? w.x_stride : v.in, 1, static_cast<const A*>(shared) + j * v.in, width,
            products + j, products_pitch, nullptr, 0);
      }
      for (int64_t r = 0; r < height; ++r) {
        const int64_t column = (q + r) * w.step + w.start + band.before;
        A* to = sums + (top + low * h.spread) * band.pitch + column * v.out;
        const A* add = products + r * products_pitch + low * piece;
        for (int64_t t = low; t < high; ++t, add += piece, to += h.spread * band.pitch) {
          int64_t i = 0;
          for (; i + lanes <= piece; i += lanes) store(to + i, load(to + i) + load(add + i));
          if (i < piece) store_first(to + i, piece - i, load(to + i) + load(add + i));
        }
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const A* from = sums + i * band.pitch + band.before * v.out;
    S* to = y + i * h.y_stride;
    if (v.bias) {
      const S* bias = static_cast<const S*>(v.bias);
      for (int64_t c = 0; c < w.in * v.out; ++c) to[c] = S(from[c] + widen<A>(bias[c % v.out]));
    } else {
      store_row(from, w.in * v.out, to, 1);
    }
  }
}

struct ForwardTable : ConvTable {
  constexpr ForwardTable() : ConvTable{} {
#define X(e, t, name, c)                 \
  if constexpr (c == 2 && sizeof(t) > 1) \
    of[int(DType::e)] = {plan_forward<t>, run_forward<t>, nullptr, prepare_forward<t>};
    FACULA_DTYPES(X)
#undef X
  }
};
struct WeightTable : ConvTable {
  constexpr WeightTable() : ConvTable{} {
#define X(e, t, name, c)                 \
  if constexpr (c == 2 && sizeof(t) > 1) \
    of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_weight<t>};
    FACULA_DTYPES(X)
#undef X
  }
};
struct InputTable : ConvTable {
  constexpr InputTable() : ConvTable{} {
#define X(e, t, name, c)                 \
  if constexpr (c == 2 && sizeof(t) > 1) \
    of[int(DType::e)] = {plan_input<t>, run_input<t>, nullptr, prepare_input<t>};
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr ForwardTable forward_table;
constexpr WeightTable weight_table;
constexpr InputTable input_table;

}  // namespace

const ConvTable* const conv_few_channels_table = &forward_table;
const ConvTable* const conv_few_channels_weight_table = &weight_table;
const ConvTable* const conv_few_channels_input_table = &input_table;

}  // namespace facula::FACULA_ISA
