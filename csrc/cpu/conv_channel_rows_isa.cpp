// Forward convolution as a product of matrices that are never made as a whole: rows are the weights
// of output channels, columns what output pixels see of the input, by channel and tap. Blocks of
// both are copied into the form that the register tiles read. For results that lie by channels
// (NCHW): vectors run along pixels.
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kRows = 256;  // channels of a task

// A part of a panel that is contiguous (or evenly spaced) in the output.
struct Segment {
  int32_t column, count;
  int64_t offset;
};

// Whether pixels of one image follow each other in the output.
bool flat_output(const Conv& v) {
  const ConvAxis* a = v.axis;
  return (a[1].out == 1 || a[1].y_stride == a[2].out * a[2].y_stride) &&
         (a[0].out == 1 || a[0].y_stride == a[1].out * a[2].out * a[2].y_stride);
}

int64_t find_segments(const Conv& v, int64_t first, int64_t count, int64_t width, Segment* out) {
  const Segment* begin = out;
  Conv flat = v;
  if (flat_output(v)) {
    flat.axis[0].out = flat.axis[1].out = 1;
    flat.axis[2].out = v.pixels();
  }
  for_each_run(flat, first, count, width, [&](const PixelRun& run) {
    *out++ = {int32_t(run.column), int32_t(run.count),
              run.batch * v.y_batch + run.place[0] * v.axis[0].y_stride +
                  run.place[1] * v.axis[1].y_stride + run.place[2] * v.axis[2].y_stride};
  });
  return out - begin;
}

template <class S>
void plan_channel_rows(const Conv& v, int threads, ConvPlan& p) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t columns = v.batch * v.pixels(), wanted = wanted_tasks(v, threads);
  p.depth_chunks = cut(v.in * v.taps(), kDepth, 1, p.depth_block);
  p.column_blocks = cut(columns, kPanels * width, width, p.column_block);
  p.row_blocks = cut(v.out, kRows, 1, p.row_block);
  while (v.groups * p.row_blocks * p.column_blocks < wanted) {
    if (p.column_block > 4 * width) {
      p.column_blocks = cut(columns, p.column_block / 2, width, p.column_block);
    } else if (p.row_block > 2 * kTileRows) {
      p.row_blocks = cut(v.out, divide_up(p.row_block, 2), 1, p.row_block);
    } else {
      break;
    }
  }
  set_tasks(v, v.groups * p.row_blocks * p.column_blocks, p);
  const int64_t panels = p.column_block / width;
  p.scratch_bytes =
      Scratch::bytes<A>(panels * p.depth_block * width) +
      Scratch::bytes<A>(kTileRows * (p.depth_block + 16)) +
      Scratch::bytes<A>((p.depth_chunks > 1 ? panels * p.row_block : kTileRows) * width) +
      Scratch::bytes<A>(kTileRows * width) + Scratch::bytes<Tap>(v.taps()) +
      Scratch::bytes<int64_t>(v.taps()) + Scratch::bytes<PixelRun>(p.column_block) +
      Scratch::bytes<Segment>(p.column_block);
}

// Weights that are contiguous along the rows: one column after the other.
template <class S, class A>
void gather_columns(const Conv& v, const S* w, const int64_t* offsets, int64_t k0, int64_t depth,
                    int64_t rows, A* to) {
  const int64_t taps = v.taps();
  const S* channel = w + k0 / taps * v.w_in;
  for (int64_t k = 0, tap = k0 % taps; k < depth; ++k, to += kTileRows) {
    copy_short(channel + offsets[tap], rows, to);
    if (++tap == taps) tap = 0, channel += v.w_in;
  }
}

// Rows of weights in the order of channels, then taps; `to` has room for a vector more.
template <class S, class A>
void gather_rows(const Conv& v, const S* w, const int64_t* offsets, bool dense, int64_t k0,
                 int64_t depth, int64_t rows, A* to, int64_t pitch) {
  const int64_t taps = v.taps();
  for (int64_t i = 0; i < rows; ++i, w += v.w_out, to += pitch) {
    if (dense && (v.in == 1 || v.w_in == taps)) {
      copy_span(w + k0, 1, 0, depth, depth, to);
      continue;
    }
    const S* channel = w + k0 / taps * v.w_in;
    for (int64_t k = 0, tap = k0 % taps; k < depth; tap = 0, channel += v.w_in) {
      const int64_t end = smaller(taps - tap, depth - k);
      if (dense) {
        copy_short(channel + tap, end, to + k);
      } else {
        for (int64_t j = 0; j < end; ++j) to[k + j] = widen<A>(channel[offsets[tap + j]]);
      }
      k += end;
    }
  }
}

// Whether no output sees padding through a single tap.
inline bool is_inside(const Conv& v) {
  for (const ConvAxis& a : v.axis) {
    if (a.start < 0 || a.start + (a.out - 1) * a.step >= a.in) return false;
  }
  return true;
}

