// Element types that C++ lacks (half, bfloat16, two float8 formats, complex) and `convert`,
// the one conversion between any two element types.
//
// The bit arithmetic is branch-free so that loops over it vectorise. Everything is forced inline:
// loop files are built several times for different instruction sets, and an out-of-line copy made
// for the newest one must never be what the linker keeps for all of them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(_MSC_VER) && !defined(__clang__)
#define FACULA_INLINE __forceinline
#else
#define FACULA_INLINE inline __attribute__((always_inline))
#endif

namespace facula {

namespace detail {

// A small float has 1 sign bit, E exponent bits and M mantissa bits, and IEEE subnormals.
template <int E, int M>
struct SmallFloat {
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr int kShift = 23 - M;  // mantissa bits that float has more
  static constexpr uint32_t kMagnitude = (1u << (E + M)) - 1;
  static constexpr uint32_t kExponent = ((1u << E) - 1) << M;  // IEEE code of infinity
  static constexpr uint32_t kRebias = uint32_t(127 - kBias) << 23;

  static FACULA_INLINE constexpr float smallest() {  // the value of one subnormal step
    return std::bit_cast<float>(uint32_t(127 + 1 - kBias - M) << 23);
  }

  // Round to nearest even; codes above `top` (overflow, infinity) become `top`, NaN becomes `nan`.
  static FACULA_INLINE constexpr uint32_t encode(float f, uint32_t top, uint32_t nan) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint32_t sign = (bits >> 31) << (E + M);
    const uint32_t a = bits & 0x7fffffffu;
    const uint32_t tie = (a >> kShift) & 1;
    const uint32_t normal = (a - kRebias + ((1u << (kShift - 1)) - 1) + tie) >> kShift;
    // Adding 2^23 steps lets the float adder round to a whole number of subnormal steps.
    constexpr float magic = smallest() * 8388608.0f;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(a) + magic) - std::bit_cast<uint32_t>(magic);
    uint32_t r = a < kRebias + (1u << 23) ? subnormal : (normal < top ? normal : top);
    r = a > 0x7f800000u ? nan : r;
    return r | sign;
  }

  // `special`: the first magnitude that is infinity or NaN; it keeps its mantissa as payload.
  static FACULA_INLINE constexpr float decode(uint32_t code, uint32_t special) {
    const uint32_t sign = (code >> (E + M)) << 31;
    const uint32_t a = code & kMagnitude;
    const uint32_t normal = (a << kShift) + kRebias;
    const uint32_t subnormal = std::bit_cast<uint32_t>(float(int32_t(a)) * smallest());
    uint32_t r = a < (1u << M) ? subnormal : normal;
    r = a >= special ? ((a << kShift) | 0x7f800000u) : r;
    return std::bit_cast<float>(r | sign);
  }
};

}  // namespace detail

// IEEE binary16.
struct Half {
  uint16_t bits;

  Half() = default;
  FACULA_INLINE constexpr Half(float f)
      : bits(uint16_t(detail::SmallFloat<5, 10>::encode(f, 0x7c00, 0x7e00))) {}
  FACULA_INLINE constexpr operator float() const {
    return detail::SmallFloat<5, 10>::decode(bits, 0x7c00);
  }
  static FACULA_INLINE constexpr Half from_bits(uint16_t b) { return std::bit_cast<Half>(b); }
};

