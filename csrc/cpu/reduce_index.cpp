#include "cpu/reduce_index.h"

#include <cmath>
#include <limits>

#include "cpu/along_dim.h"
#include "cpu/cast.h"
#include "cpu/index_items.h"
#include "cpu/index_loops.h"
#include "cpu/line_loops.h"
#include "cpu/scan_rows.h"
#include "cpu/turn_block.h"
#include "op/ops/reductions.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"

namespace facula {
namespace {

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return v != v;
  else return false;
}

// One rank for all three tensors: the results get their dimension back as size 1.
Tensor with_dim(const Tensor& t, const Tensor& in, int64_t dim, bool keepdim) {
  if (keepdim || in.dim() == 0) return t;
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.insert(dim, 1);
  strides.insert(dim, 1);
  return alias_tensor(t, sizes, strides, t.offset());
}

// The first of n elements that is not below (not above) `best`, which is among them.
template <class T>
int64_t place_of_extreme(const T* x, int64_t n, T best, bool largest) {
  // Beyond the number next to it.
  auto search = [&](auto beyond, T next) {
    const int64_t at = next == best ? 0 : beyond(x, 0, n, next, largest);
    return at < n ? at : 0;
  };
  const IndexLoops& loops = index_loops();
  if constexpr (std::is_floating_point_v<T>) {
    const T end = std::numeric_limits<T>::infinity();
    const T next = std::nextafter(best, largest ? -end : end);
    if constexpr (sizeof(T) == 4) return search(loops.beyond_f32, next);
    else return search(loops.beyond_f64, next);
  } else {
    using Limits = std::numeric_limits<T>;
    const T next = largest ? T(best - (best != Limits::min())) : T(best + (best != Limits::max()));
    if constexpr (std::is_same_v<T, int32_t>) return search(loops.beyond_i32, next);
    else return search(loops.beyond_i64, next);
  }
}

// Dense lines: the extreme value by the vectorised fold, then the place where it first stands.
template <class T>
void find_extreme_dense(const T* p, int64_t n, bool largest, ReduceLoop fold, int64_t& at) {
  alignas(16) char room[16];
  fold(room, reinterpret_cast<const char*>(p), sizeof(T), n, true);
  const T best = *reinterpret_cast<T*>(room);
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, int32_t> ||
                std::is_same_v<T, int64_t>) {
    bool has_next = true;
    if constexpr (std::is_floating_point_v<T>)  // that counts as another number, however tiny
      has_next = std::abs(best) > 2 * std::numeric_limits<T>::min();
    if (has_next) {
      at = place_of_extreme(p, n, best, largest);
      return;
    }
  }
  constexpr int64_t kStep = 64;
  for (at = 0; at + kStep <= n; at += kStep) {
    int hit = 0;
    for (int64_t i = 0; i < kStep; ++i) hit |= p[at + i] == best || is_nan(p[at + i]);
    if (hit) break;
  }
  while (at < n - 1 && !(p[at] == best || is_nan(p[at]))) ++at;
}

// The same for half precision, converted some at a time.
template <class T>
void find_extreme_of_halves(const T* p, int64_t n, bool largest, ReduceLoop fold, int64_t& at) {
  constexpr int64_t kChunk = 512;
  const CastLoop load = cast_loop(DTypeOf<T>::value, DType::Float32);
  alignas(64) float part[kChunk];
  float best = 0;
  for (int64_t i = 0; i < n && !is_nan(best); i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    load(reinterpret_cast<char*>(part), 4, reinterpret_cast<const char*>(p + i), sizeof(T), m);
    int64_t here;
    find_extreme_dense(part, m, largest, fold, here);
    if (i && !(largest ? part[here] > best : part[here] < best) && !is_nan(part[here])) continue;
    best = part[here];
    at = i + here;
  }
}

template <class T, class Load>
void find_extreme(const char* p, int64_t stride, int64_t n, bool largest, Load load, T& best,
                  int64_t& at) {
  best = load(p);
  at = 0;
  for (int64_t i = 1; i < n && !is_nan(best); ++i) {
    T v = load(p + i * stride);
    if ((largest ? v > best : v < best) || is_nan(v)) {
      best = v;
      at = i;
    }
  }
}

// What cpu_reduce_index works on: the three tensors with one rank, and the dimension.
struct Extremes {
  const Tensor& in;
  const Tensor values, indices;
  int64_t dim, n, item, stride;  // stride in bytes
  LineLoops::ExtremeRows find;   // of columns

