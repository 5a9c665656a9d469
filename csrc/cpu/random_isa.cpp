// Built once per ISA; see random_loops.h.
#include "cpu/random_loops.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {

extern const RandomLoops random_loops;

namespace {

constexpr double kPi = 3.141592653589793;

// 24 bits in [0, 1).
FACULA_INLINE float unit_float(uint32_t word) {
  return float(int32_t(word & 0xffffffu)) * 0x1p-24f;
}
// 53 bits in [0, 1): the halves are converted apart because 32-bit conversions vectorise
// everywhere.
FACULA_INLINE double unit_double(uint32_t high, uint32_t low) {
  const double h = double(int32_t(high & 0x1fffffu));
  const double l = double(int32_t(low ^ 0x80000000u)) + 0x1p31;
  return (h * 0x1p32 + l) * 0x1p-53;
}
template <class T>
FACULA_INLINE T unit(const uint32_t* words, int64_t i) {
  if constexpr (sizeof(T) == 8) return unit_double(words[2 * i], words[2 * i + 1]);
  else return unit_float(words[i]);
}

// a * b + c with one rounding on every machine, so that seeds give the same numbers on all.
FACULA_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return float(double(a) * double(b) + double(c));  // a has 24 bits: the product is exact
#endif
}
FACULA_INLINE double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

template <class T>
void uniform(T* out, const uint32_t* words, int64_t n, double from, double to) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;  // the compute type
  const C start = C(from), range = C(to) - C(from);
  const C low = C(T(start)), high = C(T(C(to)));
  if (from == 0 && to == 1 && std::is_same_v<T, C>) {  // no sample rounds up to 1
    for (int64_t i = 0; i < n; ++i) out[i] = T(unit<C>(words, i));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const C v = C(T(fused(unit<C>(words, i), range, start)));
    out[i] = T(v >= high ? low : v);
  }
}

template <class T>
void normal_blocks(T* out, const uint32_t* words, int64_t blocks, double mean, double std) {
  // Radii and angles of several blocks are gathered, so that the loop over them fills the widest
  // vectors.
  constexpr int64_t kBatch = 32, kHalf = 8, kWords = sizeof(T) == 8 ? 2 : 1;
  alignas(64) T first[kBatch * kHalf], second[kBatch * kHalf];
  const T shift = T(mean), scale = T(std);
  for (int64_t done = 0; done < blocks; done += kBatch) {
    const int64_t m = blocks - done < kBatch ? blocks - done : kBatch;
    for (int64_t b = 0; b < m; ++b)
      for (int64_t j = 0; j < kHalf; ++j) {
        const uint32_t* w = words + (done + b) * 2 * kHalf * kWords;
        first[b * kHalf + j] = unit<T>(w, j);
        second[b * kHalf + j] = unit<T>(w, kHalf + j);
      }
    for (int64_t i = 0; i < m * kHalf; ++i) {
      const T radius = math::sqrt(T(-2) * math::log(T(1) - first[i]));
      const T angle = T(2 * kPi) * second[i];
      first[i] = math::madd(radius * math::cos(angle), scale, shift);
      second[i] = math::madd(radius * math::sin(angle), scale, shift);
    }
    for (int64_t b = 0; b < m; ++b)
      for (int64_t j = 0; j < kHalf; ++j) {
        out[(done + b) * 2 * kHalf + j] = first[b * kHalf + j];
        out[(done + b) * 2 * kHalf + kHalf + j] = second[b * kHalf + j];
      }
  }
}

void normal_pairs(double* out, const uint32_t* words, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const double angle = 2 * kPi * unit_double(words[4 * i], words[4 * i + 1]);
    const double radius =
        math::sqrt(-2 * math::log1p(-unit_double(words[4 * i + 2], words[4 * i + 3])));
    out[2 * i] = radius * math::cos(angle);
    out[2 * i + 1] = radius * math::sin(angle);
  }
}

void exponential(double* out, const uint32_t* words, int64_t n, double rate) {
  for (int64_t i = 0; i < n; ++i) out[i] = -math::log1p(-unit<double>(words, i)) / rate;
}

void cauchy(double* out, const uint32_t* words, int64_t n, double median, double sigma) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = median + sigma * math::tan(kPi * (unit<double>(words, i) - 0.5));
}

void geometric(double* out, const uint32_t* words, int64_t n, double p) {
  const double log_failure = std::log1p(-p);
  for (int64_t i = 0; i < n; ++i)
    out[i] = math::ceil(math::log(unit<double>(words, i)) / log_failure);
}

void bernoulli(bool* out, const uint32_t* words, int64_t n, double p) {
  // u = k / 2^53 < p exactly when the integer k is below p 2^53 rounded up.
  const int64_t limit = int64_t(std::ceil(p * 0x1p53));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = int64_t(uint64_t(words[2 * i] & 0x1fffffu) << 32 | words[2 * i + 1]);
    out[i] = k < limit;
  }
}

template <class T>
void bernoulli_each(bool* out, const uint32_t* words, int64_t n, const T* p) {
  for (int64_t i = 0; i < n; ++i) out[i] = unit<T>(words, i) < p[i];
}

}  // namespace

const RandomLoops random_loops = {uniform<float>,
                                  uniform<Half>,
                                  uniform<BFloat16>,
                                  uniform<double>,
                                  normal_blocks<float>,
                                  normal_blocks<double>,
                                  normal_pairs,
                                  exponential,
                                  cauchy,
                                  geometric,
                                  bernoulli,
                                  bernoulli_each<float>,
                                  bernoulli_each<double>};

}  // namespace facula::FACULA_ISA
