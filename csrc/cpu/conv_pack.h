// How the operands of a convolution become matrices: runs of output pixels, the taps that they see,
// and copies of both into panels. Built per ISA, like the files that include it.
#pragma once
#include "cpu/conv.h"
#include "cpu/conv_tile.h"
#include "cpu/turn_block.h"
#include "cpu/turn_registers.h"

namespace facula::FACULA_ISA {

FACULA_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
FACULA_INLINE int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
FACULA_INLINE int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
FACULA_INLINE int64_t round_up(int64_t a, int64_t b) {
  return divide_up(a, b) * b;
}

// Hands out parts of one block of memory, each on a cache line of its own.
class Scratch {
 public:
  explicit Scratch(void* memory) : at_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int64_t count) {
    T* part = reinterpret_cast<T*>(at_);
    at_ += bytes<T>(count);
    return part;
  }
  template <class T>
  static size_t bytes(int64_t count) {
    return size_t(round_up(count * int64_t(sizeof(T)), 64));
  }

 private:
  char* at_;
};

// Neighbouring pixels of one output row: `count` of them from (batch, place), the first of which is
// column `column` of a block of pixels.
struct PixelRun {
  int64_t column, count, batch;
  int64_t place[3];
};

// Calls f for the runs of pixels [first, first + count), numbered through the batch; none crosses a
// multiple of `limit` columns.
template <class F>
FACULA_INLINE void for_each_run(const Conv& v, int64_t first, int64_t count, int64_t limit, F f) {
  const int64_t rows = v.axis[1].out, width = v.axis[2].out;
  PixelRun run;
  run.place[2] = first % width;
  int64_t row = first / width;
  run.place[1] = row % rows;
  row /= rows;
  run.place[0] = row % v.axis[0].out;
  run.batch = row / v.axis[0].out;
  for (run.column = 0; run.column < count; run.column += run.count) {
    run.count =
        smaller(smaller(width - run.place[2], count - run.column), limit - run.column % limit);
    f(static_cast<const PixelRun&>(run));
    run.place[2] += run.count;
    if (run.place[2] < width) continue;
    run.place[2] = 0;
    if (++run.place[1] < rows) continue;
    run.place[1] = 0;
    if (++run.place[0] < v.axis[0].out) continue;
    run.place[0] = 0;
    ++run.batch;
  }
}

// What a run sees through one tap: its pixels [low, high) meet the input, the first pixel (were it
// one of them) at `offset` from the start of a channel. Other pixels see zeros.
struct Tap {
  int64_t offset;
  int32_t low, high;
  uint32_t mask;  // bits low .. high, where a run is at most 32 long
};

FACULA_INLINE constexpr uint32_t first_bits(int64_t n) {
  return n >= 32 ? ~0u : (1u << n) - 1;
}

// Through column k of the kernel, were its row inside; the offset is that of the column alone.
FACULA_INLINE Tap find_column(const Conv& v, const PixelRun& run, int64_t k) {
  const ConvAxis& w = v.axis[2];
  const int64_t x = run.place[2] * w.step + w.start + k * w.spread;
  Tap tap{x * w.x_stride, 0, 0, 0};
  const int64_t low = x < 0 ? (-x + w.step - 1) / w.step : 0;
  int64_t high = run.count;
  if (x + (run.count - 1) * w.step >= w.in) high = x < w.in ? (w.in - 1 - x) / w.step + 1 : 0;
  if (low < high) {
    tap.low = int32_t(low);
    tap.high = int32_t(high);
    tap.mask = first_bits(high) & ~first_bits(low);
  }
  return tap;
}
// Row (i, j) of the kernel.
struct TapRow {
  FACULA_INLINE TapRow(const Conv& v, const PixelRun& run, int64_t i, int64_t j) {
    const ConvAxis &d = v.axis[0], &h = v.axis[1];
    const int64_t z = run.place[0] * d.step + d.start + i * d.spread;
    const int64_t y = run.place[1] * h.step + h.start + j * h.spread;
    offset = z * d.x_stride + y * h.x_stride;
    inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
  }
  FACULA_INLINE Tap at(const Tap& column) const {
    if (!inside) return {column.offset + offset, 0, 0, 0};
    return {column.offset + offset, column.low, column.high, column.mask};
  }
  int64_t offset;
  bool inside;
};
FACULA_INLINE Tap find_tap(const Conv& v, const PixelRun& run, int64_t i, int64_t j, int64_t k) {
  return TapRow(v, run, i, j).at(find_column(v, run, k));
}

