// Conversions of dense elements for which compilers do not find the machine's own, or for which it
// has none.
#pragma once
#include "cpu/half_lanes.h"

namespace facula::FACULA_ISA {

#if defined(__AVX2__)
inline void cast_dense(BFloat16* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + 2 * kFloats <= n; i += 2 * kFloats)
    write_halves(to + i, wide_at(from + i), wide_at(from + i + kFloats));
  for (; i < n; ++i) to[i] = from[i];
}
#endif

#if defined(__F16C__)
inline void cast_dense(Half* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) write_halves(to + i, wide_at(from + i));
  for (; i < n; ++i) to[i] = Half::from_bits(_cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT));
}
inline void cast_dense(float* to, const Half* from, int64_t n) {
  int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) {
    const Floats v = read_halves(from + i);
    __builtin_memcpy(to + i, &v, sizeof v);
  }
  for (; i < n; ++i) to[i] = _cvtsh_ss(from[i].bits);
}
#endif

// Whether floats become narrow integers by way of wider ones, for which there are loops below.
#if defined(__AVX2__) && !defined(__AVX512DQ__)
constexpr bool kIntegersInSteps = true;

// What does not fit becomes the most negative number, as `convert` has it.
inline void cast_dense(int32_t* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_cvttps_epi32(_mm256_loadu_ps(from + i)));
  for (; i < n; ++i) to[i] = convert<int32_t>(from[i]);
}
inline void cast_dense(int32_t* to, const double* from, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvttpd_epi32(_mm256_loadu_pd(from + i)));
  for (; i < n; ++i) to[i] = convert<int32_t>(from[i]);
}

// AVX2 has no conversions between floats and int64. The bits of 1.5 * 2^52 + x, for an integer x
// of less than 2^51, are those of 1.5 * 2^52 plus x.
constexpr double kIntegerMagic = 0x1.8p52, kMostMagic = 0x1p51;

FACULA_INLINE __m256d doubles_at(const float* x) {
  return _mm256_cvtps_pd(_mm_loadu_ps(x));
}
FACULA_INLINE __m256d doubles_at(const double* x) {
  return _mm256_loadu_pd(x);
}
template <class F>
inline void truncate_to_longs(int64_t* to, const F* from, int64_t n) {
  const __m256d magic = _mm256_set1_pd(kIntegerMagic), most = _mm256_set1_pd(kMostMagic),
                sign = _mm256_set1_pd(-0.0);
  auto fits = [&](__m256d x) { return _mm256_cmp_pd(_mm256_andnot_pd(sign, x), most, _CMP_LT_OQ); };
  auto write = [&](int64_t* y, __m256d x) {
    const __m256d shifted =
        _mm256_add_pd(_mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), magic);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y),
                        _mm256_sub_epi64(_mm256_castpd_si256(shifted), _mm256_castpd_si256(magic)));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256d low = doubles_at(from + i), high = doubles_at(from + i + 4);
    if (__builtin_expect(_mm256_movemask_pd(_mm256_and_pd(fits(low), fits(high))) == 15, 1)) {
      write(to + i, low);
      write(to + i + 4, high);
    } else {
      for (int64_t k = i; k < i + 8; ++k) to[k] = convert<int64_t>(from[k]);
    }
  }
  for (; i < n; ++i) to[i] = convert<int64_t>(from[i]);
}
inline void cast_dense(int64_t* to, const float* from, int64_t n) {
  truncate_to_longs(to, from, n);
}
inline void cast_dense(int64_t* to, const double* from, int64_t n) {
  truncate_to_longs(to, from, n);
}

// By way of a float64 that holds the integer exactly, so that it is rounded once.
inline void cast_dense(float* to, const int64_t* from, int64_t n) {
  const __m256d magic = _mm256_set1_pd(kIntegerMagic);
  const __m256i bits = _mm256_castpd_si256(magic), half = _mm256_set1_epi64x(int64_t(1) << 51),
                beyond = _mm256_set1_epi64x(-(int64_t(1) << 52));
  auto single = [&](__m256i x) {
    return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(x, bits)), magic));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i* x = reinterpret_cast<const __m256i*>(from + i);
    const __m256i low = _mm256_loadu_si256(x), high = _mm256_loadu_si256(x + 1);
    const __m256i outside =
        _mm256_or_si256(_mm256_add_epi64(low, half), _mm256_add_epi64(high, half));
    if (__builtin_expect(_mm256_testz_si256(outside, beyond), 1)) {
      _mm_storeu_ps(to + i, single(low));
      _mm_storeu_ps(to + i + 4, single(high));
    } else {
      for (int64_t k = i; k < i + 8; ++k) to[k] = float(from[k]);
    }
  }
  for (; i < n; ++i) to[i] = float(from[i]);
}
// The upper half times 2^32 and the lower half are exact; their sum is rounded once.
inline void cast_dense(double* to, const int64_t* from, int64_t n) {
  const __m256d magic = _mm256_set1_pd(0x1p52), scale = _mm256_set1_pd(0x1p32);
  const __m256i upper = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7),
                lower = _mm256_set1_epi64x(0xffffffff);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256d high =
        _mm256_cvtepi32_pd(_mm256_castsi256_si128(_mm256_permutevar8x32_epi32(x, upper)));
    const __m256i low = _mm256_or_si256(_mm256_and_si256(x, lower), _mm256_castpd_si256(magic));
    const __m256d low_half = _mm256_sub_pd(_mm256_castsi256_pd(low), magic);
    _mm256_storeu_pd(to + i, _mm256_add_pd(_mm256_mul_pd(high, scale), low_half));
  }
  for (; i < n; ++i) to[i] = double(from[i]);
}
#else
constexpr bool kIntegersInSteps = false;
#endif

}  // namespace facula::FACULA_ISA
