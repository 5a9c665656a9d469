#include "cpu/max_pool.h"

#include <algorithm>
#include <vector>

#include "cpu/cast.h"
#include "cpu/index_items.h"
#include "cpu/iterate.h"

namespace facula {

namespace baseline {
extern const MaxPoolLoops max_pool_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const MaxPoolLoops max_pool_loops;
}
namespace v4 {
extern const MaxPoolLoops max_pool_loops;
}
#endif

static const MaxPoolLoops& loops() {
#ifdef FACULA_X86
  static const MaxPoolLoops* const table[] = {&baseline::max_pool_loops, &v3::max_pool_loops,
                                              &v4::max_pool_loops};
  return *table[isa_level()];
#else
  return baseline::max_pool_loops;
#endif
}

void max_pool_forward(const MaxPool& p, const void* x, void* y, void* taps) {
  const PoolAxis& w = p.axis[2];
  const int64_t work = std::max<int64_t>(1, w.out * p.inner * p.taps());
  // One padded row, and a row of values and one of lanes, in the widest type.
  const size_t elements = size_t(w.step * (w.out + (w.taps - 1) * w.spread / w.step) + 2 * w.out);
  parallel_for(0, p.outer * p.axis[0].out * p.axis[1].out, std::max<int64_t>(1, 2 * kGrain / work),
               [&](int64_t b, int64_t e) {
                 std::vector<double> scratch(p.inner == 1 ? elements : 0);
                 loops().forward(p, x, y, taps, b, e, scratch.data());
               });
}

void max_of_windows(const PoolWindows& p, const void* x, void* y, int64_t* positions) {
  loops().windows(p, x, y, positions);
}

namespace {

// Where the taps of a window are, seen from its origin, in pixels.
std::vector<int64_t> tap_offsets(const MaxPool& p) {
  const PoolAxis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  std::vector<int64_t> offsets;
  offsets.reserve(size_t(p.taps()));
  for (int64_t k = 0; k < d.taps; ++k)
    for (int64_t j = 0; j < h.taps; ++j)
      for (int64_t i = 0; i < w.taps; ++i)
        offsets.push_back((k * d.spread * h.in + j * h.spread) * w.in + i * w.spread);
  return offsets;
}

// Whether every window has a tap on the input along an axis. Gaps between taps can leave one out.
bool always_meets(const PoolAxis& a) {
  for (int64_t t = 0; t < a.out; ++t) {
    const int64_t at = t * a.step - a.pad;
    const int64_t first = at < 0 ? (-at + a.spread - 1) / a.spread : 0;
    if (first >= a.taps || at + first * a.spread >= a.in) return false;
  }
  return true;
}

class Windows {
 public:
  explicit Windows(const MaxPool& p)
      : p_(p),
        offsets_(tap_offsets(p)),
        all_meet_(always_meets(p.axis[0]) && always_meets(p.axis[1]) && always_meets(p.axis[2])) {}

  // f(output pixel, origin): the pixel of a tap is origin + offset(tap).
  template <class F>
  void for_each(F f) const {
    const PoolAxis& w = p_.axis[2];
    for_each_row([&](int64_t pixel, int64_t origin) {
      for (int64_t i = 0; i < w.out; ++i) f(pixel + i, origin + i * w.step);
    });
  }
  // The same for the first window of every row.
  template <class F>
  void for_each_row(F f) const {
    const PoolAxis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    int64_t pixel = 0;
    for (int64_t k = 0; k < d.out; ++k)
      for (int64_t j = 0; j < h.out; ++j, pixel += w.out)
        f(pixel, ((k * d.step - d.pad) * h.in + j * h.step - h.pad) * w.in - w.pad);
  }
  bool all_meet() const { return all_meet_; }
  const int64_t* offsets() const { return offsets_.data(); }
  int64_t offset(int64_t tap) const { return offsets_[size_t(tap)]; }
  // Whether the tap of a window is on the input; only where not all windows meet it.
  bool is_inside(int64_t pixel, int64_t tap) const {
    const PoolAxis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    auto inside = [](const PoolAxis& a, int64_t t, int64_t j) {
      const int64_t at = t * a.step - a.pad + j * a.spread;
      return at >= 0 && at < a.in;
    };
    return inside(w, pixel % w.out, tap % w.taps) &&
           inside(h, pixel / w.out % h.out, tap / w.taps % h.taps) &&
           inside(d, pixel / (w.out * h.out), tap / (w.taps * h.taps));
  }

