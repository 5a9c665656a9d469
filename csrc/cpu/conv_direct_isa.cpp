// Convolutions, forward and transposed, as products whose left matrix is read where it lies: rows
// are neighbouring pixels of an output row, which see neighbouring pixels of the input through each
// tap, vectors run along output channels. No matrix of what pixels see is made.
// A transposed convolution with steps is computed by remainders: output columns with the same
// remainder see the same taps.
#include "cpu/conv_direct.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kSpanDepth = 1152;  // products of a tile whose weights stay in the cache

template <int R, int V>
void tile(const Span* span, const Span* end, const float* a, int64_t a_row, int64_t a_col,
          const float* b, float* c, int64_t c_row, const float* start, int64_t start_row) {
  constexpr int groups = (R + 3) / 4;  // as in conv_tile_isa.cpp
  do {
    Vector<float> sum[R][V] = {};
    bool more = true;
    for (; more; ++span) {
      const float* four[groups];
#pragma GCC unroll 6
      for (int i = 0; i < groups; ++i) four[i] = a + span->left + 4 * i * a_row;
      const float* right = b + span->right;
      for (int32_t p = 0; p < span->length; ++p, right += kPanel) {
        Vector<float> row[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) {
          row[v] = load(right + v * kWide);
          keep_in_register<float>(row[v]);
        }
#pragma GCC unroll 24
        for (int i = 0; i < R; ++i) {
          const float x = four[i / 4][i % 4 * a_row];
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(x, row[v], sum[i][v]);
        }
#pragma GCC unroll 6
        for (int i = 0; i < groups; ++i) four[i] += a_col;
      }
      more = !span->ends_chain;
    }
#pragma GCC unroll 24
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

struct Tiles : SpanTiles {
  constexpr Tiles() : SpanTiles{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    one[R - 1] = tile<R, 1>;
    if constexpr (R <= kTileRows) two[R - 1] = tile<R, 2>;
    if constexpr (R < kTallRows) fill<R + 1>();
  }
};

// A tap that columns of a remainder see, and where the first of them sees it.
struct ColumnTap {
  int64_t tap, offset;
};

int64_t sum_floats(const Conv& v, const ConvPlan& p) {
  return p.column_block * p.row_block * p.tap_block * round_up(v.out, kWide);
}
int64_t most_spans(const Conv& v, const ConvPlan& p) {
  return v.taps() * (p.depth_block / kChain + 2);
}

// The depth is cut into blocks of channels.
template <class S>
void plan_direct(const Conv& v, int threads, ConvPlan& p) {
  const OutputAxes a(v);
  const int64_t seen = divide_up(a.d.taps, a.d.every) * divide_up(a.h.taps, a.h.every) *
                       divide_up(a.w.taps, a.w.every);
  p.depth_chunks = cut(v.in, larger(kWide, kSpanDepth / seen), kWide, p.depth_block);
  p.depth_block = smaller(p.depth_block, v.in);
  plan_blocks(a, p, [&] { return larger(box_floats(a, p), sum_floats(v, p)) <= kBoxFloats; });
  const int64_t images = v.batch * v.groups, wanted = wanted_tasks(v, threads);
  auto tasks = [&] { return images * p.tap_blocks * p.row_blocks * p.column_blocks; };
  while (tasks() < wanted) {
    if (p.tap_block > 1) halve(a.d, 1, p.tap_blocks, p.tap_block);
    else if (p.row_block > 1) halve(a.h, 1, p.row_blocks, p.row_block);
    else if (p.column_block > 4 * kTileRows * a.w.every)
      halve(a.w, a.w.every, p.column_blocks, p.column_block);
    else break;
  }
  set_tasks(v, tasks(), p);
  const int64_t panels = divide_up(v.out, kPanel);
  p.prepare_tasks = v.groups * panels * divide_up(v.in, kWide);
  p.shared_bytes = Scratch::bytes<float>(v.groups * panels * v.taps() * v.in * kPanel);
  p.scratch_bytes = Scratch::bytes<float>(box_floats(a, p)) +
                    Scratch::bytes<float>(sum_floats(v, p)) +
                    Scratch::bytes<float>(round_up(v.out, kPanel)) +
                    Scratch::bytes<Span>(most_spans(v, p)) + Scratch::bytes<ColumnTap>(a.w.taps);
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
  if (kTurnable<S> && taps > 1 && v.w_in != 1 && dense_taps(v)) {
    if constexpr (kTurnable<S>) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t t = 0; t < taps; t += kSquare) {
          for (int64_t j = 0; j < kPanel; j += kSquare) {
            transpose_square(w + c * v.w_in + j * v.w_out + t, v.w_out, columns - j,
                             smaller(kSquare, taps - t), to + (t * v.in + c) * kPanel + j,
                             v.in * kPanel);
          }
        }
      }
      return;
    }
  }
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

