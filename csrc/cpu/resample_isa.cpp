// Weighted sums along three axes; built once per ISA. The depth comes first, for one plane at a
// time. Height and width are summed in the order that makes less work: height first when it
// shrinks, else rows are widened once and kept while results need them.
#include "cpu/half_lanes.h"
#include "cpu/resample.h"

namespace facula::FACULA_ISA {
namespace {

template <class S>
struct Sum {
  using type = float;
};
template <>
struct Sum<double> {
  using type = double;
};

template <class S, class A>
FACULA_INLINE S finished(A v) {
  if constexpr (std::is_same_v<S, uint8_t>) {
    v = v < 0 ? 0 : v > 255 ? 255 : v;
    return S(int32_t(v + A(0.5)));
  } else {
    return convert<S>(v);
  }
}

// to = the sum of rows `stride` elements apart, weighted.
template <class S, class D, class A>
void sum_rows(const S* rows, int64_t stride, const A* weight, int64_t count, int64_t n, A* sums,
              D* to) {
  auto row = [&](int64_t k) { return rows + k * stride; };
  if (count == 1) {
    const S* a = row(0);
    const A u = weight[0];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = finished<D>(A(a[i]) * u);
    return;
  }
  if (count == 2) {
    const S *a = row(0), *b = row(1);
    const A u = weight[0], v = weight[1];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = finished<D>(A(a[i]) * u + A(b[i]) * v);
    return;
  }
  if (count == 3) {
    const S *a = row(0), *b = row(1), *c = row(2);
    const A u = weight[0], v = weight[1], w = weight[2];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = finished<D>(A(a[i]) * u + A(b[i]) * v + A(c[i]) * w);
    return;
  }
  if (count == 4) {
    const S *a = row(0), *b = row(1), *c = row(2), *d = row(3);
    const A u = weight[0], v = weight[1], w = weight[2], x = weight[3];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      to[i] = finished<D>(A(a[i]) * u + A(b[i]) * v + A(c[i]) * w + A(d[i]) * x);
    return;
  }
  // Blocks that stay in the nearest cache while all rows are added.
  constexpr int64_t kBlock = 1024;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t m = n - from < kBlock ? n - from : kBlock;
    for (int64_t i = 0; i < m; ++i) sums[i] = 0;
    for (int64_t k = 0; k < count; ++k) {
      const S* a = row(k) + from;
      const A u = weight[k];
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) sums[i] += A(a[i]) * u;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) to[from + i] = finished<D>(sums[i]);
  }
}
constexpr int64_t kSums = 1024;

// Along a row: pixels of `inner` channels.
template <class D, class A>
void along_row(const ResampleAxis& w, int64_t inner, const A* in, A* sums, D* to) {
  const A* weight = static_cast<const A*>(w.weight);
  if (inner > 1) {
    for (int64_t t = 0; t < w.out; ++t)
      sum_rows(in + w.start[t] * inner, inner, weight + t * w.width, w.count[t], inner, sums,
               to + t * inner);
    return;
  }
  auto each = [&](auto taps) {
    constexpr int kTaps = decltype(taps)::value;
    const int64_t *start = w.start, *count = w.count;
    int64_t t = 0;
    auto until = [&](int64_t end) {
      for (; t < end; ++t) {
        const A* x = in + start[t];
        const A* u = weight + t * w.width;
        A sum = 0;
        if constexpr (kTaps == 1) {
          const A one = x[0] * u[0];
          sum = count[t] ? one : A(0);
        } else {
          for (int64_t k = 0; k < count[t]; ++k) {
            if constexpr (kTaps > 0) asm("" : "+r"(k));  // a few terms are no vector
            sum += x[k] * u[k];
          }
        }
        to[t] = finished<D>(sum);
      }
    };
    if constexpr (kTaps > 0) {
      until(w.whole_begin);
      for (const int64_t end = w.whole_end; t < end; ++t) {
        const A* x = in + start[t];
        const A* u = weight + t * kTaps;
        A sum = x[0] * u[0];
#pragma GCC unroll 4
        for (int k = 1; k < kTaps; ++k) sum += x[k] * u[k];
        to[t] = finished<D>(sum);
      }
    }
    until(w.out);
  };
  switch (w.width) {
    case 1: return each(std::integral_constant<int, 1>{});
    case 2: return each(std::integral_constant<int, 2>{});
    case 3: return each(std::integral_constant<int, 3>{});
    case 4: return each(std::integral_constant<int, 4>{});
    default: return each(std::integral_constant<int, 0>{});
  }
}

