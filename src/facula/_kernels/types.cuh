// Element types on the device, under the names that the dtypes have in Python, and `convert`, the
// one conversion between any two of them. It gives the CPU's answers (csrc/core/numeric.h), bit for
// bit. No CUDA header is used: they would cost more compile time than everything here.
#pragma once

namespace facula {

using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using float32 = float;
using float64 = double;

struct float16 {
  uint16 bits;
};
struct bfloat16 {
  uint16 bits;
};
struct float8_e4m3fn {
  uint8 bits;
};
struct float8_e5m2 {
  uint8 bits;
};

template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;
  Complex() = default;
  __device__ constexpr Complex(R real, R imaginary = R(0)) : re(real), im(imaginary) {}

  // Friends, so that numbers on either side convert; with a real number the parts stay apart, which
  // matters for infinities.
#define FACULA_OPERATOR friend __device__ __forceinline__
  FACULA_OPERATOR Complex operator+(Complex a) { return a; }
  FACULA_OPERATOR Complex operator-(Complex a) { return {-a.re, -a.im}; }
  FACULA_OPERATOR Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  FACULA_OPERATOR Complex operator+(Complex a, R b) { return {a.re + b, a.im}; }
  FACULA_OPERATOR Complex operator+(R a, Complex b) { return {a + b.re, b.im}; }
  FACULA_OPERATOR Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  FACULA_OPERATOR Complex operator-(Complex a, R b) { return {a.re - b, a.im}; }
  FACULA_OPERATOR Complex operator-(R a, Complex b) { return {a - b.re, -b.im}; }
  FACULA_OPERATOR Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  FACULA_OPERATOR Complex operator*(Complex a, R b) { return {a.re * b, a.im * b}; }
  FACULA_OPERATOR Complex operator*(R a, Complex b) { return {a * b.re, a * b.im}; }
  FACULA_OPERATOR Complex operator/(Complex a, Complex b) { return divide(a, b); }
  FACULA_OPERATOR Complex operator/(Complex a, R b) { return {a.re / b, a.im / b}; }
  FACULA_OPERATOR Complex operator/(R a, Complex b) { return divide(Complex(a), b); }
  FACULA_OPERATOR bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  FACULA_OPERATOR bool operator!=(Complex a, Complex b) { return !(a == b); }
#undef FACULA_OPERATOR

 private:
  static __device__ __forceinline__ Complex divide(Complex a, Complex b) {
    if constexpr (sizeof(R) == 4) {  // no product of floats leaves double's range
      const double d = double(b.re) * b.re + double(b.im) * b.im;
      return {R((double(a.re) * b.re + double(a.im) * b.im) / d),
              R((double(a.im) * b.re - double(a.re) * b.im) / d)};
    } else {
      // Powers of two bring both operands near 1; what was taken out is put back in two steps.
      const int ea = exponent(a), eb = exponent(b), e = ea - eb, half = e >> 1;
      a = a * power_of_two(-ea);
      b = b * power_of_two(-eb);
      const R d = b.re * b.re + b.im * b.im, s0 = power_of_two(half), s1 = power_of_two(e - half);
      return {(a.re * b.re + a.im * b.im) / d * s0 * s1, (a.im * b.re - a.re * b.im) / d * s0 * s1};
    }
  }
  static __device__ __forceinline__ int exponent(Complex z) {  // of the larger part
    const int64 mask = ~(1ull << 63);
    const int64 r = __double_as_longlong(z.re) & mask, i = __double_as_longlong(z.im) & mask;
    const int e = int((r > i ? r : i) >> 52) - 1023;
    return e < -1022 ? -1022 : (e > 1022 ? 1022 : e);
  }
  static __device__ __forceinline__ R power_of_two(int e) {
    return __longlong_as_double(int64(e + 1023) << 52);
  }
};
using complex64 = Complex<float>;
using complex128 = Complex<double>;

// The few type traits that are needed. Those of single types are specialisations, so that a kernel
// without the type is compiled without it (csrc/cuda/template_text.h).
template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;
template <class T>
constexpr bool is_complex = false;
template <class R>
constexpr bool is_complex<Complex<R>> = true;
template <class T>
constexpr bool is_small_float = false;
template <>
constexpr bool is_small_float<float16> = true;
template <>
constexpr bool is_small_float<bfloat16> = true;
template <>
constexpr bool is_small_float<float8_e4m3fn> = true;
template <>
constexpr bool is_small_float<float8_e5m2> = true;
template <class T>
constexpr bool is_real_float = same<T, float> || same<T, double>;
template <class T>
constexpr bool is_integer = !is_complex<T> && !is_small_float<T> && !is_real_float<T>;

