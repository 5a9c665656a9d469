// Convolutions with 1, 2, 4 or 8 channels per group, as many outputs as inputs, along vectors of
// channels, which have whole groups. What a block of outputs sees of one vector is copied first,
// from either layout and dtype and with its padding: every tap is an offset then, and the loops
// know accumulators only. conv_depthwise_isa.cpp runs along pixels instead.
#include "cpu/conv_pack.h"

#include <utility>

#include "cpu/conv_kernels.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBandBytes = 96 << 10;  // a block's input, well within the second cache
constexpr int64_t kBandColumns = 256;
constexpr int64_t kTaskProducts = 512 << 10;   // that are worth a thread
constexpr int64_t kVectorProducts = 64 << 10;  // of the vectors of a task
constexpr int64_t kChunks = 16;
constexpr int kMostTaps = 9;  // whose sums stay in registers

// The channels of a group that has vectors of sums to itself: each input is a number for all of
// them. Narrower groups share vectors, and a band has a copy for each channel of a group.
constexpr int64_t kWholeGroup = 8;
template <class A>
struct GroupOf {
  typedef A type __attribute__((vector_size(kWholeGroup * sizeof(A))));
};
template <class A>
FACULA_INLINE bool has_whole_groups(const Conv& v) {
  return kLanes<A> >= kWholeGroup && v.in == kWholeGroup;
}
template <class A>
FACULA_INLINE int64_t copies_of(const Conv& v) {
  return has_whole_groups<A>(v) ? 1 : v.in;
}

// The sums of a vector of channels: whole groups, or all lanes at once.
template <class A, bool whole>
struct Sums {
  using Part = std::conditional_t<whole, typename GroupOf<A>::type, Vector<A>>;
  static constexpr int64_t lanes = whole ? kWholeGroup : kLanes<A>;
  static constexpr int parts = int(kLanes<A> / lanes);
  FACULA_INLINE static Part part(const A* p, int k) {
    Part x;
    __builtin_memcpy(&x, p + k * lanes, sizeof(x));
    return x;
  }
  // What the channels of a part see.
  FACULA_INLINE static auto seen(const A* p, int k) {
    if constexpr (whole) return p[k * lanes];
    else return load(p);
  }
};

// An axis of a problem. Outputs that are `phases` apart form units, of which number u sees inputs
// from u * step + lowest on. Only the transposed operator has more than one phase.
struct Side {
  explicit Side(const Conv& v, int i) : axis(v.axis[i]), transposed(v.transposed) {
    const ConvAxis& a = axis;
    const int64_t far = (a.taps - 1) * a.spread;
    if (transposed) {  // output i and tap j meet input (i - start - j * spread) / step
      phases = a.step, step = 1, inputs = a.out, outputs = a.in;
      lowest = floor_divide(-a.start - far, a.step);
      reach = floor_divide(a.step - 1 - a.start, a.step) - lowest + 1;
    } else {
      phases = 1, step = a.step, inputs = a.in, outputs = a.out;
      lowest = a.start + smaller(far, 0);
      reach = larger(far, -far) + 1;
    }
    units = divide_up(outputs, phases);
  }
  static int64_t floor_divide(int64_t a, int64_t b) { return (a - ((a % b) + b) % b) / b; }
  // Which of the inputs that a unit sees tap j of an output phase meets; negative for none.
  int64_t met(int64_t phase, int64_t j) const {
    if (!transposed) return axis.start + j * axis.spread - lowest;
    const int64_t apart = phase - axis.start - j * axis.spread;
    return apart % axis.step == 0 ? apart / axis.step - lowest : -1;
  }
  // Of `count` outputs from a unit's first on, those of one phase.
  int64_t of_phase(int64_t count, int64_t phase) const {
    return count > phase ? (count - phase - 1) / phases + 1 : 0;
  }
  const ConvAxis& axis;
  bool transposed;
  int64_t phases, step, inputs, outputs, lowest, reach, units;
};

