// The forward pass of max pooling; built once per ISA.
#include "cpu/half_lanes.h"
#include "cpu/max_pool.h"
#include "cpu/pool_rows.h"
#include "cpu/reduce_loop.h"

namespace facula::FACULA_ISA {
namespace {

// What windows are compared in, and the lanes that count taps beside it.
template <class S>
struct Compute {
  using type = S;
};
template <>
struct Compute<Half> {
  using type = float;
};
template <>
struct Compute<BFloat16> {
  using type = float;
};
template <>
struct Compute<uint8_t> {
  using type = int32_t;
};
template <>
struct Compute<int8_t> {
  using type = int32_t;
};
template <>
struct Compute<int16_t> {
  using type = int32_t;
};
template <>
struct Compute<uint16_t> {
  using type = int32_t;
};
template <>
struct Compute<uint32_t> {
  using type = int64_t;
};
template <class A>
using Lane = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;

template <class A>
constexpr A lowest() {
  if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
  else return std::numeric_limits<A>::min();
}

template <class A>
FACULA_INLINE void update(A& best, Lane<A>& where, A v, Lane<A> tap) {
  const bool better = (v > best) | (v != v);
  best = better ? v : best;
  where = better ? tap : where;
}

// The larger ones, or NaN.
template <class V>
FACULA_INLINE V larger(V a, V b) {
  const V most = a > b ? a : b;  // b where one is NaN
  return a != a ? a : most;
}

// A few taps of all windows of a row in one pass over what was found so far; only values, which may
// be the first ones.
template <class A, class... Row>
void update_values(A* best, bool fresh, int64_t n, const A* first, const Row*... from) {
  if constexpr (sizeof...(Row) < 5)
    if (!fresh) return update_values(best, true, n, static_cast<const A*>(best), first, from...);
  int64_t t = 0;
  for (; t + kLanes<A> <= n; t += kLanes<A>) {
    auto most = wide_at(first + t);
    ((most = larger(most, wide_at(from + t))), ...);
    __builtin_memcpy(best + t, &most, sizeof most);
  }
  for (; t < n; ++t) {
    A most = first[t];
    ((most = larger(most, from[t])), ...);
    best[t] = most;
  }
}
template <class A, class... Row>
void update_row(A* best, Lane<A>* where, int64_t n, Lane<A> tap, const Row*... from) {
#pragma GCC ivdep
  for (int64_t t = 0; t < n; ++t) {
    A most = best[t];
    Lane<A> at = where[t];
    Lane<A> number = tap;
    (update(most, at, from[t], number++), ...);
    best[t] = most;
    where[t] = at;
  }
}

template <class S, class A>
void store(const A* best, const Lane<A>* where, int64_t n, S* y, void* taps, bool bytes,
           int64_t at) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[at + i] = convert<S>(best[i]);
  if (!taps) return;
  if (bytes) {
    uint8_t* to = static_cast<uint8_t*>(taps) + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = uint8_t(where[i]);
  } else {
    int32_t* to = static_cast<int32_t*>(taps) + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = int32_t(where[i]);
  }
}

// The taps of window t on the input: [first, last).
struct Seen {
  int64_t first, last;
};
FACULA_INLINE Seen seen(const PoolAxis& a, int64_t t) {
  const int64_t at = t * a.step - a.pad;
  const int64_t first = at < 0 ? (-at + a.spread - 1) / a.spread : 0;
  const int64_t last = at < a.in ? smaller(a.taps, (a.in - 1 - at) / a.spread + 1) : 0;
  return {first, last};
}

// A stretch of a row of windows, which `w` describes, over a plane whose pixels lie side by side.
// Input rows are copied with their padding, split by column % step, so that a tap is the same
// offset for all windows.
template <class S, class A>
void plain_row(const MaxPool& p, const PoolAxis& w, const S* plane, int64_t depth, int64_t row,
               S* y, void* taps, int64_t at, A* line, A* best, Lane<A>* where) {
  const PoolAxis &d = p.axis[0], &h = p.axis[1];
  const Seen z = seen(d, depth), v = seen(h, row);
  const SplitRow split(w);
  const Lane<A> start = Lane<A>(
      ((z.first < d.taps ? z.first : 0) * h.taps + (v.first < h.taps ? v.first : 0)) * w.taps);
  const bool any = z.first < z.last && v.first < v.last;
  for (int64_t i = 0; (where || !any) && i < w.out; ++i) best[i] = lowest<A>();
  for (int64_t i = 0; where && i < w.out; ++i) where[i] = start;
  // Windows that begin in the padding: their first tap on the input.
  for (int64_t i = 0; where && i < w.out && i * w.step < w.pad; ++i) {
    const Seen c = seen(w, i);
    where[i] = start + Lane<A>(c.first < w.taps ? c.first : 0);
  }
  for (int64_t k = z.first; k < z.last; ++k) {
    const int64_t iz = depth * d.step - d.pad + k * d.spread;
    for (int64_t j = v.first; j < v.last; ++j) {
      const int64_t iy = row * h.step - h.pad + j * h.spread;
      split.copy(plane + (iz * h.in + iy) * w.in, line, lowest<A>());
      const Lane<A> tap = Lane<A>((k * h.taps + j) * w.taps);
      auto from = [&](int64_t i) {
        return static_cast<const A*>(line) + split.offset(i * w.spread);
      };
      int64_t i = 0;
      if constexpr (std::is_floating_point_v<A>)
        for (bool fresh = k == z.first && j == v.first; !where && i < w.taps; fresh = false) {
          auto take = [&](auto... number) {
            update_values(best, fresh, w.out, from(i + number)...);
            i += int64_t(sizeof...(number));
          };
          const int64_t left = w.taps - i;
          if (left >= 5) take(0, 1, 2, 3, 4);
          else if (left == 4) take(0, 1, 2, 3);
          else if (left == 3) take(0, 1, 2);
          else if (left == 2) take(0, 1);
          else take(0);
        }
      for (; i + 3 <= w.taps; i += 3)
        update_row(best, where, w.out, Lane<A>(tap + i), from(i), from(i + 1), from(i + 2));
      for (; i + 2 <= w.taps; i += 2)
        update_row(best, where, w.out, Lane<A>(tap + i), from(i), from(i + 1));
      for (; i < w.taps; ++i) update_row(best, where, w.out, Lane<A>(tap + i), from(i));
    }
  }
  if (reinterpret_cast<const void*>(best) != y + at)
    store(best, where, w.out, y, taps, p.taps() <= kMostByteTaps, at);
}

// ---- channels side by side

template <class A, class S>
FACULA_INLINE typename WideOf<A>::type lanes_of(const S* x, int64_t n) {
  if constexpr (std::is_same_v<A, S>)
    if (n >= kLanes<A>) return wide_at(x);
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>)
    if (n >= kLanes<A>) return read_halves(x);
  A each[kLanes<A>] = {};
  if (n >= kLanes<A>)
    for (int64_t m = 0; m < kLanes<A>; ++m) each[m] = A(x[m]);
  else
    for (int64_t m = 0; m < n; ++m) each[m] = A(x[m]);
  return wide_at(each);
}

