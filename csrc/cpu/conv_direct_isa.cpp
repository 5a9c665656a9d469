// Convolutions, forward and transposed, as products whose left matrix is read where it lies: rows
// are neighbouring pixels of an output row, which see neighbouring pixels of the input through each
// tap, vectors run along output channels. The part of the input that a task needs is copied once,
// with zeros for the padding and channels side by side; no matrix of what pixels see is made.
// A transposed convolution with steps is computed by remainders: output columns with the same
// remainder see the same taps.
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kWide = kLanes<float>, kPanel = kTileColumns<float>;
constexpr int64_t kSpanDepth = 1152;      // products of a tile whose weights stay in the cache
constexpr int64_t kBoxFloats = 64 << 10;  // of input, and of results, that a task holds
constexpr int64_t kColumns = 512;         // output columns of a task, at most
constexpr int64_t kChain = 96;            // products in one partial sum, see conv_tile_isa.cpp

// Channels of one tap: `length` neighbours of a pixel's channels and as many rows of weights.
struct Span {
  int64_t left, right;  // offsets
  int32_t length;
  bool ends_chain;  // the partial sum is complete
};

using Tile = void (*)(const Span*, const Span* end, const float* a, int64_t a_row, const float* b,
                      float* c, int64_t c_row, const float* start, int64_t start_row);

// c[i][j] = start[i][j] + sum over the spans; a null start is zero.
template <int R, int V>
void tile(const Span* span, const Span* end, const float* a, int64_t a_row, const float* b,
          float* c, int64_t c_row, const float* start, int64_t start_row) {
  constexpr int groups = (R + 3) / 4;  // as in conv_tile_isa.cpp
  do {
    Vector<float> sum[R][V] = {};
    bool more = true;
    for (; more; ++span) {
      const float* four[groups];
#pragma GCC unroll 4
      for (int i = 0; i < groups; ++i) four[i] = a + span->left + 4 * i * a_row;
      const float* right = b + span->right;
      for (int32_t p = 0; p < span->length; ++p, right += kPanel) {
        Vector<float> row[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) row[v] = load(right + v * kWide);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
          const float x = four[i / 4][i % 4 * a_row];
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] += x * row[v];
        }
#pragma GCC unroll 4
        for (int i = 0; i < groups; ++i) ++four[i];
      }
      more = !span->ends_chain;
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        if (start) sum[i][v] += load(start + i * start_row + v * kWide);
        store(c + i * c_row + v * kWide, sum[i][v]);
      }
    }
    start = c;
    start_row = c_row;
  } while (span != end);
}

struct TileTable {
  Tile of[2][kTileRows] = {};  // by vectors - 1 and rows - 1
  constexpr TileTable() { fill<1>(); }
  template <int R>
  constexpr void fill() {
    of[0][R - 1] = tile<R, 1>;
    of[1][R - 1] = tile<R, 2>;
    if constexpr (R < kTileRows) fill<R + 1>();
  }
};
constexpr TileTable tiles;

// ---- axes, seen from the output

// Output y meets input (y * step + tap * spread + start) / every through a tap, where that is
// whole.
struct Axis {
  int64_t x_size, y_size, taps, step, spread, start, every;

  Axis(const Conv& v, int i) {
    const ConvAxis& a = v.axis[i];
    taps = a.taps;
    if (v.transposed) x_size = a.out, y_size = a.in, step = 1, every = a.step;
    else x_size = a.in, y_size = a.out, step = a.step, every = 1;
    spread = v.transposed ? -a.spread : a.spread;
    start = v.transposed ? -a.start : a.start;
  }
  bool meets(int64_t y, int64_t tap, int64_t& x) const {
    x = y * step + tap * spread + start;
    if (every == 1) return true;
    if (x % every != 0) return false;
    x /= every;
    return true;
  }
  int64_t reach() const { return (taps - 1) * spread; }
  // The first input and the end of those that `count` outputs from `y` on meet, inside or not.
  int64_t first(int64_t y) const {
    const int64_t at = y * step + start + smaller(reach(), 0);
    return at >= 0 ? divide_up(at, every) : -(-at / every);
  }
  int64_t end(int64_t y, int64_t count) const {
    const int64_t at = (y + count - 1) * step + start + larger(reach(), 0);
    return (at >= 0 ? at / every : -divide_up(-at, every)) + 1;
  }
  int64_t most_inputs(int64_t count) const {
    return ((count - 1) * step + larger(reach(), -reach())) / every + 1;
  }
};

