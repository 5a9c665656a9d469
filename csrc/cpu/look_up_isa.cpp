#include "cpu/look_up.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "cpu/half_lanes.h"

namespace facula::FACULA_ISA {
namespace {

FACULA_INLINE uint16_t part(uint64_t word, int i) {
  return uint16_t(word >> 16 * i);
}

void look_up_results(char* const* p, const int64_t*, int64_t n, const void* params) {
  const uint16_t* table =
      static_cast<const uint16_t*>(static_cast<const LookUpLoops::Params*>(params)->table);
  uint16_t* out = reinterpret_cast<uint16_t*>(p[0]);
  const uint16_t* in = reinterpret_cast<const uint16_t*>(p[1]);
  int64_t i = 0;
  // Eight at a time: two words are read, and one vector is written.
  for (; i + 8 <= n; i += 8) {
    uint64_t low, high;
    __builtin_memcpy(&low, in + i, 8);
    __builtin_memcpy(&high, in + i + 4, 8);
#if defined(__x86_64__)
    auto four = [&](uint64_t word) {
      __m128i v = _mm_cvtsi32_si128(table[part(word, 0)]);
      v = _mm_insert_epi16(v, table[part(word, 1)], 1);
      v = _mm_insert_epi16(v, table[part(word, 2)], 2);
      return _mm_insert_epi16(v, table[part(word, 3)], 3);
    };
    const __m128i results = _mm_unpacklo_epi64(four(low), four(high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), results);
#else
    for (int k = 0; k < 4; ++k) out[i + k] = table[part(low, k)];
    for (int k = 0; k < 4; ++k) out[i + 4 + k] = table[part(high, k)];
#endif
  }
  for (; i < n; ++i) out[i] = table[in[i]];
}

template <class H>
void multiply_by_results(char* const* p, const int64_t* s, int64_t n, const void* params) {
  const auto& given = *static_cast<const LookUpLoops::Params*>(params);
  const float* table = static_cast<const float*>(given.table);
  constexpr int64_t kBlock = 128;
  constexpr int kMost = 2;  // factors
  const int factors = int(given.factors);
  alignas(64) float results[kBlock];
  alignas(64) H rest[kMost + 1][kBlock] = {};
  const char* from[kMost];
  Floats number[kMost] = {};
  for (int f = 0; f < factors; ++f) {
    from[f] = p[f + 1];
    number[f] = (s[f + 1] == 0 ? *reinterpret_cast<const float*>(p[f + 1]) : 0.0f) - Floats{};
  }
  const bool repeated = s[factors + 1] == 0;
  if (repeated) {  // the number was converted from an H, so it has the bits of one
    const H same(*reinterpret_cast<const float*>(p[factors + 1]));
    uint16_t bits;
    __builtin_memcpy(&bits, &same, sizeof bits);
    for (float& result : results) result = table[bits];
  }
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t m = n - done < kBlock ? n - done : kBlock;
    const uint16_t* in = reinterpret_cast<const uint16_t*>(p[factors + 1]) + done;
    int64_t k = repeated ? m : 0;
    for (; k + 4 <= m; k += 4) {
      uint64_t word;
      __builtin_memcpy(&word, in + k, 8);
      for (int i = 0; i < 4; ++i) results[k + i] = table[part(word, i)];
    }
    for (; k < m; ++k) results[k] = table[in[k]];
    const H* x[kMost] = {};
    H* out = reinterpret_cast<H*>(p[0]) + done;
    for (int f = 0; f < factors; ++f) {
      x[f] = reinterpret_cast<const H*>(from[f]) + done;
      if (m == kBlock || s[f + 1] == 0) continue;
      __builtin_memcpy(static_cast<void*>(rest[f]), x[f], size_t(m) * sizeof(H));
      x[f] = rest[f];
    }
    auto product = [&](int64_t i) {
      Floats v = s[1] == 0 ? number[0] : read_halves(x[0] + i);
      if (factors == kMost) v *= s[2] == 0 ? number[1] : read_halves(x[1] + i);
      return v * wide_at(results + i);
    };
    H* to = m == kBlock ? out : rest[kMost];
    for (int64_t i = 0; i < kBlock; i += 2 * kFloats)
      write_halves(to + i, product(i), product(i + kFloats));
    if (to != out) __builtin_memcpy(static_cast<void*>(out), to, size_t(m) * sizeof(H));
  }
}

template <class T>
constexpr Loop product_of() {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>)
    return multiply_by_results<T>;
  else return nullptr;
}

}  // namespace

extern const LookUpLoops look_up_loops;
#define X_PRODUCT(e, t, n, c) product_of<t>(),
const LookUpLoops look_up_loops = {look_up_results, {FACULA_DTYPES(X_PRODUCT)}};

}  // namespace facula::FACULA_ISA
