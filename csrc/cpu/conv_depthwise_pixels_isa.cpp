// Convolutions of single channels that lie by pixels: forward, and the derivative by the weights.
// Vectors run along channels, and everything is read and written where it lies. All channels of a
// few pixels are handled before the next pixels, so memory is passed through in its own order;
// conv_channelwise_isa.cpp goes through all pixels for one vector of channels instead.
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kTaskProducts = 512 << 10;  // that are worth a thread
constexpr int64_t kMostChunks = 32;           // of partial sums
constexpr int64_t kColumns = 32;              // whose products are summed in registers
constexpr int64_t kGroup = 8;                 // outputs at once
constexpr int kJoined = 3;    // neighbouring taps that load every pixel once, for steps up to two
constexpr int kMostTaps = 9;  // whose sums stay in registers
constexpr int64_t kKernelRows = kMostTaps / kJoined;

// Where a tap finds its first pixel, seen from an output row's column 0, and its number. The
// `joined` taps from here on see neighbouring pixels and have neighbouring numbers.
struct TapAt {
  int64_t x, tap, joined;
};

// A part of one output row: columns [first, end) of row (n, d, h).
struct RowPart {
  RowPart(const Conv& v, const ConvPlan& p, int64_t task) {
    first = task % p.column_blocks * p.column_block;
    end = smaller(v.axis[2].out, first + p.column_block);
    task /= p.column_blocks;
    h = task % v.axis[1].out;
    task /= v.axis[1].out;
    d = task % v.axis[0].out;
    n = task / v.axis[0].out;
  }
  int64_t n, d, h, first, end;
};

// Columns [low, high) of an output row see the input through all taps of a kernel's row.
struct Inside {
  explicit Inside(const ConvAxis& w) {
    const int64_t far = (w.taps - 1) * w.spread;
    const int64_t least = w.start + smaller(far, 0), most = w.start + larger(far, 0);
    low = smaller(w.out, least < 0 ? divide_up(-least, w.step) : 0);
    high = larger(low, smaller(w.out, most < w.in ? (w.in - 1 - most) / w.step + 1 : 0));
  }
  int64_t low, high;
};

// The taps through which row (d, h) meets the input: at every column, or at `column` where that is
// not negative. Returns how many entries were written.
int64_t find_taps(const Conv& v, const RowPart& row, int64_t column, bool join, TapAt* taps) {
  const ConvAxis &d = v.axis[0], &h = v.axis[1], &w = v.axis[2];
  const TapAt* const begin = taps;
  for (int64_t i = 0; i < d.taps; ++i) {
    const int64_t z = row.d * d.step + d.start + i * d.spread;
    if (z < 0 || z >= d.in) continue;
    for (int64_t j = 0; j < h.taps; ++j) {
      const int64_t y = row.h * h.step + h.start + j * h.spread;
      if (y < 0 || y >= h.in) continue;
      for (int64_t k = 0; k < w.taps;) {
        const int64_t at = w.start + k * w.spread, seen = column * w.step + at;
        const bool inside = column < 0 || (seen >= 0 && seen < w.in);
        const int64_t joined = join && w.taps - k >= kJoined ? kJoined : 1;
        if (inside) {
          *taps++ = TapAt{z * d.x_stride + y * h.x_stride + at * w.x_stride,
                          (i * h.taps + j) * w.taps + k, joined};
        }
        k += joined;
      }
    }
  }
  return taps - begin;
}

// Calls f(c) for vectors that cover all channels; the last one may overlap the one before it.
template <class A, class F>
FACULA_INLINE void for_each_vector(int64_t channels, F f) {
  for (int64_t c = 0, left = channels; left > 0; left -= kLanes<A>, c += kLanes<A>) {
    f(smaller(c, channels - kLanes<A>));
  }
}

// Rows of the input that an output sees begin here.
template <class S>
FACULA_INLINE const S* input_of(const Conv& v, const RowPart& row) {
  return static_cast<const S*>(v.x) + row.n * v.x_batch;
}
template <class S>
FACULA_INLINE S* output_of(const Conv& v, const RowPart& row) {
  return static_cast<S*>(v.y) + row.n * v.y_batch + row.d * v.axis[0].y_stride +
         row.h * v.axis[1].y_stride;
}

void cut_rows(const Conv& v, ConvPlan& p) {
  const int64_t column = larger(1, v.groups * v.taps()), out = v.axis[2].out;
  p.column_block = larger(kColumns, round_up(kTaskProducts / column, kColumns));
  if (p.column_block >= out) p.column_block = larger(1, out);
  p.column_blocks = divide_up(out, p.column_block);
}
int64_t row_parts(const Conv& v, const ConvPlan& p) {
  return v.batch * v.axis[0].out * v.axis[1].out * p.column_blocks;
}