// Columns are found once; they are in the place of the first row until all others have been made.
FACULA_INLINE void find_taps(const Conv& v, const PixelRun& run, Tap* taps) {
  const int64_t columns = v.axis[2].taps, height = v.axis[1].taps;
  for (int64_t k = 0; k < columns; ++k) taps[k] = find_column(v, run, k);
  for (int64_t i = v.axis[0].taps - 1; i >= 0; --i) {
    for (int64_t j = height - 1; j >= 0; --j) {
      const TapRow row(v, run, i, j);
      Tap* const to = taps + (i * height + j) * columns;
      for (int64_t k = 0; k < columns; ++k) to[k] = row.at(taps[k]);
    }
  }
}

// Offsets of the taps within the weights of one pair of channels.
FACULA_INLINE void weight_offsets(const Conv& v, int64_t* offsets) {
  for (int64_t i = 0; i < v.axis[0].taps; ++i) {
    for (int64_t j = 0; j < v.axis[1].taps; ++j) {
      for (int64_t k = 0; k < v.axis[2].taps; ++k) {
        *offsets++ = i * v.axis[0].w_stride + j * v.axis[1].w_stride + k * v.axis[2].w_stride;
      }
    }
  }
}

// A tap by number, as its places on the axes.
struct TapPlace {
  FACULA_INLINE TapPlace(const Conv& v, int64_t tap)
      : d(tap / v.axis[2].taps / v.axis[1].taps),
        h(tap / v.axis[2].taps % v.axis[1].taps),
        w(tap % v.axis[2].taps) {}
  int64_t d, h, w;
};

// A weight that is written: the derivative by it.
template <class S>
FACULA_INLINE S* weight_at(const Conv& v, int64_t group, int64_t out, int64_t in, int64_t tap) {
  const TapPlace at(v, tap);
  return static_cast<S*>(const_cast<void*>(v.w)) + group * v.w_group + out * v.w_out + in * v.w_in +
         at.d * v.axis[0].w_stride + at.h * v.axis[1].w_stride + at.w * v.axis[2].w_stride;
}

// Whether weight_offsets gives 0, 1, 2 ...
inline bool dense_taps(const Conv& v) {
  int64_t expected = 1;
  for (int i = 2; i >= 0; --i) {
    if (v.axis[i].taps > 1 && v.axis[i].w_stride != expected) return false;
    expected *= v.axis[i].taps;
  }
  return true;
}

// ---- rows of elements, converted to accumulators

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
constexpr bool kMasks = true;
#else
constexpr bool kMasks = false;
#endif

