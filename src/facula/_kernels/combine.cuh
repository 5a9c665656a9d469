// How elements that meet at one place are combined, alone and by several threads at once. The host
// defines FACULA_COMBINE: 0 the last one, 1 sum, 2 product, 3 maximum, 4 minimum (of which NaN is
// both).
#pragma once
#include "types.cuh"

namespace facula {

template <class T>
__device__ __forceinline__ T combine(T a, T b) {
#if FACULA_COMBINE == 0
  return b;
#elif FACULA_COMBINE == 1
  if constexpr (same<T, bool>) return a || b;
  else return T(a + b);
#elif FACULA_COMBINE == 2
  if constexpr (same<T, bool>) return a && b;
  else return T(a * b);
#elif FACULA_COMBINE == 3
  if constexpr (is_complex<T>) return a;
  else return a != a ? a : (b != b ? b : (a < b ? b : a));
#else
  if constexpr (is_complex<T>) return a;
  else return a != a ? a : (b != b ? b : (b < a ? b : a));
#endif
}

template <class T>
__device__ __forceinline__ T scaled(T value, T alpha) {
  if constexpr (same<T, bool>) return value && alpha;
  else return T(value * alpha);
}

// Exchanges a word by compare-and-swap until nobody was faster. `f` maps old bits to new ones.
template <class Word, class F>
__device__ __forceinline__ void exchange(Word* at, F&& f) {
  Word seen = *reinterpret_cast<volatile Word*>(at);
  while (true) {
    const Word wanted = f(seen);
    if (wanted == seen) return;
    const Word found = atomicCAS(at, seen, wanted);
    if (found == seen) return;
    seen = found;
  }
}

// The bits of an element as an unsigned number, and back.
template <class Word, class T>
__device__ __forceinline__ Word to_bits(T value) {
  Word bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T, class Word>
__device__ __forceinline__ T from_bits(Word bits) {
  if constexpr (same<T, bool>) {
    return (bits & 0xff) != 0;
  } else {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
  }
}

// Elements of 16 bytes can only be summed, part by part.
template <class T>
__device__ __forceinline__ void combine_at(char* address, T value) {
#if FACULA_COMBINE == 1
  if constexpr (same<T, float> || same<T, double> || same<T, int32> || same<T, uint32> ||
                same<T, uint64>) {
    atomicAdd(reinterpret_cast<T*>(address), value);
    return;
  } else if constexpr (same<T, int64>) {
    atomicAdd(reinterpret_cast<uint64*>(address), uint64(value));
    return;
  } else if constexpr (is_complex<T>) {
    using R = real_of<T>;
    atomicAdd(reinterpret_cast<R*>(address), value.re);
    atomicAdd(reinterpret_cast<R*>(address) + 1, value.im);
    return;
  }
#endif
  if constexpr (sizeof(T) == 8) {
    exchange(reinterpret_cast<uint64*>(address), [&](uint64 old) {
      return to_bits<uint64>(combine(from_bits<T>(old), value));
    });
  } else if constexpr (sizeof(T) == 4) {
    exchange(reinterpret_cast<uint32*>(address), [&](uint32 old) {
      return to_bits<uint32>(combine(from_bits<T>(old), value));
    });
  } else if constexpr (sizeof(T) < 4) {  // part of a word
    const uint64 place = reinterpret_cast<uint64>(address);
    const int shift = int(place & 3) * 8;
    const uint32 mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    exchange(reinterpret_cast<uint32*>(place & ~3ull), [&](uint32 old) {
      const T combined = combine(from_bits<T>((old & mask) >> shift), value);
      return (old & ~mask) | (to_bits<uint32>(combined) << shift & mask);
    });
  }
}

}  // namespace facula