// The input of a block of units, in vectors. Input column q of a row is kept at q % step * phase +
// q / step: neighbouring outputs find what they see side by side.
struct Band {
  explicit Band(const Conv& v) : d(v, 0), h(v, 1), w(v, 2) {}
  void set(int64_t unit_rows, int64_t unit_columns) {
    in_rows = (unit_rows - 1) * h.step + h.reach;
    in_columns = (unit_columns - 1) * w.step + w.reach;
    phase = unit_columns + (w.reach - 1) / w.step;
    pitch = phase * w.step;
  }
  int64_t vectors() const { return d.reach * in_rows * pitch; }  // for each channel of a group
  Side d, h, w;
  int64_t in_rows = 0, in_columns = 0, phase = 0, pitch = 0;
};

// Where a tap finds its input in a band and its weights among those of a vector. Up to kJoined taps
// that see neighbouring vectors, with weights w_next apart, may be joined.
struct TapAt {
  int64_t x, w, w_next = 0, joined = 1;
};
constexpr int64_t kJoined = 3;

// One block of one vector of channels.
struct Block {
  int64_t channel, channels;                     // the first, and how many lanes are used
  int64_t n, depth, row, column, rows, columns;  // in units
};

template <class A>
FACULA_INLINE int64_t vectors_of(const Conv& v) {
  return divide_up(v.groups * v.in, kLanes<A>);
}

template <class A>
void cut_band(const Conv& v, const Band& whole, ConvPlan& p) {
  Band band = whole;
  p.column_block = smaller(band.w.units, kBandColumns);
  p.column_blocks = divide_up(band.w.units, p.column_block);
  band.set(1, p.column_block);
  const int64_t copies = copies_of<A>(v);
  const int64_t row = band.pitch * band.d.reach * copies * kLaneBytes;
  const int64_t room = kBandBytes * copies;  // a group's channels have much to do
  const int64_t more = larger(0, room / row - band.in_rows) / band.h.step;
  p.row_blocks = divide_up(band.h.units, 1 + more);
  p.row_block = divide_up(band.h.units, p.row_blocks);
  p.row_blocks = divide_up(band.h.units, p.row_block);
}
FACULA_INLINE int64_t blocks_of(const Conv& v, const Band& band, const ConvPlan& p) {
  return v.batch * band.d.units * p.row_blocks * p.column_blocks;
}
// Memory of a task: the band, input rows of one plane, and as many sums as results.
template <class A>
struct Workspace {
  Workspace(Scratch& scratch, const Conv& v, const Band& band, int64_t results)
      : x(scratch.take<A>(copies_of<A>(v) * band.vectors() * kLanes<A>)),
        lines(scratch.take<A>(band.in_rows * band.in_columns * kLanes<A>)),
        sums(scratch.take<A>(results * kLanes<A>)),
        taps(scratch.take<TapAt>(v.in * v.taps())) {}
  static size_t bytes(const Conv& v, const Band& band, int64_t results) {
    return Scratch::bytes<A>(copies_of<A>(v) * band.vectors() * kLanes<A>) +
           Scratch::bytes<A>(band.in_rows * band.in_columns * kLanes<A>) +
           Scratch::bytes<A>(results * kLanes<A>) + Scratch::bytes<TapAt>(v.in * v.taps());
  }
  A *x, *lines, *sums;
  TapAt* taps;
};

template <class A>
Block block_at(const Conv& v, const Band& band, const ConvPlan& p, int64_t block, int64_t vector) {
  Block b;
  b.channel = vector * kLanes<A>;
  b.channels = smaller(kLanes<A>, v.groups * v.in - b.channel);
  b.column = block % p.column_blocks * p.column_block;
  block /= p.column_blocks;
  b.row = block % p.row_blocks * p.row_block;
  block /= p.row_blocks;
  b.depth = block % band.d.units;
  b.n = block / band.d.units;
  b.rows = smaller(p.row_block, band.h.units - b.row);
  b.columns = smaller(p.column_block, band.w.units - b.column);
  return b;
}

// ---- copies

template <class S>
FACULA_INLINE Vector<Accumulator<S>> load_channels(const S* from, int64_t count) {
  if constexpr (kLoadable<S>) {
    if (count == kLanes<Accumulator<S>>) return load_wide(from);
  }
  return load_first(from, count);
}