// The types whose vectors can be loaded in part.
template <class S>
constexpr bool kMaskable = kMasks && (std::is_same_v<S, float> || std::is_same_v<S, double> ||
                                      std::is_same_v<S, BFloat16> || std::is_same_v<S, Half>);

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// Lanes whose bit is not set are zero and not read.
template <class S>
FACULA_INLINE Vector<Accumulator<S>> load_some(uint32_t mask, const S* p) {
  if constexpr (std::is_same_v<S, float>) {
    return (Vector<float>)_mm512_maskz_loadu_ps(__mmask16(mask), p);
  } else if constexpr (std::is_same_v<S, double>) {
    return (Vector<double>)_mm512_maskz_loadu_pd(__mmask8(mask), p);
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    const __m256i half = _mm256_maskz_loadu_epi16(__mmask16(mask), p);
    return (Vector<float>)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
  } else {
    return (Vector<float>)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(__mmask16(mask), p));
  }
}
// Every second element, from the lanes' first.
FACULA_INLINE Vector<float> load_some_even(uint32_t mask, const float* p) {
  const __m512 low = _mm512_maskz_loadu_ps(__mmask16(_pdep_u32(mask & 0xff, 0x5555)), p);
  const __m512 high = _mm512_maskz_loadu_ps(__mmask16(_pdep_u32(mask >> 8 & 0xff, 0x5555)), p + 16);
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return (Vector<float>)_mm512_permutex2var_ps(low, even, high);
}
FACULA_INLINE void store_some(float* p, uint32_t mask, Vector<float> x) {
  _mm512_mask_storeu_ps(p, __mmask16(mask), (__m512)x);
}
FACULA_INLINE void store_some(double* p, uint32_t mask, Vector<double> x) {
  _mm512_mask_storeu_pd(p, __mmask8(mask), (__m512d)x);
}
#elif defined(__AVX2__)
// Which of the numbers `at` are in [low, high); -1 never is.
FACULA_INLINE __m256i are_between(__m256i at, int64_t low, int64_t high) {
  const __m256i least = _mm256_set1_epi32(int32_t(larger(low, 0)) - 1);
  return _mm256_and_si256(_mm256_cmpgt_epi32(at, least),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(int32_t(high)), at));
}
// Lanes [low, high); the others are zero and not read. The same of every second element. Memory is
// slow to take vectors in part, so there is no such store.
FACULA_INLINE Vector<float> load_between(const float* p, int64_t low, int64_t high) {
  const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (Vector<float>)_mm256_maskload_ps(p, are_between(at, low, high));
}
FACULA_INLINE Vector<float> load_even_between(const float* p, int64_t low, int64_t high) {
  __m256 first, second;  // which ends with the last element that is needed
  if (low <= 0 && high >= 8) {
    first = _mm256_loadu_ps(p);
    second = _mm256_loadu_ps(p + 7);
  } else {
    first = _mm256_maskload_ps(
        p, are_between(_mm256_setr_epi32(0, -1, 1, -1, 2, -1, 3, -1), low, high));
    second = _mm256_maskload_ps(
        p + 7, are_between(_mm256_setr_epi32(-1, 4, -1, 5, -1, 6, -1, 7), low, high));
  }
  const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(first, second, 0xd8));
  return (Vector<float>)_mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
}
// Half as many elements, [low, high) of them, with zeros between; the first in lane 1 with `odd`.
FACULA_INLINE Vector<float> load_spaced_between(const float* p, int64_t low, int64_t high,
                                                bool odd) {
  const __m256i at = odd ? _mm256_setr_epi32(-1, 0, -1, 1, -1, 2, -1, 3)
                         : _mm256_setr_epi32(0, -1, 1, -1, 2, -1, 3, -1);
  const __m256i pairs = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  const __m256 four = (__m256)load_between(p, low, smaller(high, 4));
  return (Vector<float>)_mm256_and_ps(_mm256_permutevar8x32_ps(four, pairs),
                                      _mm256_castsi256_ps(are_between(at, 0, 4)));
}
#endif

// `count` neighbours, the other lanes zero.
template <class S>
FACULA_INLINE Vector<Accumulator<S>> load_first(const S* from, int64_t count) {
  using A = Accumulator<S>;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (kMaskable<S>) return load_some(first_bits(count), from);
#endif
  if constexpr (kLoadable<S>) {
    if (count == kLanes<A>) return load_wide(from);
  }
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float>) return load_between(from, 0, count);
#endif
  alignas(64) A lanes[kLanes<A>] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = widen<A>(from[i]);
  return load(lanes);
}

// The first `count` lanes.
template <class A>
FACULA_INLINE void store_first(A* to, int64_t count, Vector<A> x) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (std::is_floating_point_v<A>) return store_some(to, first_bits(count), x);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<A, float>) {  // memory is slow to take vectors in part
    if (count >= 8) return store(to, x);
    __m128 four = _mm256_castps256_ps128((__m256)x);
    if (count & 4) {
      _mm_storeu_ps(to, four);
      four = _mm256_extractf128_ps((__m256)x, 1);
      to += 4;
    }
    if (count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), four);
      four = _mm_movehl_ps(four, four);
      to += 2;
    }
    if (count & 1) _mm_store_ss(to, four);
    return;
  }
