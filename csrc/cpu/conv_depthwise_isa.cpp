// Convolutions with one or few input channels per group: too little to multiply for a matrix
// product, so taps are applied to whole vectors of pixels. conv_channelwise_isa.cpp does it along
// channels.
#include "cpu/conv_pack.h"

#include "cpu/conv_kernels.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBandBytes = 48 << 10;  // input rows that a task keeps, about the nearest cache
constexpr int64_t kBandColumns = 2048;
constexpr int64_t kGrainBytes = 64 << 10;  // results that are worth a thread
constexpr int64_t kMostChunks = 16;

// A part of an output plane, and the input that it sees, copied with its padding so that every tap
// is one offset. Input column q (counted from the first that a tap sees) is kept at q % step *
// phase
// + q / step of a row: neighbouring outputs find what they see side by side.
struct Band {
  int64_t rows, columns;        // of the output
  int64_t in_rows, in_columns;  // of the input; rows for each tap of the depth
  int64_t phase, pitch;

  template <class A>
  static Band make(const Conv& v, int64_t rows, int64_t columns) {
    const ConvAxis &h = v.axis[1], &w = v.axis[2];
    Band b;
    b.rows = rows;
    b.columns = columns;
    b.in_rows = (rows - 1) * h.step + reach(h);
    b.in_columns = (columns - 1) * w.step + reach(w);
    // Whole vectors are read.
    b.phase = round_up(columns, kLanes<A>) + round_up(reach(w) / w.step + 1, kLanes<A>);
    b.pitch = b.phase * w.step;
    return b;
  }
  static int64_t reach(const ConvAxis& a) {
    return (a.taps - 1) * (a.spread < 0 ? -a.spread : a.spread) + 1;
  }
  // The first input that an output sees, from its own place.
  static int64_t lowest(const ConvAxis& a) { return a.spread < 0 ? (a.taps - 1) * a.spread : 0; }
  int64_t elements(const Conv& v) const { return v.axis[0].taps * in_rows * pitch; }
};

// Copies a row of inputs that are `gap` apart, with zeros between them.
template <class S, class A>
void copy_spaced(const ConvAxis& w, const S* from, int64_t first, int64_t count, A* to) {
  const int64_t inputs = from ? (w.in - 1) / w.gap + 1 : 0;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (std::is_same_v<S, float>) {
    if (from && w.gap == 2 && w.x_stride == 1) {
      for (int64_t i = 0; i < count; i += 16) {
        const int64_t at = first + i, begin = (at + 1) >> 1;
        const uint32_t seen = first_bits(larger(smaller(inputs - begin, 8), 0)) &
                              ~first_bits(larger(smaller(-begin, 8), 0));
        const __m512 eight = (__m512)load_some(seen, from + begin);
        store(to + i, (Vector<float>)_mm512_maskz_expand_ps(at & 1 ? 0xaaaa : 0x5555, eight));
      }
      return;
    }
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<S, float>) {
    if (from && w.gap == 2 && w.x_stride == 1) {
      for (int64_t i = 0; i < count; i += 8) {
        const int64_t at = first + i, begin = (at + 1) >> 1;
        store(to + i, load_spaced_between(from + begin, -begin, inputs - begin, at & 1));
      }
      return;
    }
  }
#endif
  for (int64_t i = 0; i < count; ++i) to[i] = A(0);
  const int64_t begin = first < 0 ? 0 : (first + w.gap - 1) / w.gap;
  for (int64_t i = begin; i < inputs && i * w.gap < first + count; ++i) {
    to[i * w.gap - first] = widen<A>(from[i * w.x_stride]);
  }
}

// Which elements of a phase are columns of the input; element 0 would be column `at`.
struct Span {
  int64_t low, high;
  static Span make(const ConvAxis& w, const Band& band, int64_t at) {
    return {at < 0 ? (-at + w.step - 1) / w.step : 0,
            at < w.in ? smaller(band.phase, (w.in - 1 - at) / w.step + 1) : 0};
  }
};
constexpr int64_t kKnownSpans = 4;  // found once for a band: a division takes as long as a row