  static constexpr int64_t kColumns = LineLoops::kColumns;
  using Offsets = int64_t[kColumns][3];  // of a bundle's lines in the three tensors

  void deliver(const Offsets& at, int count, const int64_t* where) const {
    for (int w = 0; w < count; ++w)
      *reinterpret_cast<int64_t*>(indices.data() + at[w][2]) = where[w];
    if (values.dtype() != in.dtype()) {
      const CastLoop store = cast_loop(in.dtype(), values.dtype());
      for (int w = 0; w < count; ++w)
        store(values.data() + at[w][1], 0, in.data() + at[w][0] + where[w] * stride, 0, 1);
      return;
    }
    with_item_type(item, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int w = 0; w < count; ++w)
        *reinterpret_cast<T*>(values.data() + at[w][1]) =
            *reinterpret_cast<const T*>(in.data() + at[w][0] + where[w] * stride);
    });
  }

  template <class F>
  void for_each_bundle(F&& f) const {
    facula::for_each_bundle<3, kColumns>({&in, &values, &indices}, dim, n, f);
  }

  // Columns go together, so that memory is read along its rows.
  void columns() const {
    for_each_bundle([&](const Offsets& at, int count) {
      int64_t where[kColumns];
      for (int from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && at[to][0] == at[to - 1][0] + item;) ++to;
        find(in.data() + at[from][0], stride, n, to - from, where + from);
      }
      deliver(at, count, where);
    });
  }

  // Short lines are turned into columns.
  static constexpr int64_t kShort = 32;
  void short_lines() const {
    for_each_bundle([&](const Offsets& at, int count) {
      alignas(64) char turned[kShort * kColumns * 8];
      int64_t where[kColumns];
      const int64_t pitch = count > 1 ? at[1][0] - at[0][0] : item;
      bool regular = stride == item && pitch % item == 0;
      for (int w = 2; w < count; ++w) regular &= at[w][0] == at[w - 1][0] + pitch;
      with_item_type(item, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) <= 8) {
          T* to = reinterpret_cast<T*>(turned);
          if (regular)
            return turn_matrix(to, kColumns, reinterpret_cast<const T*>(in.data() + at[0][0]),
                               pitch / item, n, count);
          for (int w = 0; w < count; ++w)
            for (int64_t i = 0; i < n; ++i)
              to[i * kColumns + w] = *reinterpret_cast<const T*>(in.data() + at[w][0] + i * stride);
        }
      });
      find(turned, kColumns * item, n, count, where);
      deliver(at, count, where);
    });
  }

  // Dense rows of fewer than kColumns / 2 columns: many rows count as one, and what is found in
  // its parts is compared in the end. Pieces depend on the sizes alone.
  template <class T>
  void narrow_columns(bool largest) const {
    const int64_t m = stride / item, outer = in.numel() / (n * m), together = kColumns / m;
    const int64_t pieces = std::clamp<int64_t>(n * m / kGrain, 1, 16);
    std::vector<int64_t> found(size_t(outer * pieces * m));
    auto take_best = [&](const char* base, int64_t c, int64_t row, int64_t& best) {
      auto at = [&](int64_t r) {
        const T x = *reinterpret_cast<const T*>(base + r * stride + c * item);
        if constexpr (is_small_float_v<T>) return float(x);
        else return x;
      };
      const auto v = at(row), b = at(best);
      if (is_nan(b)) {
        if (is_nan(v) && row < best) best = row;
      } else if (is_nan(v) || (largest ? v > b : v < b) || (v == b && row < best)) {
        best = row;
      }
    };
    parallel_for(0, outer * pieces, std::max<int64_t>(1, kGrain * pieces / (n * m)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t k = begin; k < end; ++k) {
                     const char* base = in.data() + k / pieces * n * stride;
                     const int64_t from = n * (k % pieces) / pieces,
                                   to = n * (k % pieces + 1) / pieces,
                                   many = (to - from) / together;
                     int64_t where[kColumns];
                     find(base + from * stride, stride * together, many, m * together, where);
                     for (int64_t c = 0; c < m; ++c) {
                       int64_t best = from + where[c] * together;
                       for (int64_t j = 1; j < together; ++j)
                         take_best(base, c, from + where[j * m + c] * together + j, best);
                       for (int64_t row = from + many * together; row < to; ++row)
                         take_best(base, c, row, best);
                       found[size_t(k * m + c)] = best;
                     }
                   }
                 });
    for_each_bundle([&](const Offsets& at, int count) {
      int64_t where[kColumns];
      for (int w = 0; w < count; ++w) {
        const int64_t o = at[w][0] / (n * stride), c = (at[w][0] - o * n * stride) / item;
        int64_t& best = where[w] = found[size_t(o * pieces * m + c)];
        for (int64_t k = 1; k < pieces; ++k)
          take_best(in.data() + o * n * stride, c, found[size_t((o * pieces + k) * m + c)], best);
      }
      deliver(at, count, where);
    });
  }
  bool has_narrow_columns() const {
    return in.is_contiguous() && stride > item && n >= 4 * kColumns / (stride / item);
  }
};

}  // namespace

