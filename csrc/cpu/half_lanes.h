// Elements of half precision as a vector of float32, and back.
#pragma once
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "cpu/reduce_loop.h"

namespace facula::FACULA_ISA {

using Floats = WideOf<float>::type;
using Words = WideOf<uint32_t>::type;
typedef uint16_t Halves __attribute__((vector_size(kLaneBytes / 2)));
constexpr int kFloats = kLanes<float>;

// Compilers take a vector apart to widen it, so x86 is told what it can do at once.
FACULA_INLINE Floats read_halves(const BFloat16* x) {
#if defined(__AVX512BW__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return Floats(Words(_mm512_maskz_cvtepu16_epi32(0xffff, bits)) << 16);
#elif defined(__AVX2__)
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return Floats(Words(_mm256_cvtepu16_epi32(bits)) << 16);
#else
  Halves bits;
  __builtin_memcpy(&bits, x, sizeof bits);
  return Floats(__builtin_convertvector(bits, Words) << 16);
#endif
}
FACULA_INLINE Floats read_halves(const Half* x) {
#if defined(__AVX512BW__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return Floats(_mm512_maskz_cvtph_ps(0xffff, bits));
#elif defined(__AVX2__) && defined(__F16C__)
  return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
#else
  float each[kFloats];
  for (int i = 0; i < kFloats; ++i) each[i] = float(x[i]);
  return wide_at(each);
#endif
}

#if defined(__AVX512BW__)
// Words rounded to even, of which the upper halves are the result.
FACULA_INLINE __m512i rounded_to_bfloat16(Floats v) {
  const __m512i words = __m512i(v), up = _mm512_add_epi32(words, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(words, _mm512_set1_epi32(0x10000));
  const __mmask16 nan = _mm512_cmp_ps_mask(__m512(v), __m512(v), _CMP_UNORD_Q);
  const __m512i even = _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
  return _mm512_mask_or_epi32(even, nan, words, _mm512_set1_epi32(0x400000));
}
#endif
FACULA_INLINE void write_halves(BFloat16* x, Floats v) {
#if defined(__AVX512BW__)
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(x),
      _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(Words(rounded_to_bfloat16(v)) >> 16)));
#else
  const Words b = Words(v), rounded = b + 0x7fffu + ((b >> 16) & 1u);
  const Words upper = (v != v ? b | 0x400000u : rounded) >> 16;
#if defined(__AVX2__)
  const __m256i all = __m256i(upper);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(x),
                   _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#else
  const Halves bits = __builtin_convertvector(upper, Halves);
  __builtin_memcpy(static_cast<void*>(x), &bits, sizeof bits);
#endif
#endif
}
FACULA_INLINE void write_halves(Half* x, Floats v) {
#if defined(__AVX512BW__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(x),
                      _mm512_maskz_cvtps_ph(0xffff, __m512(v), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__) && defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(x),
                   _mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < kFloats; ++i) x[i] = v[i];
#endif
}

// Two vectors, which costs less than one and one.
template <class H>
FACULA_INLINE void write_halves(H* x, Floats v, Floats w) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<H, BFloat16>) {
    typedef uint16_t Indices __attribute__((vector_size(64)));
    constexpr Indices odd = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                             33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    auto write_odd = [&](__m512i low, __m512i high) {
      _mm512_storeu_si512(x, _mm512_permutex2var_epi16(low, __m512i(odd), high));
    };
    auto rounded = [](Floats f) {
      const Words b = Words(f);
      return __m512i(b + 0x7fffu + ((b >> 16) & 1u));
    };
    if (__builtin_expect(_mm512_cmp_ps_mask(__m512(v), __m512(w), _CMP_UNORD_Q), 0))
      write_odd(rounded_to_bfloat16(v), rounded_to_bfloat16(w));
    else write_odd(rounded(v), rounded(w));
    return;
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<H, BFloat16>) {
    auto write_low = [&](Words low, Words high) __attribute__((always_inline)) {
      const __m256i mixed = _mm256_packus_epi32(__m256i(low), __m256i(high));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(x), _mm256_permute4x64_epi64(mixed, 0xd8));
    };
    auto rounded = [](Floats f) __attribute__((always_inline)) {
      const Words b = Words(f);
      return (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    };
    auto rounded_or_nan = [&](Floats f) __attribute__((always_inline)) {
      return f != f ? (Words(f) | 0x400000u) >> 16 : rounded(f);
    };
    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(__m256(v), __m256(w), _CMP_UNORD_Q)), 0))
      write_low(rounded_or_nan(v), rounded_or_nan(w));
    else write_low(rounded(v), rounded(w));
    return;
  }
