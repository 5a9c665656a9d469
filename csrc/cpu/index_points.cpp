#include "cpu/index_points.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

#include "cpu/cast.h"
#include "cpu/index_items.h"
#include "cpu/index_loops.h"
#include "cpu/line_loops.h"
#include "cpu/stream.h"
#include "op/elementwise.h"
#include "op/ops/arithmetic.h"
#include "op/tensor_operators.h"

namespace facula {
namespace {

// Points that cannot be negative are scaled without a look at their sign.
PointWork without_wrap(const PointWork& given) {
  PointWork w = given;
  if (w.wrap && index_loops().all_inside(w.points, w.count, 0, uint64_t(1) << 63)) w.wrap = 0;
  return w;
}

// Neighbouring elements at both ends, one per point.
template <class T>
bool is_typed_row(const PointWork& w) {
  return w.wrap == 0 && w.scale == int64_t(sizeof(T)) && w.step == int64_t(sizeof(T));
}

// One element per point in each of some rows.
template <class T, bool kRead, int kRows, class Mine>
void move_typed_rows(const int64_t* points, char* tensor, char* values, int64_t ts, int64_t vs,
                     int64_t from, int64_t to, Mine&& mine) {
  mine(from, to, [&](int64_t i) {
    const int64_t place = points[i] * int64_t(sizeof(T)), at = i * int64_t(sizeof(T));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      T& t = *reinterpret_cast<T*>(tensor + r * ts + place);
      T& v = *reinterpret_cast<T*>(values + r * vs + at);
      if constexpr (kRead) v = t;
      else t = v;
    }
  });
}

// Rows of neighbouring elements are copied whole, point by point; strided ones element by element
// with the points inside, so that the row is walked once. mine(from, to, f) calls f(i) for the
// points that count.
template <class T, bool kRead, class Mine>
void move_run(const PointWork& w, char* tensor, char* values, int64_t ts, int64_t vs, int64_t n,
              int64_t from, int64_t to, Mine&& mine) {
  const bool dense = n > 1 && ts == int64_t(sizeof(T));
  if (dense && vs == ts) {
    const int64_t bytes = n * int64_t(sizeof(T));
    mine(from, to, [&](int64_t i) {
      char* t = tensor + w.place(i);
      char* v = values + i * w.step;
      if constexpr (kRead) copy_bytes(v, t, bytes);
      else copy_bytes(t, v, bytes);
    });
    return;
  }
  if (!kRead && dense && vs == 0) {
    mine(from, to, [&](int64_t i) {
      T* t = reinterpret_cast<T*>(tensor + w.place(i));
      std::fill(t, t + n, *reinterpret_cast<const T*>(values + i * w.step));
    });
    return;
  }
  const bool typed = is_typed_row<T>(w);
  int64_t j = 0;
  if (typed) {
    constexpr int kTogether = 4;  // rows that one reading of the points serves
    for (; j + kTogether <= n; j += kTogether) {
      move_typed_rows<T, kRead, kTogether>(w.points, tensor, values, ts, vs, from, to, mine);
      tensor += kTogether * ts;
      values += kTogether * vs;
    }
  }
  for (; j < n; ++j, tensor += ts, values += vs) {
    if (typed) {
      move_typed_rows<T, kRead, 1>(w.points, tensor, values, ts, vs, from, to, mine);
      continue;
    }
    mine(from, to, [&](int64_t i) {
      T& t = *reinterpret_cast<T*>(tensor + w.place(i));
      T& v = *reinterpret_cast<T*>(values + i * w.step);
      if constexpr (kRead) v = t;
      else t = v;
    });
  }
}

constexpr auto every = [](int64_t from, int64_t to, auto&& f) {
  for (int64_t i = from; i < to; ++i) f(i);
};

template <class T>
void add_elements(const PointWork& w, char* tensor, const char* values, T alpha) {
  auto add = [&](T& target, T value) {
    if constexpr (std::is_same_v<T, bool>) target = target | (value & alpha);
    else target = T(target + value * alpha);
  };
  if (is_typed_row<T>(w)) {
    T* t = reinterpret_cast<T*>(tensor);
    const T* v = reinterpret_cast<const T*>(values);
    for (int64_t i = 0; i < w.count; ++i) add(t[w.points[i]], v[i]);
    return;
  }
  for (int64_t i = 0; i < w.count; ++i)
    add(*reinterpret_cast<T*>(tensor + w.place(i)),
        *reinterpret_cast<const T*>(values + i * w.step));
}

// Rows of some length are written by the thread that owns their place, in the order of the points,
// so neither the order nor the result depends on the threads.
bool has_owners(const PointWork& w) {
  constexpr int64_t kRowBytes = 64;
  return w.rest.ndim == 1 && w.rest.strides[0][0] == w.item && w.rest.numel * w.item >= kRowBytes &&
         w.count >= 64 && w.count * w.rest.numel >= kGrain && num_threads() > 1;
}

// Where the places of each owner begin, and the end: ranges with about as many points each, as a
// few of the points tell. A thread whose places lie together has them in its cache for long, and
// what the processor fetches beside them is not another's.
std::vector<int64_t> owner_ranges(const PointWork& w, int64_t owners) {
  const int64_t samples = std::min(w.count, std::clamp<int64_t>(16 * owners, 128, 2048));
  std::vector<int64_t> places(static_cast<size_t>(samples)), ranges;
  for (int64_t k = 0; k < samples; ++k) places[size_t(k)] = w.place(w.count * k / samples);
  std::sort(places.begin(), places.end());
  ranges.push_back(std::numeric_limits<int64_t>::min());
  for (int64_t k = 1; k < owners; ++k) ranges.push_back(places[size_t(samples * k / owners)]);
  ranges.push_back(std::numeric_limits<int64_t>::max());
  return ranges;
}

// Calls f(mine), where mine(from, to, g) calls g(i) for the points that belong to the caller. They
// are listed first: whose the next one is cannot be foretold.
template <class F>
void for_each_owner(const PointWork& w, F&& f) {
  const int64_t owners = num_threads();
  const std::vector<int64_t> ranges = owner_ranges(w, owners);
  parallel_for(0, owners, 1, [&](int64_t b, int64_t e) {
    const int64_t first = ranges[size_t(b)], end = ranges[size_t(e)];
    f([&](int64_t from, int64_t to, auto&& g) {
      constexpr int64_t kBlock = 512;
      int64_t own[kBlock];
      for (; from < to; from += kBlock) {
        int64_t count = 0;
        for (int64_t i = from; i < std::min(to, from + kBlock); ++i) {
          const int64_t place = w.place(i);
          own[count] = i;
          count += (place >= first) & (place < end);
        }
        for (int64_t k = 0; k < count; ++k) g(own[k]);
      }
    });
  });
}

// Many points over few places: the points are cut into parts with sums of their own. How many
// depends on the sizes alone, so the result does not depend on the threads.
template <class T>
bool add_in_parts(const PointWork& w, int64_t places, T alpha) {
  constexpr int64_t kMost = 8, kPointsPerPlace = 8;
  if (w.rest.numel != 1 || places == 0 || w.count < 2 * kGrain) return false;
  const int64_t parts = std::min(kMost, w.count / (kPointsPerPlace * places));
  if (parts < 2) return false;
  auto add = [](T& target, T value) {
    if constexpr (std::is_same_v<T, bool>) target = target | value;
    else target = T(target + value);
  };
  const Tensor sums = empty_tensor(Dims{parts, places}, DTypeOf<T>::value, Device{});
  T* const all = sums.data_as<T>();
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      T* own = all + k * places;
      std::fill_n(own, places, T(0));
      PointWork part = w;
      part.points = w.points + w.count * k / parts;
      part.count = w.count * (k + 1) / parts - w.count * k / parts;
      part.scale = int64_t(sizeof(T));
      part.wrap = w.wrap ? places * part.scale : 0;
      add_elements<T>(part, reinterpret_cast<char*>(own),
                      w.rest.data[1] + w.count * k / parts * w.step, alpha);
    }
  });
  parallel_for(0, places, std::max<int64_t>(1, kGrain / parts), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      T& target = *reinterpret_cast<T*>(w.rest.data[0] + i * w.scale);
      for (int64_t k = 0; k < parts; ++k) add(target, all[k * places + i]);
    }
  });
  return true;
}

