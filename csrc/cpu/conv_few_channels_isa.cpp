// Convolutions of images with few input channels, like those of photos: what a pixel sees through
// one row of taps is contiguous, of all channels where they lie by pixels (NHWC), or of each, so
// register tiles read it where it lies, in a copy of some input rows with their padding. The
// derivatives, too:
//   by the weights: the same rows, with pixels as the depth of the product
//   by the input:   each output pixel's gradient times all weights, added to what the pixel saw
//                   (images by pixels only)
#include "cpu/conv_weight_sums.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBandPixels = 512;  // outputs that share a copy of the input
constexpr int64_t kMostChunks = 16;
constexpr int64_t kMostSums = 1 << 20;
constexpr int64_t kSumBytes = 512 << 10;

FACULA_INLINE bool has_planes(const Conv& v) {
  return v.in > 1 && v.x_channel != 1;
}
// Neighbours that a pixel sees through one row of taps.
FACULA_INLINE int64_t tap_row(const Conv& v) {
  return v.axis[2].taps * (has_planes(v) ? 1 : v.in);
}
template <class A>
FACULA_INLINE int64_t panels_width(int64_t columns) {
  return round_up(columns, kTileColumns<A>);
}

// Input rows with their padding, of whole output rows. Rows of several planes lie one after the
// other.
struct Band {
  explicit Band(const Conv& v)
      : planes(has_planes(v) ? v.in : 1),
        pixel(v.in / planes),
        pitch(((v.axis[2].out - 1) * v.axis[2].step + v.axis[2].taps) * pixel),
        step(v.axis[1].step * planes * pitch),
        rows(smaller(v.axis[1].out, larger(1, kBandPixels / larger(1, v.axis[2].out)))) {}
  int64_t planes, pixel;  // rows of an input row, and elements of a pixel in each
  int64_t pitch, step;    // between those rows, and between those of neighbouring output rows
  int64_t rows;           // of the output
  int64_t elements(const Conv& v) const {
    return ((rows - 1) * v.axis[1].step + (v.axis[1].taps - 1) * v.axis[1].spread + 1) * planes *
           pitch;
  }
};

// The input of output rows [row, row + rows) of one image.
template <class S, class A>
void copy_band(const Conv& v, const Band& band, const S* x, int64_t row, int64_t rows, A* to) {
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const int64_t low = larger(0, -w.start * band.pixel);
  const int64_t high = larger(low, smaller(band.pitch, (w.in - w.start) * band.pixel));
  const int64_t in_rows = (rows - 1) * h.step + (h.taps - 1) * h.spread + 1;
  for (int64_t i = 0; i < in_rows * band.planes; ++i, to += band.pitch) {
    const int64_t y = row * h.step + h.start + i / band.planes, plane = i % band.planes;
    const bool inside = y >= 0 && y < h.in && low < band.pitch;
    const int64_t offset = plane * v.x_channel + y * h.x_stride + w.start * band.pixel;
    copy_span(x + (inside ? offset : 0), 1, inside ? low : 0, inside ? high : 0, band.pitch, to);
  }
}

// ---- forward

constexpr int64_t kTurned = 8 * kTileRows;  // pixels that are turned into planes at once

// A block of columns of the problem.
template <class S>
Conv columns_of(const Conv& v, const ConvPlan& p, int64_t block) {
  Conv part = v;
  ConvAxis& w = part.axis[2];
  const int64_t first = block * p.column_block;
  w.out = smaller(p.column_block, w.out - first);
  w.start += first * w.step;
  part.y = static_cast<S*>(v.y) + first * w.y_stride;
  return part;
}

template <class S>
void plan_forward(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  p.column_blocks = cut(v.axis[2].out, kBandPixels, kTileRows, p.column_block);
  const Conv part = columns_of<S>(v, p, 0);
  const Band band(part);
  p.row_block = band.rows;
  p.row_blocks = divide_up(v.axis[1].out, band.rows);
  set_tasks(v, v.batch * p.row_blocks * p.column_blocks, p);
  p.prepare_tasks = panels_width<A>(v.out) / kTileColumns<A>;
  p.shared_bytes = Scratch::bytes<A>((v.in * v.taps() + 1) * panels_width<A>(v.out));
  p.scratch_bytes =
      Scratch::bytes<A>(band.elements(part)) + Scratch::bytes<A>(kTurned * kTileColumns<A>);
}

