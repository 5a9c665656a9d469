// The parts that the per-ISA product files share: vectors, accumulator types, packing and storing.
// Everything is in the ISA's namespace, so that no build can end up with another one's code.
// Include it first: the pragmas hold for the functions after them.
#pragma once
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
// A product's sums may be fused whatever the rest of the library does. Loops versioned for strides
// gain nothing here and double the build time.
#pragma GCC optimize("fp-contract=fast", "no-version-loops-for-strides")
#endif

#include <cstdint>
#include <type_traits>

#include "core/numeric.h"
#include "cpu/lanes.h"

#if defined(__AVX2__)
#if defined(__GNUC__) && !defined(__clang__)  // its headers start from "undefined" vectors
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace facula::FACULA_ISA {

#if defined(__AVX512BW__)
constexpr int kTileRows = 14;  // 28 of 32 registers accumulate, two hold b, one a
#elif defined(__AVX2__)
constexpr int kTileRows = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kTileRows = 8;  // 16 of 32
#else
constexpr int kTileRows = 4;  // 8 of 16
#endif

// Integers wrap around, so a signed product has the bits of the unsigned one, whose code it shares.
template <class T>
struct StorageOf {
  using type = T;
};
template <>
struct StorageOf<int8_t> {
  using type = uint8_t;
};
template <>
struct StorageOf<int16_t> {
  using type = uint16_t;
};
template <>
struct StorageOf<int32_t> {
  using type = uint32_t;
};
template <>
struct StorageOf<int64_t> {
  using type = uint64_t;
};
template <class T>
using Storage = typename StorageOf<T>::type;

// What a dtype is summed in.
template <class S>
struct AccumulatorOf {
  using type = std::conditional_t<std::is_integral_v<S>,
                                  std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, float>;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class S>
using Accumulator = typename AccumulatorOf<S>::type;

// Whether the elements can be read as accumulators where they lie.
template <class S>
constexpr bool kInPlace = sizeof(S) == sizeof(Accumulator<S>);

template <class A>
struct VectorOf {
  typedef A type __attribute__((vector_size(kLaneBytes)));
  typedef A unaligned __attribute__((vector_size(kLaneBytes), aligned(alignof(A)), may_alias));
};
template <class A>
using Vector = typename VectorOf<A>::type;

template <class A>
FACULA_INLINE Vector<A> load(const A* p) {
  return *reinterpret_cast<const typename VectorOf<A>::unaligned*>(p);
}
template <class A>
FACULA_INLINE void store(A* p, Vector<A> v) {
  *reinterpret_cast<typename VectorOf<A>::unaligned*>(p) = v;
}

// Keeps what many products share in a register: compilers would read it again for each of them, and
// a machine reads no more vectors at a time than it multiplies.
template <class A>
FACULA_INLINE void keep_in_register(Vector<A>& x) {
#if defined(__x86_64__) && defined(__GNUC__)
  asm("" : "+v"(x));
#else
  (void)x;
#endif
}

// sum + x * y, rounded once where the machine can: tiles of all sizes must agree in every bit, and
// whether a compiler fuses the two depends on the loop around them.
template <class A>
FACULA_INLINE Vector<A> multiply_add(A x, Vector<A> y, Vector<A> sum) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<A, float>)
    return Vector<A>(_mm512_fmadd_ps(_mm512_set1_ps(x), __m512(y), __m512(sum)));
  if constexpr (std::is_same_v<A, double>)
    return Vector<A>(_mm512_fmadd_pd(_mm512_set1_pd(x), __m512d(y), __m512d(sum)));
#elif defined(__AVX2__) && defined(__FMA__)
  if constexpr (std::is_same_v<A, float>)
    return Vector<A>(_mm256_fmadd_ps(_mm256_set1_ps(x), __m256(y), __m256(sum)));
  if constexpr (std::is_same_v<A, double>)
    return Vector<A>(_mm256_fmadd_pd(_mm256_set1_pd(x), __m256d(y), __m256d(sum)));
#endif
  return sum + x * y;
}

// Whether a vector of elements can be loaded and converted at once.
#if defined(__AVX512BW__) || (defined(__AVX2__) && defined(__F16C__))
constexpr bool kHalfVectors = true;
#else
constexpr bool kHalfVectors = false;
#endif
template <class S>
constexpr bool kLoadable =
    kInPlace<S> || std::is_same_v<S, BFloat16> || (std::is_same_v<S, Half> && kHalfVectors);

typedef uint16_t HalfVector __attribute__((vector_size(kLaneBytes / 2), aligned(2), may_alias));

// One vector of accumulators from as many neighbouring elements.
template <class S>
FACULA_INLINE Vector<Accumulator<S>> load_wide(const S* p) {
  using A = Accumulator<S>;
  if constexpr (kInPlace<S>) {
    return load(reinterpret_cast<const A*>(p));
  } else if constexpr (std::is_same_v<S, BFloat16>) {
#if defined(__AVX512BW__)  // one step moves the words to their places and clears the others
    typedef uint16_t Words __attribute__((vector_size(64)));
    const Words from = {0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                        0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return (Vector<float>)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, (__m512i)from,
                                                         _mm512_castsi256_si512(half));
#elif defined(__AVX2__) && !defined(__AVX512F__)  // the compiler widens both halves by themselves
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return (Vector<float>)_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
#else
    const auto wide =
        __builtin_convertvector(*reinterpret_cast<const HalfVector*>(p), Vector<uint32_t>);
    return (Vector<float>)(wide << 16);
#endif
  } else {
    static_assert(std::is_same_v<S, Half>);
#if defined(__AVX512BW__)
    return (Vector<float>)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__) && defined(__F16C__)
    return (Vector<float>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
    return Vector<float>{};
#endif
  }
}

template <class A, class S>
FACULA_INLINE A widen(S x) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<A>(x);
  } else {
    return A(x);
  }
}

// alpha and beta as the accumulator knows them.
template <class A>
FACULA_INLINE A scalar(double x) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(convert<int64_t>(x));
  } else {
    return A(x);
  }
}

// Writes alpha * sum + beta * c; beta == 0 does not read c.
template <class S, class A>
FACULA_INLINE void finish(S* c, int64_t stride, const A* sum, int64_t n, A alpha, A beta) {
  if (beta == A(0)) {
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) c[i] = S(alpha * sum[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) c[i * stride] = S(alpha * sum[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      c[i * stride] = S(alpha * sum[i] + beta * widen<A>(c[i * stride]));
    }
  }
}

}  // namespace facula::FACULA_ISA
