// What attention of halves does between products of tiles. Scores stand transposed, 16 keys by 16
// queries: a query is a lane, so that maxima and sums need no look across lanes, and two keys'
// weights become pairs for the product with values where they stand.
#pragma once
#include "cpu/pair_products.h"

#ifdef FACULA_HAS_TILES
#include <limits>

#include "cpu/attention.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
constexpr int64_t kSquare = 4 * kTileSums;  // sums of 32 x 32: (row half, column half, 16, 16)

// Weights of halves are multiplied by 2^15, which uses all of their range.
template <class S>
constexpr int kWeightExponent = std::is_same_v<S, Half> ? 15 : 0;

inline int64_t steps_over(int64_t n) {
  return (n + kTileDepth - 1) / kTileDepth;
}
inline int64_t strips_over(int64_t n) {
  return (n + kTileSide - 1) / kTileSide;
}
inline int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
inline int64_t keys_seen_before(const Attention& a, int64_t query) {
  return a.causal ? least_of(query, a.keys) : a.keys;
}

// Element 0 of a head, as the bits of a half.
inline uint16_t* head_of(const HeadMatrix& m, int64_t batch, int64_t head) {
  return static_cast<uint16_t*>(m.data) + batch * m.batch + head * m.head;
}

template <class S>
FACULA_INLINE void write_some_halves(uint16_t* to, __mmask16 mask, Floats v) {
  alignas(64) S each[kTileSide];
  write_halves(each, v);
  _mm256_mask_storeu_epi16(to, mask, _mm256_load_si256(reinterpret_cast<__m256i*>(each)));
}

// The bits of a bfloat16 in the upper half of each word; what is half way is rounded away from 0.
FACULA_INLINE Words rounded_upper(Floats v) {
  return Words(v) + 0x8000u;
}
FACULA_INLINE __m512i as_halves(Floats v) {
  return _mm512_maskz_cvtepu16_epi32(
      kAllLanes, _mm512_maskz_cvtps_ph(kAllLanes, __m512(v), _MM_FROUND_TO_NEAREST_INT));
}
// A word of each lane: the even number below, the odd one above.
template <class S>
FACULA_INLINE __m512i as_pairs(Floats even, Floats odd) {
  if constexpr (std::is_same_v<S, Half>)
    return __m512i(Words(as_halves(even)) | Words(as_halves(odd)) << 16);
  else
    return _mm512_mask_blend_epi16(0xaaaaaaaa, __m512i(rounded_upper(even) >> 16),
                                   __m512i(rounded_upper(odd)));
}

// The sum of both numbers of each word.
template <class S>
FACULA_INLINE Floats sum_of_pairs(__m512i words) {
  const __m512i odd = _mm512_srli_epi32(words, 16);
  if constexpr (std::is_same_v<S, Half>)
    return Floats(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(words))) +
           Floats(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(odd)));
  else return Floats(Words(words) << 16) + Floats(Words(odd) << 16);
}

// A row of the left side: 16 and 16 numbers.
template <class S>
FACULA_INLINE void write_row(uint16_t* to, Floats first, Floats second) {
  if constexpr (std::is_same_v<S, Half>) {
    write_halves(reinterpret_cast<Half*>(to), first, second);
  } else {
    typedef uint16_t Indices __attribute__((vector_size(64)));
    constexpr Indices upper = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                               33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(__m512i(rounded_upper(first)), __m512i(upper),
                                                      __m512i(rounded_upper(second))));
  }
}

// 2^(r + n) of |r| <= 1/2 and the whole number n that `shifted` has in its lowest bits, 127 more;
// 0 where x < least. The relative error is 3e-6, and none for r = 0. NaN stays NaN.
FACULA_INLINE Floats power_of_two(Floats r, Floats shifted, Floats x, Floats least) {
  Floats p = math::madd(r, lanes(0.00958285481f), lanes(0.0559064299f));
  p = math::madd(r, p, lanes(0.240240991f));
  p = math::madd(r, p, lanes(0.693124175f));
  p = math::madd(r, p, lanes(1.0f));
  const __mmask16 seen = _mm512_cmp_ps_mask(__m512(x), __m512(least), _CMP_NLT_UQ);
  return Floats(_mm512_maskz_mul_ps(seen, __m512(p), __m512(Words(shifted) << 23)));
}

// Weights 2^(factor * score - shift), of the part of the range that has normal numbers.
struct Weighing {
  Floats factor, start, least;
  // 2^15 below the largest shift that `start` can hold.
  static constexpr float kMostShift = 0x1p21f, kLeastFactor = 0x1p-60f, kMostFactor = 0x1p60f;

  FACULA_INLINE Weighing(Floats scale, Floats shift, int exponent)
      : factor(scale),
        start(lanes(math::kRoundMagic<float> + 127.0f + float(exponent)) - shift),
        least((shift - float(125 + exponent)) / scale) {}

  FACULA_INLINE Floats operator()(Floats score) const {
    const Floats shifted = math::madd(score, factor, start);
    return power_of_two(math::madd(score, factor, start - shifted), shifted, score, least);
  }
};