// A panel of weights in the order in which tiles see them, and the bias as its last row.
template <class S>
void prepare_forward(const Conv& v, const ConvPlan&, int64_t task, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t j = task * width, depth = v.in * v.taps(), count = smaller(width, v.out - j);
  A* const panel = static_cast<A*>(shared) + j * (depth + 1);
  const S* const weights = static_cast<const S*>(v.w) + j * v.w_out;
  if (has_planes(v)) {
    const ConvAxis &h = v.axis[1], &w = v.axis[2];
    for (int64_t i = 0; i < h.taps * v.in; ++i) {
      transpose_panel(weights + i / v.in * h.w_stride + i % v.in * v.w_in, w.w_stride, v.w_out,
                      w.taps, count, panel + i * w.taps * width);
    }
  } else {
    pack_weight_panel(v, weights, 0, depth, count, panel);
  }
  for (int64_t i = 0; i < width; ++i) {
    panel[depth * width + i] =
        v.bias && i < count ? widen<A>(static_cast<const S*>(v.bias)[j + i]) : A(0);
  }
}

template <class S>
void run_forward(const Conv& whole, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const Conv v = columns_of<S>(whole, p, task % p.column_blocks);
  task /= p.column_blocks;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const Band band(v);
  const int64_t n = task / p.row_blocks, row = task % p.row_blocks * p.row_block;
  const int64_t rows = smaller(p.row_block, h.out - row), depth = v.in * v.taps();
  Scratch scratch(memory);
  A* const x = scratch.take<A>(band.elements(v));
  A* const sums = scratch.take<A>(kTurned * width);
  copy_band(v, band, static_cast<const S*>(v.x) + n * v.x_batch, row, rows, x);
  S* const y = static_cast<S*>(v.y) + n * v.y_batch + row * h.y_stride;
  const TileDepth k(tap_row(v), h.taps * band.planes, h.spread * band.pitch, tap_row(v) * width);
  const bool turn = v.y_channel != 1;
  const int64_t at_once = smaller(w.out, turn ? kTurned : kTileRows);
  for (int64_t j = 0; j < v.out; j += width) {
    const int64_t columns = smaller(width, v.out - j);
    const int vectors = columns > lanes ? 2 : 1;
    const bool direct = kInPlace<S> && columns == vectors * lanes && !turn;
    const A* const b = static_cast<const A*>(shared) + j * (depth + 1);
    const A* const bias = v.bias ? b + depth * width : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
      S* const out = y + i * h.y_stride + j * v.y_channel;
      int64_t block;
      cut(w.out, at_once, 1, block);
      for (int64_t q = 0; q < w.out; q += block) {
        const int64_t pixels = smaller(block, w.out - q);
        const int64_t tile_rows = divide_up(pixels, divide_up(pixels, kTileRows));
        S* const to = out + q * w.y_stride;
        for (int64_t r = 0; r < pixels; r += tile_rows) {
          conv_tile<A>(vectors, smaller(tile_rows, pixels - r))(
              k, x + i * band.step + (q + r) * w.step * band.pixel, w.step * band.pixel, 1, b,
              width, direct ? reinterpret_cast<A*>(to) : sums + r * width,
              direct ? w.y_stride : width, bias, 0);
        }
        if (turn) store_turned(sums, width, pixels, columns, to, v.y_channel);
        for (int64_t r = 0; !direct && !turn && r < pixels; ++r) {
          store_row(sums + r * width, columns, to + r * w.y_stride, 1);
        }
      }
    }
  }
}

// ---- the derivative by the weights

// Chunks of output rows of the whole batch, by the shape alone, have sums of their own. Wide rows
// are cut into blocks of columns, which count as images.
template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  p.column_blocks = cut(v.axis[2].out, kBandPixels, 1, p.column_block);
  const Conv part = columns_of<S>(v, p, 0);
  const Band band(part);
  const int64_t rows = v.batch * p.column_blocks * v.axis[1].out;
  const int64_t count = v.in * v.taps() * panels_width<A>(v.out);
  const int64_t most = smaller(kMostChunks, larger(1, kMostSums / count));
  p.depth_chunks = cut(rows, larger(band.rows, divide_up(rows, most)), 1, p.depth_block);
  set_tasks(v, p.depth_chunks, p);
  p.shared_bytes = sizeof(A) * size_t(p.depth_chunks * count);
  p.scratch_bytes = Scratch::bytes<A>(band.elements(part)) +
                    Scratch::bytes<A>(band.rows * p.column_block * kTileColumns<A>);
}