// Rows of pixels as vectors of channels, one behind the other.
template <class S, class A>
void copy_lines(const S* from, int64_t row, int64_t pixel, int64_t channel, int64_t rows,
                int64_t columns, int64_t channels, A* to) {
  if (row == columns * pixel) columns *= rows, rows = 1;
  for (; rows > 0; --rows, from += row, to += columns * kLanes<A>) {
    if (channel != 1) {
      turn_channels(from, pixel, channel, columns, channels, to);
      continue;
    }
    for (int64_t i = 0; i < columns; ++i) {
      store(to + i * kLanes<A>, load_channels(from + i * pixel, channels));
    }
  }
}

// Rows of vectors into one plane of a band. `from` is input (low_row, low_column), and the band
// begins at (row, column); what is outside the given rows and columns is zero.
template <class S, class A>
void fill_plane(const Band& band, const S* from, int64_t from_row, int64_t from_pixel,
                int64_t channels, int64_t row, int64_t low_row, int64_t high_row, int64_t column,
                int64_t low_column, int64_t high_column, A* to) {
  constexpr int64_t lanes = kLanes<A>;
  for (int64_t p = 0; p < band.w.step; ++p) {
    const int64_t at = column + p, step = band.w.step;  // the input column of vector 0
    const int64_t low = smaller(band.phase, larger(0, divide_up(low_column - at, step)));
    const int64_t seen = larger(0, divide_up(high_column - at, step));
    const int64_t high = larger(low, smaller(band.phase, seen));
    const S* const start = from + (at - low_column) * from_pixel;
    for (int64_t r = row; r < row + band.in_rows; ++r) {
      const bool inside = r >= low_row && r < high_row;
      A* const line = to + ((r - row) * step + p) * band.phase * lanes;
      const S* const seen_line = start + (inside ? (r - low_row) * from_row : 0);
      const int64_t end = inside ? high : low;
      for (int64_t i = 0; i < low; ++i) store(line + i * lanes, Vector<A>{});
      for (int64_t i = low; i < end; ++i) {
        store(line + i * lanes, load_channels(seen_line + i * step * from_pixel, channels));
      }
      for (int64_t i = end; i < band.phase; ++i) store(line + i * lanes, Vector<A>{});
    }
  }
}

// Channel C of each group, in all lanes of the group's G channels.
template <int G, int C, class A, int... I>
FACULA_INLINE Vector<A> spread_lanes(Vector<A> x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (I / G * G + C)...);
}
// A band of plain vectors becomes G bands, one for each channel of a group.
template <int G, class A, int... C>
void spread_channels(int64_t vectors, A* band, std::integer_sequence<int, C...>) {
  for (int64_t i = 0; i < vectors; ++i) {
    const Vector<A> x = load(band + i * kLanes<A>);
    (store(band + (C * vectors + i) * kLanes<A>,
           spread_lanes<G, C, A>(x, std::make_integer_sequence<int, kLanes<A>>())),
     ...);
  }
}
template <class A, int G = 2>
void spread_groups(int64_t group, int64_t vectors, A* band) {
  if constexpr (G < kWholeGroup) {
    if (group == G) return spread_channels<G>(vectors, band, std::make_integer_sequence<int, G>());
    spread_groups<A, 2 * G>(group, vectors, band);
  }
}