// Pixels of the input or of the result that a task holds, channels side by side.
template <class T>
struct Box {
  T* data;
  int64_t stride[3];
  T* at(int64_t d, int64_t h, int64_t w) const {
    return data + d * stride[0] + h * stride[1] + w * stride[2];
  }
};

int64_t pixel_pitch(int64_t channels) {  // rows of a tile must not share cache sets
  return channels % 256 == 0 ? channels + kWide : channels;
}

int64_t box_floats(const Conv& v, const ConvPlan& p) {
  const Axis d(v, 0), h(v, 1), w(v, 2);
  return pixel_pitch(p.depth_block) * w.most_inputs(p.column_block) *
         smaller(h.x_size, h.most_inputs(p.row_block)) *
         smaller(d.x_size, d.most_inputs(p.tap_block));
}
int64_t sum_floats(const Conv& v, const ConvPlan& p) {
  return p.column_block * p.row_block * p.tap_block * round_up(v.out, kWide);
}

// Blocks of columns, rows (row_block) and slabs (tap_block) of outputs; depth is channels.
template <class S>
void plan_direct(const Conv& v, int threads, ConvPlan& p) {
  const Axis d(v, 0), h(v, 1), w(v, 2);
  const int64_t seen =
      divide_up(d.taps, d.every) * divide_up(h.taps, h.every) * divide_up(w.taps, w.every);
  p.depth_chunks = cut(v.in, larger(kWide, kSpanDepth / seen), kWide, p.depth_block);
  p.depth_block = smaller(p.depth_block, v.in);
  auto fits = [&] { return larger(box_floats(v, p), sum_floats(v, p)) <= kBoxFloats; };
  auto halve = [](const Axis& a, int64_t& blocks, int64_t& block) {
    blocks = cut(a.y_size, divide_up(block, 2), a.every, block);
  };
  p.row_block = p.tap_block = 1;
  p.column_blocks = cut(w.y_size, kColumns, w.every, p.column_block);
  while (!fits() && p.column_block > 2 * kTileRows * w.every) {
    halve(w, p.column_blocks, p.column_block);
  }
  auto grow = [&](const Axis& a, int64_t& blocks, int64_t& block) {
    int64_t most = 1;
    while (block < a.y_size && fits()) most = block, block *= 2;
    if (fits()) most = block;
    blocks = cut(a.y_size, most, 1, block);
  };
  grow(h, p.row_blocks, p.row_block);
  if (p.row_blocks == 1) grow(d, p.tap_blocks, p.tap_block);
  else p.tap_blocks = d.y_size;
  const int64_t images = v.batch * v.groups, wanted = wanted_tasks(v, threads);
  auto tasks = [&] { return images * p.tap_blocks * p.row_blocks * p.column_blocks; };
  while (tasks() < wanted) {
    if (p.tap_block > 1) halve(d, p.tap_blocks, p.tap_block);
    else if (p.row_block > 1) halve(h, p.row_blocks, p.row_block);
    else if (p.column_block > 4 * kTileRows * w.every) halve(w, p.column_blocks, p.column_block);
    else break;
  }
  set_tasks(v, tasks(), p);
  const int64_t panels = divide_up(v.out, kPanel);
  p.prepare_tasks = v.groups * panels * divide_up(v.in, kWide);
  p.shared_bytes = Scratch::bytes<float>(v.groups * panels * v.taps() * v.in * kPanel);
  p.scratch_bytes = Scratch::bytes<float>(box_floats(v, p)) +
                    Scratch::bytes<float>(sum_floats(v, p)) +
                    Scratch::bytes<float>(round_up(v.out, kPanel)) +
                    Scratch::bytes<Span>(v.taps() * (p.depth_block / kChain + 2)) +
                    Scratch::bytes<int64_t>(2 * w.taps);
}

