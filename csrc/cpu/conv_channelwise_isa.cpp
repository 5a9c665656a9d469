// Convolutions with 1, 2, 4 or 8 channels per group, as many outputs as inputs, where channels are
// contiguous: all taps of a vector of channels, which has whole groups, at once.
// conv_depthwise_isa.cpp has the other layouts.
#include "cpu/conv_pack.h"

#include <utility>

#include "cpu/conv_kernels.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kTaskElements = 64 << 10;  // results that are worth a task
constexpr int64_t kMostChunks = 16;
constexpr int kMostChannels = 8;  // of a group

// Taps [low, high) of the width that output `column` sees.
struct Range {
  int64_t low, high;
};
FACULA_INLINE Range seen_taps(const ConvAxis& a, int64_t column) {
  const int64_t at = column * a.step + a.start;
  Range r{0, a.taps};
  while (r.low < r.high && (at + r.low * a.spread < 0 || at + r.low * a.spread >= a.in)) ++r.low;
  while (r.low < r.high &&
         (at + (r.high - 1) * a.spread < 0 || at + (r.high - 1) * a.spread >= a.in))
    --r.high;
  return r;
}
// The outputs [low, high) that see all taps of the width.
FACULA_INLINE Range inner_columns(const ConvAxis& a) {
  Range r{0, a.out};
  auto whole = [&](int64_t column) {
    const Range taps = seen_taps(a, column);
    return taps.low == 0 && taps.high == a.taps;
  };
  while (r.low < r.high && !whole(r.low)) ++r.low;
  while (r.low < r.high && !whole(r.high - 1)) --r.high;
  return r;
}

// One row of taps (fixed in depth and height) that an output row sees.
struct TapRow {
  int64_t tap;     // number of its first tap
  int64_t offset;  // of the input row
};

template <class F>
FACULA_INLINE void for_each_tap_row(const Conv& v, int64_t depth, int64_t row, F f) {
  const ConvAxis &d = v.axis[0], &h = v.axis[1];
  for (int64_t i = 0; i < d.taps; ++i) {
    const int64_t z = depth * d.step + d.start + i * d.spread;
    for (int64_t j = 0; j < h.taps; ++j) {
      const int64_t y = row * h.step + h.start + j * h.spread;
      if (z < 0 || z >= d.in || y < 0 || y >= h.in) continue;
      f(TapRow{(i * h.taps + j) * v.axis[2].taps, z * d.x_stride + y * h.x_stride});
    }
  }
}

FACULA_INLINE int64_t channels_of(const Conv& v) {
  return v.groups * v.in;
}

// Vectors of channels start here; the last two may overlap, by whole groups.
template <class A>
FACULA_INLINE int64_t vector_start(int64_t channels, int64_t i) {
  return smaller(i * kLanes<A>, channels - kLanes<A>);
}

// Channel C of each group, in all lanes of the group's G channels.
template <int G, int C, class A, int... I>
FACULA_INLINE Vector<A> spread_lanes(Vector<A> x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (I / G * G + C)...);
}
template <int G, int C, class A>
FACULA_INLINE Vector<A> spread(Vector<A> x) {
  if constexpr (G == 1) return x;
  else return spread_lanes<G, C, A>(x, std::make_integer_sequence<int, kLanes<A>>());
}

// f.operator()<C>() for each channel C of a group.
template <int... C, class F>
FACULA_INLINE void for_each_channel(std::integer_sequence<int, C...>, F f) {
  (f.template operator()<C>(), ...);
}

// f.operator()<G>() with the channels of a group, where a vector has whole groups.
template <class A, int G = 1, class F>
FACULA_INLINE void with_group(int64_t channels, F f) {
  if constexpr (G <= kLanes<A> && G <= kMostChannels) {
    if (channels == G) return f.template operator()<G>();
    with_group<A, 2 * G>(channels, f);
  }
}

// ---- forward