// Half precision is written in vectors, from a line of float32.
template <class S, class A>
void along_row(const ResampleAxis& w, int64_t inner, const A* in, A* sums, A* line, S* to) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>) {
    if (inner == 1) {
      along_row(w, inner, in, sums, line);
      int64_t t = 0;
      constexpr int L = kLanes<A>;
      for (; t + L <= w.out; t += L) write_halves(to + t, wide_at(line + t));
      for (; t < w.out; ++t) to[t] = S(line[t]);
      return;
    }
  }
  along_row(w, inner, in, sums, to);
}

template <class A>
struct Scratch {
  int64_t in_row, out_row, kept, plane, sums;  // elements; one more row than is kept
  explicit Scratch(const Resample& r)
      : in_row(r.axis[2].in * r.inner),
        out_row(r.axis[2].out * r.inner),
        kept(r.axis[1].out > r.axis[1].in ? r.axis[1].width : 0),
        plane(r.axis[0].identity ? 0 : r.axis[1].in * r.axis[2].in * r.inner),
        sums(kSums) {}
  int64_t elements() const { return in_row + (kept + 1) * out_row + plane + sums; }
};

template <class S, class A, class P>
void plane_rows(const Resample& r, const P* plane, S* y, int64_t begin, int64_t end, A* line,
                A* kept, A* sums) {
  const ResampleAxis &h = r.axis[1], &w = r.axis[2];
  const A* weight = static_cast<const A*>(h.weight);
  const int64_t in_row = w.in * r.inner, out_row = w.out * r.inner;
  if (h.out <= h.in || w.identity) {
    for (int64_t t = begin; t < end; ++t) {
      const P* rows = plane + h.start[t] * in_row;
      S* to = y + t * out_row;
      if (w.identity) {
        sum_rows(rows, in_row, weight + t * h.width, h.count[t], in_row, sums, to);
        continue;
      }
      sum_rows(rows, in_row, weight + t * h.width, h.count[t], in_row, sums, line);
      along_row(w, r.inner, line, sums, kept, to);
    }
    return;
  }
  // kept holds rows [first, next) of the input, widened, row k at k % width.
  int64_t next = h.start[begin];
  for (int64_t t = begin; t < end; ++t) {
    const int64_t first = h.start[t], last = first + h.count[t];
    next = next < first ? first : next;
    for (; next < last; ++next) {
      const P* from = plane + next * in_row;
#pragma GCC ivdep
      for (int64_t i = 0; i < in_row; ++i) line[i] = A(from[i]);
      along_row(w, r.inner, line, sums, kept + next % h.width * out_row);
    }
    S* to = y + t * out_row;
    const A* u = weight + t * h.width;
    auto row = [&](int64_t k) { return kept + (first + k) % h.width * out_row; };
    const int64_t count = h.count[t];
    if (count == 1) {
      const A* a = row(0);
      const A u0 = u[0];
#pragma GCC ivdep
      for (int64_t i = 0; i < out_row; ++i) to[i] = finished<S>(a[i] * u0);
    } else if (count == 2) {
      const A *a = row(0), *b = row(1);
      const A u0 = u[0], u1 = u[1];
#pragma GCC ivdep
      for (int64_t i = 0; i < out_row; ++i) to[i] = finished<S>(a[i] * u0 + b[i] * u1);
    } else {
      for (int64_t from = 0; from < out_row; from += kSums) {
        const int64_t m = out_row - from < kSums ? out_row - from : kSums;
        for (int64_t i = 0; i < m; ++i) sums[i] = 0;
        for (int64_t k = 0; k < count; ++k) {
          const A* a = row(k) + from;
          const A v = u[k];
#pragma GCC ivdep
          for (int64_t i = 0; i < m; ++i) sums[i] += a[i] * v;
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < m; ++i) to[from + i] = finished<S>(sums[i]);
      }
    }
  }
}

template <class S>
void rows_of(const Resample& r, const void* x, void* y, int64_t plane, int64_t begin, int64_t end,
             void* scratch) {
  using A = typename Sum<S>::type;
  const ResampleAxis &d = r.axis[0], &h = r.axis[1], &w = r.axis[2];
  const Scratch<A> sizes(r);
  A* line = static_cast<A*>(scratch);
  A* sums = line + sizes.in_row;
  A* kept = sums + sizes.sums;
  A* volume = kept + (sizes.kept + 1) * sizes.out_row;
  const int64_t pixels = h.in * w.in * r.inner;
  const int64_t image = plane / d.out, depth = plane % d.out;
  const S* from = static_cast<const S*>(x) + (image * d.in + d.start[depth]) * pixels;
  S* to = static_cast<S*>(y) + plane * h.out * w.out * r.inner;
  if (d.identity) return plane_rows(r, from, to, begin, end, line, kept, sums);
  // Only the rows that [begin, end) needs.
  const int64_t low = begin < end ? h.start[begin] : 0;
  int64_t high = low;
  for (int64_t t = begin; t < end; ++t) {
    const int64_t last = h.start[t] + h.count[t];
    high = last > high ? last : high;
  }
  const int64_t row = w.in * r.inner;
  const A* weight = static_cast<const A*>(d.weight) + depth * d.width;
  sum_rows(from + low * row, pixels, weight, d.count[depth], (high - low) * row, sums,
           volume + low * row);
  plane_rows(r, static_cast<const A*>(volume), to, begin, end, line, kept, sums);
}