// The upper half of a float.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  FACULA_INLINE constexpr BFloat16(float f) : bits(encode(f)) {}
  FACULA_INLINE constexpr operator float() const {
    return std::bit_cast<float>(uint32_t(bits) << 16);
  }
  static FACULA_INLINE constexpr BFloat16 from_bits(uint16_t b) {
    return std::bit_cast<BFloat16>(b);
  }

 private:
  static FACULA_INLINE constexpr uint16_t encode(float f) {
    const uint32_t b = std::bit_cast<uint32_t>(f);
    const uint32_t rounded = b + 0x7fffu + ((b >> 16) & 1);
    const uint32_t quiet = b | 0x400000u;  // a NaN whose payload sits in the low bits stays a NaN
    return uint16_t(((b & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
  }
};

// float8_e4m3fn: no infinity; 0x7f and 0xff are NaN; values beyond 448 saturate, as PyTorch's do.
struct Float8E4M3 {
  uint8_t bits;

  Float8E4M3() = default;
  FACULA_INLINE constexpr Float8E4M3(float f)
      : bits(uint8_t(detail::SmallFloat<4, 3>::encode(f, 0x7e, 0x7f))) {}
  FACULA_INLINE constexpr operator float() const {
    return detail::SmallFloat<4, 3>::decode(bits, 0x7f);
  }
  static FACULA_INLINE constexpr Float8E4M3 from_bits(uint8_t b) {
    return std::bit_cast<Float8E4M3>(b);
  }
};

// float8_e5m2: the upper half of a Half, with its infinity and NaNs.
struct Float8E5M2 {
  uint8_t bits;

  Float8E5M2() = default;
  FACULA_INLINE constexpr Float8E5M2(float f)
      : bits(uint8_t(detail::SmallFloat<5, 2>::encode(f, 0x7c, 0x7f))) {}
  FACULA_INLINE constexpr operator float() const {
    return detail::SmallFloat<5, 2>::decode(bits, 0x7c);
  }
  static FACULA_INLINE constexpr Float8E5M2 from_bits(uint8_t b) {
    return std::bit_cast<Float8E5M2>(b);
  }
};

template <class T>
struct Complex {
  T re, im;

  Complex() = default;
  FACULA_INLINE constexpr Complex(T real, T imag = T(0)) : re(real), im(imag) {}
  template <class U>
  FACULA_INLINE explicit constexpr Complex(const Complex<U>& o) : re(T(o.re)), im(T(o.im)) {}

  FACULA_INLINE constexpr Complex& operator+=(Complex o) { return *this = *this + o; }
  FACULA_INLINE constexpr Complex& operator-=(Complex o) { return *this = *this - o; }
  FACULA_INLINE constexpr Complex& operator*=(Complex o) { return *this = *this * o; }
  FACULA_INLINE constexpr Complex& operator/=(Complex o) { return *this = *this / o; }

  FACULA_INLINE constexpr Complex operator+() const { return *this; }
  FACULA_INLINE constexpr Complex operator-() const { return {-re, -im}; }

  // Friends, so that a plain T on either side of an operator meets these and not a template.
  friend FACULA_INLINE constexpr Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend FACULA_INLINE constexpr Complex operator-(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend FACULA_INLINE constexpr Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend FACULA_INLINE constexpr Complex operator/(Complex a, Complex b) { return divide(a, b); }

  friend FACULA_INLINE constexpr Complex operator+(Complex a, T b) { return {a.re + b, a.im}; }
  friend FACULA_INLINE constexpr Complex operator-(Complex a, T b) { return {a.re - b, a.im}; }
  friend FACULA_INLINE constexpr Complex operator*(Complex a, T b) { return {a.re * b, a.im * b}; }
  friend FACULA_INLINE constexpr Complex operator/(Complex a, T b) { return {a.re / b, a.im / b}; }
  friend FACULA_INLINE constexpr Complex operator+(T a, Complex b) { return {a + b.re, b.im}; }
  friend FACULA_INLINE constexpr Complex operator-(T a, Complex b) { return {a - b.re, -b.im}; }
  friend FACULA_INLINE constexpr Complex operator*(T a, Complex b) { return {a * b.re, a * b.im}; }
  friend FACULA_INLINE constexpr Complex operator/(T a, Complex b) { return divide(Complex(a), b); }

  friend FACULA_INLINE constexpr bool operator==(Complex a, Complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend FACULA_INLINE constexpr bool operator!=(Complex a, Complex b) { return !(a == b); }

 private:
  static FACULA_INLINE constexpr Complex divide(Complex a, Complex b) {
    if constexpr (std::is_same_v<T, float>) {  // no product of floats leaves double's range
      const auto q = Complex<double>::quotient(Complex<double>(a), Complex<double>(b));
      return {T(q.re), T(q.im)};
    } else {
      // Powers of two bring both operands near 1, so that no intermediate over- or underflows;
      // the exponent taken out is put back in two steps, for it may exceed that of one double.
      const int ea = exponent(a), eb = exponent(b);
      const Complex q = quotient(a * power_of_two(-ea), b * power_of_two(-eb));
      const int e = ea - eb, half = e >> 1;
      const T s0 = power_of_two(half), s1 = power_of_two(e - half);
      return {q.re * s0 * s1, q.im * s0 * s1};
    }
  }
  template <class U>
  friend struct Complex;
  // Smith's formula (1962), which gives 0 for finite / infinite and inf for x / 0, like NumPy's.
  static FACULA_INLINE constexpr Complex quotient(Complex a, Complex b) {
    const T abs_re = b.re < 0 ? -b.re : b.re, abs_im = b.im < 0 ? -b.im : b.im;
    const bool swap = abs_re < abs_im;
    const T x = swap ? b.im : b.re, y = swap ? b.re : b.im;
    const bool zero = (b.re == 0) & (b.im == 0);
    const T r = zero ? T(0) : y / x;
    const T d = zero ? T(0) : x + y * r;
    return {(swap ? a.re * r + a.im : a.re + a.im * r) / d,
            (swap ? a.im * r - a.re : a.im - a.re * r) / d};
  }
  // Of the larger part, within what power_of_two accepts.
  static FACULA_INLINE constexpr int exponent(Complex z) {
    const uint64_t mask = ~uint64_t(0) >> 1;
    const uint64_t r = std::bit_cast<uint64_t>(double(z.re)) & mask;
    const uint64_t i = std::bit_cast<uint64_t>(double(z.im)) & mask;
    const int e = int((r > i ? r : i) >> 52) - 1023;
    return e < -1022 ? -1022 : (e > 1022 ? 1022 : e);
  }
  static FACULA_INLINE constexpr T power_of_two(int e) {  // -1022 <= e <= 1023
    return T(std::bit_cast<double>(uint64_t(e + 1023) << 52));
  }
};

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<Complex<T>> = true;

// Floats computed through float.
template <class T>
inline constexpr bool is_small_float_v =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8E4M3> ||
    std::is_same_v<T, Float8E5M2>;

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};
template <class T>
using real_of_t = typename RealOf<T>::type;

namespace detail {

// Truncation with x86's answer, the most negative number, for NaN and what does not fit.
template <class I, class F>
FACULA_INLINE constexpr I truncate_to(F x) {
  constexpr F low = F(std::numeric_limits<I>::min());  // -2^31 or -2^63, exact; -low is too large
  // Only double against int32 has values in (low - 1, low), which truncate to low as well.
  const bool fits = (sizeof(F) > sizeof(I) ? x > low - F(1) : x >= low) & (x < -low);
  return static_cast<I>(fits ? x : low);
}

template <class To, class F>
FACULA_INLINE constexpr To float_to_integer(F x) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    constexpr F half = F(9223372036854775808.0);  // values from 2^63 up lose it, then regain it
    const bool high = x >= half;
    const uint64_t r = uint64_t(truncate_to<int64_t>(high ? x - half : x));
    return r ^ (uint64_t(high) << 63);
  } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t> ||
                       (std::is_same_v<To, uint8_t> && std::is_same_v<F, double>)) {
    return static_cast<To>(truncate_to<int64_t>(x));
  } else {
    // Narrow types keep the low bits of an int32, which vectorises where int64 does not.
    return static_cast<To>(truncate_to<int32_t>(x));
  }
}

}  // namespace detail