// The results of P neighbouring pixels for one vector of channels. `taps` of the width are applied,
// the first of which finds its input at x.
template <class S, int P, int G>
void apply_taps(const Conv& v, const S* x, const TapRow* rows, int64_t row_count, Range taps,
                const Accumulator<S>* w, Vector<Accumulator<S>> bias, S* y) {
  using A = Accumulator<S>;
  const ConvAxis& a = v.axis[2];
  const int64_t pixel = a.step * a.x_stride, tap = a.spread * a.x_stride;
  const int64_t channels = channels_of(v);
  Vector<A> sum[P];
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) sum[i] = bias;
  for (int64_t r = 0; r < row_count; ++r) {
    const S* from = x + rows[r].offset;
    const A* weights = w + (rows[r].tap + taps.low) * G * channels;
    for (int64_t k = taps.low; k < taps.high; ++k) {
      Vector<A> seen[P];
#pragma GCC unroll 8
      for (int i = 0; i < P; ++i) seen[i] = load_wide(from + k * tap + i * pixel);
      for_each_channel(std::make_integer_sequence<int, G>(), [&]<int C>() {
        const Vector<A> weight = load(weights);
        weights += channels;
#pragma GCC unroll 8
        for (int i = 0; i < P; ++i) sum[i] += weight * spread<G, C, A>(seen[i]);
      });
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
    if constexpr (kInPlace<S>) {
      store(reinterpret_cast<A*>(y + i * a.y_stride), sum[i]);
    } else {
      alignas(64) A lanes[kLanes<A>];
      store(lanes, sum[i]);
      store_row(lanes, kLanes<A>, y + i * a.y_stride, 1);
    }
  }
}

template <class S>
void plan_forward(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  const int64_t rows = v.batch * v.axis[0].out * v.axis[1].out;
  p.row_block = larger(1, kTaskElements / (channels_of(v) * v.in * v.axis[2].out));
  p.row_blocks = divide_up(rows, p.row_block);
  p.tasks = p.row_blocks;
  p.scratch_bytes = Scratch::bytes<A>(v.taps() * v.in * channels_of(v)) +
                    Scratch::bytes<A>(channels_of(v)) +
                    Scratch::bytes<TapRow>(v.axis[0].taps * v.axis[1].taps);
}

// w[t][input channel of the group][output channel], so that a vector of channels is contiguous.
template <class S, class A>
void pack_weights(const Conv& v, A* to) {
  const S* w = static_cast<const S*>(v.w);
  for (int64_t t = 0; t < v.taps(); ++t) {
    const TapPlace at(v, t);
    const S* from =
        w + at.d * v.axis[0].w_stride + at.h * v.axis[1].w_stride + at.w * v.axis[2].w_stride;
    for (int64_t c = 0; c < v.in; ++c, from += v.w_in) {
      for (int64_t g = 0; g < v.groups; ++g) {
        for (int64_t o = 0; o < v.out; ++o) *to++ = widen<A>(from[g * v.w_group + o * v.w_out]);
      }
    }
  }
}

template <class S, int G>
void run_forward_of(const Conv& v, const ConvPlan& p, int64_t task, void* memory) {
  using A = Accumulator<S>;
  constexpr int wide = G == 1 ? 8 : 4;
  const int64_t most =
      v.taps() <= 4 ? wide : 4;  // pixels at once: more where there is little to do
  const int64_t channels = channels_of(v);
  const ConvAxis& a = v.axis[2];
  Scratch scratch(memory);
  A* const w = scratch.take<A>(v.taps() * G * channels);
  A* const bias = scratch.take<A>(channels);
  TapRow* const tap_rows = scratch.take<TapRow>(v.axis[0].taps * v.axis[1].taps);
  pack_weights<S>(v, w);
  for (int64_t c = 0; c < channels; ++c) {
    bias[c] = v.bias ? widen<A>(static_cast<const S*>(v.bias)[c]) : A(0);
  }
  const Range inner = inner_columns(a);
  const int64_t vectors = divide_up(channels, kLanes<A>);
  const int64_t all = v.batch * v.axis[0].out * v.axis[1].out;
  for (int64_t i = task * p.row_block; i < smaller(all, (task + 1) * p.row_block); ++i) {
    const int64_t row = i % v.axis[1].out, depth = i / v.axis[1].out % v.axis[0].out;
    const int64_t n = i / v.axis[1].out / v.axis[0].out;
    int64_t row_count = 0;
    for_each_tap_row(v, depth, row, [&](const TapRow& r) { tap_rows[row_count++] = r; });
    const S* x = static_cast<const S*>(v.x) + n * v.x_batch + a.start * a.x_stride;
    S* y = static_cast<S*>(v.y) + n * v.y_batch + depth * v.axis[0].y_stride +
           row * v.axis[1].y_stride;
    // Channels are the inner loop: memory is read in its order.
    for (int64_t column = 0; column < a.out;) {
      const int64_t run = column >= inner.low ? inner.high - column : 0;
      const int64_t pixels = run >= most ? most : run >= 4 ? 4 : 1;
      const auto apply = pixels == 1   ? apply_taps<S, 1, G>
                         : pixels == 4 ? apply_taps<S, 4, G>
                                       : apply_taps<S, wide, G>;
      const Range taps = pixels > 1 ? Range{0, a.taps} : seen_taps(a, column);
      for (int64_t k = 0; k < vectors; ++k) {
        const int64_t c = vector_start<A>(channels, k);
        const S* from = x + column * a.step * a.x_stride + c;
        apply(v, from, tap_rows, row_count, taps, w + c, load(bias + c),
              y + column * a.y_stride + c);
      }
      column += pixels;
    }
  }
}