// `lines` has room for the input rows of one plane.
template <class S, class A>
void fill_band(const Conv& v, const Band& band, const Block& b, A* lines, A* to) {
  const Side &h = band.h, &w = band.w;
  const int64_t row = b.row * h.step + h.lowest, column = b.column * w.step + w.lowest;
  const int64_t low_row = smaller(larger(row, 0), h.inputs);
  const int64_t high_row = larger(low_row, smaller(row + band.in_rows, h.inputs));
  const int64_t low_column = smaller(larger(column, 0), w.inputs);
  const int64_t high_column = larger(low_column, smaller(column + band.in_columns, w.inputs));
  const S* const x = static_cast<const S*>(v.x) + b.n * v.x_batch + b.channel * v.x_channel +
                     low_row * h.axis.x_stride + low_column * w.axis.x_stride;
  const int64_t plane = band.in_rows * band.pitch * kLanes<A>;
  for (int64_t i = 0; i < band.d.reach; ++i) {
    const int64_t z = b.depth * band.d.step + band.d.lowest + i;
    const bool inside = z >= 0 && z < band.d.inputs;
    const int64_t rows = inside ? high_row - low_row : 0, columns = high_column - low_column;
    const S* const from = x + (inside ? z * band.d.axis.x_stride : 0);
    if (v.x_channel == 1) {
      fill_plane(band, from, h.axis.x_stride, w.axis.x_stride, b.channels, row, low_row,
                 low_row + rows, column, low_column, high_column, to + i * plane);
    } else {
      copy_lines(from, h.axis.x_stride, w.axis.x_stride, v.x_channel, rows, columns, b.channels,
                 lines);
      fill_plane(band, lines, columns * kLanes<A>, kLanes<A>, kLanes<A>, row, low_row,
                 low_row + rows, column, low_column, high_column, to + i * plane);
    }
  }
  spread_groups(v.in, band.vectors(), to);
}

// The taps that outputs of one phase see, by channel of a group; returns how many.
template <class A>
int64_t find_taps(const Conv& v, const Band& band, const int64_t* phase, TapAt* taps) {
  const TapAt* const begin = taps;
  const bool whole = has_whole_groups<A>(v);
  for (int64_t c = 0; c < v.in; ++c) {
    for (int64_t i = 0; i < band.d.axis.taps; ++i) {
      const int64_t z = band.d.met(phase[0], i);
      for (int64_t j = 0; z >= 0 && j < band.h.axis.taps; ++j) {
        const int64_t y = band.h.met(phase[1], j);
        for (int64_t n = 0; y >= 0 && n < band.w.axis.taps; ++n) {
          const int64_t k = v.transposed ? band.w.axis.taps - 1 - n : n;  // seen from left to right
          const int64_t q = band.w.met(phase[2], k);
          if (q < 0) continue;
          const int64_t row = ((whole ? 0 : c * band.d.reach) + z) * band.in_rows + y;
          const int64_t tap =
              ((c * band.d.axis.taps + i) * band.h.axis.taps + j) * band.w.axis.taps + k;
          const int64_t x = row * band.pitch + q % band.w.step * band.phase + q / band.w.step;
          *taps = TapAt{x * kLanes<A> + (whole ? c : 0), tap * kLanes<A>};
          ++taps;
        }
      }
    }
  }
  return taps - begin;
}

// ---- forward, and the transposed operator

// Joins taps in place; returns how many are left.
template <class A>
int64_t join_taps(TapAt* taps, int64_t count) {
  int64_t last = -1;
  for (int64_t t = 0; t < count; ++t) {
    TapAt& to = taps[last];
    if (last >= 0 && to.joined < kJoined && taps[t].x == to.x + to.joined * kLanes<A> &&
        (to.joined == 1 || taps[t].w == to.w + to.joined * to.w_next)) {
      to.w_next = (taps[t].w - to.w) / to.joined;
      ++to.joined;
    } else {
      taps[++last] = taps[t];
    }
  }
  return last + 1;
}

// J joined taps: every input is loaded once.
template <int J, class A, bool whole, int P>
FACULA_INLINE void apply_joined(const A* x, const A* w, int64_t w_next,
                                typename Sums<A, whole>::Part (&sum)[P][Sums<A, whole>::parts]) {
  using Part = Sums<A, whole>;
  typename Part::Part weight[J][Part::parts];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    for (int k = 0; k < Part::parts; ++k) weight[j][k] = Part::part(w + j * w_next, k);
  }
#pragma GCC unroll 16
  for (int i = 0; i < P + J - 1; ++i) {
#pragma GCC unroll 2
    for (int k = 0; k < Part::parts; ++k) {
      const auto seen = Part::seen(x + i * kLanes<A>, k);
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) {
        if (i >= j && i - j < P) sum[i - j][k] += weight[j][k] * seen;
      }
    }
  }
}