// ---- forward

void plan_forward_of(const Conv& v, size_t item, int64_t lanes, ConvPlan& p) {
  cut_rows(v, p);
  p.tasks = row_parts(v, p);
  p.grain = larger(1, kTaskProducts / larger(1, p.column_block * v.groups * v.taps()));
  p.prepare_tasks = 1;
  p.shared_bytes = size_t(divide_up(v.groups, lanes) * (v.taps() + 2) * lanes) * item;
  p.scratch_bytes =
      Scratch::bytes<TapAt>(v.taps()) + Scratch::bytes<const void*>(v.taps() * kGroup);
}
template <class S>
void plan_forward(const Conv& v, int, ConvPlan& p) {
  plan_forward_of(v, sizeof(Accumulator<S>), kLanes<Accumulator<S>>, p);
}

// A pixel of zeros, behind the weights.
template <class A>
A* zeros_of(const Conv& v, void* shared) {
  return static_cast<A*>(shared) + divide_up(v.groups, kLanes<A>) * (v.taps() + 1) * kLanes<A>;
}

// For each vector of channels its bias, then its weights by tap.
template <class S>
void prepare_forward(const Conv& v, const ConvPlan&, int64_t, void* shared) {
  using A = Accumulator<S>;
  A* to = static_cast<A*>(shared);
  for_each_vector<A>(v.groups, [&](int64_t c) {
    const S* const bias = static_cast<const S*>(v.bias);
    for (int64_t i = 0; i < kLanes<A>; ++i) *to++ = bias ? widen<A>(bias[c + i]) : A(0);
    for (int64_t t = 0; t < v.taps(); ++t) {
      const S* const from = weight_at<S>(v, c, 0, 0, t);
      for (int64_t i = 0; i < kLanes<A>; ++i) *to++ = widen<A>(from[i * v.w_group]);
    }
  });
  for (int64_t i = 0; i < v.groups; ++i) to[i] = A(0);
}

// What a group of outputs sees: pixels x_next apart from a tap's first on, or, where some of them
// are outside the input, the pixels that a list names, one tap after the other.
template <class S>
struct Seen {
  const S* x;
  int64_t x_pixel, x_next;  // between neighbouring pixels, and between those of two outputs
  const S* const* pixels;
  // Pixels that the next group is the first to see, which come from memory, and how far before them
  // the row above begins: with steps of two, it is new as well.
  const S* ahead;
  int64_t ahead_row;
};

// All channels of P outputs. Taps are joined for steps of one and two only.
template <class S, int P, bool listed, int step>
void apply_taps(const Seen<S>& seen, const TapAt* taps, int64_t count, int64_t all_taps,
                const Accumulator<S>* weights, int64_t channels, S* y, int64_t y_next) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  for_each_vector<A>(channels, [&](int64_t c) {
    Vector<A> sum[P];
    const Vector<A> bias = load(weights);
    const S* ahead = seen.ahead + c;
    // Where a cache line has two vectors, the second fetches the pixels between.
    if (step == 2 && lanes * sizeof(S) < 64 && c / lanes % 2 == 1) ahead -= seen.x_pixel;
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      sum[i] = bias;
      __builtin_prefetch(ahead + i * seen.x_next);
      if (step == 2) __builtin_prefetch(ahead - seen.ahead_row + i * seen.x_next);
    }
    const S* const* pixels = seen.pixels;
    for (const TapAt* t = taps; t < taps + count; ++t) {
      const S* from = seen.x + t->x + c;
      auto next = [&](int64_t apart) {
        if constexpr (listed) return load_wide(*pixels++ + c);
        const S* const at = from;
        from += apart;
        return load_wide(at);
      };
      const A* const w = weights + (t->tap + 1) * lanes;
      if (t->joined == 1) {
        const Vector<A> weight = load(w);
#pragma GCC unroll 8
        for (int i = 0; i < P; ++i) sum[i] += weight * next(seen.x_next);
      } else if constexpr (step == 2) {
        const Vector<A> first = load(w), second = load(w + lanes), third = load(w + 2 * lanes);
#pragma GCC unroll 32
        for (int i = 0; i < 2 * P + 1; ++i) {
          const Vector<A> x = next(seen.x_pixel);
          if (i % 2 == 1) sum[i / 2] += second * x;
          if (i % 2 == 0 && i >= 2) sum[i / 2 - 1] += third * x;
          if (i % 2 == 0 && i / 2 < P) sum[i / 2] += first * x;
        }
      } else {
        const Vector<A> first = load(w), second = load(w + lanes), third = load(w + 2 * lanes);
#pragma GCC unroll 16
        for (int i = 0; i < P + kJoined - 1; ++i) {
          const Vector<A> x = next(seen.x_pixel);
          if (i < P) sum[i] += first * x;
          if (i >= 1 && i - 1 < P) sum[i - 1] += second * x;
          if (i >= 2) sum[i - 2] += third * x;
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) store_wide(y + c + i * y_next, sum[i]);
    weights += (all_taps + 1) * lanes;
  });
}