template <class S>
void run_forward(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void*) {
  with_group<Accumulator<S>>(v.in, [&]<int G>() { run_forward_of<S, G>(v, p, task, memory); });
}

// ---- the derivative by the weights

// So that the sums stay in registers.
template <int G>
constexpr int kTapsAtOnce = G == 1   ? 8
                            : G == 8 ? 3
                                     : 4;

// Sums are kept by vectors of input channels, `pitch` of them for each tap and output of a group,
// since vectors may overlap.
template <class A>
FACULA_INLINE int64_t sums_pitch(const Conv& v) {
  return round_up(channels_of(v), kLanes<A>);
}

// sums[t][o] += the sum over `count` pixels of y of output o times what tap t sees, for T
// neighbouring taps.
template <class S, int T, int G>
void add_products(const Conv& v, const S* x, const S* y, int64_t count, Accumulator<S>* sums) {
  using A = Accumulator<S>;
  const int64_t pitch = sums_pitch<A>(v);
  const ConvAxis& a = v.axis[2];
  const int64_t pixel = a.step * a.x_stride, tap = a.spread * a.x_stride;
  Vector<A> sum[T * G];
#pragma GCC unroll 32
  for (int i = 0; i < T * G; ++i) sum[i] = load(sums + i * pitch);
  for (; count > 0; --count, x += pixel, y += a.y_stride) {
    const Vector<A> g = load_wide(y);
    Vector<A> seen[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) seen[t] = load_wide(x + t * tap);
    for_each_channel(std::make_integer_sequence<int, G>(), [&]<int O>() {
      const Vector<A> of_output = spread<G, O, A>(g);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t * G + O] += of_output * seen[t];
    });
  }
#pragma GCC unroll 32
  for (int i = 0; i < T * G; ++i) store(sums + i * pitch, sum[i]);
}

template <class S, int G, int T = kTapsAtOnce<G>>
void add_products_of(int64_t taps, const Conv& v, const S* x, const S* y, int64_t count,
                     Accumulator<S>* sums) {
  if (taps == T) return add_products<S, T, G>(v, x, y, count, sums);
  if constexpr (T > 1) add_products_of<S, G, T - 1>(taps, v, x, y, count, sums);
}

template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  const int64_t rows = v.batch * v.axis[0].out * v.axis[1].out;
  p.depth_chunks = smaller(kMostChunks, larger(1, rows));
  p.depth_block = divide_up(rows, p.depth_chunks);
  p.tasks = p.depth_chunks;
  p.grain =
      larger(1, kTaskElements / larger(1, p.depth_block * v.axis[2].out * channels_of(v) * v.out));
  p.shared_bytes = sizeof(A) * size_t(p.tasks * v.taps() * v.out * sums_pitch<A>(v));
}