void cpu_reduce_index(const Tensor& in, int64_t dim, bool keepdim, bool largest,
                      const Tensor& values, const Tensor& indices) {
  const int64_t n = in.dim() ? in.sizes()[dim] : 1, item = int64_t(in.item_size());
  const int64_t stride = in.dim() ? in.strides()[dim] * item : 0;
  const Extremes work{in,
                      with_dim(values, in, dim, keepdim),
                      with_dim(indices, in, dim, keepdim),
                      dim,
                      n,
                      item,
                      stride,
                      (largest ? line_loops().largest : line_loops().smallest)[int(in.dtype())]};
  constexpr int64_t kMostRows = int64_t(1) << 31, kWideColumns = 16;
  const bool by_columns = n > 1 && n < kMostRows;
  if (by_columns && stride >= kWideColumns * item) return work.columns();
  const bool narrow = by_columns && work.has_narrow_columns();
  if (by_columns && !narrow && n <= Extremes::kShort) return work.short_lines();
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Complex<float>> && !std::is_same_v<T, Complex<double>>) {
      if (narrow) return work.narrow_columns<T>(largest);
      using C = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      auto load = [](const char* p) { return convert<C>(*reinterpret_cast<const T*>(p)); };
      ReduceLoop fold =
          (largest ? defs::amax : defs::amin).reduce->loops[isa_level()][int(DTypeOf<C>::value)];
      const bool dense = stride == int64_t(sizeof(T)) && n > Extremes::kShort;
      const CastLoop store = cast_loop(in.dtype(), values.dtype());
      for_each_line<3>({&in, &work.values, &work.indices}, dim, n, [&](const int64_t* at) {
        const char* p = in.data() + at[0];
        C best;
        int64_t where;
        if constexpr (std::is_same_v<C, T>) {
          if (dense) find_extreme_dense(reinterpret_cast<const C*>(p), n, largest, fold, where);
        } else {
          if (dense) find_extreme_of_halves(reinterpret_cast<const T*>(p), n, largest, fold, where);
        }
        if (!dense) find_extreme<C>(p, stride, n, largest, load, best, where);
        store(work.values.data() + at[1], 0, p + where * stride, 0, 1);
        *reinterpret_cast<int64_t*>(work.indices.data() + at[2]) = where;
      });
    }
  });
}