#endif
  write_halves(x, v);
  write_halves(x + kFloats, w);
}

// A number, or what is a vector already, in all lanes.
FACULA_INLINE Floats lanes(float x) {
  return x - Floats{};
}
FACULA_INLINE Floats lanes(Floats x) {
  return x;
}

// out[i] = f(a[i], b[i] ...) over vectors of float32, for dense H; an operand with stride 0 is one
// float32.
template <class H, class F, size_t... I>
inline void run_halves(char* const* p, const int64_t* s, int64_t n, F f,
                       std::index_sequence<I...>) {
  constexpr size_t kOperands = sizeof...(I);
  const char* from[kOperands] = {p[I + 1]...};
  const bool is_number[kOperands] = {s[I + 1] == 0 ...};
  const Floats number[kOperands] = {
      (s[I + 1] == 0 ? *reinterpret_cast<const float*>(p[I + 1]) : 0.0f) - Floats{}...};
  auto operand = [&](size_t o, const void* x, int64_t i) __attribute__((always_inline)) {
    return is_number[o] ? number[o] : read_halves(static_cast<const H*>(x) + i);
  };
  H* out = reinterpret_cast<H*>(p[0]);
  auto at = [&](int64_t i) __attribute__((always_inline)) { return f(operand(I, from[I], i)...); };
  constexpr int kBlock = 2 * kFloats;
  alignas(64) H rest[kOperands + 1][kBlock] = {};
  const int64_t left = n % kBlock;
  // Whole blocks, then what is left of them as one: the formula is compiled for both at once.
  for (int64_t end = n - left;; end = kBlock) {
    for (int64_t i = 0; i < end; i += kBlock) write_halves(out + i, at(i), at(i + kFloats));
    if (left == 0) return;
    if (out == rest[0]) break;
    for (size_t o = 0; o < kOperands; ++o) {
      if (!is_number[o])
        __builtin_memcpy(static_cast<void*>(rest[o + 1]), from[o] + 2 * end, size_t(left) * 2);
      from[o] = reinterpret_cast<const char*>(rest[o + 1]);
    }
    out = rest[0];
  }
  __builtin_memcpy(p[0] + 2 * (n - left), rest[0], size_t(left) * 2);
}

}  // namespace facula::FACULA_ISA