// P neighbouring vectors of results, y_next apart.
template <class A, bool whole, int P>
void apply_taps(const A* x, const TapAt* taps, int64_t count, const A* w, const A* bias, A* y,
                int64_t y_next) {
  using Part = Sums<A, whole>;
  typename Part::Part sum[P][Part::parts];
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
    for (int k = 0; k < Part::parts; ++k) sum[i][k] = Part::part(bias, k);
  }
  for (const TapAt* t = taps; t < taps + count; ++t) {
    if (t->joined == 3) apply_joined<3, A, whole>(x + t->x, w + t->w, t->w_next, sum);
    else if (t->joined == 2) apply_joined<2, A, whole>(x + t->x, w + t->w, t->w_next, sum);
    else apply_joined<1, A, whole>(x + t->x, w + t->w, 0, sum);
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) __builtin_memcpy(y + i * y_next, sum[i], kLaneBytes);
}

// A row of results, in overlapping groups.
template <class A, bool whole>
void apply_to_row(const A* x, const TapAt* taps, int64_t count, const A* w, const A* bias,
                  int64_t columns, A* y, int64_t y_next) {
  const int64_t most = columns % 8 != 0 && columns >= 7 ? 7 : 8;  // images have rows of 7, 14 ...
  for (int64_t j = 0; j < columns;) {
    const int64_t left = columns - j;
    const int64_t pixels = columns >= most && left > 4 ? most : columns >= 4 ? 4 : 1;
    j = smaller(j, columns - pixels);
    (pixels == 8   ? apply_taps<A, whole, 8>
     : pixels == 7 ? apply_taps<A, whole, 7>
     : pixels == 4 ? apply_taps<A, whole, 4>
                   : apply_taps<A, whole, 1>)(x + j * kLanes<A>, taps, count, w, bias,
                                              y + j * y_next, y_next);
    j += pixels;
  }
}
template <class A>
auto row_function(const Conv& v) {
  if constexpr (kLanes<A> >= kWholeGroup) {
    if (has_whole_groups<A>(v)) return apply_to_row<A, true>;
  }
  return apply_to_row<A, false>;
}

template <class S>
void plan_forward(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  Band band(v);
  cut_band<A>(v, band, p);
  band.set(p.row_block, p.column_block);
  const int64_t taps = v.in * v.taps(), vectors = vectors_of<A>(v);
  const int64_t results = p.row_block * p.column_block;
  // Some vectors share what a task has to find out first.
  p.tap_block = larger(1, smaller(vectors, kVectorProducts / (results * taps * kLanes<A>)));
  p.tap_blocks = divide_up(vectors, p.tap_block);
  p.tasks = blocks_of(v, band, p) * p.tap_blocks;
  p.grain = larger(1, kTaskProducts / (results * taps * kLanes<A> * p.tap_block));
  p.prepare_tasks = 1;
  p.shared_bytes = size_t(vectors * (taps + 1) * kLaneBytes);
  p.scratch_bytes = Workspace<A>::bytes(v, band, results * band.h.phases * band.w.phases) +
                    Scratch::bytes<int64_t>(band.d.phases * band.h.phases * band.w.phases);
}

// The weights of each vector of channels, [input channel of the group][tap][lane], and its bias.
template <class S>
void prepare_forward(const Conv& v, const ConvPlan&, int64_t, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  const int64_t taps = v.taps(), channels = v.groups * v.in;
  const bool dense = dense_taps(v);
  A* to = static_cast<A*>(shared);
  for (int64_t channel = 0; channel < channels; channel += lanes, to += lanes) {
    const int64_t count = smaller(lanes, channels - channel);
    const S* const w = static_cast<const S*>(v.w) + channel / v.in * v.w_group;
    for (int64_t c = 0; c < v.in; ++c, to += taps * lanes) {
      if (v.in == 1 && dense) {
        turn_channels(w, 1, v.w_group, taps, count, to);
        continue;
      }
      for (int64_t t = 0; t < taps; ++t) {
        const TapPlace at(v, t);
        const S* from = w + c * v.w_in + at.d * v.axis[0].w_stride + at.h * v.axis[1].w_stride +
                        at.w * v.axis[2].w_stride;
        for (int64_t i = 0; i < lanes; ++i) {
          to[t * lanes + i] =
              i < count ? widen<A>(from[i / v.in * v.w_group + i % v.in * v.w_out]) : A(0);
        }
      }
    }
    for (int64_t i = 0; i < lanes; ++i) {
      to[i] = v.bias && i < count ? widen<A>(static_cast<const S*>(v.bias)[channel + i]) : A(0);
    }
  }
}