#endif
  alignas(64) A lanes[kLanes<A>];
  store(lanes, x);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// to[i] = from[i * stride] for i in [low, high), zero in the rest of [0, count).
template <class S, class A>
FACULA_INLINE void copy_span(const S* from, int64_t stride, int64_t low, int64_t high,
                             int64_t count, A* to) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (kMaskable<S>) {
    constexpr int64_t lanes = kLanes<A>;
    if (stride == 1) {
      int64_t i = 0;
      if (low == 0 && high == count) {
        for (; i + lanes <= count; i += lanes) store(to + i, load_wide(from + i));
      }
      for (; i < count; i += lanes) {
        const uint32_t seen = first_bits(larger(smaller(high - i, lanes), 0)) &
                              ~first_bits(larger(smaller(low - i, lanes), 0));
        store_some(to + i, first_bits(smaller(count - i, lanes)), load_some(seen, from + i));
      }
      return;
    }
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<S, float>) {
    if (stride == 1 || stride == 2) {
      int64_t i = 0;
      auto part = [&] {
        return stride == 1 ? load_between(from + i, low - i, high - i)
                           : load_even_between(from + 2 * i, low - i, high - i);
      };
      for (; i < low && i + 8 <= count; i += 8) store(to + i, part());
      for (; stride == 1 && i + 8 <= high; i += 8) store(to + i, load_wide(from + i));
      for (; i + 8 <= count; i += 8) store(to + i, part());
      if (i < count) store_first(to + i, count - i, part());
      return;
    }
  }
#endif
  for (int64_t i = 0; i < low; ++i) to[i] = A(0);
  int64_t i = low;
  if (stride == 1) {
    if constexpr (kLoadable<S>) {
      for (; i + kLanes<A> <= high; i += kLanes<A>) store(to + i, load_wide(from + i));
    }
    for (; i < high; ++i) to[i] = widen<A>(from[i]);
  } else {
    for (; i < high; ++i) to[i] = widen<A>(from[i * stride]);
  }
  for (i = high; i < count; ++i) to[i] = A(0);
}

// A few neighbours; may write a vector's worth of anything behind them.
template <class S, class A>
FACULA_INLINE void copy_short(const S* from, int64_t count, A* to) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (kMaskable<S>) {
    if (count <= kLanes<A>) return store(to, load_some(first_bits(count), from));
  }
#endif
  copy_span(from, 1, 0, count, count, to);
}