template <class S>
void store_sums(const Conv& v, const OutputAxes& a, const OutputBlock& block, const float* sums,
                S* y) {
  const int64_t pitch = round_up(v.out, kWide), *count = block.count;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  // Rows that follow each other in the output are stored together.
  const bool flat = count[2] == a.w.y_size && h.y_stride == count[2] * w.y_stride;
  const int64_t lines = flat ? 1 : count[1], pixels = flat ? count[1] * count[2] : count[2];
  for (int64_t i = 0; i < count[0] * lines; ++i, sums += pixels * pitch) {
    S* to = y + i / lines * v.axis[0].y_stride + i % lines * h.y_stride;
    if (w.y_stride == 1) {
      store_turned(sums, pitch, pixels, v.out, to, v.y_channel);
      continue;
    }
    for (int64_t j = 0; j < pixels; ++j) {
      store_row(sums + j * pitch, v.out, to + j * w.y_stride, v.y_channel);
    }
  }
}

// What the columns of one row of outputs are summed over, as seen from the pixel at `begin`.
// Returns the end of the list.
Span* list_spans(const Conv& v, const OutputAxes& a, const InputBox& input, const int64_t (&row)[2],
                 int64_t begin, const ColumnTap* column_taps, int64_t tap_count, int64_t channel,
                 int64_t channels, Span* spans) {
  Span* end = spans;
  int64_t chain = 0;
  for (int64_t i = 0, d; i < a.d.taps; ++i) {
    if (!a.d.meets_inside(row[0], i, d)) continue;
    for (int64_t j = 0, h; j < a.h.taps; ++j) {
      if (!a.h.meets_inside(row[1], j, h)) continue;
      const int64_t left = input.offset(d, h) - begin, tap = (i * a.h.taps + j) * a.w.taps;
      for (int64_t k = 0; k < tap_count; ++k) {
        end = add_span(end, left + column_taps[k].offset, 1,
                       ((tap + column_taps[k].tap) * v.in + channel) * kPanel, channels, chain);
      }
    }
  }
  if (end == spans) *end++ = {0, 0, 0, true};  // nothing but padding: a span of no products
  end[-1].ends_chain = true;
  return end;
}