// Rows of vectors become rows of pixels.
template <class S, class A>
void store_lines(const A* from, int64_t rows, int64_t columns, int64_t channels, S* to, int64_t row,
                 int64_t pixel, int64_t channel) {
  if (row == columns * pixel) columns *= rows, rows = 1;
  for (; rows > 0; --rows, to += row, from += columns * kLanes<A>) {
    if (channel != 1 && pixel == 1) {
      turn_pixels(from, columns, channels, to, channel);
      continue;
    }
    for (int64_t i = 0; i < columns; ++i) {
      store_row(from + i * kLanes<A>, channels, to + i * pixel, channel);
    }
  }
}

// The results of one vector. The taps of all phases follow each other in `memory`; `counts` says
// how many each phase has.
template <class S, class A>
void run_vector(const Conv& v, const Band& band, const Block& b, const Workspace<A>& memory,
                const int64_t* counts, const A* weights) {
  constexpr int64_t lanes = kLanes<A>;
  const Side &h = band.h, &w = band.w;
  fill_band<S>(v, band, b, memory.lines, memory.x);
  const A* const bias = weights + v.in * v.taps() * lanes;
  const auto apply = row_function<A>(v);
  const int64_t y_row = b.row * h.phases, y_column = b.column * w.phases;
  const int64_t rows = smaller(b.rows * h.phases, h.outputs - y_row);
  const int64_t columns = smaller(b.columns * w.phases, w.outputs - y_column);
  const bool direct = kInPlace<S> && v.y_channel == 1 && b.channels == lanes;
  const int64_t row_stride = direct ? h.axis.y_stride : columns * lanes;
  const int64_t pixel_stride = direct ? w.axis.y_stride : lanes;
  // The next vector is far apart where channels are contiguous, which the hardware does not
  // foresee.
  const bool follows = v.x_channel == 1 && b.channel + lanes < v.groups * v.in;
  const S* const next = static_cast<const S*>(v.x) + b.n * v.x_batch + b.channel + lanes +
                        b.depth * band.d.step * band.d.axis.x_stride +
                        b.row * h.step * h.axis.x_stride + b.column * w.step * w.axis.x_stride;
  const TapAt* taps = memory.taps;
  for (int64_t k = 0; k < band.d.phases; ++k) {
    const int64_t depth = b.depth * band.d.phases + k;
    if (depth >= band.d.outputs) break;
    S* const y = static_cast<S*>(v.y) + b.n * v.y_batch + b.channel * v.y_channel +
                 depth * band.d.axis.y_stride + y_row * h.axis.y_stride +
                 y_column * w.axis.y_stride;
    A* const to = direct ? reinterpret_cast<A*>(y) : memory.sums;
    for (int64_t phase = 0; phase < h.phases * w.phases; ++phase, taps += *counts++) {
      const int64_t i0 = phase / w.phases, j0 = phase % w.phases;
      const int64_t unit_rows = h.of_phase(rows, i0), unit_columns = w.of_phase(columns, j0);
      for (int64_t i = 0; i < unit_rows; ++i) {
        for (int64_t q = 0; follows && phase == 0 && q < b.columns * w.step; ++q) {
          __builtin_prefetch(next + i * h.step * h.axis.x_stride + q * w.axis.x_stride, 0, 2);
        }
        apply(memory.x + i * h.step * band.pitch * lanes, taps, *counts, weights, bias,
              unit_columns, to + (i * h.phases + i0) * row_stride + j0 * pixel_stride,
              w.phases * pixel_stride);
      }
    }
    if (!direct)
      store_lines(memory.sums, rows, columns, b.channels, y, h.axis.y_stride, w.axis.y_stride,
                  v.y_channel);
  }
}