// The taps of one window that are on the input, along three axes: how many there are, how far apart
// in pixels, and by how much their numbers differ.
struct Walk {
  int64_t count[3], pixel[3], number[3];
};

// For each channel of a window, its largest element and that one's number, in blocks of channels:
// found(first channel, channels, values, numbers).
template <class A, class S, class F>
FACULA_INLINE void best_of_window(const Walk& w, const S* x, int64_t inner, int64_t start,
                                  F&& found) {
  using V = typename WideOf<A>::type;
  using N = typename WideOf<Lane<A>>::type;
  if constexpr (std::is_integral_v<A>) {  // rare: not worth vectors of eight types
    for (int64_t from = 0; from < inner; ++from) {
      A best = lowest<A>();
      Lane<A> where = Lane<A>(start);
      for (int64_t k = 0; k < w.count[0]; ++k)
        for (int64_t j = 0; j < w.count[1]; ++j)
          for (int64_t i = 0; i < w.count[2]; ++i) {
            const int64_t pixel = k * w.pixel[0] + j * w.pixel[1] + i * w.pixel[2];
            const A v = A(x[pixel * inner + from]);
            if (v <= best) continue;
            best = v;
            where = Lane<A>(start + k * w.number[0] + j * w.number[1] + i * w.number[2]);
          }
      found(from, 1, &best, &where);
    }
    return;
  }
  for (int64_t from = 0; from < inner; from += kLanes<A>) {
    // The last block is whole, too: some channels are computed twice.
    if (from + kLanes<A> > inner && inner >= kLanes<A>) from = inner - kLanes<A>;
    const int64_t n = inner - from;
    V best = V{} + lowest<A>();
    N where = N{} + Lane<A>(start);
    for (int64_t k = 0; k < w.count[0]; ++k)
      for (int64_t j = 0; j < w.count[1]; ++j) {
        const S* at = x + (k * w.pixel[0] + j * w.pixel[1]) * inner + from;
        Lane<A> number = Lane<A>(start + k * w.number[0] + j * w.number[1]);
        for (int64_t i = 0; i < w.count[2]; ++i, at += w.pixel[2] * inner) {
          const V v = lanes_of<A>(at, n);
          const auto better = (v > best) | (v != v);
          best = better ? v : best;
          where = better ? N{} + number : where;
          number = Lane<A>(number + w.number[2]);
        }
      }
    A values[kLanes<A>];
    Lane<A> numbers[kLanes<A>];
    __builtin_memcpy(values, &best, sizeof best);
    __builtin_memcpy(numbers, &where, sizeof where);
    found(from, smaller(n, kLanes<A>), values, numbers);
  }
}