// The points in the order of their places, equal ones in their own; by counting where the places
// are few enough.
std::vector<int64_t> points_by_place(const PointWork& w, int64_t places) {
  std::vector<int64_t> order(static_cast<size_t>(w.count));
  if (places == 0 || places > 4 * w.count) {
    std::iota(order.begin(), order.end(), int64_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return w.place(a) < w.place(b); });
    return order;
  }
  auto number = [&](int64_t i) { return w.points[i] < 0 ? w.points[i] + places : w.points[i]; };
  std::vector<int64_t> starts(static_cast<size_t>(places) + 1, 0);
  for (int64_t i = 0; i < w.count; ++i) ++starts[size_t(number(i)) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  for (int64_t i = 0; i < w.count; ++i) order[size_t(starts[size_t(number(i))]++)] = i;
  return order;
}

// Equal places brought together: a sum kept in float32 is then rounded once.
template <class T>
void add_grouped(const PointWork& w, int64_t places, float alpha) {
  const std::vector<int64_t> order = points_by_place(w, places);
  std::vector<int64_t> groups;  // where in `order` each place begins, and the end
  for (int64_t i = 0; i < w.count; ++i)
    if (i == 0 || w.place(order[size_t(i)]) != w.place(order[size_t(i - 1)])) groups.push_back(i);
  const int64_t count = int64_t(groups.size()), work = w.count * w.rest.numel;
  groups.push_back(w.count);
  const auto add_dense = line_loops().add_scaled[int(DTypeOf<T>::value)];
  const CastLoop load = cast_loop(DTypeOf<T>::value, DType::Float32),
                 store = cast_loop(DType::Float32, DTypeOf<T>::value);
  auto add_group = [&](int64_t first, int64_t end, char* const* p, const int64_t* s, int64_t n) {
    constexpr int64_t kChunk = 256;
    float sum[kChunk], values[kChunk];
    char* const sums = reinterpret_cast<char*>(sum);
    char* target = p[0] + w.place(order[size_t(first)]);
    for (int64_t j = 0; j < n; j += kChunk) {
      const int64_t m = std::min(kChunk, n - j);
      char* t = target + j * s[0];
      load(sums, 4, t, s[0], m);
      for (int64_t i = first; i < end; ++i) {
        const char* v = p[1] + order[size_t(i)] * w.step + j * s[1];
        if (add_dense && s[1] == int64_t(sizeof(T))) {
          add_dense(sum, v, m, alpha);
          continue;
        }
        load(reinterpret_cast<char*>(values), 4, v, s[1], m);
        for (int64_t k = 0; k < m; ++k) sum[k] += alpha * values[k];
      }
      store(t, s[0], sums, 4, m);
    }
  };
  parallel_for(0, count, std::max<int64_t>(1, kGrain * count / work), [&](int64_t b, int64_t e) {
    for (int64_t g = b; g < e; ++g)
      w.rest.run(0, w.rest.numel, [&](char* const* p, const int64_t* s, int64_t n) {
        add_group(groups[size_t(g)], groups[size_t(g) + 1], p, s, n);
      });
  });
}

}  // namespace