// Weights of a panel of output channels, [tap][channel][output]; a task has kWide channels.
template <class S>
void prepare_direct(const Conv& v, const ConvPlan&, int64_t task, void* shared) {
  const int64_t parts = divide_up(v.in, kWide), panels = divide_up(v.out, kPanel);
  const int64_t first = task % parts * kWide, panel = task / parts % panels;
  const int64_t taps = v.taps(), channels = smaller(kWide, v.in - first);
  const int64_t columns = smaller(kPanel, v.out - panel * kPanel);
  float* to = static_cast<float*>(shared) + (task / parts * taps * v.in + first) * kPanel;
  const S* w = static_cast<const S*>(v.w) + task / parts / panels * v.w_group +
               panel * kPanel * v.w_out + first * v.w_in;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if (taps > 1 && v.w_in != 1 && dense_taps(v)) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; t += 16) {
        for (int64_t j = 0; j < kPanel; j += 16) {
          transpose_16(w + c * v.w_in + j * v.w_out + t, v.w_out, columns - j,
                       smaller(16, taps - t), to + (t * v.in + c) * kPanel + j, v.in * kPanel);
        }
      }
    }
    return;
  }
#endif
  for (int64_t t = 0; t < taps; ++t, to += v.in * kPanel) {
    const TapPlace at(v, t);
    const S* from =
        w + at.d * v.axis[0].w_stride + at.h * v.axis[1].w_stride + at.w * v.axis[2].w_stride;
    if (v.w_out != 1) {
      transpose_panel(from, v.w_in, v.w_out, channels, columns, to);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      copy_span(from + c * v.w_in, 1, 0, columns, kPanel, to + c * kPanel);
    }
  }
}

// `count` neighbours of an input row, `channels` of each.
template <class S>
void copy_pixels(const Conv& v, const S* from, int64_t count, int64_t channels, float* to,
                 int64_t pitch) {
  const int64_t stride = v.axis[2].x_stride;
  if (v.x_channel == 1) {
    for (int64_t i = 0; i < count; ++i) {
      copy_span(from + i * stride, 1, 0, channels, channels, to + i * pitch);
    }
    return;
  }
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if (stride == 1) {
    for (int64_t c = 0; c < channels; c += 16) {
      for (int64_t i = 0; i < count; i += 16) {
        transpose_16<true>(from + c * v.x_channel + i, v.x_channel, smaller(16, channels - c),
                           smaller(16, count - i), to + i * pitch + c, pitch);
      }
    }
    return;
  }
#endif
  for (int64_t c = 0; c < channels; ++c, from += v.x_channel) {
    for (int64_t i = 0; i < count; ++i) to[i * pitch + c] = widen<float>(from[i * stride]);
  }
}

// Adds `length` products to the list, in partial sums of about kChain. `chain` is the length of the
// one that is open.
FACULA_INLINE Span* add_span(Span* end, int64_t left, int64_t right, int64_t length,
                             int64_t& chain) {
  while (length > 0) {
    const int64_t piece = length < kChain + kChain / 2 ? length : kChain;
    if (chain > 0 && end[-1].left + end[-1].length == left &&
        end[-1].right + end[-1].length * kPanel == right) {
      end[-1].length += int32_t(piece);
    } else {
      *end++ = {left, right, int32_t(piece), false};
    }
    chain += piece;
    if (chain >= kChain) chain = 0, end[-1].ends_chain = true;
    left += piece, right += piece * kPanel, length -= piece;
  }
  return end;
}

