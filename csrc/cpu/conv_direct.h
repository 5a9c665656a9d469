// What the files on convolutions that read pixels where they lie share (conv_direct_isa.cpp,
// conv_direct_weight_isa.cpp): sums over spans of neighbours, and the part of the input that a task
// needs, copied once, with zeros for the padding and channels side by side.
#pragma once
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {

constexpr int64_t kWide = kLanes<float>, kPanel = kTileColumns<float>;
constexpr int64_t kBoxFloats = 64 << 10;  // of input, and of results, that a task holds
constexpr int64_t kColumns = 512;         // output columns of a task, at most
constexpr int64_t kChain = 96;            // products in one partial sum, see conv_tile_isa.cpp

// Products along `length` neighbours in both matrices.
struct Span {
  int64_t left, right;  // offsets
  int32_t length;
  bool ends_chain;  // the partial sum is complete
};

// c[i][j] = start[i][j] + sum over the spans of a[i * a_row + left + p * a_col] *
// b[right + p * kPanel + j]; a null start is zero.
using SpanTile = void (*)(const Span*, const Span* end, const float* a, int64_t a_row,
                          int64_t a_col, const float* b, float* c, int64_t c_row,
                          const float* start, int64_t start_row);
// A tile of one vector has room for more rows, and needs them: it loads one vector for all of them,
// and each row's element for one product only.
constexpr int kTallRows = 2 * kTileRows < 24 ? 2 * kTileRows : 24;
constexpr int64_t most_tile_rows(int vectors) {
  return vectors == 1 ? kTallRows : kTileRows;
}
struct SpanTiles {
  SpanTile one[kTallRows], two[kTileRows];  // by rows - 1
  SpanTile of(int vectors, int64_t rows) const { return (vectors == 1 ? one : two)[rows - 1]; }
};
extern const SpanTiles span_tiles;
// Rows of tiles of equal height, or nearly.
FACULA_INLINE int64_t tile_height(int vectors, int64_t rows) {
  return divide_up(rows, divide_up(rows, most_tile_rows(vectors)));
}

// Adds `length` products to a list that ends at `end`, in partial sums of about kChain. `chain` is
// the length of the one that is open.
FACULA_INLINE Span* add_span(Span* end, int64_t left, int64_t left_step, int64_t right,
                             int64_t length, int64_t& chain) {
  while (length > 0) {
    const int64_t room = kChain - chain, piece = length < room + kChain / 2 ? length : room;
    if (chain > 0 && end[-1].left + end[-1].length * left_step == left &&
        end[-1].right + end[-1].length * kPanel == right) {
      end[-1].length += int32_t(piece);
    } else {
      *end++ = {left, right, int32_t(piece), false};
    }
    chain += piece;
    if (chain >= kChain) chain = 0, end[-1].ends_chain = true;
    left += piece * left_step, right += piece * kPanel, length -= piece;
  }
  return end;
}

// Taps through which an output meets the input, evenly spaced, and what the first one meets.
struct MeetingTaps {
  int64_t first = 0, count = 0, at = 0;
  bool operator==(const MeetingTaps& o) const { return first == o.first && count == o.count; }
};

// An axis seen from the output: y meets input (y * step + tap * spread + start) / every through a
// tap, where that is whole.
struct OutputAxis {
  int64_t x_size, y_size, taps, step, spread, start, every;

  OutputAxis(const Conv& v, int i) {
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
  bool meets_inside(int64_t y, int64_t tap, int64_t& x) const {
    return meets(y, tap, x) && x >= 0 && x < x_size;
  }
  MeetingTaps taps_inside(int64_t y) const {
    MeetingTaps found;
    for (int64_t tap = 0, x; tap < taps; ++tap) {
      if (meets_inside(y, tap, x) && found.count++ == 0) found.first = tap, found.at = x;
    }
    return found;
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

// ---- blocks of outputs: column_block columns, row_block rows, tap_block slabs

struct OutputAxes {
  OutputAxis d, h, w;
  explicit OutputAxes(const Conv& v) : d(v, 0), h(v, 1), w(v, 2) {}
};

inline int64_t pixel_pitch(int64_t channels) {  // rows of a tile must not share cache sets
  return channels % 256 == 0 ? channels + kWide : channels;
}

inline int64_t box_floats(const OutputAxes& a, const ConvPlan& p) {
  return pixel_pitch(p.depth_block) * a.w.most_inputs(p.column_block) *
         smaller(a.h.x_size, a.h.most_inputs(p.row_block)) *
         smaller(a.d.x_size, a.d.most_inputs(p.tap_block));
}

// Columns of a block begin with the first remainder, so that its size is a multiple of `unit`.
inline void halve(const OutputAxis& a, int64_t unit, int64_t& blocks, int64_t& block) {
  blocks = cut(a.y_size, divide_up(block, 2), unit, block);
}

// Chooses blocks that are as large as fits() allows.
template <class F>
void plan_blocks(const OutputAxes& a, ConvPlan& p, F fits) {
  p.row_block = p.tap_block = 1;
  p.column_blocks = cut(a.w.y_size, kColumns, a.w.every, p.column_block);
  while (!fits() && p.column_block > 2 * kTileRows * a.w.every) {
    halve(a.w, a.w.every, p.column_blocks, p.column_block);
  }
  auto grow = [&](const OutputAxis& axis, int64_t& blocks, int64_t& block) {
    int64_t most = 1;
    while (block < axis.y_size && fits()) most = block, block *= 2;
    if (fits()) most = block;
    blocks = cut(axis.y_size, most, 1, block);
  };
  grow(a.h, p.row_blocks, p.row_block);
  if (p.row_blocks == 1) grow(a.d, p.tap_blocks, p.tap_block);
  else p.tap_blocks = a.d.y_size;
}

struct OutputBlock {
  int64_t first[3], count[3];

  // Takes its number from that of a task; the rest of the number remains.
  OutputBlock(const OutputAxes& a, const ConvPlan& p, int64_t& number) {
    auto take = [&](int i, const OutputAxis& axis, int64_t blocks, int64_t block) {
      first[i] = number % blocks * block;
      count[i] = smaller(block, axis.y_size - first[i]);
      number /= blocks;
    };
    take(2, a.w, p.column_blocks, p.column_block);
    take(1, a.h, p.row_blocks, p.row_block);
    take(0, a.d, p.tap_blocks, p.tap_block);
  }
};

// ---- what a block of outputs sees

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
  if constexpr (kTurnable<S>) {
    if (stride == 1) {
      for (int64_t c = 0; c < channels; c += kSquare) {
        for (int64_t i = 0; i < count; i += kSquare) {
          transpose_square<true>(from + c * v.x_channel + i, v.x_channel,
                                 smaller(kSquare, channels - c), smaller(kSquare, count - i),
                                 to + i * pitch + c, pitch);
        }
      }
      return;
    }
  }
  for (int64_t c = 0; c < channels; ++c, from += v.x_channel) {
    for (int64_t i = 0; i < count; ++i) to[i * pitch + c] = widen<float>(from[i * stride]);
  }
}

// Channels lie side by side. Rows and slabs outside of the input are left out, columns are zero.
struct InputBox {
  const float* data;
  int64_t first[3], stride[3];

  int64_t offset(int64_t d, int64_t h) const {
    return (d - first[0]) * stride[0] + (h - first[1]) * stride[1];
  }
};

// `channels` from x on, read in place where that is possible, otherwise copied to `memory`.
template <class S>
InputBox load_box(const Conv& v, const OutputAxes& a, const OutputBlock& block, const S* x,
                  int64_t channels, int64_t pitch, float* memory) {
  InputBox box{memory, {}, {}};
  int64_t end[3];
  const OutputAxis* axis[3] = {&a.d, &a.h, &a.w};
  for (int i = 0; i < 3; ++i) {
    box.first[i] = axis[i]->first(block.first[i]);
    end[i] = axis[i]->end(block.first[i], block.count[i]);
    if (i < 2) {
      box.first[i] = larger(box.first[i], 0);
      end[i] = smaller(end[i], axis[i]->x_size);
    }
  }
  auto at = [&](int64_t d, int64_t h, int64_t w) {
    return x + d * v.axis[0].x_stride + h * v.axis[1].x_stride + w * v.axis[2].x_stride;
  };
  if (kInPlace<S> && v.x_channel == 1 && box.first[2] >= 0 && end[2] <= a.w.x_size &&
      a.w.step * v.axis[2].x_stride % 512 != 0) {
    box.data = reinterpret_cast<const float*>(at(box.first[0], box.first[1], box.first[2]));
    for (int i = 0; i < 3; ++i) box.stride[i] = v.axis[i].x_stride;
    return box;
  }
  const int64_t columns = end[2] - box.first[2];
  box.stride[2] = pitch;
  box.stride[1] = columns * pitch;
  box.stride[0] = (end[1] - box.first[1]) * box.stride[1];
  const int64_t low = smaller(larger(-box.first[2], 0), columns);
  const int64_t high = larger(low, smaller(a.w.x_size, end[2]) - box.first[2]);
  for (int64_t i = box.first[0]; i < end[0]; ++i) {
    for (int64_t j = box.first[1]; j < end[1]; ++j) {
      float* to = memory + box.offset(i, j);
      for (int64_t k = 0; k < low * pitch; ++k) to[k] = 0;
      for (int64_t k = high * pitch; k < box.stride[1]; ++k) to[k] = 0;
      copy_pixels(v, at(i, j, box.first[2] + low), high - low, channels, to + low * pitch, pitch);
    }
  }
  return box;
}

}  // namespace facula::FACULA_ISA
