// Vectors of which only the first elements exist, and transposes in registers, for products on CPUs
// with AVX2 or AVX-512. Include it before anything else.
#pragma once
#include "cpu/gemm_block.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace facula::FACULA_ISA {
namespace {

// ---- vectors of which only the first `count` elements exist

#if defined(__AVX512BW__)
FACULA_INLINE __mmask16 first_lanes(int64_t count) {
  return __mmask16((1u << count) - 1);
}
FACULA_INLINE Vector<float> load_part(const float* p, int64_t count) {
  return (Vector<float>)_mm512_maskz_loadu_ps(first_lanes(count), p);
}
FACULA_INLINE Vector<double> load_part(const double* p, int64_t count) {
  return (Vector<double>)_mm512_maskz_loadu_pd(__mmask8(first_lanes(count)), p);
}
FACULA_INLINE void store_part(float* p, Vector<float> v, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), (__m512)v);
}
FACULA_INLINE void store_part(double* p, Vector<double> v, int64_t count) {
  _mm512_mask_storeu_pd(p, __mmask8(first_lanes(count)), (__m512d)v);
}
#else
// -1 in the first lanes, from kLanes - count on.
alignas(64) constexpr int32_t kFirstWords[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
alignas(64) constexpr int64_t kFirstPairs[8] = {-1, -1, -1, -1};
FACULA_INLINE Vector<float> load_part(const float* p, int64_t count) {
  const auto* mask = reinterpret_cast<const __m256i*>(kFirstWords + 8 - count);
  return (Vector<float>)_mm256_maskload_ps(p, _mm256_loadu_si256(mask));
}
FACULA_INLINE Vector<double> load_part(const double* p, int64_t count) {
  const auto* mask = reinterpret_cast<const __m256i*>(kFirstPairs + 4 - count);
  return (Vector<double>)_mm256_maskload_pd(p, _mm256_loadu_si256(mask));
}
// Masked stores take tens of cycles on some CPUs.
FACULA_INLINE void store_part(float* p, Vector<float> v, int64_t count) {
  if (count == 8) return store(p, v);
  __m128 rest = _mm256_castps256_ps128((__m256)v);
  if (count & 4) {
    _mm_storeu_ps(p, rest);
    rest = _mm256_extractf128_ps((__m256)v, 1);
    p += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
    rest = _mm_movehl_ps(rest, rest);
    p += 2;
  }
  if (count & 1) _mm_store_ss(p, rest);
}
FACULA_INLINE void store_part(double* p, Vector<double> v, int64_t count) {
  if (count == 4) return store(p, v);
  __m128d rest = _mm256_castpd256_pd128((__m256d)v);
  if (count & 2) {
    _mm_storeu_pd(p, rest);
    rest = _mm256_extractf128_pd((__m256d)v, 1);
    p += 2;
  }
  if (count & 1) _mm_store_sd(p, rest);
}
#endif

// ---- transposes of as many vectors as a vector has lanes

#if defined(__AVX512BW__)
FACULA_INLINE void turn(Vector<float>* x) {
  __m512 r[16], t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps((__m512)x[i], (__m512)x[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps((__m512)x[i], (__m512)x[i + 1]);
  }
  auto both = [](__m512 a, __m512 b, bool high) {
    const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
    return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(c, d) : _mm512_unpacklo_pd(c, d));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = both(t[i], t[i + 2], false);
    r[i + 1] = both(t[i], t[i + 2], true);
    r[i + 2] = both(t[i + 1], t[i + 3], false);
    r[i + 3] = both(t[i + 1], t[i + 3], true);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // r[i + 4g]: columns i, 4+i, 8+i, 12+i of rows 4g .. 4g+3
    const __m512 a = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    x[i] = (Vector<float>)_mm512_shuffle_f32x4(a, b, 0x88);
    x[i + 8] = (Vector<float>)_mm512_shuffle_f32x4(a, b, 0xdd);
    x[i + 4] = (Vector<float>)_mm512_shuffle_f32x4(c, d, 0x88);
    x[i + 12] = (Vector<float>)_mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

FACULA_INLINE void turn(Vector<double>* x) {
  __m512d r[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    r[i] = _mm512_unpacklo_pd((__m512d)x[i], (__m512d)x[i + 1]);
    r[i + 1] = _mm512_unpackhi_pd((__m512d)x[i], (__m512d)x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {  // r[i + 2g]: columns i, 2+i, 4+i, 6+i of rows 2g, 2g+1
    const __m512d a = _mm512_shuffle_f64x2(r[i], r[i + 2], 0x88);
    const __m512d b = _mm512_shuffle_f64x2(r[i + 4], r[i + 6], 0x88);
    const __m512d c = _mm512_shuffle_f64x2(r[i], r[i + 2], 0xdd);
    const __m512d d = _mm512_shuffle_f64x2(r[i + 4], r[i + 6], 0xdd);
    x[i] = (Vector<double>)_mm512_shuffle_f64x2(a, b, 0x88);
    x[i + 4] = (Vector<double>)_mm512_shuffle_f64x2(a, b, 0xdd);
    x[i + 2] = (Vector<double>)_mm512_shuffle_f64x2(c, d, 0x88);
    x[i + 6] = (Vector<double>)_mm512_shuffle_f64x2(c, d, 0xdd);
  }
}
#else
FACULA_INLINE void turn(Vector<float>* x) {
  __m256 r[8], t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps((__m256)x[i], (__m256)x[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps((__m256)x[i], (__m256)x[i + 1]);
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
    x[i] = (Vector<float>)_mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    x[i + 4] = (Vector<float>)_mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
}

FACULA_INLINE void turn(Vector<double>* x) {
  const __m256d a = _mm256_unpacklo_pd((__m256d)x[0], (__m256d)x[1]);
  const __m256d b = _mm256_unpackhi_pd((__m256d)x[0], (__m256d)x[1]);
  const __m256d c = _mm256_unpacklo_pd((__m256d)x[2], (__m256d)x[3]);
  const __m256d d = _mm256_unpackhi_pd((__m256d)x[2], (__m256d)x[3]);
  x[0] = (Vector<double>)_mm256_permute2f128_pd(a, c, 0x20);
  x[1] = (Vector<double>)_mm256_permute2f128_pd(b, d, 0x20);
  x[2] = (Vector<double>)_mm256_permute2f128_pd(a, c, 0x31);
  x[3] = (Vector<double>)_mm256_permute2f128_pd(b, d, 0x31);
}
#endif

}  // namespace
}  // namespace facula::FACULA_ISA

#endif