// Every channel starts elsewhere, which the hardware does not foresee.
constexpr int64_t kAhead = 8;  // channels
template <class S>
FACULA_INLINE void fetch_ahead(const S* from, int64_t channel_stride, int64_t last) {
  __builtin_prefetch(from + kAhead * channel_stride);
  __builtin_prefetch(from + kAhead * channel_stride + last);
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// One row of a run, `stride` 1 or 2, of up to two vectors. `all` has a bit for every pixel.
template <int stride, class S>
FACULA_INLINE void copy_some(const S* from, uint32_t seen, uint32_t all, Accumulator<S>* to) {
  constexpr int lanes = kLanes<Accumulator<S>>;
  auto part = [](uint32_t mask, const S* p) {
    if constexpr (stride == 2) return load_some_even(mask, p);
    else return load_some(mask, p);
  };
  store_some(to, all, part(seen, from));
  if (all >> lanes)
    store_some(to + lanes, all >> lanes, part(seen >> lanes, from + stride * lanes));
}

template <int stride, class S>
void pack_run_some(const Conv& v, const S* channel, int64_t count, const Tap* taps, int64_t tap,
                   int64_t depth, Accumulator<S>* to, int64_t pitch) {
  constexpr int lanes = kLanes<Accumulator<S>>;
  const int64_t tap_count = v.taps(), channel_stride = v.x_channel;
  const uint32_t all = first_bits(count);
  for (; depth > 0; channel += channel_stride, tap = 0) {
    const int64_t end = smaller(tap_count, tap + depth);
    depth -= end - tap;
    for (; tap < end; ++tap, to += pitch) {
      const S* from = channel + taps[tap].offset;
      const uint32_t seen = taps[tap].mask;
      fetch_ahead(from, channel_stride, stride * count - 1);
      if (stride == 1 && count == 2 * lanes && seen == all) {
        if constexpr (stride == 1) {
          store(to, load_wide(from));
          store(to + lanes, load_wide(from + lanes));
        }
      } else {
        copy_some<stride>(from, seen, all, to);
      }
    }
  }
}
#endif

// Rows [k0, k0 + depth) of the matrix of what the pixels of a run see, numbered by channel and tap:
// row k goes to `to` + (k - k0) * pitch. A run is at most one panel long.
template <class S, class A>
void pack_run(const Conv& v, const S* x, const PixelRun& run, const Tap* taps, int64_t k0,
              int64_t depth, A* to, int64_t pitch) {
  const int64_t tap_count = v.taps(), stride = v.axis[2].step * v.axis[2].x_stride;
  int64_t tap = k0 % tap_count;
  const S* channel = x + run.batch * v.x_batch + k0 / tap_count * v.x_channel;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (kMaskable<S>) {
    if (stride == 1) return pack_run_some<1>(v, channel, run.count, taps, tap, depth, to, pitch);
    if constexpr (std::is_same_v<S, float>) {
      if (stride == 2) return pack_run_some<2>(v, channel, run.count, taps, tap, depth, to, pitch);
    }
  }
#endif
  constexpr int64_t lanes = kLanes<A>;
  const bool whole = kLoadable<S> && stride == 1 && run.count == 2 * lanes;
  for (; depth > 0; --depth, to += pitch) {
    const S* const from = channel + taps[tap].offset;
    fetch_ahead(from, v.x_channel, stride * run.count - 1);
    if (whole && taps[tap].high - taps[tap].low == 2 * lanes) {
      if constexpr (kLoadable<S>) {
        store(to, load_wide(from));
        store(to + lanes, load_wide(from + lanes));
      }
    } else {
      copy_span(from, stride, taps[tap].low, taps[tap].high, run.count, to);
    }
    if (++tap == tap_count) tap = 0, channel += v.x_channel;
  }
}

// Whether squares of elements can be turned in registers.
#if defined(__AVX2__)
constexpr int64_t kSquare = kLanes<float>;
template <class S>
constexpr bool kTurnable = kLoadable<S> && std::is_same_v<Accumulator<S>, float>;
#else
constexpr int64_t kSquare = 1;
template <class S>
constexpr bool kTurnable = false;
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// to[p * pitch + i] = from[i * apart + p] for p < count <= kSquare and i < lanes; the other
// lanes of kSquare are zero, or not written with exact = true.
template <bool exact = false, class S>
FACULA_INLINE void transpose_square(const S* from, int64_t apart, int64_t lanes, int64_t count,
                                    float* to, int64_t pitch) {
  const uint32_t mask = first_bits(count);
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    r[i] = i < lanes ? (__m512i)load_some(mask, from + i * apart) : _mm512_setzero_si512();
  }
  turn_registers(r);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i < count) {
      if constexpr (exact) store_some(to + i * pitch, first_bits(lanes), (Vector<float>)r[i]);
      else _mm512_storeu_si512(to + i * pitch, r[i]);
    }
  }
}
#elif defined(__AVX2__)
// r[i][p] becomes r[p][i].
FACULA_INLINE void turn_registers(__m256 (&r)[8]) {
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 low = r[i], high = r[i + 4];
    r[i] = _mm256_permute2f128_ps(low, high, 0x20);
    r[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}
template <bool exact, class S>
void transpose_part(const S* from, int64_t apart, int64_t lanes, int64_t count, float* to,
                    int64_t pitch) {
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    r[i] = i < lanes ? (__m256)load_first(from + i * apart, count) : _mm256_setzero_ps();
  }
  turn_registers(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i >= count) continue;
    if constexpr (exact) store_first(to + i * pitch, smaller(lanes, 8), (Vector<float>)r[i]);
    else _mm256_storeu_ps(to + i * pitch, r[i]);
  }
}
// As above.
template <bool exact = false, class S>
FACULA_INLINE void transpose_square(const S* from, int64_t apart, int64_t lanes, int64_t count,
                                    float* to, int64_t pitch) {
  if (lanes < 8 || count < 8) return transpose_part<exact>(from, apart, lanes, count, to, pitch);
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = (__m256)load_wide(from + i * apart);
  turn_registers(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to + i * pitch, r[i]);
}
#else
template <bool exact = false, class S>
void transpose_square(const S*, int64_t, int64_t, int64_t, float*, int64_t) = delete;
#endif