template <class S>
void run_forward(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  Band band(v);
  band.set(p.row_block, p.column_block);
  const int64_t phases = band.h.phases * band.w.phases;
  Scratch scratch(memory);
  const Workspace<A> workspace(scratch, v, band, p.row_block * p.column_block * phases);
  int64_t* const counts = scratch.take<int64_t>(band.d.phases * phases);
  const int64_t first = task % p.tap_blocks * p.tap_block;
  const int64_t end = smaller(vectors_of<A>(v), first + p.tap_block);
  const int64_t block = task / p.tap_blocks, pitch = (v.in * v.taps() + 1) * kLanes<A>;
  Block b = block_at<A>(v, band, p, block, first);
  band.set(b.rows, b.columns);
  TapAt* taps = workspace.taps;
  for (int64_t i = 0; i < band.d.phases * phases; ++i) {
    const int64_t phase[3] = {i / phases, i % phases / band.w.phases, i % band.w.phases};
    counts[i] = join_taps<A>(taps, find_taps<A>(v, band, phase, taps));
    taps += counts[i];
  }
  for (int64_t vector = first; vector < end; ++vector) {
    b.channel = vector * kLanes<A>;
    b.channels = smaller(kLanes<A>, v.groups * v.in - b.channel);
    run_vector<S>(v, band, b, workspace, counts, static_cast<const A*>(shared) + vector * pitch);
  }
}

// ---- the derivative by the weights

// sums[t] += the sum over rows and columns of y times what tap t sees.
template <class A, bool whole, int T>
void add_products(const A* x, int64_t x_row, const TapAt* taps, const A* y, int64_t y_row,
                  int64_t y_next, int64_t rows, int64_t columns, A* sums) {
  using Part = Sums<A, whole>;
  typename Part::Part sum[T][Part::parts] = {};
  for (int64_t i = 0; i < rows; ++i, x += x_row, y += y_row) {
    for (int64_t j = 0; j < columns; ++j) {
      const A* p = x + j * kLanes<A>;
#pragma GCC unroll 2
      for (int k = 0; k < Part::parts; ++k) {
        const auto g = Part::part(y + j * y_next, k);
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) sum[t][k] += g * Part::seen(p + taps[t].x, k);
      }
    }
  }
  for (int t = 0; t < T; ++t) {
    Vector<A> all;
    __builtin_memcpy(&all, sum[t], kLaneBytes);
    A* to = sums + t * kLanes<A>;
    store(to, load(to) + all);
  }
}

template <class A, bool whole, int T = kMostTaps>
void add_products_of(int64_t count, const A* x, int64_t x_row, const TapAt* taps, const A* y,
                     int64_t y_row, int64_t y_next, int64_t rows, int64_t columns, A* sums) {
  if (count == T)
    return add_products<A, whole, T>(x, x_row, taps, y, y_row, y_next, rows, columns, sums);
  if constexpr (T > 1)
    add_products_of<A, whole, T - 1>(count, x, x_row, taps, y, y_row, y_next, rows, columns, sums);
}
template <class A>
auto product_function(const Conv& v) {
  if constexpr (kLanes<A> >= kWholeGroup) {
    if (has_whole_groups<A>(v)) return add_products_of<A, true, kMostTaps>;
  }
  return add_products_of<A, false, kMostTaps>;
}