// Any element type to any other, with PyTorch's meaning: complex to real drops the imaginary
// part, to bool is "differs from zero", integers wrap, floats truncate (out of range: x86's way).
template <class To, class From>
FACULA_INLINE constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_small_float_v<From>) {
    return convert<To>(float(x));
  } else if constexpr (is_complex_v<To>) {
    using R = real_of_t<To>;
    if constexpr (is_complex_v<From>) {
      return To(convert<R>(x.re), convert<R>(x.im));
    } else {
      return To(convert<R>(x), R(0));
    }
  } else if constexpr (is_complex_v<From>) {
    if constexpr (std::is_same_v<To, bool>) {
      return (x.re != 0) | (x.im != 0);
    } else {
      return convert<To>(x.re);
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<From, bool>) {
    return convert<To>(std::bit_cast<uint8_t>(x));  // gcc does not vectorise bool to float
  } else if constexpr (is_small_float_v<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return detail::float_to_integer<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

static_assert(std::is_trivial_v<Half> && std::is_trivial_v<BFloat16> && sizeof(Half) == 2);
static_assert(std::is_trivial_v<Float8E4M3> && std::is_trivial_v<Float8E5M2>);
static_assert(std::is_trivial_v<Complex<float>> && sizeof(Complex<double>) == 16);

}  // namespace facula

// The limits of the small floats, so that generic code need not know them.
namespace facula::detail {
template <class T, unsigned Max, unsigned Min, unsigned Eps, unsigned Denorm, unsigned Inf,
          unsigned Nan>
struct SmallLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool has_infinity = Inf != 0;
  static constexpr bool has_quiet_NaN = true;
  static FACULA_INLINE constexpr T bits(unsigned b) { return T::from_bits(decltype(T::bits)(b)); }
  static FACULA_INLINE constexpr T max() { return bits(Max); }
  static FACULA_INLINE constexpr T lowest() { return -float(bits(Max)); }
  static FACULA_INLINE constexpr T min() { return bits(Min); }
  static FACULA_INLINE constexpr T epsilon() { return bits(Eps); }
  static FACULA_INLINE constexpr T denorm_min() { return bits(Denorm); }
  static FACULA_INLINE constexpr T infinity() { return bits(Inf); }
  static FACULA_INLINE constexpr T quiet_NaN() { return bits(Nan); }
};
}  // namespace facula::detail

template <>
struct std::numeric_limits<facula::Half>
    : facula::detail::SmallLimits<facula::Half, 0x7bff, 0x0400, 0x1400, 1, 0x7c00, 0x7e00> {};
template <>
struct std::numeric_limits<facula::BFloat16>
    : facula::detail::SmallLimits<facula::BFloat16, 0x7f7f, 0x0080, 0x3c00, 1, 0x7f80, 0x7fc0> {};
template <>
struct std::numeric_limits<facula::Float8E4M3>
    : facula::detail::SmallLimits<facula::Float8E4M3, 0x7e, 0x08, 0x20, 1, 0, 0x7f> {};
template <>
struct std::numeric_limits<facula::Float8E5M2>
    : facula::detail::SmallLimits<facula::Float8E5M2, 0x7b, 0x04, 0x34, 1, 0x7c, 0x7f> {};