// Copies an input row from column `first` on; null stands for a row of zeros.
template <class S, class A>
void copy_row(const Conv& v, const Band& band, const Span* known, const S* from, int64_t first,
              A* to) {
  const ConvAxis& w = v.axis[2];
  if (w.gap > 1) return copy_spaced(w, from, first, band.phase, to);  // the step is 1
  for (int64_t p = 0; p < w.step; ++p, to += band.phase) {
    const int64_t at = first + p;
    const auto [low, high] = p < kKnownSpans ? known[p] : Span::make(w, band, at);
    if (!from || low >= high) {
      for (int64_t i = 0; i < band.phase; ++i) to[i] = A(0);
      continue;
    }
    const S* start = from + at * w.x_stride;
    const int64_t stride = w.step * w.x_stride;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (std::is_same_v<S, float>) {
      if (stride <= 2) {
        for (int64_t i = 0; i < band.phase; i += 16) {
          const uint32_t seen = first_bits(larger(smaller(high - i, 16), 0)) &
                                ~first_bits(larger(smaller(low - i, 16), 0));
          store(to + i,
                stride == 1 ? load_some(seen, start + i) : load_some_even(seen, start + 2 * i));
        }
        continue;
      }
    }
#endif
    copy_span(start, stride, low, high, band.phase, to);
  }
}

template <class S, class A>
void copy_band(const Conv& v, const Band& band, const S* plane, int64_t depth, int64_t row,
               int64_t column, A* to) {
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  const int64_t first = column * w.step + w.start + Band::lowest(w);
  Span known[kKnownSpans];
  for (int64_t p = 0; p < smaller(w.step, kKnownSpans); ++p)
    known[p] = Span::make(w, band, first + p);
  for (int64_t i = 0; i < d.taps; ++i) {
    const int64_t z = depth * d.step + d.start + i * d.spread;
    for (int64_t r = 0; r < band.in_rows; ++r, to += band.pitch) {
      const int64_t y = row * h.step + h.start + Band::lowest(h) + r;
      const bool inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
      copy_row(v, band, known, inside ? plane + z * d.x_stride + y * h.x_stride : nullptr, first,
               to);
    }
  }
}

// Where each tap is found in a band, seen from output (0, 0).
void band_offsets(const Conv& v, const Band& band, int64_t* offsets) {
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  for (int64_t k = 0; k < w.taps; ++k) {
    const int64_t q = k * w.spread - Band::lowest(w);
    const int64_t place = q % w.step * band.phase + q / w.step;
    for (int64_t i = 0; i < d.taps; ++i) {
      for (int64_t j = 0; j < h.taps; ++j) {
        const int64_t row = i * band.in_rows + j * h.spread - Band::lowest(h);
        offsets[(i * h.taps + j) * w.taps + k] = row * band.pitch + place;
      }
    }
  }
}

// How planes are cut into bands, for both directions.
template <class A>
void cut_planes(const Conv& v, ConvPlan& p) {
  p.column_block = smaller(v.axis[2].out, kBandColumns);
  p.column_blocks = divide_up(v.axis[2].out, p.column_block);
  const Band one = Band::make<A>(v, 1, p.column_block);
  const int64_t planes = v.in * v.axis[0].taps;
  const int64_t room = kBandBytes / int64_t(sizeof(A)) / one.pitch - one.in_rows * planes;
  p.row_block = 1 + larger(0, room) / (v.axis[1].step * planes);
  p.row_block = smaller(v.axis[1].out, round_up(p.row_block, 4));
  p.row_blocks = divide_up(v.axis[1].out, p.row_block);
}

// ---- forward

// M results of V vectors each, rows (x_row apart) or channels (w_row apart): the sum over the taps,
// of which `columns` lanes are stored.
template <class A, int M, int V>
void apply_taps(const A* x, int64_t x_row, const A* w, int64_t w_row, const int64_t* offsets,
                int64_t taps, const A* bias, int64_t bias_row, int64_t columns, A* out,
                int64_t out_row) {
  constexpr int64_t lanes = kLanes<A>;
  Vector<A> sum[M][V];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[m][v] = Vector<A>{} + bias[m * bias_row];
  }
  for (int64_t t = 0; t < taps; ++t) {
    const A* p = x + offsets[t];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      const A weight = w[t + m * w_row];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[m][v] += weight * load(p + m * x_row + v * lanes);
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V - 1; ++v) store(out + m * out_row + v * lanes, sum[m][v]);
    A* last = out + m * out_row + (V - 1) * lanes;
    if (columns == V * lanes) store(last, sum[m][V - 1]);
    else store_first(last, columns - (V - 1) * lanes, sum[m][V - 1]);
  }
}

