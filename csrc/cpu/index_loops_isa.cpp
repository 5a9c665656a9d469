// Passes over index values and elements without an early exit inside a block, so that they
// vectorise, and sorting networks; built once per ISA.
#include "cpu/index_loops.h"

#include "core/numeric.h"
#include "cpu/lanes.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kBlock = 64;

// A range has at most 2^63 values, so a sign says that one is outside. Several vectors collect
// them: a single one would be waited for at each step.
bool all_inside(const int64_t* x, int64_t n, uint64_t low, uint64_t range) {
  typedef uint64_t Words __attribute__((vector_size(kLaneBytes)));
  constexpr int64_t L = kLaneBytes / 8;
  auto outside = [&](auto value) {
    const auto above = value - low;
    return above | (range - 1 - above);
  };
  Words signs[4] = {};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      Words values;
      __builtin_memcpy(&values, x + i + k * L, sizeof values);
      signs[k] |= outside(values);
    }
  const Words all = (signs[0] | signs[1]) | (signs[2] | signs[3]);
  uint64_t any = 0;
  for (; i < n; ++i) any |= outside(uint64_t(x[i]));
  for (int64_t k = 0; k < L; ++k) any |= all[k];
  return int64_t(any) >= 0;
}

void extremes(const int64_t* x, int64_t n, int64_t* low, int64_t* high) {
  int64_t least = *low, most = *high;
  for (int64_t i = 0; i < n; ++i) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  *low = least;
  *high = most;
}

template <class T>
int64_t changes(const T* x, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += x[i] != x[i + 1];
  return count;
}

template <class T, bool kAbove>
int64_t first_beyond(const T* x, int64_t from, int64_t n, T bound) {
  auto is_beyond = [&](T v) { return kAbove ? !(v <= bound) : !(v >= bound); };
  for (; from + kBlock <= n; from += kBlock) {
    int any = 0;
    for (int64_t k = 0; k < kBlock; ++k) any |= is_beyond(x[from + k]);
    if (any) break;
  }
  while (from < n && !is_beyond(x[from])) ++from;
  return from;
}

template <class T>
int64_t beyond(const T* x, int64_t from, int64_t n, T bound, bool above) {
  return above ? first_beyond<T, true>(x, from, n, bound)
               : first_beyond<T, false>(x, from, n, bound);
}

// The same for 16-bit floats, by bits turned into integers of the same order. NaN comes after all
// numbers whatever its sign is; `infinity` has the bits of the one with a sign.
int64_t beyond_halves(const uint16_t* x, int64_t from, int64_t n, uint16_t bound, bool above,
                      uint16_t infinity) {
  const int16_t turn = above ? 0 : -1;
  const uint16_t last = above ? infinity : 0xffff;
  auto key = [&](uint16_t bits) {
    return int16_t(bits ^ uint16_t((int16_t(bits) >> 15) & 0x7fff) ^ uint16_t(turn));
  };
  const int16_t least = key(bound);
  auto is_beyond = [&](uint16_t bits) { return (key(bits) > least) | (bits > last); };
  for (; from + kBlock <= n; from += kBlock) {
    uint16_t any = 0;
    for (int64_t k = 0; k < kBlock; ++k) any |= uint16_t(is_beyond(x[from + k]));
    if (any) break;
  }
  while (from < n && !is_beyond(x[from])) ++from;
  return from;
}

int64_t between(const float* x, int64_t n, float low, float high, int32_t* where, int64_t* below,
                int64_t* nans) {
  int64_t i = 0, count = 0, lower = 0, neither = 0;
#if defined(__AVX512F__)
  const __m512 least = _mm512_set1_ps(low), most = _mm512_set1_ps(high);
  __m512i places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + 16 <= n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    const __mmask16 inside =
        _mm512_cmp_ps_mask(v, least, _CMP_GE_OQ) & _mm512_cmp_ps_mask(v, most, _CMP_LE_OQ);
    _mm512_storeu_si512(where + count, _mm512_maskz_compress_epi32(inside, places));
    count += __builtin_popcount(inside);
    lower += __builtin_popcount(_mm512_cmp_ps_mask(v, least, _CMP_LT_OQ));
    neither += __builtin_popcount(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q));
    places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
  }
#endif
  for (; i < n; ++i) {
    where[count] = int32_t(i);
    count += (x[i] >= low) & (x[i] <= high);
    lower += x[i] < low;
    neither += x[i] != x[i];
  }
  *below = lower;
  *nans = neither;
  return count;
}

// Items are moved as bits; the types may alias what the memory holds.
template <class Bits>
void reverse(char* to, const char* from, int64_t n) {
  using T [[gnu::may_alias]] = Bits;
  T* __restrict y = reinterpret_cast<T*>(to);
  const T* __restrict x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) y[i] = x[n - 1 - i];
}

typedef int64_t SortLanes __attribute__((vector_size(kLaneBytes)));
constexpr int kParts = int(IndexLoops::kSortLanes * 8 / sizeof(SortLanes));

// order_key() of float32 bits: NaN is last, -0 equals 0.
inline uint32_t float_key(uint32_t bits) {
  constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
  const uint32_t size = bits & ~kSign;
  const uint32_t key = bits & kSign ? kSign - size : kSign + size;
  return size > kInfinity ? ~0u : key;
}
template <bool kFloat>
void load_lanes(const uint32_t* turned, int64_t n, uint32_t flip, int64_t* entries) {
  constexpr int64_t L = IndexLoops::kSortLanes;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t w = 0; w < L; ++w) {
      const uint32_t bits = turned[i * L + w], key = kFloat ? float_key(bits) : bits;
      entries[i * L + w] = int64_t(key ^ flip) * IndexLoops::kShortLine + i;
    }
}