void cpu_cumsum(const Tensor& in, int64_t dim, const Tensor& out) {
  const int64_t n = in.dim() ? in.sizes()[dim] : 1;
  const int64_t is = in.dim() ? in.strides()[dim] * int64_t(in.item_size()) : 0;
  const int64_t os = out.dim() ? out.strides()[dim] * int64_t(out.item_size()) : 0;
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = Running<T>;
    const bool dense =
        in.dtype() == out.dtype() && in.dim() && in.is_contiguous() && out.is_contiguous();
    int64_t inner = 1;  // not the stride, which may be any where there is one element
    for (int64_t d = dim + 1; d < in.dim(); ++d) inner *= in.sizes()[size_t(d)];
    if (dense && dim < in.dim() - 1 && inner >= 16) {
      // Along memory: a block of neighbouring lines takes each step together.
      constexpr int64_t kBlock = LineLoops::kColumns;
      const int64_t blocks = (inner + kBlock - 1) / kBlock;
      const auto sum = line_loops().running_sum[int(out.dtype())];
      parallel_for(0, in.numel() / (n * inner) * blocks,
                   std::max<int64_t>(1, kGrain / (n * kBlock)), [&](int64_t b, int64_t e) {
                     for (int64_t k = b; k < e; ++k) {
                       const int64_t first = k % blocks * kBlock,
                                     at = (k / blocks * n * inner + first) * int64_t(sizeof(T));
                       sum(in.data() + at, out.data() + at, is, os, n,
                           std::min(kBlock, inner - first));
                     }
                   });
      return;
    }
    if constexpr (std::is_same_v<T, int64_t>) {
      if (in.dim() && dim == in.dim() - 1 && in.is_contiguous() && out.is_contiguous()) {
        const CastLoop load =
            in.dtype() == DType::Int64 ? nullptr : cast_loop(in.dtype(), DType::Int64);
        const int64_t item = int64_t(in.item_size());
        constexpr int64_t kChunk = 1024;
        parallel_for(
            0, in.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t b, int64_t e) {
              for (int64_t r = b; r < e; ++r) {
                int64_t sum = 0;
                for (int64_t i = r * n; i < r * n + n; i += kChunk) {
                  const int64_t m = std::min(kChunk, r * n + n - i);
                  int64_t* y = out.data_as<int64_t>() + i;
                  if (load) load(reinterpret_cast<char*>(y), 8, in.data() + i * item, item, m);
                  sum =
                      line_loops().running_sum_i64(load ? y : in.data_as<int64_t>() + i, y, m, sum);
                }
              }
            });
        return;
      }
    }
    if (dense && dim == in.dim() - 1) {
      // Dense rows, most dtypes four at a time: each sum waits for itself, four do not wait for
      // each other.
      const T* x = in.data_as<T>();
      T* y = out.data_as<T>();
      parallel_for(0, in.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t b, int64_t e) {
        int64_t r = b;
        if constexpr (is_small_float_v<T>) {
          auto add = [](float s, float v) { return s + v; };
          for (; r + 4 <= e; r += 4) {
            const T* const from[] = {x + r * n, x + r * n + n, x + r * n + 2 * n,
                                     x + r * n + 3 * n};
            T* const to[] = {y + r * n, y + r * n + n, y + r * n + 2 * n, y + r * n + 3 * n};
            scan_half_rows<4>(from, to, n, 0, add);
          }
          for (; r < e; ++r) {
            const T* const from[] = {x + r * n};
            T* const to[] = {y + r * n};
            scan_half_rows<1>(from, to, n, 0, add);
          }
          return;
        }
        if constexpr (std::is_same_v<T, float>) {
          for (; r < e; ++r) line_loops().running_sum_f32(x + r * n, y + r * n, n, 0);
          return;
        }
        for (; r + 4 <= e; r += 4) {
          Acc s0 = Acc(0), s1 = Acc(0), s2 = Acc(0), s3 = Acc(0);
          for (int64_t i = r * n; i < r * n + n; ++i) {
            y[i] = convert<T>(s0 = Acc(s0 + convert<Acc>(x[i])));
            y[i + n] = convert<T>(s1 = Acc(s1 + convert<Acc>(x[i + n])));
            y[i + 2 * n] = convert<T>(s2 = Acc(s2 + convert<Acc>(x[i + 2 * n])));
            y[i + 3 * n] = convert<T>(s3 = Acc(s3 + convert<Acc>(x[i + 3 * n])));
          }
        }
        for (; r < e; ++r) {
          Acc s = Acc(0);
          for (int64_t i = r * n; i < r * n + n; ++i)
            y[i] = convert<T>(s = Acc(s + convert<Acc>(x[i])));
        }
      });
      return;
    }
    CastLoop load = cast_loop(in.dtype(), DTypeOf<Acc>::value);
    for_each_line<2>({&in, &out}, dim, n, [&](const int64_t* at) {
      Acc acc = Acc(0);
      Acc chunk[256];
      for (int64_t i = 0; i < n; i += 256) {
        int64_t m = std::min<int64_t>(256, n - i);
        load(reinterpret_cast<char*>(chunk), sizeof(Acc), in.data() + at[0] + i * is, is, m);
        char* o = out.data() + at[1] + i * os;
        for (int64_t k = 0; k < m; ++k) {
          acc = Acc(acc + chunk[k]);
          *reinterpret_cast<T*>(o + k * os) = convert<T>(acc);
        }
      }
    });
  });
}

}  // namespace facula