template <bool Condition, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};
template <bool Condition, class A, class B>
using choose = typename Choose<Condition, A, B>::type;

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
  using type = R;
};
template <class T>
using real_of = typename RealOf<T>::type;

// Small floats. E exponent bits, M mantissa bits, IEEE subnormals; codes above `top` become `top`.
template <int E, int M>
__device__ __forceinline__ uint32 encode_small(float value, uint32 top, uint32 nan) {
  constexpr int shift = 23 - M, bias = (1 << (E - 1)) - 1;
  constexpr uint32 rebias = uint32(127 - bias) << 23;
  const uint32 bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  const uint32 sign = (bits >> 31) << (E + M);
  const uint32 tie = (magnitude >> shift) & 1;
  const uint32 normal = (magnitude - rebias + ((1u << (shift - 1)) - 1) + tie) >> shift;
  // Adding 2^23 subnormal steps makes the adder round to a whole number of steps.
  const uint32 magic = uint32(127 + 1 - bias - M + 23) << 23;
  const uint32 subnormal =
      __float_as_uint(__fadd_rn(__uint_as_float(magnitude), __uint_as_float(magic))) - magic;
  uint32 code = magnitude < rebias + (1u << 23) ? subnormal : (normal < top ? normal : top);
  if (magnitude > 0x7f800000u) code = nan;
  return code | sign;
}

template <int E, int M>
__device__ __forceinline__ float decode_small(uint32 code, uint32 special) {
  constexpr int shift = 23 - M, bias = (1 << (E - 1)) - 1;
  const uint32 sign = (code >> (E + M)) << 31;
  const uint32 magnitude = code & ((1u << (E + M)) - 1);
  const float step = __uint_as_float(uint32(127 + 1 - bias - M) << 23);
  uint32 bits = magnitude < (1u << M) ? __float_as_uint(float(int(magnitude)) * step)
                                      : (magnitude << shift) + (uint32(127 - bias) << 23);
  if (magnitude >= special) bits = (magnitude << shift) | 0x7f800000u;
  return __uint_as_float(bits | sign);
}

__device__ __forceinline__ float decode(float16 x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}
__device__ __forceinline__ float decode(bfloat16 x) {
  return __uint_as_float(uint32(x.bits) << 16);
}
__device__ __forceinline__ float decode(float8_e4m3fn x) {
  return decode_small<4, 3>(x.bits, 0x7f);
}
__device__ __forceinline__ float decode(float8_e5m2 x) {
  return decode_small<5, 2>(x.bits, 0x7c);
}

template <class To>
__device__ __forceinline__ To encode(float x);
template <>
__device__ __forceinline__ float16 encode<float16>(float x) {
  float16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  // The hardware's NaN is 0x7fff; the CPU keeps the sign and gives 0x7e00.
  if (x != x) half.bits = uint16(0x7e00 | (__float_as_uint(x) >> 16 & 0x8000));
  return half;
}
template <>
__device__ __forceinline__ bfloat16 encode<bfloat16>(float x) {
#if __CUDA_ARCH__ >= 800
  bfloat16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
#else
  const uint32 bits = __float_as_uint(x);
  const uint32 rounded = bits + 0x7fffu + ((bits >> 16) & 1);
  return {uint16((x != x ? bits | 0x400000u : rounded) >> 16)};
#endif
}
template <>
__device__ __forceinline__ float8_e4m3fn encode<float8_e4m3fn>(float x) {
  return {uint8(encode_small<4, 3>(x, 0x7e, 0x7f))};
}
template <>
__device__ __forceinline__ float8_e5m2 encode<float8_e5m2>(float x) {
  return {uint8(encode_small<5, 2>(x, 0x7c, 0x7f))};
}

// Truncation with x86's answer, the most negative number, for NaN and what does not fit.
template <class F>
__device__ __forceinline__ int64 truncate64(F x) {
  return x >= F(-9223372036854775808.0) && x < F(9223372036854775808.0) ? int64(x)
                                                                       : int64(1ull << 63);
}
template <class F>
__device__ __forceinline__ int32 truncate32(F x) {
  const bool fits = (sizeof(F) > 4 ? x > F(-2147483649.0) : x >= F(-2147483648.0)) &&
                    x < F(2147483648.0);
  return fits ? int32(x) : int32(1u << 31);
}