 private:
  const MaxPool& p_;
  std::vector<int64_t> offsets_;
  bool all_meet_;
};

template <class F>
void with_tap_type(const MaxPool& p, F f) {
  if (p.taps() <= kMostByteTaps) f(TypeTag<uint8_t>{});
  else f(TypeTag<int32_t>{});
}

// Calls f(image, first channel, channels, scratch) for pieces of the work that share no pixel; the
// scratch memory has room for T for every pixel of the piece's input and result.
template <class T, class F>
void for_each_piece(const MaxPool& p, F f) {
  const int64_t pixels = p.in_pixels() + p.out_pixels();
  int64_t block = p.inner;
  while (block > 16 && p.outer * ((p.inner + block - 1) / block) < 4 * num_threads())
    block = (block + 1) / 2;
  const int64_t blocks = block ? (p.inner + block - 1) / block : 0;
  parallel_for(0, p.outer * blocks,
               std::max<int64_t>(1, kGrain / std::max<int64_t>(1, pixels * block)),
               [&](int64_t b, int64_t e) {
                 std::vector<T> scratch(std::is_empty_v<T> ? 0 : size_t(pixels * block));
                 for (; b < e; ++b) {
                   const int64_t from = b % blocks * block;
                   f(b / blocks, from, std::min(block, p.inner - from), scratch.data());
                 }
               });
}
struct None {};

// Adds the gradients of one piece into x, which holds channels [0, n) of every pixel `stride`
// apart.
template <class A, class Tap>
void scatter(const MaxPool& p, const Windows& windows, const A* y, int64_t y_stride,
             const Tap* taps, A* x, int64_t stride, int64_t n) {
  if (!windows.all_meet()) {
    windows.for_each([&](int64_t pixel, int64_t origin) {
      for (int64_t c = 0; c < n; ++c) {
        const int64_t tap = taps[pixel * p.inner + c];
        if (windows.is_inside(pixel, tap))
          x[(origin + windows.offset(tap)) * stride + c] += y[pixel * y_stride + c];
      }
    });
    return;
  }
  const int64_t* offsets = windows.offsets();
  if (p.inner == 1) {
    const PoolAxis& w = p.axis[2];
    windows.for_each_row([&](int64_t pixel, int64_t origin) {
      const A* g = y + pixel;
      const Tap* t = taps + pixel;
      A* row = x + origin;
      for (int64_t i = 0; i < w.out; ++i, row += w.step) row[offsets[t[i]]] += g[i];
    });
    return;
  }
  windows.for_each([&](int64_t pixel, int64_t origin) {
    const A* g = y + pixel * y_stride;
    const Tap* t = taps + pixel * p.inner;
    A* at = x + origin * stride;
    for (int64_t c = 0; c < n; ++c) at[offsets[t[c]] * stride + c] += g[c];
  });
}

template <class S>
void back(const MaxPool& p, const void* y, const void* taps, void* x) {
  constexpr bool kDirect = !is_small_float_v<S>;  // small floats are added in float32
  using A = std::conditional_t<kDirect, S, float>;
  const Windows windows(p);
  with_tap_type(p, [&](auto tag) {
    using Tap = typename decltype(tag)::type;
    using Sums = std::conditional_t<kDirect, None, A>;
    for_each_piece<Sums>(p, [&](int64_t image, int64_t from, int64_t n, Sums* scratch) {
      const int64_t at = image * p.out_pixels() * p.inner + from, pixels = p.in_pixels();
      const S* g = static_cast<const S*>(y) + at;
      const Tap* t = static_cast<const Tap*>(taps) + at;
      S* to = static_cast<S*>(x) + image * pixels * p.inner + from;
      if constexpr (kDirect) {
        if (n == p.inner) std::fill(to, to + pixels * n, S(0));
        else
          for (int64_t i = 0; i < pixels; ++i)
            std::fill(to + i * p.inner, to + i * p.inner + n, S(0));
        scatter(p, windows, g, p.inner, t, to, p.inner, n);
      } else {
        // Conversions are vectors' work.
        const CastLoop widen = cast_loop(p.dtype, DType::Float32);
        const CastLoop narrow = cast_loop(DType::Float32, p.dtype);
        const int64_t results = p.out_pixels(), step = n == p.inner ? pixels + results : 1;
        A* wide = scratch + pixels * n;
        for (int64_t i = 0; i < results; i += step)
          widen(reinterpret_cast<char*>(wide + i * n), sizeof(A),
                reinterpret_cast<const char*>(g + i * p.inner), sizeof(S),
                std::min(step, results) * n);
        std::fill(scratch, scratch + pixels * n, A(0));
        scatter(p, windows, static_cast<const A*>(wide), n, t, scratch, n, n);
        for (int64_t i = 0; i < pixels; i += step)
          narrow(reinterpret_cast<char*>(to + i * p.inner), sizeof(S),
                 reinterpret_cast<const char*>(scratch + i * n), sizeof(A),
                 std::min(step, pixels) * n);
      }
    });
  });
}

}  // namespace

void max_pool_back(const MaxPool& p, const void* y, const void* taps, void* x) {
  switch (p.dtype) {
    case DType::Float32: return back<float>(p, y, taps, x);
    case DType::Float64: return back<double>(p, y, taps, x);
    case DType::Float16: return back<Half>(p, y, taps, x);
    default: return back<BFloat16>(p, y, taps, x);
  }
}

void max_pool_pick(const MaxPool& p, const void* x, const void* taps, void* y) {
  const Windows windows(p);
  with_item_type(int64_t(item_size(p.dtype)), [&](auto item) {
    using T = typename decltype(item)::type;
    with_tap_type(p, [&](auto tag) {
      using Tap = typename decltype(tag)::type;
      for_each_piece<None>(p, [&](int64_t image, int64_t from, int64_t n, None*) {
        const int64_t at = image * p.out_pixels() * p.inner + from;
        const T* in = static_cast<const T*>(x) + image * p.in_pixels() * p.inner + from;
        const Tap* t = static_cast<const Tap*>(taps) + at;
        T* to = static_cast<T*>(y) + at;
        windows.for_each([&](int64_t pixel, int64_t origin) {
          for (int64_t c = 0; c < n; ++c) {
            const int64_t k = pixel * p.inner + c;
            if (!windows.all_meet() && !windows.is_inside(pixel, t[k])) to[k] = T{};
            else to[k] = in[(origin + windows.offset(t[k])) * p.inner + c];
          }
        });
      });
    });
  });
}

void max_pool_positions(const MaxPool& p, const void* taps, int64_t* positions) {
  const Windows windows(p);
  with_tap_type(p, [&](auto tag) {
    using Tap = typename decltype(tag)::type;
    for_each_piece<None>(p, [&](int64_t image, int64_t from, int64_t n, None*) {
      const int64_t at = image * p.out_pixels() * p.inner + from;
      const Tap* t = static_cast<const Tap*>(taps) + at;
      windows.for_each([&](int64_t pixel, int64_t origin) {
        for (int64_t c = 0; c < n; ++c) {
          const int64_t k = pixel * p.inner + c;
          positions[at + k] = origin + windows.offset(t[k]);
        }
      });
    });
  });
}

}  // namespace facula