void cpu_read_points(const PointWork& given) {
  const int64_t rest = given.rest.numel;
  if (given.count == 0 || rest == 0) return;
  const PointWork w = without_wrap(given);
  with_item_type(w.item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool rows =
        w.rest.ndim == 0 || (w.rest.strides[0][0] == w.item && w.rest.strides[1][0] == w.item);
    if (rows && (w.count >= 2 * num_threads() || w.count * rest <= kGrain)) {
      parallel_for(0, w.count, std::max<int64_t>(1, kGrain / rest), [&](int64_t b, int64_t e) {
        w.rest.run(0, rest, [&](char* const* p, const int64_t* s, int64_t n) {
          move_run<T, true>(w, p[0], p[1], s[0], s[1], n, b, e, every);
        });
      });
    } else {
      w.rest.run_parallel(
          [&](char* const* p, const int64_t* s, int64_t n) {
            move_run<T, true>(w, p[0], p[1], s[0], s[1], n, 0, w.count, every);
          },
          std::max<int64_t>(1, kGrain / w.count));
    }
  });
}

// Points may repeat, and their order decides: writes are split over the places, or over the rest.
void cpu_write_points(const PointWork& given) {
  if (given.count == 0 || given.rest.numel == 0) return;
  const PointWork w = without_wrap(given);
  with_item_type(w.item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (has_owners(w)) {
      for_each_owner(w, [&](auto&& mine) {
        move_run<T, false>(w, w.rest.data[0], w.rest.data[1], w.item, w.rest.strides[1][0],
                           w.rest.numel, 0, w.count, mine);
      });
      return;
    }
    w.rest.run_parallel(
        [&](char* const* p, const int64_t* s, int64_t n) {
          move_run<T, false>(w, p[0], p[1], s[0], s[1], n, 0, w.count, every);
        },
        std::max<int64_t>(16, kGrain / w.count));
  });
}