template <class To, class F>
__device__ __forceinline__ To float_to_integer(F x) {
  if constexpr (same<To, uint64>) {
    const F half = F(9223372036854775808.0);
    return x >= half ? uint64(truncate64(x - half)) ^ (1ull << 63) : uint64(truncate64(x));
  } else if constexpr (sizeof(To) == 8 || same<To, uint32> ||
                       (same<To, uint8> && same<F, double>)) {
    return To(truncate64(x));
  } else {
    return To(truncate32(x));
  }
}

template <class To, class From>
__device__ __forceinline__ To convert(From x) {
  if constexpr (same<To, From>) {
    return x;
  } else if constexpr (is_small_float<From>) {
    return convert<To>(decode(x));
  } else if constexpr (is_complex<To>) {
    using R = real_of<To>;
    if constexpr (is_complex<From>) return To(convert<R>(x.re), convert<R>(x.im));
    else return To(convert<R>(x), R(0));
  } else if constexpr (is_complex<From>) {
    if constexpr (same<To, bool>) return x.re != 0 || x.im != 0;
    else return convert<To>(x.re);
  } else if constexpr (same<To, bool>) {
    return x != From(0);
  } else if constexpr (is_small_float<To>) {
    return encode<To>(float(x));
  } else if constexpr (is_real_float<From> && is_integer<To>) {
    return float_to_integer<To>(x);
  } else {
    return To(x);
  }
}

// How a type lies in memory: a bool is a byte that may hold any nonzero value.
template <class T>
struct Stored {
  using type = T;
};
template <>
struct Stored<bool> {
  using type = uint8;
};
template <class T>
using stored = typename Stored<T>::type;

// Accesses of 1 to 16 bytes are single instructions; wider ones are several of 16.
struct alignas(16) Words4 {
  uint32 x, y, z, w;
};
struct alignas(8) Words2 {
  uint32 x, y;
};
template <int Bytes>
struct Access {
  struct alignas(16) type {
    Words4 part[Bytes / 16];
  };
};
template <>
struct Access<1> {
  using type = uint8;
};
template <>
struct Access<2> {
  using type = uint16;
};
template <>
struct Access<4> {
  using type = uint32;
};
template <>
struct Access<8> {
  using type = Words2;
};
template <>
struct Access<16> {
  using type = Words4;
};

// V neighbouring elements, moved as a whole.
template <class T, int V>
union Vector {
  typename Access<int(sizeof(T)) * V>::type raw;
  stored<T> at[V];

  Vector() = default;
};

template <class T, int V>
__device__ __forceinline__ void load(Vector<T, V>& vector, const char* address) {
  vector.raw = *reinterpret_cast<const typename Access<int(sizeof(T)) * V>::type*>(address);
}
template <class T, int V>
__device__ __forceinline__ void store(const Vector<T, V>& vector, char* address) {
  *reinterpret_cast<typename Access<int(sizeof(T)) * V>::type*>(address) = vector.raw;
}

// All elements of a vector as T. Those of bfloat16, which are upper halves of floats, come out of
// words in pairs.
template <class Item>
constexpr bool is_upper_half = false;
template <>
constexpr bool is_upper_half<bfloat16> = true;
template <class T, class Item, int V>
__device__ __forceinline__ void convert_all(const Vector<Item, V>& from, T* to) {
  if constexpr (is_upper_half<Item> && V % 2 == 0) {
#pragma unroll
    for (int v = 0; v < V; v += 2) {
      const uint32 pair = reinterpret_cast<const uint32*>(&from)[v / 2];
      to[v] = T(__uint_as_float(pair << 16));
      to[v + 1] = T(__uint_as_float(pair & 0xffff0000u));
    }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) to[v] = convert<T>(from.at[v]);
  }
}

// Division of numbers below 2^31 by a number known on the host: a product and a shift. 64-bit
// indices divide plainly.
template <class Index>
struct Divider;
template <>
struct Divider<uint32> {
  uint32 divisor, magic, shift;
  __device__ __forceinline__ uint32 divide(uint32 n) const {
    return (__umulhi(n, magic) + n) >> shift;
  }
};
template <>
struct Divider<uint64> {
  uint64 divisor;
  __device__ __forceinline__ uint64 divide(uint64 n) const { return n / divisor; }
};
template <class Index>
using signed_index = choose<sizeof(Index) == 4, int32, int64>;

// A number given at launch, in a slot of 16 bytes.
struct alignas(16) Slot {
  uint64 word[2];
};
template <class T>
__device__ __forceinline__ T read_slot(const Slot& slot) {
  return T(*reinterpret_cast<const T*>(&slot));
}
template <>
__device__ __forceinline__ bool read_slot<bool>(const Slot& slot) {
  return *reinterpret_cast<const uint8*>(&slot) != 0;
}

}  // namespace facula