// Tasks have some blocks, by the shape alone, of one vector of channels.
template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  Band band(v);
  cut_band<A>(v, band, p);
  band.set(p.row_block, p.column_block);
  const int64_t taps = v.in * v.taps(), vectors = vectors_of<A>(v);
  const int64_t blocks = larger(1, blocks_of(v, band, p));
  p.depth_block = divide_up(blocks, smaller(blocks, divide_up(kChunks, vectors)));
  p.depth_chunks = divide_up(blocks, p.depth_block);
  p.tasks = p.depth_chunks * vectors;
  p.grain =
      larger(1, kTaskProducts / larger(1, p.depth_block * p.row_block * p.column_block * taps) /
                    kLanes<A>);
  p.shared_bytes = size_t(p.tasks * taps * kLaneBytes);
  p.scratch_bytes = Workspace<A>::bytes(v, band, p.row_block * p.column_block);
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  Band band(v);
  band.set(p.row_block, p.column_block);
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const int64_t vectors = vectors_of<A>(v), all = v.in * v.taps(), chunk = task / vectors;
  Scratch scratch(memory);
  const Workspace<A> workspace(scratch, v, band, p.row_block * p.column_block);
  A *const x = workspace.x, *const copy = workspace.sums;
  TapAt* const taps = workspace.taps;
  A* const sums = static_cast<A*>(shared) + task * all * lanes;
  for (int64_t i = 0; i < all * lanes; ++i) sums[i] = A(0);
  const int64_t at_once = divide_up(all, divide_up(all, kMostTaps));
  const int64_t phase[3] = {0, 0, 0};
  const auto add = product_function<A>(v);
  const int64_t end = smaller(blocks_of(v, band, p), (chunk + 1) * p.depth_block);
  for (int64_t block = chunk * p.depth_block; block < end; ++block) {
    const Block b = block_at<A>(v, band, p, block, task % vectors);
    band.set(b.rows, b.columns);
    fill_band<S>(v, band, b, workspace.lines, x);
    find_taps<A>(v, band, phase, taps);
    const S* y = static_cast<const S*>(v.y) + b.n * v.y_batch + b.channel * v.y_channel +
                 b.depth * v.axis[0].y_stride + b.row * h.y_stride + b.column * w.y_stride;
    const bool direct = kInPlace<S> && v.y_channel == 1 && b.channels == lanes;
    if (!direct)
      copy_lines(y, h.y_stride, w.y_stride, v.y_channel, b.rows, b.columns, b.channels, copy);
    for (int64_t t = 0; t < all; t += at_once) {
      add(smaller(at_once, all - t), x, h.step * band.pitch * lanes, taps + t,
          direct ? reinterpret_cast<const A*>(y) : copy, direct ? h.y_stride : b.columns * lanes,
          direct ? w.y_stride : lanes, b.rows, b.columns, sums + t * lanes);
    }
  }
}

template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  const int64_t taps = v.taps(), channels = v.groups * v.in;
  const int64_t count = vectors_of<A>(v) * v.in * taps * lanes;
  A* sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
  }
  for (int64_t channel = 0; channel < channels; channel += lanes) {
    const int64_t used = smaller(lanes, channels - channel);
    for (int64_t c = 0; c < v.in; ++c) {
      for (int64_t t = 0; t < taps; ++t, sums += lanes) {
        S* const to = weight_at<S>(v, channel / v.in, 0, c, t);
        for (int64_t i = 0; i < used; ++i) {
          to[i / v.in * v.w_group + i % v.in * v.w_out] = S(sums[i]);
        }
      }
    }
  }
}

struct Table : ConvTable {
  explicit constexpr Table(bool gradient) : ConvTable{} {
#define X(e, t, name, c)                                                                     \
  if constexpr (c == 2 && sizeof(t) > 1) {                                                   \
    if (gradient) of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_weight<t>};     \
    else of[int(DType::e)] = {plan_forward<t>, run_forward<t>, nullptr, prepare_forward<t>}; \
    lanes[int(DType::e)] = kLanes<Accumulator<t>>;                                           \
    turns[int(DType::e)] = kLanes<Accumulator<t>> == (kMaskable<t> ? 16 : 8) &&              \
                           (kMaskable<t> || std::is_same_v<t, float>);                       \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table forward_table(false), weight_table(true);

}  // namespace

const ConvTable* const conv_channelwise_table = &forward_table;
const ConvTable* const conv_channelwise_weight_table = &weight_table;

}  // namespace facula::FACULA_ISA