// One row of windows.
template <class S, class A>
void channels_row(const MaxPool& p, const S* image, int64_t depth, int64_t row, S* y, void* taps,
                  int64_t at) {
  const PoolAxis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  const Seen z = seen(d, depth), v = seen(h, row);
  const bool bytes = p.taps() <= kMostByteTaps;
  for (int64_t t = 0; t < w.out; ++t, at += p.inner) {
    const Seen c = seen(w, t);
    const bool any = z.first < z.last && v.first < v.last && c.first < c.last;
    const int64_t start = any ? (z.first * h.taps + v.first) * w.taps + c.first : 0;
    const Walk walk{{any ? z.last - z.first : 0, v.last - v.first, c.last - c.first},
                    {d.spread * h.in * w.in, h.spread * w.in, w.spread},
                    {h.taps * w.taps, w.taps, 1}};
    const int64_t iz = depth * d.step - d.pad + z.first * d.spread;
    const int64_t iy = row * h.step - h.pad + v.first * h.spread;
    const int64_t ix = t * w.step - w.pad + c.first * w.spread;
    const S* x = image + (any ? (iz * h.in + iy) * w.in + ix : 0) * p.inner;
    best_of_window<A>(walk, x, p.inner, start,
                      [&](int64_t from, int64_t n, const A* best, const Lane<A>* where) {
                        if (n == kLanes<A>)
                          store(best, where, kLanes<A>, y, taps, bytes, at + from);
                        else store(best, where, n, y, taps, bytes, at + from);
                      });
  }
}

// Windows of any place, where pixels lie side by side: a lane for each column of the window, or for
// columns that are a vector apart. `end` is that of the plane.
template <class A, class S>
FACULA_INLINE void best_of_plane_window(const Walk& w, const S* plane, int64_t start, int64_t end,
                                        A& best, int64_t& where) {
  using V = typename WideOf<A>::type;
  using N = typename WideOf<Lane<A>>::type;
  constexpr int64_t L = kLanes<A>;
  Lane<A> each[L];
  for (int64_t k = 0; k < L; ++k) each[k] = Lane<A>(k);
  const N columns = wide_at(each);
  V most = V{} + lowest<A>();
  N at = N{} + Lane<A>(start);
  const int64_t n = w.count[2];
  for (int64_t k = 0; k < w.count[0]; ++k)
    for (int64_t j = 0; j < w.count[1]; ++j) {
      const int64_t row = start + k * w.pixel[0] + j * w.pixel[1];
      for (int64_t i = 0; i < n; i += L) {
        if (i + L > n && n >= L) i = n - L;  // the last one is whole, too
        const V v = lanes_of<A>(plane + row + i, row + i + L <= end ? L : n - i);
        const auto better = (v > most) | (v != v);
        most = better ? v : most;
        at = better ? columns + Lane<A>(row + i) : at;
      }
    }
  A values[L];
  Lane<A> places[L];
  __builtin_memcpy(values, &most, sizeof most);
  __builtin_memcpy(places, &at, sizeof at);
  best = values[0], where = places[0];
  for (int64_t k = 1; k < smaller(n, L); ++k) {
    // The first of the largest, the last NaN.
    const bool odd = values[k] != values[k];
    const bool better = odd ? best == best || places[k] > where
                            : values[k] > best || (values[k] == best && places[k] < where);
    if (better) best = values[k], where = places[k];
  }
}