// The pixels that outputs [column, column + count) see; `zeros` stand for those outside.
template <class S>
void list_pixels(const ConvAxis& w, const S* x, const TapAt* taps, int64_t tap_count,
                 int64_t column, int64_t count, const S* zeros, const S** to) {
  for (const TapAt* t = taps; t < taps + tap_count; ++t) {
    const int64_t first = column * w.step + w.start + t->tap % w.taps * w.spread;
    const int64_t apart = t->joined > 1 ? 1 : w.step, end = (count - 1) * w.step + t->joined;
    for (int64_t i = 0; i < end; i += apart) {
      const int64_t at = first + i;
      *to++ = at >= 0 && at < w.in ? x + t->x + (column * w.step + i) * w.x_stride : zeros;
    }
  }
}

template <class S, bool listed, int step>
auto apply_function(int64_t pixels) {
  return pixels == 8   ? apply_taps<S, 8, listed, step>
         : pixels == 7 ? apply_taps<S, 7, listed, step>
         : pixels == 4 ? apply_taps<S, 4, listed, step>
                       : apply_taps<S, 1, listed, step>;
}
template <class S>
auto apply_function(int64_t pixels, bool listed, int64_t step) {
  if (step == 2)
    return listed ? apply_function<S, true, 2>(pixels) : apply_function<S, false, 2>(pixels);
  return listed ? apply_function<S, true, 1>(pixels) : apply_function<S, false, 1>(pixels);
}

template <class S>
void run_forward(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  const ConvAxis& w = v.axis[2];
  Scratch scratch(memory);
  TapAt* const taps = scratch.take<TapAt>(v.taps());
  const S** const list = scratch.take<const S*>(v.taps() * kGroup);
  const A* const weights = static_cast<const A*>(shared);
  const S* const zeros = reinterpret_cast<const S*>(zeros_of<A>(v, shared));
  const RowPart row(v, p, task);
  const Inside inside(w);
  const S* const x = input_of<S>(v, row);
  S* const y = output_of<S>(v, row);
  const int64_t x_next = w.step * w.x_stride, columns = row.end - row.first;
  const int64_t count = find_taps(v, row, -1, w.step <= 2 && w.spread == 1, taps);
  const S* const ahead = x + (count ? taps[count - 1].x : 0) + kGroup * x_next;
  const int64_t ahead_row = count > 1 ? taps[count - 1].x - taps[count - 2].x : 0;
  // In groups that may overlap; images have rows of 7, 14 ...
  const int64_t most = columns % 8 != 0 && columns >= 7 ? 7 : columns >= 8 ? 8 : 1;
  for (int64_t j = row.first; j < row.end;) {
    const int64_t pixels = most > 1 && row.end - j > 4 ? most : columns >= 4 ? 4 : 1;
    j = smaller(j, row.end - pixels);
    const bool listed = j < inside.low || j + pixels > inside.high;
    if (listed) list_pixels(w, x, taps, count, j, pixels, zeros, list);
    apply_function<S>(pixels, listed, w.step)(
        Seen<S>{x + j * x_next, w.x_stride, x_next, list, ahead + j * x_next, ahead_row}, taps,
        count, v.taps(), weights, v.groups, y + j * w.y_stride, w.y_stride);
    j += pixels;
  }
}

// ---- the derivative by the weights

// A task has some parts of rows, by the shape alone, and sums of its own.
void plan_weight_of(const Conv& v, size_t item, int64_t lanes, ConvPlan& p) {
  cut_rows(v, p);
  const int64_t parts = row_parts(v, p), part = p.column_block * v.groups * v.taps();
  const int64_t least = larger(1, kTaskProducts / larger(1, part));
  p.depth_block = larger(least, divide_up(parts, kMostChunks));
  p.depth_chunks = larger(1, divide_up(parts, p.depth_block));
  p.tasks = p.depth_chunks;
  p.shared_bytes = size_t(p.tasks * divide_up(v.groups, lanes) * v.taps() * lanes) * item;
  p.scratch_bytes = Scratch::bytes<TapAt>(v.taps());
}
template <class S>
void plan_weight(const Conv& v, int, ConvPlan& p) {
  plan_weight_of(v, sizeof(Accumulator<S>), kLanes<Accumulator<S>>, p);
}

