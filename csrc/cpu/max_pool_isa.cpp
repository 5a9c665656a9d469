// The forward pass of max pooling; built once per ISA.
#include "cpu/max_pool.h"
#include "cpu/pool_rows.h"

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

// A few taps of all windows of a row in one pass over what was found so far.
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
  for (int64_t i = 0; i < w.out; ++i) best[i] = lowest<A>();
  for (int64_t i = 0; i < w.out; ++i) where[i] = start;
  // Windows that begin in the padding: their first tap on the input.
  for (int64_t i = 0; i < w.out && i * w.step < w.pad; ++i) {
    const Seen c = seen(w, i);
    where[i] = start + Lane<A>(c.first < w.taps ? c.first : 0);
  }
  for (int64_t k = z.first; k < z.last; ++k) {
    const int64_t iz = depth * d.step - d.pad + k * d.spread;
    for (int64_t j = v.first; j < v.last; ++j) {
      const int64_t iy = row * h.step - h.pad + j * h.spread;
      split.copy(plane + (iz * h.in + iy) * w.in, line, lowest<A>());
      const Lane<A> tap = Lane<A>((k * h.taps + j) * w.taps);
      auto from = [&](int64_t i) { return line + split.offset(i * w.spread); };
      int64_t i = 0;
      for (; i + 3 <= w.taps; i += 3)
        update_row(best, where, w.out, Lane<A>(tap + i), from(i), from(i + 1), from(i + 2));
      for (; i + 2 <= w.taps; i += 2)
        update_row(best, where, w.out, Lane<A>(tap + i), from(i), from(i + 1));
      for (; i < w.taps; ++i) update_row(best, where, w.out, Lane<A>(tap + i), from(i));
    }
  }
  store(best, where, w.out, y, taps, p.taps() <= kMostByteTaps, at);
}

// One row of windows where channels lie side by side.
template <class S, class A>
void channels_row(const MaxPool& p, const S* image, int64_t depth, int64_t row, S* y, void* taps,
                  int64_t at) {
  constexpr int64_t kBlock = 64;
  const PoolAxis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  const Seen z = seen(d, depth), v = seen(h, row);
  A best[kBlock];
  Lane<A> where[kBlock];
  for (int64_t t = 0; t < w.out; ++t) {
    const Seen c = seen(w, t);
    const bool any = z.first < z.last && v.first < v.last && c.first < c.last;
    const Lane<A> start =
        any ? Lane<A>((z.first * h.taps + v.first) * w.taps + c.first) : Lane<A>(0);
    for (int64_t from = 0; from < p.inner; from += kBlock) {
      const int64_t n = smaller(kBlock, p.inner - from);
      for (int64_t i = 0; i < kBlock; ++i) best[i] = lowest<A>(), where[i] = start;
      for (int64_t k = z.first; k < z.last; ++k) {
        const int64_t iz = depth * d.step - d.pad + k * d.spread;
        for (int64_t j = v.first; j < v.last; ++j) {
          const int64_t iy = row * h.step - h.pad + j * h.spread;
          for (int64_t i = c.first; i < c.last; ++i) {
            const int64_t ix = t * w.step - w.pad + i * w.spread;
            const S* x = image + ((iz * h.in + iy) * w.in + ix) * p.inner + from;
            const Lane<A> tap = Lane<A>((k * h.taps + j) * w.taps + i);
            if (n == kBlock) {
#pragma GCC ivdep
              for (int64_t m = 0; m < kBlock; ++m) update(best[m], where[m], A(x[m]), tap);
            } else {
#pragma GCC ivdep
              for (int64_t m = 0; m < n; ++m) update(best[m], where[m], A(x[m]), tap);
            }
          }
        }
      }
      store(best, where, n, y, taps, p.taps() <= kMostByteTaps, at + t * p.inner + from);
    }
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
const MaxPoolLoops max_pool_loops = {forward};

}  // namespace facula::FACULA_ISA