template <class S>
void windows_of(const PoolWindows& p, const S* x, S* y, int64_t* positions) {
  using A = typename Compute<S>::type;
  const int64_t height = p.in[1], width = p.in[2];
  for (int64_t a = 0; a < p.out[0]; ++a)
    for (int64_t b = 0; b < p.out[1]; ++b)
      for (int64_t c = 0; c < p.out[2]; ++c, y += p.inner, positions += p.inner) {
        const PoolWindow &z = p.axis[0][a], &v = p.axis[1][b], &h = p.axis[2][c];
        const int64_t start = (z.first * height + v.first) * width + h.first;
        const Walk walk{{z.end - z.first, v.end - v.first, h.end - h.first},
                        {height * width, width, 1},
                        {height * width, width, 1}};
        if (p.inner > 1) {
          best_of_window<A>(walk, x + start * p.inner, p.inner, start,
                            [&](int64_t from, int64_t n, const A* best, const Lane<A>* where) {
                              for (int64_t m = 0; m < n; ++m) y[from + m] = convert<S>(best[m]);
                              for (int64_t m = 0; m < n; ++m) positions[from + m] = where[m];
                            });
          continue;
        }
        A best;
        int64_t where;
        best_of_plane_window(walk, x, start, p.in[0] * height * width, best, where);
        *y = convert<S>(best);
        *positions = where;
      }
}

void windows(const PoolWindows& p, const void* x, void* y, int64_t* positions) {
  auto run = [&](auto tag) {
    using S = typename decltype(tag)::type;
    windows_of(p, static_cast<const S*>(x), static_cast<S*>(y), positions);
  };
  switch (p.dtype) {
    case DType::Float32: return run(TypeTag<float>{});
    case DType::Float64: return run(TypeTag<double>{});
    case DType::Float16: return run(TypeTag<Half>{});
    default: return run(TypeTag<BFloat16>{});
  }
}

constexpr int64_t kMostColumns = 512;

template <class S>
void rows(const MaxPool& p, const void* x, void* y, void* taps, int64_t begin, int64_t end,
          void* scratch) {
  using A = typename Compute<S>::type;
  const PoolAxis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  A* line = static_cast<A*>(scratch);
  A* best = line + SplitRow(w).elements();
  Lane<A>* where = reinterpret_cast<Lane<A>*>(best + w.out);
  if (!taps && std::is_floating_point_v<A>) where = nullptr;
  const bool in_place = !where && std::is_same_v<S, A>;  // values are found where they belong
  for (; begin < end; ++begin) {
    const int64_t row = begin % h.out, depth = begin / h.out % d.out,
                  image = begin / (h.out * d.out);
    const S* from = static_cast<const S*>(x) + image * p.in_pixels() * p.inner;
    const int64_t at = begin * w.out * p.inner;
    if (p.inner > 1) {
      channels_row<S, A>(p, from, depth, row, static_cast<S*>(y), taps, at);
      continue;
    }
    // Stretches that stay in the nearest cache. Padding in front of a later one is negative.
    PoolAxis part = w;
    for (int64_t t = 0; t < w.out; t += kMostColumns) {
      part.out = smaller(kMostColumns, w.out - t);
      part.pad = w.pad - t * w.step;
      if (in_place) best = reinterpret_cast<A*>(static_cast<S*>(y) + at + t);
      plain_row(p, part, from, depth, row, static_cast<S*>(y), taps, at + t, line, best, where);
    }
  }
}

void forward(const MaxPool& p, const void* x, void* y, void* taps, int64_t begin, int64_t end,
             void* scratch) {
  auto run = [&](auto tag) {
    rows<typename decltype(tag)::type>(p, x, y, taps, begin, end, scratch);
  };
  switch (p.dtype) {
    case DType::Float32: return run(TypeTag<float>{});
    case DType::Float64: return run(TypeTag<double>{});
    case DType::Float16: return run(TypeTag<Half>{});
    case DType::BFloat16: return run(TypeTag<BFloat16>{});
    case DType::UInt8: return run(TypeTag<uint8_t>{});
    case DType::Int8: return run(TypeTag<int8_t>{});
    case DType::Int16: return run(TypeTag<int16_t>{});
    case DType::UInt16: return run(TypeTag<uint16_t>{});
    case DType::Int32: return run(TypeTag<int32_t>{});
    case DType::UInt32: return run(TypeTag<uint32_t>{});
    case DType::UInt64: return run(TypeTag<uint64_t>{});
    default: return run(TypeTag<int64_t>{});
  }
}

}  // namespace

extern const MaxPoolLoops max_pool_loops;
const MaxPoolLoops max_pool_loops = {forward, windows};

}  // namespace facula::FACULA_ISA