// Columns of a panel from elements that are contiguous along the panel's rows: to[p * width + j] =
// from[j * apart + p * step] for p < count and j < columns; the panel's other columns are zero.
template <class S, class A>
void transpose_panel(const S* from, int64_t step, int64_t apart, int64_t count, int64_t columns,
                     A* to) {
  constexpr int64_t width = kTileColumns<A>;
  if constexpr (kTurnable<S> && std::is_same_v<A, float>) {
    if (step == 1) {
      for (int64_t p = 0; p < count; p += kSquare) {
        for (int64_t j = 0; j < width; j += kSquare) {
          transpose_square(from + j * apart + p, apart, columns - j, smaller(kSquare, count - p),
                           to + p * width + j, width);
        }
      }
      return;
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    const S* row = from + j * apart;
    for (int64_t p = 0; p < count; ++p) to[p * width + j] = widen<A>(row[p * step]);
  }
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t j = columns; j < width; ++j) to[p * width + j] = A(0);
  }
}

// Columns [0, count) of the weights as a panel, rows k0 .. k0 + depth in the order of taps, then
// channels.
template <class S, class A>
void pack_weight_panel(const Conv& v, const S* w, int64_t k0, int64_t depth, int64_t count, A* to) {
  int64_t tap = k0 / larger(v.in, 1), channel = k0 - tap * v.in;
  for (int64_t k = 0; k < depth; ++tap, channel = 0) {
    const TapPlace at(v, tap);
    const S* from = w + at.d * v.axis[0].w_stride + at.h * v.axis[1].w_stride +
                    at.w * v.axis[2].w_stride + channel * v.w_in;
    const int64_t end = smaller(v.in - channel, depth - k);
    A* const panel = to + k * kTileColumns<A>;
    if (v.w_out == 1 && end > 1) {
      for (int64_t i = 0; i < end; ++i) {
        copy_span(from + i * v.w_in, 1, 0, count, kTileColumns<A>, panel + i * kTileColumns<A>);
      }
    } else {
      transpose_panel(from, v.w_in, v.w_out, end, count, panel);
    }
    k += end;
  }
}

// One vector of accumulators as neighbouring elements, the reverse of load_wide.
template <class S>
FACULA_INLINE void store_wide(S* to, Vector<Accumulator<S>> x) {
  if constexpr (kInPlace<S>) {
    store(reinterpret_cast<Accumulator<S>*>(to), x);
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    const auto bits = (Vector<uint32_t>)x;
    const Vector<uint32_t> rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const Vector<uint32_t> words = (x != x ? bits | 0x400000u : rounded) >> 16;
    *reinterpret_cast<HalfVector*>(to) = __builtin_convertvector(words, HalfVector);
  } else {
    static_assert(std::is_same_v<S, Half>);
#if defined(__AVX512F__)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph((__m512)x, 0));
#elif defined(__AVX2__) && defined(__F16C__)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)x, 0));
#endif
  }
}

// `count` accumulators become elements, `stride` apart.
template <class S, class A>
FACULA_INLINE void store_row(const A* from, int64_t count, S* to, int64_t stride) {
  if (stride != 1) {
    for (int64_t i = 0; i < count; ++i) to[i * stride] = S(from[i]);
    return;
  }
  int64_t i = 0;
  if constexpr (kLoadable<S> && !kInPlace<S>) {
    for (; i + kLanes<A> <= count; i += kLanes<A>) store_wide(to + i, load(from + i));
  }
  for (; i < count; ++i) to[i] = S(from[i]);
}