void run_network(const IndexLoops::Comparator* steps, int64_t count, int64_t* entries) {
  SortLanes(*lines)[kParts] = reinterpret_cast<SortLanes(*)[kParts]>(entries);
  for (int64_t i = 0; i < count; ++i)
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      SortLanes &low = lines[steps[i].low][part], &high = lines[steps[i].high][part];
      const SortLanes a = low, b = high;
      low = a < b ? a : b;
      high = a < b ? b : a;
    }
}

void run_wide_network(const IndexLoops::Comparator* steps, int64_t count, int64_t* entries,
                      int64_t second) {
  SortLanes(*lines)[kParts] = reinterpret_cast<SortLanes(*)[kParts]>(entries);
  SortLanes(*rest)[kParts] = reinterpret_cast<SortLanes(*)[kParts]>(entries + second);
  for (int64_t i = 0; i < count; ++i)
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      SortLanes &low = lines[steps[i].low][part], &high = lines[steps[i].high][part];
      SortLanes &low_rest = rest[steps[i].low][part], &high_rest = rest[steps[i].high][part];
      const SortLanes a = low, b = high, c = low_rest, d = high_rest;
      const SortLanes stay = (a < b) | ((a == b) & (c < d));
      low = stay ? a : b;
      high = stay ? b : a;
      low_rest = stay ? c : d;
      high_rest = stay ? d : c;
    }
}

void count_up(int64_t* x, int64_t n, int64_t first, int64_t step) {
  for (int64_t i = 0; i < n; ++i) x[i] = first + i * step;
}

float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

// Numbers are counted in float64, which holds them exactly, and in blocks from int32, which every
// machine converts.
template <class T, bool kFused>
void ramp(T* x, int64_t n, T base, T step, int64_t first, int64_t by) {
  constexpr int64_t kBlock = 256;
  for (int64_t b = 0; b < n; b += kBlock) {
    const int32_t m = int32_t(n - b < kBlock ? n - b : kBlock);
    const double from = double(first + b * by), each = double(by);
    for (int32_t i = 0; i < m; ++i) {
      const T at = T(from + each * double(i));
      if constexpr (kFused) x[b + i] = fused(step, at, base);
      else x[b + i] = base + step * at;
    }
  }
}

template <class T, class Stored>
void ramp_by_vectors(T* x, int64_t n, T start, T step, int64_t first) {
  constexpr int32_t kLanes = 32 / sizeof(Stored);
  constexpr int64_t kBlock = 256;
  const int32_t ahead = int32_t(first % kLanes);  // elements of the first vector that are not asked
  for (int64_t b = 0; b < n; b += kBlock) {
    const int32_t m = int32_t(n - b < kBlock ? n - b : kBlock);
    const double from = double(first - ahead + b);
    for (int32_t i = 0; i < m; ++i) {
      const int32_t at = ahead + i, lane = at & (kLanes - 1);
      const T base = T(Stored(fused(step, T(from + double(at - lane)), start)));
      x[b + i] = fused(step, T(lane), base);
    }
  }
}

template <class Bits, int kRows, bool kApart>
void alternate_rows(char* to, const char* from, int64_t step, int64_t n) {
  using T [[gnu::may_alias]] = Bits;
  const int64_t s = step / int64_t(sizeof(T));
  T* __restrict y = reinterpret_cast<T*>(to);
  const T* __restrict x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kApart) y[r * s + i] = x[i * kRows + r];
      else y[i * kRows + r] = x[r * s + i];
    }
}

template <class Bits, bool kApart>
void alternate(char* to, const char* from, int64_t step, int64_t rows, int64_t n) {
  if (rows == 2) alternate_rows<Bits, 2, kApart>(to, from, step, n);
  else if (rows == 3) alternate_rows<Bits, 3, kApart>(to, from, step, n);
  else alternate_rows<Bits, 4, kApart>(to, from, step, n);
}

}  // namespace

extern const IndexLoops index_loops;
const IndexLoops index_loops = {
    all_inside,
    extremes,
    changes<float>,
    changes<double>,
    changes<int32_t>,
    changes<int64_t>,
    beyond<float>,
    beyond<double>,
    beyond<int32_t>,
    beyond<int64_t>,
    beyond_halves,
    between,
    reverse<uint8_t>,
    reverse<uint16_t>,
    reverse<uint32_t>,
    reverse<uint64_t>,
    load_lanes<true>,
    load_lanes<false>,
    run_network,
    run_wide_network,
    count_up,
    ramp<double, false>,
    ramp<float, true>,
    ramp<double, true>,
    ramp_by_vectors<double, double>,
    ramp_by_vectors<double, float>,
    ramp_by_vectors<float, Half>,
    ramp_by_vectors<float, BFloat16>,
    {alternate<uint8_t, false>, alternate<uint16_t, false>, alternate<uint32_t, false>,
     alternate<uint64_t, false>},
    {alternate<uint8_t, true>, alternate<uint16_t, true>, alternate<uint32_t, true>,
     alternate<uint64_t, true>},
};

}  // namespace facula::FACULA_ISA
