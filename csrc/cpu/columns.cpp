#include "cpu/columns.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/index_items.h"
#include "cpu/iterate.h"

namespace facula {

namespace {

// The patches whose tap lies on the input: [low, high).
struct Stretch {
  int64_t low, high, first;  // first: the pixel of patch `low`
};

Stretch stretch_of(const ColumnAxis& a, int64_t tap) {
  const int64_t at = tap * a.spread - a.pad;
  const int64_t low = at < 0 ? std::min(a.out, (-at + a.step - 1) / a.step) : 0;
  const int64_t high = a.in > at ? std::min(a.out, (a.in - at + a.step - 1) / a.step) : 0;
  return {low, std::max(low, high), at + low * a.step};
}

int64_t grain_of(int64_t work) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
}

}  // namespace

void image_to_columns(DType dtype, int64_t planes, const ColumnAxis& h, const ColumnAxis& w,
                      const void* image, void* columns) {
  with_item_type(int64_t(item_size(dtype)), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t taps = h.taps * w.taps, patches = h.out * w.out;
    parallel_for(0, planes * taps, grain_of(patches), [&](int64_t b, int64_t e) {
      for (; b < e; ++b) {
        const int64_t tap = b % taps, j = tap / w.taps, i = tap % w.taps;
        const T* plane = static_cast<const T*>(image) + b / taps * h.in * w.in;
        const Stretch across = stretch_of(w, i), down = stretch_of(h, j);
        T* to = static_cast<T*>(columns) + b * patches;
        for (int64_t y = 0; y < h.out; ++y, to += w.out) {
          if (y < down.low || y >= down.high) {
            std::fill(to, to + w.out, T{});
            continue;
          }
          const T* from = plane + (y * h.step - h.pad + j * h.spread) * w.in + across.first;
          std::fill(to, to + across.low, T{});
          const int64_t n = across.high - across.low;
          if (w.step == 1) std::memcpy(to + across.low, from, size_t(n) * sizeof(T));
          else
            for (int64_t x = 0; x < n; ++x) to[across.low + x] = from[x * w.step];
          std::fill(to + across.high, to + w.out, T{});
        }
      }
    });
  });
}

namespace {

template <class S, class A>
void add_columns(const ColumnAxis& h, const ColumnAxis& w, const S* columns, A* plane) {
  for (int64_t j = 0; j < h.taps; ++j) {
    const Stretch down = stretch_of(h, j);
    for (int64_t i = 0; i < w.taps; ++i, columns += h.out * w.out) {
      const Stretch across = stretch_of(w, i);
      for (int64_t y = down.low; y < down.high; ++y) {
        A* to = plane + (y * h.step - h.pad + j * h.spread) * w.in + across.first;
        const S* from = columns + y * w.out + across.low;
        const int64_t n = across.high - across.low;
        if (w.step == 1)
          for (int64_t x = 0; x < n; ++x) to[x] += convert<A>(from[x]);
        else
          for (int64_t x = 0; x < n; ++x) to[x * w.step] += convert<A>(from[x]);
      }
    }
  }
}

}  // namespace

void columns_to_image(DType dtype, int64_t planes, const ColumnAxis& h, const ColumnAxis& w,
                      const void* columns, void* image) {
  const int64_t pixels = h.in * w.in, from = h.taps * w.taps * h.out * w.out;
  dispatch_dtype(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    // Booleans add up to "any of them".
    using A = std::conditional_t<is_small_float_v<S>, float,
                                 std::conditional_t<std::is_same_v<S, bool>, int32_t, S>>;
    parallel_for(0, planes, grain_of(pixels + from), [&](int64_t b, int64_t e) {
      std::vector<A> sums(std::is_same_v<A, S> ? 0 : size_t(pixels));
      for (; b < e; ++b) {
        const S* in = static_cast<const S*>(columns) + b * from;
        S* to = static_cast<S*>(image) + b * pixels;
        if constexpr (std::is_same_v<A, S>) {
          std::fill(to, to + pixels, S(0));
          add_columns(h, w, in, to);
        } else {
          std::fill(sums.begin(), sums.end(), A(0));
          add_columns(h, w, in, sums.data());
          for (int64_t i = 0; i < pixels; ++i) to[i] = convert<S>(sums[size_t(i)]);
        }
      }
    });
  });
}

}  // namespace facula