template <class S, int G>
void run_weight_of(const Conv& v, const ConvPlan& p, int64_t task, void* shared) {
  using A = Accumulator<S>;
  const ConvAxis& a = v.axis[2];
  const int64_t pitch = sums_pitch<A>(v), count = v.taps() * G * pitch;
  const int64_t channels = channels_of(v), vectors = pitch / kLanes<A>;
  A* const sums = static_cast<A*>(shared) + task * count;
  for (int64_t i = 0; i < count; ++i) sums[i] = A(0);
  const Range inner = inner_columns(a);
  const int64_t all = v.batch * v.axis[0].out * v.axis[1].out;
  for (int64_t i = task * p.depth_block; i < smaller(all, (task + 1) * p.depth_block); ++i) {
    const int64_t row = i % v.axis[1].out, depth = i / v.axis[1].out % v.axis[0].out;
    const int64_t n = i / v.axis[1].out / v.axis[0].out;
    const S* x = static_cast<const S*>(v.x) + n * v.x_batch + a.start * a.x_stride;
    const S* y = static_cast<const S*>(v.y) + n * v.y_batch + depth * v.axis[0].y_stride +
                 row * v.axis[1].y_stride;
    for_each_tap_row(v, depth, row, [&](const TapRow& r) {
      for (int64_t k = 0; k < vectors; ++k) {
        const int64_t c = vector_start<A>(channels, k);
        const S* from = x + r.offset + c;
        A* to = sums + r.tap * G * pitch + k * kLanes<A>;
        auto one = [&](int64_t column) {
          const Range taps = seen_taps(a, column);
          for (int64_t t = taps.low; t < taps.high; ++t) {
            add_products<S, 1, G>(v,
                                  from + column * a.step * a.x_stride + t * a.spread * a.x_stride,
                                  y + column * a.y_stride + c, 1, to + t * G * pitch);
          }
        };
        for (int64_t column = 0; column < inner.low; ++column) one(column);
        for (int64_t t = 0; t < a.taps; t += kTapsAtOnce<G>) {
          add_products_of<S, G>(smaller(kTapsAtOnce<G>, a.taps - t), v,
                                from + inner.low * a.step * a.x_stride + t * a.spread * a.x_stride,
                                y + inner.low * a.y_stride + c, inner.high - inner.low,
                                to + t * G * pitch);
        }
        for (int64_t column = inner.high; column < a.out; ++column) one(column);
      }
    });
  }
}

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void*, void* shared) {
  with_group<Accumulator<S>>(v.in, [&]<int G>() { run_weight_of<S, G>(v, p, task, shared); });
}

template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, void* shared) {
  using A = Accumulator<S>;
  const int64_t pitch = sums_pitch<A>(v), rows = v.taps() * v.out;
  A* const sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < rows * pitch; ++i) sums[i] += sums[chunk * rows * pitch + i];
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < pitch; k += kLanes<A>) {
      const int64_t first = vector_start<A>(channels_of(v), k / kLanes<A>);
      for (int64_t i = k - first; i < kLanes<A>; ++i) {
        const int64_t channel = first + i;
        *weight_at<S>(v, channel / v.in, row % v.out, channel % v.in, row / v.out) =
            S(sums[row * pitch + k + i]);
      }
    }
  }
}

struct ForwardTable : ConvTable {
  constexpr ForwardTable() : ConvTable{} {
#define X(e, t, name, c)                                     \
  if constexpr (c == 2 && sizeof(t) > 1) {                   \
    if constexpr (kLoadable<t>) {                            \
      of[int(DType::e)] = {plan_forward<t>, run_forward<t>}; \
      lanes[int(DType::e)] = kLanes<Accumulator<t>>;         \
    }                                                        \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
struct WeightTable : ConvTable {
  constexpr WeightTable() : ConvTable{} {
#define X(e, t, name, c)                                                     \
  if constexpr (c == 2 && sizeof(t) > 1) {                                   \
    if constexpr (kLoadable<t>) {                                            \
      of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_weight<t>}; \
      lanes[int(DType::e)] = kLanes<Accumulator<t>>;                         \
    }                                                                        \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr ForwardTable forward_table;
constexpr WeightTable weight_table;

}  // namespace

const ConvTable* const conv_channelwise_table = &forward_table;
const ConvTable* const conv_channelwise_weight_table = &weight_table;

}  // namespace facula::FACULA_ISA