template <class S>
void run_direct(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  const OutputAxes a(v);
  Scratch scratch(memory);
  float* const box = scratch.take<float>(box_floats(a, p));
  float* const sums = scratch.take<float>(sum_floats(v, p));
  float* const bias = scratch.take<float>(round_up(v.out, kPanel));
  Span* const spans = scratch.take<Span>(most_spans(v, p));
  ColumnTap* const column_taps = scratch.take<ColumnTap>(a.w.taps);

  const OutputBlock block(a, p, task);
  const int64_t *first = block.first, *count = block.count;
  const int64_t batch = task % v.batch, group = task / v.batch;
  const S* const x = static_cast<const S*>(v.x) + batch * v.x_batch + group * v.in * v.x_channel;
  S* const y = static_cast<S*>(v.y) + batch * v.y_batch + group * v.out * v.y_channel +
               first[0] * v.axis[0].y_stride + first[1] * v.axis[1].y_stride +
               first[2] * v.axis[2].y_stride;

  // Sums are held in the result where its channels fill whole vectors.
  const bool in_place = kInPlace<S> && v.y_channel == 1 && v.out % kWide == 0;
  float* const result = in_place ? reinterpret_cast<float*>(y) : sums;
  const int64_t pixel = in_place ? v.axis[2].y_stride : round_up(v.out, kWide);
  const int64_t line_stride = in_place ? v.axis[1].y_stride : count[2] * pixel;
  const int64_t slab_stride = in_place ? v.axis[0].y_stride : count[1] * line_stride;
  for (int64_t j = 0; v.bias && j < round_up(v.out, kPanel); ++j) {
    bias[j] = j < v.out ? widen<float>(static_cast<const S*>(v.bias)[group * v.out + j]) : 0;
  }

  const int64_t panels = divide_up(v.out, kPanel), pitch = pixel_pitch(p.depth_block);
  for (int64_t channel = 0; channel < v.in; channel += p.depth_block) {
    const int64_t channels = smaller(p.depth_block, v.in - channel);
    const InputBox input = load_box(v, a, block, x + channel * v.x_channel, channels, pitch, box);
    const int64_t a_row = a.w.step * input.stride[2], c_row = a.w.every * pixel;
    for (int64_t remainder = 0; remainder < smaller(a.w.every, count[2]); ++remainder) {
      int64_t tap_count = 0;
      for (int64_t tap = 0, at; tap < a.w.taps; ++tap) {
        if (a.w.meets(first[2] + remainder, tap, at))
          column_taps[tap_count++] = {tap, (at - input.first[2]) * input.stride[2]};
      }
      const int64_t columns = divide_up(count[2] - remainder, a.w.every);
      Span* end = spans;
      MeetingTaps seen_d, seen_h;  // by the rows that have these spans
      for (int64_t panel = 0; panel < panels; ++panel) {
        const float* const weights =
            static_cast<const float*>(shared) + (group * panels + panel) * v.taps() * v.in * kPanel;
        const int vectors = v.out - panel * kPanel > kWide ? 2 : 1;
        const int64_t height = tile_height(vectors, columns);
        for (int64_t row = 0; row < count[0] * count[1]; ++row) {
          const int64_t slab = row / count[1], line = row % count[1];
          const MeetingTaps d = a.d.taps_inside(first[0] + slab);
          const MeetingTaps h = a.h.taps_inside(first[1] + line);
          const bool none = d.count == 0 || h.count == 0;
          if (none && channel) continue;
          // Rows that meet the same taps differ in where their spans begin.
          const int64_t begin = none ? 0 : input.offset(d.at, h.at);
          if (end == spans || !(d == seen_d && h == seen_h)) {
            seen_d = d, seen_h = h;
            end = list_spans(v, a, input, {first[0] + slab, first[1] + line}, begin, column_taps,
                             tap_count, channel, channels, spans);
          }
          float* const c =
              result + slab * slab_stride + line * line_stride + remainder * pixel + panel * kPanel;
          for (int64_t i = 0; i < columns; i += height) {
            float* const sum = c + i * c_row;
            const float* const start = channel ? sum : v.bias ? bias + panel * kPanel : nullptr;
            span_tiles.of(vectors, smaller(height, columns - i))(
                spans, end, input.data + begin + i * a_row, a_row, 1, weights, sum, c_row, start,
                channel ? c_row : 0);
          }
        }
      }
    }
  }
  if (!in_place) store_sums(v, a, block, sums, y);
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

constexpr SpanTiles span_tiles = Tiles();
const ConvTable* const conv_direct_table = &table;

}  // namespace facula::FACULA_ISA