int64_t scratch(const Resample& r) {
  return r.dtype == DType::Float64 ? Scratch<double>(r).elements() * 8
                                   : Scratch<float>(r).elements() * 4;
}

void rows(const Resample& r, const void* x, void* y, int64_t plane, int64_t begin, int64_t end,
          void* scratch) {
  switch (r.dtype) {
    case DType::Float32: return rows_of<float>(r, x, y, plane, begin, end, scratch);
    case DType::Float64: return rows_of<double>(r, x, y, plane, begin, end, scratch);
    case DType::Float16: return rows_of<Half>(r, x, y, plane, begin, end, scratch);
    case DType::BFloat16: return rows_of<BFloat16>(r, x, y, plane, begin, end, scratch);
    default: return rows_of<uint8_t>(r, x, y, plane, begin, end, scratch);
  }
}

// ---- means of whole planes

template <int kWidth, class A>
FACULA_INLINE A folded(A* lane) {
  if constexpr (kWidth == 1) {
    return lane[0];
  } else {
    for (int k = 0; k < kWidth / 2; ++k) lane[k] += lane[k + kWidth / 2];
    return folded<kWidth / 2>(lane);
  }
}

// Lanes of their own, so that the sum is a vector's; folded at the end. As vectors, since compilers
// keep arrays that are more than one in memory.
template <class S, class A>
A sum_of(const S* x, int64_t n) {
  constexpr int L = 64 / sizeof(A), V = kLanes<A>, kParts = L / V;
  typedef A Vector __attribute__((vector_size(kLaneBytes)));
  auto part = [](const S* from) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<S, A>) {
      Vector v;
      __builtin_memcpy(&v, from, sizeof v);
      return v;
    } else {
      return read_halves(from);
    }
  };
  Vector even[kParts] = {}, odd[kParts] = {};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L)
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      even[p] += part(x + i + p * V);
      odd[p] += part(x + i + L + p * V);
    }
  for (; i + L <= n; i += L)
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) even[p] += part(x + i + p * V);
  A rest = 0;
  for (; i < n; ++i) rest += A(x[i]);
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p) even[p] += odd[p];
  A lane[L];
  __builtin_memcpy(lane, even, sizeof lane);
  return folded<L>(lane) + rest;
}

template <class S>
void means_of(int64_t pixels, int64_t inner, const void* x, void* y, int64_t begin, int64_t end) {
  using A = typename Sum<S>::type;
  constexpr int64_t kBlock = 256;
  for (; begin < end; ++begin) {
    const S* plane = static_cast<const S*>(x) + begin * pixels * inner;
    S* to = static_cast<S*>(y) + begin * inner;
    if (inner == 1) {
      *to = convert<S>(sum_of<S, A>(plane, pixels) / A(pixels));
      continue;
    }
    for (int64_t from = 0; from < inner; from += kBlock) {
      const int64_t m = inner - from < kBlock ? inner - from : kBlock;
      A sums[kBlock] = {};
      for (int64_t p = 0; p < pixels; ++p) {
        const S* pixel = plane + p * inner + from;
#pragma GCC ivdep
        for (int64_t i = 0; i < m; ++i) sums[i] += A(pixel[i]);
      }
      for (int64_t i = 0; i < m; ++i) to[from + i] = convert<S>(sums[i] / A(pixels));
    }
  }
}

void means(DType dtype, int64_t pixels, int64_t inner, const void* x, void* y, int64_t begin,
           int64_t end) {
  switch (dtype) {
    case DType::Float32: return means_of<float>(pixels, inner, x, y, begin, end);
    case DType::Float64: return means_of<double>(pixels, inner, x, y, begin, end);
    case DType::Float16: return means_of<Half>(pixels, inner, x, y, begin, end);
    default: return means_of<BFloat16>(pixels, inner, x, y, begin, end);
  }
}

}  // namespace

extern const ResampleLoops resample_loops;
const ResampleLoops resample_loops = {scratch, rows, means};

}  // namespace facula::FACULA_ISA