template <class S>
void run_channel_rows(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void*) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const int64_t taps = v.taps(), pitch = p.depth_block + 16, panels = p.column_block / width;
  Scratch scratch(memory);
  A* const right = scratch.take<A>(panels * p.depth_block * width);
  A* const left = scratch.take<A>(kTileRows * pitch);
  A* const sums = scratch.take<A>((p.depth_chunks > 1 ? panels * p.row_block : kTileRows) * width);
  A* const bias = scratch.take<A>(kTileRows * width);
  Tap* const seen = scratch.take<Tap>(taps);
  int64_t* const offsets = scratch.take<int64_t>(taps);
  PixelRun* const runs = scratch.take<PixelRun>(p.column_block);
  Segment* const segments = scratch.take<Segment>(p.column_block);

  const int64_t column0 = task % p.column_blocks * p.column_block;
  const int64_t row0 = task / p.column_blocks % p.row_blocks * p.row_block;
  const int64_t group = task / p.column_blocks / p.row_blocks;
  const int64_t columns = smaller(p.column_block, v.batch * v.pixels() - column0);
  const int64_t rows = smaller(p.row_block, v.out - row0);
  const S* x = static_cast<const S*>(v.x) + group * v.in * v.x_channel;
  const S* w = static_cast<const S*>(v.w) + group * v.w_group + row0 * v.w_out;
  S* y = static_cast<S*>(v.y) + (group * v.out + row0) * v.y_channel;
  const S* bias_of_rows = v.bias ? static_cast<const S*>(v.bias) + group * v.out + row0 : nullptr;

  int64_t run_count = 0;
  for_each_run(v, column0, columns, width, [&](const PixelRun& run) { runs[run_count++] = run; });
  const int64_t segment_count = find_segments(v, column0, columns, width, segments);
  weight_offsets(v, offsets);
  // Weights that lie in the order of k are read in place, unless rows meet in one set of the cache.
  const bool dense = dense_taps(v);
  const bool in_place = kInPlace<S> && dense && (v.in == 1 || v.w_in == taps) &&
                        (columns <= 2 * width || v.w_out * int64_t(sizeof(S)) % 1024 != 0);
  // Whole panels of pixels that only one tile needs are read where they lie.
  const ConvAxis& w2 = v.axis[2];
  const bool once = kInPlace<S> && taps == 1 && rows <= kTileRows && w2.x_stride == 1 &&
                    w2.step == 1 && is_inside(v);
  const int64_t tile_rows = divide_up(rows, divide_up(rows, kTileRows));
  const int64_t y_stride = v.axis[2].y_stride;

  for (int64_t chunk = 0; chunk < p.depth_chunks; ++chunk) {
    const int64_t k0 = chunk * p.depth_block;
    const int64_t depth = smaller(p.depth_block, v.in * taps - k0);
    const bool first = chunk == 0, last = chunk + 1 == p.depth_chunks;
    for (int64_t i = 0; i < run_count; ++i) {
      const PixelRun& run = runs[i];
      find_taps(v, run, seen);
      if (once && run.count == width) continue;
      pack_run(v, x, run, seen, k0, depth,
               right + run.column / width * depth * width + run.column % width, width);
    }
    for (int64_t i = 0; i < rows; i += tile_rows) {
      const int64_t height = smaller(tile_rows, rows - i);
      const A* a = left;
      int64_t a_row = pitch, a_col = 1;
      if (in_place) {
        a = reinterpret_cast<const A*>(w + i * v.w_out + k0);
        a_row = v.w_out;
      } else if (v.w_out == 1 && height > 1) {
        gather_columns(v, w + i, offsets, k0, depth, height, left);
        a_row = 1, a_col = kTileRows;
      } else {
        gather_rows(v, w + i * v.w_out, offsets, dense, k0, depth, height, left, pitch);
      }
      if (first && v.bias) {
        for (int64_t r = 0; r < height; ++r) {
          for (int64_t j = 0; j < width; ++j) bias[r * width + j] = widen<A>(bias_of_rows[i + r]);
        }
      }
      const Segment* segment = segments;
      int64_t at = 0;  // of the runs
      for (int64_t panel = 0; panel * width < columns; ++panel) {
        const int64_t panel_columns = smaller(width, columns - panel * width);
        const int vectors = panel_columns > lanes ? 2 : 1;
        const ConvTile<A> tile = conv_tile<A>(vectors, height);
        A* const sum = p.depth_chunks > 1 ? sums + (panel * p.row_block + i) * width : sums;
        const A* const start = !first ? sum : v.bias ? bias : nullptr;
        const A* b = right + panel * depth * width;
        int64_t b_row = width;
        if (once) {
          while (runs[at].column < panel * width) ++at;
          if (runs[at].count == width) {
            const PixelRun& run = runs[at];
            b = reinterpret_cast<const A*>(x + run.batch * v.x_batch + k0 * v.x_channel +
                                           find_tap(v, run, 0, 0, 0).offset);
            b_row = v.x_channel;
          }
        }
        if (kInPlace<S> && last && segment->count == vectors * lanes && y_stride == 1) {
          tile(depth, a, a_row, a_col, b, b_row,
               reinterpret_cast<A*>(y + i * v.y_channel + segment->offset), v.y_channel, start,
               width);
          ++segment;
          continue;
        }
        tile(depth, a, a_row, a_col, b, b_row, sum, width, start, width);
        if (!last) continue;
        for (; segment < segments + segment_count && segment->column < (panel + 1) * width;
             ++segment) {
          for (int64_t r = 0; r < height; ++r) {
            store_row(sum + r * width + segment->column % width, segment->count,
                      y + (i + r) * v.y_channel + segment->offset, y_stride);
          }
        }
      }
    }
  }
}

struct Table : ConvTable {
  constexpr Table() : ConvTable{} {
#define X(e, t, name, c)                                                               \
  if constexpr (c == 1 || (c == 2 && sizeof(t) > 1)) {                                 \
    of[int(DType::e)] = {plan_channel_rows<Storage<t>>, run_channel_rows<Storage<t>>}; \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const ConvTable* const conv_channel_rows_table = &table;

}  // namespace facula::FACULA_ISA