// The gradient of `columns` channels: [row][pixel][channel].
template <class S, class A>
void copy_gradient(const Conv& v, const S* y, int64_t rows, int64_t columns, A* to) {
  constexpr int64_t width = kTileColumns<A>;
  const ConvAxis& w = v.axis[2];
  for (int64_t i = 0; i < rows; ++i, y += v.axis[1].y_stride, to += w.out * width) {
    if (v.y_channel != 1) {
      transpose_panel(y, w.y_stride, v.y_channel, w.out, columns, to);
      continue;
    }
    for (int64_t q = 0; q < w.out; ++q) {
      copy_span(y + q * w.y_stride, 1, 0, columns, width, to + q * width);
    }
  }
}

template <class S>
void run_weight(const Conv& whole, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const Conv widest = columns_of<S>(whole, p, 0);
  const Band most(widest);
  Scratch scratch(memory);
  A* const x = scratch.take<A>(most.elements(widest));
  A* const copy = scratch.take<A>(most.rows * p.column_block * width);
  const int64_t pitch = panels_width<A>(whole.out), count = whole.in * whole.taps() * pitch;
  const int64_t seen = tap_row(whole), tile_rows = divide_up(seen, divide_up(seen, kTileRows));
  A* const sums = static_cast<A*>(shared) + task * count;
  for (int64_t i = 0; i < count; ++i) sums[i] = A(0);
  const int64_t all = whole.axis[1].out, blocks = p.column_blocks;
  const int64_t end = smaller(whole.batch * blocks * all, (task + 1) * p.depth_block);
  int64_t rows = 0;
  for (int64_t first = task * p.depth_block; first < end; first += rows) {
    const int64_t n = first / all / blocks, row = first % all;
    const Conv v = columns_of<S>(whole, p, first / all % blocks);
    const ConvAxis &h = v.axis[1], &w = v.axis[2];
    const Band band(v);
    rows = smaller(smaller(most.rows, all - row), end - first);
    copy_band(v, band, static_cast<const S*>(v.x) + n * v.x_batch, row, rows, x);
    for (int64_t j = 0; j < v.out; j += width) {
      const S* const y =
          static_cast<const S*>(v.y) + n * v.y_batch + row * h.y_stride + j * v.y_channel;
      const int64_t columns = smaller(width, v.out - j);
      const int vectors = columns > lanes ? 2 : 1;
      const bool direct = kInPlace<S> && columns == vectors * lanes && v.y_channel == 1;
      if (!direct) copy_gradient(v, y, rows, columns, copy);
      const A* const b = direct ? reinterpret_cast<const A*>(y) : copy;
      const TileDepth k(w.out, rows, band.step, direct ? h.y_stride : w.out * width);
      for (int64_t i = 0; i < h.taps * band.planes * seen;) {
        const int64_t within = i % seen, height = smaller(tile_rows, seen - within);
        A* const sum = sums + i * pitch + j;
        conv_tile<A>(vectors, height)(k, x + i / seen * h.spread * band.pitch + within, 1,
                                      w.step * band.pixel, b, direct ? w.y_stride : width, sum,
                                      pitch, sum, pitch);
        i += height;
      }
    }
  }
}

template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  const int64_t pitch = panels_width<A>(v.out), count = v.in * v.taps() * pitch;
  A* sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
  }
  if (!has_planes(v))
    return store_weights<S>(v, sums, {v.in * pitch, pitch}, 0, 0, v.taps(), 0, v.in, 0, v.out);
  const int64_t taps = v.axis[2].taps;
  for (int64_t i = 0; i < v.axis[1].taps; ++i, sums += v.in * taps * pitch) {
    store_weights<S>(v, sums, {pitch, taps * pitch}, 0, i * taps, taps, 0, v.in, 0, v.out);
  }
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