template <class S>
void run_direct(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  const Axis axis[3] = {Axis(v, 0), Axis(v, 1), Axis(v, 2)};
  const Axis &d = axis[0], &h = axis[1], &w = axis[2];
  Scratch scratch(memory);
  float* const box = scratch.take<float>(box_floats(v, p));
  float* const sums = scratch.take<float>(sum_floats(v, p));
  float* const bias = scratch.take<float>(round_up(v.out, kPanel));
  Span* const spans = scratch.take<Span>(v.taps() * (p.depth_block / kChain + 2));
  int64_t* const tap_of = scratch.take<int64_t>(2 * w.taps);

  int64_t first[3], count[3];  // outputs of the task
  first[2] = task % p.column_blocks * p.column_block;
  count[2] = smaller(p.column_block, w.y_size - first[2]);
  task /= p.column_blocks;
  first[1] = task % p.row_blocks * p.row_block;
  count[1] = smaller(p.row_block, h.y_size - first[1]);
  task /= p.row_blocks;
  first[0] = task % p.tap_blocks * p.tap_block;
  count[0] = smaller(p.tap_block, d.y_size - first[0]);
  task /= p.tap_blocks;
  const int64_t batch = task % v.batch, group = task / v.batch;

  // Inputs that they see; rows and slabs outside are left out, columns are zero.
  int64_t from[3], end[3];
  for (int i = 0; i < 3; ++i) {
    from[i] = axis[i].first(first[i]), end[i] = axis[i].end(first[i], count[i]);
    if (i < 2) from[i] = larger(from[i], 0), end[i] = smaller(end[i], axis[i].x_size);
  }
  const S* const x = static_cast<const S*>(v.x) + batch * v.x_batch + group * v.in * v.x_channel;
  S* const y = static_cast<S*>(v.y) + batch * v.y_batch + group * v.out * v.y_channel +
               first[0] * v.axis[0].y_stride + first[1] * v.axis[1].y_stride +
               first[2] * v.axis[2].y_stride;
  const bool reads_x = kInPlace<S> && v.x_channel == 1 && from[2] >= 0 && end[2] <= w.x_size &&
                       w.step * v.axis[2].x_stride % 512 != 0;
  const bool writes_y = kInPlace<S> && v.y_channel == 1 && v.out % kWide == 0;

  Box<float> result{sums, {}};
  if (writes_y) {
    result.data = reinterpret_cast<float*>(y);
    for (int i = 0; i < 3; ++i) result.stride[i] = v.axis[i].y_stride;
  } else {
    result.stride[2] = round_up(v.out, kWide);
    result.stride[1] = count[2] * result.stride[2];
    result.stride[0] = count[1] * result.stride[1];
  }
  if (v.bias) {
    const S* bias_of = static_cast<const S*>(v.bias) + group * v.out;
    for (int64_t j = 0; j < round_up(v.out, kPanel); ++j) {
      bias[j] = j < v.out ? widen<float>(bias_of[j]) : 0;
    }
  }

  const int64_t panels = divide_up(v.out, kPanel), pitch = pixel_pitch(p.depth_block);
  for (int64_t channel = 0; channel < v.in; channel += p.depth_block) {
    const int64_t channels = smaller(p.depth_block, v.in - channel);
    const S* const seen = x + channel * v.x_channel;
    Box<const float> input{box, {}};
    if (reads_x) {
      input.data = reinterpret_cast<const float*>(seen);
      for (int i = 0; i < 3; ++i) input.stride[i] = v.axis[i].x_stride;
      input.data = input.at(from[0], from[1], from[2]);
    } else {
      input.stride[2] = pitch;
      input.stride[1] = (end[2] - from[2]) * pitch;
      input.stride[0] = (end[1] - from[1]) * input.stride[1];
      const int64_t low = smaller(larger(-from[2], 0), end[2] - from[2]);
      const int64_t high = larger(low, smaller(w.x_size, end[2]) - from[2]);
      for (int64_t i = from[0]; i < end[0]; ++i) {
        for (int64_t j = from[1]; j < end[1]; ++j) {
          float* to = box + (i - from[0]) * input.stride[0] + (j - from[1]) * input.stride[1];
          for (int64_t k = 0; k < low * pitch; ++k) to[k] = 0;
          for (int64_t k = high * pitch; k < input.stride[1]; ++k) to[k] = 0;
          copy_pixels(v,
                      seen + i * v.axis[0].x_stride + j * v.axis[1].x_stride +
                          (from[2] + low) * v.axis[2].x_stride,
                      high - low, channels, to + low * pitch, pitch);
        }
      }
    }
    for (int64_t remainder = 0; remainder < smaller(w.every, count[2]); ++remainder) {
      int64_t w_taps = 0;  // those that these columns see, and where the first one sees them
      for (int64_t tap = 0, at; tap < w.taps; ++tap) {
        if (!w.meets(first[2] + remainder, tap, at)) continue;
        tap_of[2 * w_taps] = tap;
        tap_of[2 * w_taps++ + 1] = at - from[2];
      }
      const int64_t columns = divide_up(count[2] - remainder, w.every);
      const int64_t height = divide_up(columns, divide_up(columns, kTileRows));
      for (int64_t panel = 0; panel < panels; ++panel) {
        const float* const weights =
            static_cast<const float*>(shared) + (group * panels + panel) * v.taps() * v.in * kPanel;
        const int vectors = v.out - panel * kPanel > kWide ? 2 : 1;
        for (int64_t row = 0; row < count[0] * count[1]; ++row) {
          const int64_t slab = row / count[1], line = row % count[1];
          Span* last = spans;
          int64_t chain = 0;
          for (int64_t i = 0, z; i < d.taps; ++i) {
            if (!d.meets(first[0] + slab, i, z) || z < 0 || z >= d.x_size) continue;
            for (int64_t j = 0, at; j < h.taps; ++j) {
              if (!h.meets(first[1] + line, j, at) || at < 0 || at >= h.x_size) continue;
              const int64_t left =
                  (z - from[0]) * input.stride[0] + (at - from[1]) * input.stride[1];
              for (int64_t k = 0; k < w_taps; ++k) {
                const int64_t tap = (i * h.taps + j) * w.taps + tap_of[2 * k];
                last = add_span(last, left + tap_of[2 * k + 1] * input.stride[2],
                                (tap * v.in + channel) * kPanel, channels, chain);
              }
            }
          }
          if (last != spans) last[-1].ends_chain = true;
          float* c = result.at(slab, line, remainder) + panel * kPanel;
          const int64_t c_row = w.every * result.stride[2], a_row = w.step * input.stride[2];
          const float* const start = channel ? c : v.bias ? bias + panel * kPanel : nullptr;
          const int64_t start_row = channel ? c_row : 0;
          for (int64_t i = 0; i < columns; i += height) {
            const int64_t rows = smaller(height, columns - i);
            const float* const from_start = start ? start + i * start_row : nullptr;
            if (last != spans) {
              tiles.of[vectors - 1][rows - 1](spans, last, input.data + i * a_row, a_row, weights,
                                              c + i * c_row, c_row, from_start, start_row);
            } else if (channel == 0) {
              for (int64_t r = 0; r < rows; ++r) {
                for (int64_t q = 0; q < vectors * kWide; ++q) {
                  c[(i + r) * c_row + q] = start ? start[q] : 0;
                }
              }
            }
          }
        }
      }
    }
  }
  if (writes_y) return;
  // Rows that follow each other in the output are turned together.
  const bool flat = count[2] == w.y_size && v.axis[1].y_stride == w.y_size * v.axis[2].y_stride;
  const int64_t lines = flat ? 1 : count[1], pixels = flat ? count[1] * count[2] : count[2];
  for (int64_t slab = 0; slab < count[0]; ++slab) {
    for (int64_t line = 0; line < lines; ++line) {
      const float* sum = result.at(slab, line, 0);
      S* to = y + slab * v.axis[0].y_stride + line * v.axis[1].y_stride;
      if (v.axis[2].y_stride == 1) {
        store_turned(sum, result.stride[2], pixels, v.out, to, v.y_channel);
        continue;
      }
      for (int64_t i = 0; i < pixels; ++i) {
        store_row(sum + i * result.stride[2], v.out, to + i * v.axis[2].y_stride, v.y_channel);
      }
    }
  }
}

struct Table : ConvTable {
  constexpr Table() : ConvTable{} {
#define X(e, t, name, c)                                                             \
  if constexpr (std::is_same_v<Accumulator<t>, float> && c == 2 && sizeof(t) > 1) {  \
    of[int(DType::e)] = {plan_direct<t>, run_direct<t>, nullptr, prepare_direct<t>}; \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const ConvTable* const conv_direct_table = &table;

}  // namespace facula::FACULA_ISA