// The first `count` lanes as elements.
template <class S>
FACULA_INLINE void store_elements(S* to, int64_t count, Vector<Accumulator<S>> x) {
  using A = Accumulator<S>;
  if constexpr (kInPlace<S>) {
    store_first(reinterpret_cast<A*>(to), count, x);
  } else {
    alignas(64) A lanes[kLanes<A>];
    store(lanes, x);
    store_row(lanes, count, to, 1);
  }
}

// Pixels of several planes (`apart`) become vectors of channels: to[p * lanes + c].
template <class S, class A>
void turn_channels(const S* from, int64_t step, int64_t apart, int64_t pixels, int64_t channels,
                   A* to) {
  constexpr int64_t wide = kLanes<A>;
  if constexpr (kTurnable<S> && std::is_same_v<A, float>) {
    if (step == 1) {
      for (int64_t p = 0; p < pixels; p += kSquare) {
        transpose_square(from + p, apart, channels, smaller(kSquare, pixels - p), to + p * wide,
                         wide);
      }
      return;
    }
  }
  const bool turned = std::is_same_v<S, float> && step == 1;
  if constexpr (std::is_same_v<S, float>) {
    if (turned) turn_matrix(to, wide, from, apart, pixels, channels);
  }
  for (int64_t p = 0; p < pixels; ++p, to += wide) {
    for (int64_t c = 0; c < channels && !turned; ++c) to[c] = widen<A>(from[p * step + c * apart]);
    for (int64_t c = channels; c < wide; ++c) to[c] = A(0);
  }
}

// The reverse: to[c * apart + p] from vectors of channels.
template <class S, class A>
void turn_pixels(const A* from, int64_t pixels, int64_t channels, S* to, int64_t apart) {
  constexpr int64_t wide = kLanes<A>;
  if constexpr (kTurnable<S> && std::is_same_v<A, float>) {
    for (int64_t p = 0; p < pixels; p += kSquare) {
      const int64_t count = smaller(kSquare, pixels - p);
      if constexpr (std::is_same_v<S, float>) {
        transpose_square<true>(from + p * wide, wide, count, channels, to + p, apart);
      } else {
        alignas(64) float turned[kSquare * kSquare];
        transpose_square(from + p * wide, wide, count, channels, turned, kSquare);
        for (int64_t c = 0; c < channels; ++c) {
          store_row(turned + c * kSquare, count, to + c * apart + p, 1);
        }
      }
    }
    return;
  }
  if constexpr (std::is_same_v<S, float>) {
    turn_matrix(to, apart, from, wide, channels, pixels);
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) to[c * apart + p] = S(from[p * wide + c]);
    }
  }
}

// to[j * apart + i] = from[i * pitch + j] for i < rows and j < columns.
template <class S, class A>
void store_turned(const A* from, int64_t pitch, int64_t rows, int64_t columns, S* to,
                  int64_t apart) {
  if constexpr (kTurnable<S> && std::is_same_v<A, float>) {
    for (int64_t j = 0; j < columns; j += kSquare) {
      for (int64_t i = 0; i < rows; i += kSquare) {
        const int64_t height = smaller(kSquare, rows - i), width = smaller(kSquare, columns - j);
        const A* const square = from + i * pitch + j;
        if constexpr (std::is_same_v<S, float>) {
          transpose_square<true>(square, pitch, height, width, to + j * apart + i, apart);
        } else {
          alignas(64) float turned[kSquare * kSquare];
          transpose_square(square, pitch, height, width, turned, kSquare);
          for (int64_t k = 0; k < width; ++k) {
            store_row(turned + k * kSquare, height, to + (j + k) * apart + i, 1);
          }
        }
      }
    }
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * apart + i] = S(from[i * pitch + j]);
  }
}

}  // namespace facula::FACULA_ISA
