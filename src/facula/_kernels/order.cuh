// Unsigned keys in the order of elements: NaN is above every number; -0 and 0 are equal.
// cpu/index_order.h has the same order.
#pragma once
#include "types.cuh"

namespace facula {

template <int Bytes>
struct KeyOfSize;
template <>
struct KeyOfSize<1> {
  using type = uint8;
};
template <>
struct KeyOfSize<2> {
  using type = uint16;
};
template <>
struct KeyOfSize<4> {
  using type = uint32;
};
template <>
struct KeyOfSize<8> {
  using type = uint64;
};
template <class T>
using key_of = typename KeyOfSize<int(sizeof(T))>::type;

// The largest magnitude that is not NaN.
template <class T>
constexpr key_of<T> largest_number = 0;
template <>
constexpr uint32 largest_number<float> = 0x7f800000u;
template <>
constexpr uint64 largest_number<double> = 0x7ff0000000000000ull;
template <>
constexpr uint16 largest_number<float16> = 0x7c00;
template <>
constexpr uint16 largest_number<bfloat16> = 0x7f80;
template <>
constexpr uint8 largest_number<float8_e4m3fn> = 0x7e;
template <>
constexpr uint8 largest_number<float8_e5m2> = 0x7c;

// `address` is aligned to the element's size.
template <class T>
__device__ __forceinline__ key_of<T> load_key(const char* address, bool descending) {
  using Key = key_of<T>;
  constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
  Key bits = *reinterpret_cast<const Key*>(address), key;
  if constexpr (same<T, bool>) {
    key = bits != 0;
  } else if constexpr (is_real_float<T> || is_small_float<T>) {
    const Key magnitude = bits & Key(sign - 1);
    const Key negative = magnitude == 0 ? sign : Key(~bits);
    key = bits & sign ? negative : Key(bits | sign);
    key = magnitude > largest_number<T> ? Key(~Key(0)) : key;
  } else if constexpr (T(-1) < T(0)) {
    key = Key(bits ^ sign);
  } else {
    key = bits;
  }
  return descending ? Key(~key) : key;
}

}  // namespace facula