// The products of `columns` gradients with what T taps see are added to the sums of all channels.
template <class S, int T>
void add_products(const S* x, int64_t x_next, const TapAt* taps, const S* y, int64_t y_next,
                  int64_t columns, int64_t channels, int64_t all_taps, Accumulator<S>* sums) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  for_each_vector<A>(channels, [&](int64_t c) {
    Vector<A> sum[T] = {};
    const S *seen = x + c, *gradient = y + c;
    for (int64_t j = 0; j < columns; ++j, seen += x_next, gradient += y_next) {
      const Vector<A> g = load_wide(gradient);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sum[t] += g * load_wide(seen + taps[t].x);
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      A* const to = sums + taps[t].tap * lanes;
      store(to, load(to) + sum[t]);
    }
    sums += all_taps * lanes;
  });
}

// The same for kJoined neighbouring taps in each of R rows of a kernel, where steps are 1: every
// pixel is loaded once. Position p, which output p sees through the first of the taps, is inside
// the input for p in [low, high). The first `used` of the taps exist. Vectors of one channel are
// too far apart for processors to guess the next, so what the next row of outputs is the first to
// see, x_row and y_row further on, is fetched here.
template <class S, int R>
void add_joined(const S* x, int64_t x_next, int64_t x_row, const TapAt* rows, const S* y,
                int64_t y_next, int64_t y_row, int64_t columns, int64_t low, int64_t high,
                int64_t used, int64_t channels, int64_t all_taps, Accumulator<S>* sums) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  const int64_t begin = larger(low, kJoined - 1), end = larger(begin, smaller(high, columns));
  for_each_vector<A>(channels, [&](int64_t c) {
    Vector<A> sum[R][kJoined] = {};
    auto add_some = [&](int64_t from, int64_t to) {  // positions that not all taps have
      for (int64_t p = from; p < to; ++p) {
#pragma GCC unroll 4
        for (int k = 0; k < kJoined; ++k) {
          if (p < k || p - k >= columns) continue;
          const Vector<A> g = load_wide(y + c + (p - k) * y_next);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) sum[r][k] += g * load_wide(x + c + rows[r].x + p * x_next);
        }
      }
    };
    add_some(low, smaller(begin, high));
    if (begin < end) {
      const S *seen = x + c + begin * x_next, *gradient = y + c + begin * y_next;
      Vector<A> first = load_wide(gradient - y_next), second = load_wide(gradient - 2 * y_next);
      const int64_t ahead = rows[R - 1].x + x_row;
      for (int64_t p = begin; p < end; ++p, seen += x_next, gradient += y_next) {
        __builtin_prefetch(seen + ahead);
        __builtin_prefetch(gradient + y_row);
        const Vector<A> third = second;
        second = first;
        first = load_wide(gradient);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const Vector<A> at = load_wide(seen + rows[r].x);
          sum[r][0] += first * at;
          sum[r][1] += second * at;
          sum[r][2] += third * at;
        }
      }
    }
    add_some(end, high);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      for (int64_t k = 0; k < used; ++k) {
        A* const to = sums + (rows[r].tap + k) * lanes;
        store(to, load(to) + sum[r][k]);
      }
    }
    sums += all_taps * lanes;
  });
}

// What a task adds to its sums for one part of a row.
template <class S>
struct RowProducts {
  const Conv& v;
  const RowPart row;
  const S* const x = input_of<S>(v, row);
  const S* const y = output_of<S>(v, row);
  const int64_t x_next = v.axis[2].step * v.axis[2].x_stride, y_next = v.axis[2].y_stride;
  TapAt* const taps;
  Accumulator<S>* const sums;

  // Of `count` taps.
  void add(int64_t column, int64_t columns, int64_t count) const {
    for (int64_t t = 0; t < count;) {
      const int64_t left = count - t;
      const int64_t some = left >= kMostTaps ? kMostTaps : left >= 3 ? 3 : 1;
      (some == kMostTaps ? add_products<S, kMostTaps>
       : some == 3 ? add_products<S, 3>
                   : add_products<S, 1>)(x + column * x_next, x_next, taps + t, y + column * y_next,
                                         y_next, columns, v.groups, v.taps(), sums);
      t += some;
    }
  }