void cpu_add_points(const PointWork& given, DType dtype, const Scalar& alpha) {
  if (given.count == 0 || given.rest.numel == 0) return;
  const PointWork w = without_wrap(given);
  const int64_t grain = std::max<int64_t>(16, kGrain / w.count);
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_small_float_v<T>) {
      add_grouped<T>(w, given.places, alpha.to<float>());
    } else {
      alignas(16) char factor[16];
      alpha.store(dtype, factor);
      const Loop add = defs::add.elementwise->loops[isa_level()][int(dtype)];  // a + factor * b
      auto add_rows = [&](char* const* p, const int64_t* s, int64_t n, auto&& mine) {
        const int64_t steps[] = {s[0], s[0], s[1]};
        mine(int64_t(0), w.count, [&](int64_t i) {
          char* row = p[0] + w.place(i);
          char* const q[] = {row, row, p[1] + i * w.step};
          add(q, steps, n, factor);
        });
      };
      if (add_in_parts<T>(w, given.places, *reinterpret_cast<const T*>(factor))) return;
      if (has_owners(w)) {
        const int64_t steps[] = {w.item, w.rest.strides[1][0]};
        for_each_owner(w, [&](auto&& mine) { add_rows(w.rest.data, steps, w.rest.numel, mine); });
        return;
      }
      w.rest.run_parallel(
          [&](char* const* p, const int64_t* s, int64_t n) {
            if (n > 1 && s[0] == w.item) return add_rows(p, s, n, every);
            for (int64_t j = 0; j < n; ++j)
              add_elements(w, p[0] + j * s[0], p[1] + j * s[1],
                           *reinterpret_cast<const T*>(factor));
          },
          grain);
    }
  });
}

int64_t find_bad_index(const int64_t* index, int64_t n, int64_t size, bool negative_wraps) {
  const uint64_t low = uint64_t(negative_wraps ? -size : 0), range = uint64_t(size) - low;
  std::atomic<bool> bad{false};
  parallel_for(0, n, kGrain, [&](int64_t b, int64_t e) {
    if (!index_loops().all_inside(index + b, e - b, low, range))
      bad.store(true, std::memory_order_relaxed);
  });
  if (!bad.load()) return -1;
  for (int64_t i = 0; i < n; ++i)
    if (uint64_t(index[i]) - low >= range) return i;
  return -1;
}

}  // namespace facula