// Whether scores are multiplied before they are hidden and weighed: a factor that is not positive
// would make a key that is hidden a key that is seen.
inline bool scales_scores(const Attention& a, float factor) {
  return a.mask || !(factor >= Weighing::kLeastFactor && factor <= Weighing::kMostFactor);
}

// scores = factor * scores + mask / ln 2, for up to 16 keys of 16 queries of one head; what is
// finite in the mask stays finite.
template <class S>
class MaskOfHead {
 public:
  MaskOfHead(const Attention& a, int64_t batch, int64_t head)
      : a_(a), first_(batch * a.mask_batch + head * a.mask_head) {}

  void add(float* scores, int64_t query, int64_t queries, int64_t key, int64_t keys,
           Floats factor) const {
    __m512i added[kTileSide];
    if (!a_.mask) {
      for (int64_t i = 0; i < keys; ++i)
        store(scores + i * kTileSide, factor * load(scores + i * kTileSide));
      return;
    }
    const int64_t at = first_ + query * a_.mask_row + key * a_.mask_column;
    if (a_.mask_row == 0) {
      for (int64_t i = 0; i < keys; ++i) added[i] = __m512i(lanes(value(at + i * a_.mask_column)));
    } else if (a_.mask_column == 1) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kTileSide; ++i)
        added[i] = i < queries ? __m512i(row(at + i * a_.mask_row, first_lanes(keys)))
                               : _mm512_setzero_si512();
      turn_registers(added);
    } else {
      for (int64_t i = 0; i < keys; ++i) {
        Floats each = {};
        for (int64_t j = 0; j < queries && j < kTileSide; ++j)
          each[j] = value(at + i * a_.mask_column + j * a_.mask_row);
        added[i] = __m512i(each);
      }
    }
    for (int64_t i = 0; i < keys; ++i) {
      float* const s = scores + i * kTileSide;
      store(s, math::madd(load(s), factor, Floats(added[i])));
    }
  }

 private:
  // Finite numbers stay finite: programs hide keys by the least bfloat16, and queries that see only
  // such keys have weights all the same.
  static FACULA_INLINE Floats in_powers_of_two(Floats x) {
    constexpr float most = 0x1p127f;  // as a sum of exponentials, too, this is exact
    const __mmask16 endless =
        _mm512_cmp_ps_mask(__m512(math::abs(x)), __m512(lanes(-kNever)), _CMP_NLT_UQ);
    const __m512 y = _mm512_max_ps(__m512(x * kLog2E), __m512(lanes(-most)));
    return Floats(_mm512_mask_mov_ps(_mm512_min_ps(y, __m512(lanes(most))), endless, __m512(x)));
  }
  float value(int64_t at) const {
    if (a_.mask_is_bool) return static_cast<const uint8_t*>(a_.mask)[at] ? 0.0f : kNever;
    return in_powers_of_two(lanes(float(static_cast<const S*>(a_.mask)[at])))[0];
  }
  FACULA_INLINE Floats row(int64_t at, __mmask16 mask) const {
    if (!a_.mask_is_bool)
      return in_powers_of_two(some_halves<S>(static_cast<const S*>(a_.mask) + at, mask));
    const __m128i seen = _mm_maskz_loadu_epi8(mask, static_cast<const uint8_t*>(a_.mask) + at);
    return Floats(_mm512_maskz_mov_ps(~_mm_test_epi8_mask(seen, seen), __m512(lanes(kNever))));
  }

  const Attention& a_;
  int64_t first_;
};

// Hides from query + lane the keys behind it: row i of the scores is of key + i.
inline void hide_later_keys(float* scores, int64_t query, int64_t key, int64_t keys) {
  for (int64_t i = key > query ? 0 : query + 1 - key; i < keys; ++i) {
    const int64_t blind = least_of(key + i - query, kTileSide);
    float* const s = scores + i * kTileSide;
    _mm512_mask_storeu_ps(s, __mmask16((1u << blind) - 1), __m512(lanes(kNever)));
  }
}

// Turns sums, (width, query), times `scale` of each query into rows of halves.
template <class S>
void write_turned(const float* sums, int64_t width, Floats scale, int64_t rows, uint16_t* to,
                  int64_t apart) {
  for (int64_t j = 0; j < width; j += kTileSide) {
    __m512i r[kTileSide];
    const float* const tile = sums + j / kTileSide * 2 * kTileSums;
#pragma GCC unroll 16
    for (int i = 0; i < kTileSide; ++i) r[i] = __m512i(load(tile + i * kTileSide) * scale);
    turn_registers(r);
    const __mmask16 mask = first_lanes(width - j);
    alignas(64) __m512i turned[kTileSide];
    write_tile(reinterpret_cast<uint16_t*>(turned), r);
    for (int64_t i = 0; i < rows && i < kTileSide; ++i)
      write_some_halves<S>(to + i * apart + j, mask, Floats(turned[i]));
  }
}

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