  void add_apart() const {
    const Inside inside(v.axis[2]);
    const int64_t low = smaller(larger(inside.low, row.first), row.end);
    const int64_t high = larger(low, smaller(inside.high, row.end));
    for (int64_t j = row.first; j < low; ++j) add(j, 1, find_taps(v, row, j, false, taps));
    const int64_t count = find_taps(v, row, -1, false, taps);
    for (int64_t j = low; j < high; j += kColumns) add(j, smaller(kColumns, high - j), count);
    for (int64_t j = high; j < row.end; ++j) add(j, 1, find_taps(v, row, j, false, taps));
  }

  void add_neighbours() const {
    const ConvAxis& w = v.axis[2];
    const int64_t kernel_rows = find_taps(v, row, -1, false, taps) / w.taps;
    const int64_t x_row = v.axis[1].step * v.axis[1].x_stride;
    int64_t block;
    cut(row.end - row.first, kColumns, 1, block);
    for (int64_t j = row.first; j < row.end; j += block) {
      const int64_t columns = smaller(block, row.end - j);
      for (int64_t k = 0; k < w.taps; k += kJoined) {
        const int64_t at = j + w.start + k;  // the input column of position 0
        const int64_t used = smaller(kJoined, w.taps - k);
        const int64_t low = larger(0, -at), high = smaller(columns + used - 1, w.in - at);
        for (int64_t r = 0; r < kernel_rows && low < high; r += kKernelRows) {
          const int64_t rows = smaller(kKernelRows, kernel_rows - r);
          TapAt some[kKernelRows];
          for (int64_t i = 0; i < rows; ++i) some[i] = taps[(r + i) * w.taps + k];
          (rows == 3   ? add_joined<S, 3>
           : rows == 2 ? add_joined<S, 2>
                       : add_joined<S, 1>)(x + j * x_next, x_next, x_row, some, y + j * y_next,
                                           y_next, v.axis[1].y_stride, columns, low, high, used,
                                           v.groups, v.taps(), sums);
        }
      }
    }
  }
};

template <class S>
void run_weight(const Conv& v, const ConvPlan& p, int64_t task, void* memory, void* shared) {
  using A = Accumulator<S>;
  const ConvAxis& w = v.axis[2];
  const int64_t size = divide_up(v.groups, kLanes<A>) * v.taps() * kLanes<A>;
  TapAt* const taps = Scratch(memory).take<TapAt>(v.taps());
  A* const sums = static_cast<A*>(shared) + task * size;
  for (int64_t i = 0; i < size; ++i) sums[i] = A(0);
  const bool neighbours = w.step == 1 && w.spread == 1 && w.taps >= kJoined;
  const int64_t end = smaller(row_parts(v, p), (task + 1) * p.depth_block);
  for (int64_t part = task * p.depth_block; part < end; ++part) {
    const RowProducts<S> products{.v = v, .row = RowPart(v, p, part), .taps = taps, .sums = sums};
    if (neighbours) products.add_neighbours();
    else products.add_apart();
  }
}

// Adds the sums of the chunks, in order. Channels that two vectors have are in both the same.
template <class S>
void finish_weight(const Conv& v, const ConvPlan& p, int64_t, void* shared) {
  using A = Accumulator<S>;
  constexpr int64_t lanes = kLanes<A>;
  const int64_t count = divide_up(v.groups, lanes) * v.taps() * lanes;
  A* sums = static_cast<A*>(shared);
  for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
  }
  for_each_vector<A>(v.groups, [&](int64_t c) {
    for (int64_t t = 0; t < v.taps(); ++t, sums += lanes) {
      S* const to = weight_at<S>(v, c, 0, 0, t);
      for (int64_t i = 0; i < lanes; ++i) to[i * v.w_group] = S(sums[i]);
    }
  });
}

struct Table : ConvTable {
  explicit constexpr Table(bool gradient) : ConvTable{} {
#define X(e, t, name, c)                                                                     \
  if constexpr (c == 2 && (sizeof(t) == 2 || sizeof(t) == 4) && kLoadable<t>) {              \
    if (gradient) of[int(DType::e)] = {plan_weight<t>, run_weight<t>, finish_weight<t>};     \
    else of[int(DType::e)] = {plan_forward<t>, run_forward<t>, nullptr, prepare_forward<t>}; \
    lanes[int(DType::e)] = kLanes<Accumulator<t>>;                                           \
  }
    FACULA_DTYPES(X)
#undef X
  }
};
constexpr Table forward_table(false), weight_table(true);

}  // namespace

const ConvTable* const conv_depthwise_pixels_table = &forward_table;
const ConvTable* const conv_depthwise_pixels_weight_table = &weight_table;

}  // namespace facula::FACULA_ISA