constexpr int64_t kOutputs = 4;  // channels at once

// Up to kOutputs channels of a band; their weights and biases lie one behind the other, and whole
// vectors of results may be written with `whole`.
template <class A>
void apply_to_band(const Band& band, const A* x, int64_t x_row, const A* weights,
                   const int64_t* offsets, int64_t taps, const A* bias, int64_t channels,
                   bool whole, A* out, int64_t out_channel, int64_t out_row) {
  constexpr int64_t lanes = kLanes<A>;
  for (int64_t j = 0; j < band.columns; j += 4 * lanes, x += 4 * lanes, out += 4 * lanes) {
    const int64_t columns = smaller(4 * lanes, band.columns - j);
    // Several results at once hide the latency of the sums.
    auto all_results = [&]<int M, int V>() {
      const int64_t stored = whole ? V * lanes : columns;
      for (int64_t i = 0; channels == kOutputs && i < band.rows; ++i) {
        apply_taps<A, kOutputs, V>(x + i * x_row, 0, weights, taps, offsets, taps, bias, 1, stored,
                                   out + i * out_row, out_channel);
      }
      for (int64_t o = 0; channels < kOutputs && o < channels; ++o) {
        for (int64_t i = 0; i < band.rows;) {
          const bool several = i + M <= band.rows;
          (several ? apply_taps<A, M, V>
                   : apply_taps<A, 1, V>)(x + i * x_row, x_row, weights + o * taps, 0, offsets,
                                          taps, bias + o, 0, stored,
                                          out + o * out_channel + i * out_row, out_row);
          i += several ? M : 1;
        }
      }
    };
    switch (divide_up(columns, lanes)) {
      case 1: all_results.template operator()<4, 1>(); break;
      case 2: all_results.template operator()<4, 2>(); break;
      case 3: all_results.template operator()<2, 3>(); break;
      default: all_results.template operator()<2, 4>();
    }
  }
}

template <class S>
void plan_planes(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  cut_planes<A>(v, p);
  p.tasks = v.batch * v.groups * v.axis[0].out * p.row_blocks * p.column_blocks;
  p.grain = larger(1, kGrainBytes / int64_t(sizeof(A)) / (p.row_block * p.column_block * v.out));
  const int64_t taps = v.in * v.taps();
  p.scratch_bytes =
      Scratch::bytes<A>(v.in * Band::make<A>(v, p.row_block, p.column_block).elements(v)) +
      Scratch::bytes<A>(smaller(v.out, kOutputs) * p.row_block *
                        round_up(p.column_block, kLanes<A>)) +
      Scratch::bytes<A>(v.out * taps) + Scratch::bytes<A>(v.out) + Scratch::bytes<int64_t>(taps) +
      Scratch::bytes<int64_t>(v.taps());
}

