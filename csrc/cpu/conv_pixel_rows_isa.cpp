// Forward convolution as a product of matrices, like conv_channel_rows_isa.cpp, for results that
// lie by pixels (NHWC): rows are what output pixels see, by tap and channel, columns the weights of
// output channels, along which vectors run.
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {
namespace {

// Pixels of a task. Many tasks for each thread leave none waiting for the last one, and cost next
// to nothing: weights are packed once for all.
constexpr int64_t kRows = 32 * kTileRows;
constexpr int64_t kSumBytes = 2 << 20;

// Weights of one depth block and all columns of a task.
template <class A>
size_t packed_bytes(const ConvPlan& p) {
  return Scratch::bytes<A>(p.column_block * p.depth_block);
}

template <class S>
void plan_pixel_rows(const Conv& v, int threads, ConvPlan& p) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>;
  const int64_t pixels = v.batch * v.pixels(), few = wanted_tasks(v, threads);
  const int64_t wanted = few > 1 ? 2 * few : 1;
  p.depth_chunks = cut(v.in * v.taps(), kDepth, 1, p.depth_block);
  p.column_blocks = cut(v.out, kPanels * width, width, p.column_block);
  const int64_t most = larger(kTileRows, kSumBytes / int64_t(sizeof(A)) / p.column_block);
  p.row_blocks = cut(pixels, smaller(kRows, most), kTileRows, p.row_block);
  while (v.groups * p.row_blocks * p.column_blocks < wanted) {
    if (p.row_block > 8 * kTileRows) {
      p.row_blocks = cut(pixels, divide_up(p.row_block, 2), kTileRows, p.row_block);
    } else if (p.column_block > width) {
      p.column_blocks = cut(v.out, p.column_block / 2, width, p.column_block);
    } else if (p.row_block > kTileRows) {
      p.row_blocks = cut(pixels, divide_up(p.row_block, 2), kTileRows, p.row_block);
    } else {
      break;
    }
  }
  set_tasks(v, v.groups * p.row_blocks * p.column_blocks, p);
  // Weights that several tasks need are packed once.
  if (p.row_blocks > 1) {
    p.prepare_tasks = v.groups * p.column_blocks * p.depth_chunks;
    p.shared_bytes = size_t(p.prepare_tasks) * packed_bytes<A>(p);
  }
  p.scratch_bytes = (p.row_blocks > 1 ? 0 : packed_bytes<A>(p)) +
                    Scratch::bytes<A>(kTileRows * (p.depth_block + 16)) +
                    Scratch::bytes<A>((p.depth_chunks > 1 ? p.row_block + kTileRows : kTileRows) *
                                      p.column_block) +
                    Scratch::bytes<A>(p.column_block) + Scratch::bytes<PixelRun>(kTileRows);
}

// What the pixels of a run see, in the order of taps, then channels: elements [k0, k0 + depth) of
// pixel q go to `to` + q * pitch.
template <class S, class A>
void pack_pixels(const Conv& v, const S* x, const PixelRun& run, int64_t k0, int64_t depth, A* to,
                 int64_t pitch) {
  if (depth == 0) return;
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  // Neighbouring taps of a row whose channels follow each other are copied together.
  const bool joined = v.x_channel == 1 && w.spread > 0 && w.spread * w.x_stride == v.in;
  const int64_t piece = joined ? w.taps * v.in : v.in, pieces = joined ? 1 : w.taps;
  int64_t within = k0 % piece, tap = k0 / piece;  // within a piece, and its first tap of the width
  int64_t row = tap / pieces;
  tap %= pieces;
  const int64_t first = run.place[2] * w.step + w.start;
  for (int64_t done = 0; done < depth;) {
    const int64_t z = run.place[0] * d.step + d.start + row / h.taps * d.spread;
    const int64_t y = run.place[1] * h.step + h.start + row % h.taps * h.spread;
    const bool inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
    const int64_t count = smaller(piece - within, depth - done);
    const S* from = x + z * d.x_stride + y * h.x_stride;
    for (int64_t q = 0; q < run.count; ++q) {
      const int64_t column = first + q * w.step + tap * w.spread;
      int64_t low = 0, high = count;
      if (!inside) {
        high = 0;
      } else if (!joined) {
        if (column < 0 || column >= w.in) high = 0;
      } else if (column < 0 || column + (w.taps - 1) * w.spread >= w.in) {
        const int64_t low_tap = column < 0 ? divide_up(-column, w.spread) : 0;
        const int64_t high_tap = column < w.in ? (w.in - 1 - column) / w.spread + 1 : 0;
        low = smaller(larger(low_tap * v.in - within, 0), count);
        high = larger(smaller(smaller(high_tap, w.taps) * v.in - within, count), low);
      }
      copy_span(from + column * w.x_stride + within * v.x_channel, v.x_channel, low, high, count,
                to + q * pitch + done);
    }
    done += count;
    within = 0;
    if (++tap == pieces) tap = 0, ++row;
  }
}

template <class S, class A>
void pack_weights(const Conv& v, const ConvPlan& p, int64_t group, int64_t column0, int64_t chunk,
                  A* to) {
  const int64_t k0 = chunk * p.depth_block, depth = smaller(p.depth_block, v.in * v.taps() - k0);
  const int64_t columns = smaller(p.column_block, v.out - column0);
  const S* w = static_cast<const S*>(v.w) + group * v.w_group + column0 * v.w_out;
  for (int64_t j = 0; j < columns; j += kTileColumns<A>) {
    pack_weight_panel(v, w + j * v.w_out, k0, depth, smaller(kTileColumns<A>, columns - j),
                      to + j * depth);
  }
}

template <class A>
A* shared_weights(const ConvPlan& p, int64_t task, void* shared) {
  return reinterpret_cast<A*>(static_cast<char*>(shared) + size_t(task) * packed_bytes<A>(p));
}

template <class S>
void prepare_pixel_rows(const Conv& v, const ConvPlan& p, int64_t task, void* shared) {
  using A = Accumulator<S>;
  const int64_t block = task / p.depth_chunks;
  pack_weights<S>(v, p, block / p.column_blocks, block % p.column_blocks * p.column_block,
                  task % p.depth_chunks, shared_weights<A>(p, task, shared));
}

template <class S>
void run_pixel_rows(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t width = kTileColumns<A>, lanes = kLanes<A>;
  const int64_t taps = v.taps(), pitch = p.depth_block + 16;
  Scratch scratch(memory);
  A* const own = p.row_blocks > 1 ? nullptr : scratch.take<A>(p.column_block * p.depth_block);
  A* const left = scratch.take<A>(kTileRows * pitch);
  A* const sums =
      scratch.take<A>((p.depth_chunks > 1 ? p.row_block + kTileRows : kTileRows) * p.column_block);
  A* const bias = scratch.take<A>(p.column_block);
  PixelRun* const runs = scratch.take<PixelRun>(kTileRows);

  const int64_t column0 = task % p.column_blocks * p.column_block;
  const int64_t row0 = task / p.column_blocks % p.row_blocks * p.row_block;
  const int64_t group = task / p.column_blocks / p.row_blocks;
  const int64_t rows = smaller(p.row_block, v.batch * v.pixels() - row0);
  const int64_t columns = smaller(p.column_block, v.out - column0);
  const S* x = static_cast<const S*>(v.x) + group * v.in * v.x_channel;
  S* y = static_cast<S*>(v.y) + (group * v.out + column0) * v.y_channel;
  for (int64_t j = 0; v.bias && j < columns; ++j) {
    bias[j] = widen<A>(static_cast<const S*>(v.bias)[group * v.out + column0 + j]);
  }
  for (int64_t j = columns; v.bias && j < p.column_block; ++j) bias[j] = A(0);
  // Pixels of an image that see one evenly spaced element each are read where they lie.
  const ConvAxis& a2 = v.axis[2];
  const int64_t pixel_stride = a2.step * a2.x_stride;
  const bool pointwise = kInPlace<S> && taps == 1 && v.x_channel == 1 && v.axis[0].out == 1 &&
                         v.axis[1].out == 1 && v.axis[0].start == 0 && v.axis[1].start == 0 &&
                         a2.start == 0 && (a2.out - 1) * a2.step < a2.in;

  for (int64_t chunk = 0; chunk < p.depth_chunks; ++chunk) {
    const int64_t k0 = chunk * p.depth_block;
    const int64_t depth = smaller(p.depth_block, v.in * taps - k0);
    const bool first = chunk == 0, last = chunk + 1 == p.depth_chunks;
    if (own) pack_weights<S>(v, p, group, column0, chunk, own);
    const int64_t block = group * p.column_blocks + task % p.column_blocks;
    const A* const right = own ? own : shared_weights<A>(p, block * p.depth_chunks + chunk, shared);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const int64_t height = smaller(kTileRows, rows - i);
      int64_t run_count = 0;
      for_each_run(v, row0 + i, height, height,
                   [&](const PixelRun& run) { runs[run_count++] = run; });
      const A* a = left;
      int64_t a_row = pitch;
      if (pointwise && (run_count == 1 || v.x_batch == a2.out * pixel_stride)) {
        a = reinterpret_cast<const A*>(x + runs->batch * v.x_batch + runs->place[2] * pixel_stride +
                                       k0);
        a_row = pixel_stride;
      } else {
        for (int64_t r = 0; r < run_count; ++r) {
          pack_pixels(v, x + runs[r].batch * v.x_batch, runs[r], k0, depth,
                      left + runs[r].column * pitch, pitch);
        }
      }
      A* const row_sums = p.depth_chunks > 1 ? sums + i * p.column_block : sums;
      for (int64_t j = 0; j < columns; j += width) {
        const int64_t panel_columns = smaller(width, columns - j);
        const int vectors = panel_columns > lanes ? 2 : 1;
        const ConvTile<A> tile = conv_tile<A>(vectors, height);
        A* const sum = row_sums + j * height;
        const A* const start = !first ? sum : v.bias ? bias + j : nullptr;
        const int64_t start_row = first ? 0 : width;
        const A* const b = right + j * depth;
        if (kInPlace<S> && last && run_count == 1 && panel_columns == vectors * lanes) {
          S* out = y + runs->batch * v.y_batch + runs->place[0] * v.axis[0].y_stride +
                   runs->place[1] * v.axis[1].y_stride + runs->place[2] * a2.y_stride + j;
          tile(depth, a, a_row, 1, b, width, reinterpret_cast<A*>(out), a2.y_stride, start,
               start_row);
          continue;
        }
        tile(depth, a, a_row, 1, b, width, sum, width, start, start_row);
        if (!last) continue;
        for (int64_t r = 0; r < run_count; ++r) {
          const PixelRun& run = runs[r];
          S* out = y + run.batch * v.y_batch + run.place[0] * v.axis[0].y_stride +
                   run.place[1] * v.axis[1].y_stride + run.place[2] * a2.y_stride + j;
          for (int64_t q = 0; q < run.count; ++q) {
            store_row(sum + (run.column + q) * width, panel_columns, out + q * a2.y_stride, 1);
          }
        }
      }
    }
  }
}

struct Table : ConvTable {
  constexpr Table() : ConvTable{} {
#define X(e, t, name, c)                                                                   \
  if constexpr (c == 1 || (c == 2 && sizeof(t) > 1)) {                                     \
    of[int(DType::e)] = {plan_pixel_rows<Storage<t>>, run_pixel_rows<Storage<t>>, nullptr, \
                         prepare_pixel_rows<Storage<t>>};                                  \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table table;

}  // namespace

const ConvTable* const conv_pixel_rows_table = &table;

}  // namespace facula::FACULA_ISA