// What formulas over vectors may call.
namespace facula::math {

FACULA_INLINE FACULA_ISA::Floats sqrt(FACULA_ISA::Floats x) {
#if defined(__AVX512BW__)
  return FACULA_ISA::Floats(_mm512_maskz_sqrt_ps(0xffff, __m512(x)));
#elif defined(__AVX2__)
  return FACULA_ISA::Floats(_mm256_sqrt_ps(__m256(x)));
#else
  for (int i = 0; i < FACULA_ISA::kFloats; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
FACULA_INLINE FACULA_ISA::Floats reciprocal(FACULA_ISA::Floats x) {
  return 1.0f / x;
}
FACULA_INLINE FACULA_ISA::Floats rsqrt(FACULA_ISA::Floats x) {
  return 1.0f / sqrt(x);
}
FACULA_INLINE FACULA_ISA::Floats abs(FACULA_ISA::Floats x) {
  return FACULA_ISA::Floats(FACULA_ISA::Words(x) & 0x7fffffffu);
}
FACULA_INLINE FACULA_ISA::Floats limited(FACULA_ISA::Floats x, float least, float most) {
  const FACULA_ISA::Floats low = FACULA_ISA::lanes(least), high = FACULA_ISA::lanes(most);
  const FACULA_ISA::Floats y = x < low ? low : x;
  return y > high ? high : y;
}
FACULA_INLINE FACULA_ISA::Floats limited(FACULA_ISA::Floats x, int most) {
  return limited(x, 0.0f, float(most));
}
FACULA_INLINE FACULA_ISA::Floats copysign(FACULA_ISA::Floats x, FACULA_ISA::Floats sign) {
  using FACULA_ISA::Words;
  return FACULA_ISA::Floats((Words(x) & 0x7fffffffu) | (Words(sign) & 0x80000000u));
}

// Fused where it is for single floats, so that both have the same results.
FACULA_INLINE FACULA_ISA::Floats madd(FACULA_ISA::Floats a, FACULA_ISA::Floats b,
                                      FACULA_ISA::Floats c) {
#if defined(__AVX512BW__)
  return FACULA_ISA::Floats(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__AVX2__) && defined(__FMA__)
  return FACULA_ISA::Floats(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  for (int i = 0; i < FACULA_ISA::kFloats; ++i) c[i] = madd(a[i], b[i], c[i]);
  return c;
#endif
}
FACULA_INLINE FACULA_ISA::Floats gelu(FACULA_ISA::Floats x) {
  using FACULA_ISA::Floats, FACULA_ISA::Words, FACULA_ISA::lanes;
  constexpr auto& c = detail::kGeluTerms;
  constexpr auto& d = detail::kHalfExp2Terms;
  const Floats zero{}, magic = lanes(kRoundMagic<float>);
  const Words none{}, most = detail::kGeluMost - none, a = Words(abs(x));
  const Floats b = Floats(a < most ? a : most), square = b * b;
  auto pair = [&](int i) { return madd(b, lanes(c[i + 1]), lanes(c[i])); };
  Floats p = pair(8);
  for (int i = 6; i >= 0; i -= 2) p = madd(square, p, pair(i));
  const Floats shifted = madd(b, p, magic), r = madd(b, p, magic - shifted);
  Floats e = lanes(d[5]);
  for (int i = 4; i >= 0; --i) e = madd(r, e, lanes(d[i]));
  const Words scaled = Words(e) + (Words(shifted) << 23);
  const Floats half_erfc = Floats(a > most ? none : scaled);
  return x * (x < zero ? half_erfc : 1.0f - half_erfc);
}

// To an integer, by the processor's code of a direction: 0 to the nearest, 1 down, 2 up, 3 to zero.
template <int kDirection>
FACULA_INLINE FACULA_ISA::Floats rounded(FACULA_ISA::Floats x) {
#if defined(__AVX512BW__)
  return FACULA_ISA::Floats(_mm512_maskz_roundscale_ps(0xffff, __m512(x), kDirection));
#elif defined(__AVX2__)
  return FACULA_ISA::Floats(_mm256_round_ps(__m256(x), kDirection | _MM_FROUND_NO_EXC));
#else
  for (int i = 0; i < FACULA_ISA::kFloats; ++i)
    x[i] = kDirection == 0   ? round(x[i])
           : kDirection == 1 ? floor(x[i])
           : kDirection == 2 ? ceil(x[i])
                             : trunc(x[i]);
  return x;
#endif
}
FACULA_INLINE FACULA_ISA::Floats round(FACULA_ISA::Floats x) {
  return rounded<0>(x);
}
FACULA_INLINE FACULA_ISA::Floats floor(FACULA_ISA::Floats x) {
  return rounded<1>(x);
}
FACULA_INLINE FACULA_ISA::Floats ceil(FACULA_ISA::Floats x) {
  return rounded<2>(x);
}
FACULA_INLINE FACULA_ISA::Floats trunc(FACULA_ISA::Floats x) {
  return rounded<3>(x);
}
FACULA_INLINE FACULA_ISA::Floats frac(FACULA_ISA::Floats x) {
  return x - trunc(x);
}

}  // namespace facula::math