template <class S>
void run_planes(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void*) {
  using A = Accumulator<S>;
  const ConvAxis &h = v.axis[1], &w = v.axis[2];
  const int64_t column = task % p.column_blocks * p.column_block;
  task /= p.column_blocks;
  const int64_t row = task % p.row_blocks * p.row_block;
  task /= p.row_blocks;
  const int64_t depth = task % v.axis[0].out;
  task /= v.axis[0].out;
  const int64_t group = task % v.groups, n = task / v.groups, taps = v.taps(), all = v.in * taps;
  const Band band =
      Band::make<A>(v, smaller(p.row_block, h.out - row), smaller(p.column_block, w.out - column));
  Scratch scratch(memory);
  A* const x = scratch.take<A>(v.in * Band::make<A>(v, p.row_block, p.column_block).elements(v));
  const int64_t sums_row = round_up(band.columns, kLanes<A>);
  A* const sums =
      scratch.take<A>(smaller(v.out, kOutputs) * p.row_block * round_up(p.column_block, kLanes<A>));
  A* const weights = scratch.take<A>(v.out * all);
  A* const bias = scratch.take<A>(v.out);
  int64_t* const offsets = scratch.take<int64_t>(all);
  int64_t* const places = scratch.take<int64_t>(taps);
  band_offsets(v, band, offsets);
  weight_offsets(v, places);
  for (int64_t c = 0; c < v.in; ++c) {
    copy_band(v, band,
              static_cast<const S*>(v.x) + n * v.x_batch + (group * v.in + c) * v.x_channel, depth,
              row, column, x + c * band.elements(v));
    for (int64_t t = 0; t < taps; ++t) offsets[c * taps + t] = offsets[t] + c * band.elements(v);
  }
  for (int64_t o = 0; o < v.out; ++o) {
    const S* kernel = static_cast<const S*>(v.w) + group * v.w_group + o * v.w_out;
    A* to = weights + o * all;
    for (int64_t c = 0; c < v.in; ++c, kernel += v.w_in) {
      for (int64_t t = 0; t < taps; ++t) *to++ = widen<A>(kernel[places[t]]);
    }
    bias[o] = v.bias ? widen<A>(static_cast<const S*>(v.bias)[group * v.out + o]) : A(0);
  }
  S* const y = static_cast<S*>(v.y) + n * v.y_batch + group * v.out * v.y_channel +
               depth * v.axis[0].y_stride + row * h.y_stride + column * w.y_stride;
  const bool direct = kInPlace<S> && w.y_stride == 1;
  for (int64_t o = 0; o < v.out; o += kOutputs) {
    const int64_t channels = smaller(kOutputs, v.out - o), sums_channel = band.rows * sums_row;
    S* const to = y + o * v.y_channel;
    apply_to_band(band, x, h.step * band.pitch, weights + o * all, offsets, all, bias + o, channels,
                  !direct, direct ? reinterpret_cast<A*>(to) : sums,
                  direct ? v.y_channel : sums_channel, direct ? h.y_stride : sums_row);
    for (int64_t i = 0; !direct && i < channels * band.rows; ++i) {
      store_row(sums + i * sums_row, band.columns,
                to + i / band.rows * v.y_channel + i % band.rows * h.y_stride, w.y_stride);
    }
  }
}

// ---- the derivative by the weights: for each tap, the sum of products with the shifted input

constexpr int kTapsAtOnce = 8;

template <class A, int T>
void add_products(const A* x, int64_t x_row, const A* y, int64_t y_row, int64_t rows,
                  int64_t vectors, const int64_t* offsets, A* sums) {
  Vector<A> sum[T] = {};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) {
      const Vector<A> g = load(y + i * y_row + j * kLanes<A>);
      const A* p = x + i * x_row + j * kLanes<A>;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t] += g * load(p + offsets[t]);
    }
  }
  for (int t = 0; t < T; ++t) {
    alignas(64) A lanes[kLanes<A>];
    store(lanes, sum[t]);
    for (int width = kLanes<A> / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    sums[t] += lanes[0];
  }
}

template <class A, int T = kTapsAtOnce>
void add_products_of(int64_t taps, const A* x, int64_t x_row, const A* y, int64_t y_row,
                     int64_t rows, int64_t vectors, const int64_t* offsets, A* sums) {
  if (taps == T) return add_products<A, T>(x, x_row, y, y_row, rows, vectors, offsets, sums);
  if constexpr (T > 1)
    add_products_of<A, T - 1>(taps, x, x_row, y, y_row, rows, vectors, offsets, sums);
}

template <class S>
void plan_weight_planes(const Conv& v, int, ConvPlan& p) {
  using A = Accumulator<S>;
  cut_planes<A>(v, p);
  p.depth_chunks = v.groups >= kMostChunks ? 1 : smaller(kMostChunks, larger(1, v.batch));
  p.depth_block = divide_up(v.batch, p.depth_chunks);
  p.tasks = v.groups * p.depth_chunks;
  p.grain =
      larger(1, kGrainBytes / int64_t(sizeof(A)) / larger(1, v.pixels() * v.out * p.depth_block));
  p.shared_bytes = sizeof(A) * size_t(p.tasks * v.out * v.taps());
  p.scratch_bytes = Scratch::bytes<A>(Band::make<A>(v, p.row_block, p.column_block).elements(v)) +
                    Scratch::bytes<A>(p.row_block * round_up(p.column_block, kLanes<A>)) +
                    Scratch::bytes<int64_t>(v.taps());
}

template <class S>
void run_weight_planes(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  const int64_t group = task % v.groups, chunk = task / v.groups, taps = v.taps();
  Scratch scratch(memory);
  A* const x = scratch.take<A>(Band::make<A>(v, p.row_block, p.column_block).elements(v));
  A* const y = scratch.take<A>(p.row_block * round_up(p.column_block, lanes));
  int64_t* const offsets = scratch.take<int64_t>(taps);
  A* const sums = static_cast<A*>(shared) + task * v.out * taps;
  for (int64_t t = 0; t < v.out * taps; ++t) sums[t] = A(0);

  const int64_t first = chunk * p.depth_block;
  for (int64_t n = first; n < smaller(v.batch, first + p.depth_block); ++n) {
    for (int64_t part = 0; part < d.out * p.row_blocks * p.column_blocks; ++part) {
      const int64_t column = part % p.column_blocks * p.column_block;
      const int64_t row = part / p.column_blocks % p.row_blocks * p.row_block;
      const int64_t depth = part / p.column_blocks / p.row_blocks;
      const Band band = Band::make<A>(v, smaller(p.row_block, h.out - row),
                                      smaller(p.column_block, w.out - column));
      copy_band(v, band, static_cast<const S*>(v.x) + n * v.x_batch + group * v.x_channel, depth,
                row, column, x);
      band_offsets(v, band, offsets);
      const int64_t y_row = round_up(band.columns, lanes);
      for (int64_t o = 0; o < v.out; ++o) {
        const S* from = static_cast<const S*>(v.y) + n * v.y_batch +
                        (group * v.out + o) * v.y_channel + depth * d.y_stride + row * h.y_stride +
                        column * w.y_stride;
        for (int64_t i = 0; i < band.rows; ++i) {
          copy_span(from + i * h.y_stride, w.y_stride, 0, band.columns, y_row, y + i * y_row);
        }
        for (int64_t t = 0; t < taps; t += kTapsAtOnce) {
          add_products_of<A>(smaller(kTapsAtOnce, taps - t), x, h.step * band.pitch, y, y_row,
                             band.rows, y_row / lanes, offsets + t, sums + o * taps + t);
        }
      }
    }
  }
}

template <class S>
void finish_weight_planes(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  const int64_t taps = v.taps(), count = v.groups * v.out * taps;
  const A* const sums = static_cast<const A*>(shared);
  for (int64_t i = 0; i < count; ++i) {
    A sum = sums[i];
    for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) sum += sums[chunk * count + i];
    *weight_at<S>(v, i / taps / v.out, i / taps % v.out, 0, i % taps) = S(sum);
  }
}

struct ForwardTable : ConvTable {
  constexpr ForwardTable() : ConvTable{} {
#define X(e, t, name, c) \
  if constexpr (c == 2 && sizeof(t) > 1) of[int(DType::e)] = {plan_planes<t>, run_planes<t>};
    FACULA_DTYPES(X)
#undef X
  }
};
struct WeightTable : ConvTable {
  constexpr WeightTable() : ConvTable{} {
#define X(e, t, name, c)                 \
  if constexpr (c == 2 && sizeof(t) > 1) \
    of[int(DType::e)] = {plan_weight_planes<t>, run_weight_planes<t>, finish_weight_planes<t>};
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr ForwardTable forward_table;
constexpr WeightTable weight_table;

}  // namespace

const ConvTable* const conv_depthwise_table = &forward_table;
const ConvTable* const conv_depthwise_weight_table = &weight_table;

}  // namespace facula::FACULA_ISA
