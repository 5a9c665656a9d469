// Matrix tiles of the processor (AMX): a register holds 16 rows of 64 bytes. One instruction adds
// to 16 x 16 floats the product of 16 rows of 32 elements and of 32 rows of 16, of which two that
// follow each other along the depth are a pair, side by side. Each ISA's files have their own copy.
//
// Instructions are given as bytes, since compilers and assemblers learned them one after the other:
// a VEX prefix (c4 e2 and a byte with the third operand and the kind), the operation, the operands.
#pragma once
#include "cpu/gemm_block.h"
#include "cpu/half_lanes.h"
#include "cpu/turn_registers.h"

#if defined(__AVX512BW__) && defined(__x86_64__)
#define FACULA_HAS_TILES 1

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kTileSide = 16;
constexpr int64_t kTileDepth = 32;
constexpr int64_t kTileElements = kTileSide * kTileDepth;
constexpr int64_t kTileSums = kTileSide * kTileSide;
constexpr __mmask16 kAllLanes = 0xffff;

inline __mmask16 first_lanes(int64_t n) {
  return n >= kTileSide ? kAllLanes : n <= 0 ? __mmask16(0) : __mmask16((1u << n) - 1);
}
// As floats, 0 where the mask has none.
template <class S>
FACULA_INLINE Floats some_halves(const void* from, __mmask16 mask) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  if constexpr (std::is_same_v<S, Half>) return Floats(_mm512_maskz_cvtph_ps(kAllLanes, bits));
  else return Floats(Words(_mm512_maskz_cvtepu16_epi32(kAllLanes, bits)) << 16);
}

// While one is alive, the thread has tiles of full size. They are part of what the system saves
// when it switches threads, so nothing keeps them longer than a task.
class TilesInUse {
 public:
  TilesInUse() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    asm volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" ::"a"(&shape) : "memory");
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;
  ~TilesInUse() { asm volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0" ::: "memory"); }
};

// Rows `apart` bytes.
template <int T>
FACULA_INLINE void load_tile(const void* from, int64_t apart) {
  asm volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, %c2, 0x08" ::"a"(from), "c"(apart), "i"(T << 3 | 4)
               : "memory");
}
template <int T>
FACULA_INLINE void store_tile(void* to, int64_t apart) {
  asm volatile(".byte 0xc4, 0xe2, 0x7a, 0x4b, %c2, 0x08" ::"a"(to), "c"(apart), "i"(T << 3 | 4)
               : "memory");
}
template <int T>
FACULA_INLINE void clear_tile() {
  asm volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, %c0" ::"i"(0xc0 | T << 3));
}
// Tile C += tile A times tile B.
template <class S, int C, int A, int B>
FACULA_INLINE void multiply_tiles() {
  static_assert(std::is_same_v<S, BFloat16> || std::is_same_v<S, Half>);
  constexpr int kind = std::is_same_v<S, BFloat16> ? 2 : 3;
  asm volatile(".byte 0xc4, 0xe2, %c0, 0x5c, %c1" ::"i"((~B & 15) << 3 | kind),
               "i"(0xc0 | C << 3 | A));
}

// Where the tiles of one side lie: `apart` bytes between rows, `strip` bytes from one strip of 16
// rows (or columns) to the next, step p of the depth at `at(p)`.
template <class At>
struct TileSource {
  At at;
  int64_t apart, strip;
};

// Up to 32 x 32 sums as four tiles, (row half, column half, 16, 16): R and V of them are wanted.
// With `go_on` they are added to.
template <class S, int R, int V, class Left, class Right>
FACULA_INLINE void sum_of_tiles(int64_t steps, const TileSource<Left>& left,
                                const TileSource<Right>& right, float* sums, bool go_on) {
  constexpr int64_t row = 4 * kTileSide;
  if (go_on) {
    load_tile<0>(sums, row);
    if constexpr (V > 1) load_tile<1>(sums + kTileSums, row);
    if constexpr (R > 1) load_tile<2>(sums + 2 * kTileSums, row);
    if constexpr (R > 1 && V > 1) load_tile<3>(sums + 3 * kTileSums, row);
  } else {
    clear_tile<0>();
    if constexpr (V > 1) clear_tile<1>();
    if constexpr (R > 1) clear_tile<2>();
    if constexpr (R > 1 && V > 1) clear_tile<3>();
  }
  for (int64_t p = 0; p < steps; ++p) {
    const char* a = left.at(p);
    const char* b = right.at(p);
    load_tile<6>(b, right.apart);
    load_tile<4>(a, left.apart);
    multiply_tiles<S, 0, 4, 6>();
    if constexpr (V > 1) {
      load_tile<7>(b + right.strip, right.apart);
      multiply_tiles<S, 1, 4, 7>();
    }
    if constexpr (R > 1) {
      load_tile<5>(a + left.strip, left.apart);
      multiply_tiles<S, 2, 5, 6>();
      if constexpr (V > 1) multiply_tiles<S, 3, 5, 7>();
    }
  }
  store_tile<0>(sums, row);
  if constexpr (V > 1) store_tile<1>(sums + kTileSums, row);
  if constexpr (R > 1) store_tile<2>(sums + 2 * kTileSums, row);
  if constexpr (R > 1 && V > 1) store_tile<3>(sums + 3 * kTileSums, row);
}

template <class S, class Left, class Right>
FACULA_INLINE void sum_of_tiles(int64_t rows, int64_t columns, int64_t steps,
                                const TileSource<Left>& left, const TileSource<Right>& right,
                                float* sums, bool go_on) {
  if (rows > kTileSide) {
    if (columns > kTileSide) sum_of_tiles<S, 2, 2>(steps, left, right, sums, go_on);
    else sum_of_tiles<S, 2, 1>(steps, left, right, sums, go_on);
  } else {
    if (columns > kTileSide) sum_of_tiles<S, 1, 2>(steps, left, right, sums, go_on);
    else sum_of_tiles<S, 1, 1>(steps, left, right, sums, go_on);
  }
}

// Tiles that follow each other, packed.
FACULA_INLINE auto packed_tiles(const void* first, int64_t strip) {
  const char* const from = static_cast<const char*>(first);
  auto at = [from](int64_t p) __attribute__((always_inline)) { return from + p * 1024; };
  return TileSource<decltype(at)>{at, 64, strip};
}

FACULA_INLINE void write_tile(uint16_t* to, const __m512i (&r)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kTileDepth, r[i]);
}

// Lanes are rows of the left side or columns of the right one; element p of a lane stands at
// from + p * step + lane * apart. Tiles have up to 16 lanes and 32 elements, and zeros beyond:
// lanes of elements for the left side, pairs of all lanes for the right one (kPairs).
template <bool kPairs>
FACULA_INLINE void pack_tile(const uint16_t* from, int64_t step, int64_t apart, int64_t depth,
                             int64_t lanes, uint16_t* to) {
  __m512i r[16];
  alignas(64) uint16_t each[kTileElements];
  if (step != 1) {
    __builtin_memset(each, 0, sizeof each);
    for (int64_t i = 0; i < lanes && i < kTileSide; ++i)
      for (int64_t p = 0; p < depth && p < kTileDepth; ++p)
        each[i * kTileDepth + p] = from[p * step + i * apart];
    from = each, apart = kTileDepth, lanes = kTileSide;
  }
  const __mmask32 mask = depth >= kTileDepth ? ~0u : (1u << depth) - 1;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    r[i] = i < lanes ? _mm512_maskz_loadu_epi16(mask, from + i * apart) : _mm512_setzero_si512();
  if (kPairs) turn_registers(r);
  write_tile(to, r);
}

// Indices that put words of two rows side by side, lane by lane from `first` on.
FACULA_INLINE __m512i pairs_of_rows(int first) {
  typedef uint16_t Indices __attribute__((vector_size(64)));
  Indices order;
#pragma GCC unroll 32
  for (int i = 0; i < 32; ++i) order[i] = uint16_t(first + i / 2 + i % 2 * 32);
  return __m512i(order);
}

// Two tiles of lanes that are contiguous, read by whole lines. The second one is not written where
// there are no lanes for it, and may be null then.
template <bool kPairs, bool kWhole = false>
FACULA_INLINE void pack_two_tiles(const uint16_t* from, int64_t step, int64_t depth, int64_t lanes,
                                  uint16_t* to, uint16_t* second) {
  const __mmask32 mask = lanes >= 2 * kTileSide ? ~0u : (1u << lanes) - 1;
  auto row = [&](int64_t p) __attribute__((always_inline)) {
    if (kWhole) return _mm512_loadu_si512(from + p * step);
    return p < depth ? _mm512_maskz_loadu_epi16(mask, from + p * step) : _mm512_setzero_si512();
  };
  const __m512i low = pairs_of_rows(0), high = pairs_of_rows(kTileSide);
  auto pair = [&](int64_t i, const __m512i& half) __attribute__((always_inline)) {
    return _mm512_permutex2var_epi16(row(2 * i), half, row(2 * i + 1));
  };
  const bool both = second && lanes > kTileSide;
  if (kPairs) {
    for (int64_t i = 0; i < kTileSide; ++i) {
      const __m512i x = row(2 * i), y = row(2 * i + 1);
      _mm512_storeu_si512(to + i * kTileDepth, _mm512_permutex2var_epi16(x, low, y));
      if (both) _mm512_storeu_si512(second + i * kTileDepth, _mm512_permutex2var_epi16(x, high, y));
    }
    return;
  }
  __m512i r[16];
  for (int half = 0; half < 1 + both; ++half) {
    const __m512i order = half ? high : low;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = pair(i, order);
    turn_registers(r);
    write_tile(half ? second : to, r);
  }
}

// Strips of 16 lanes, (strip, step, tile), of `steps` tiles each.
template <bool kPairs>
void pack_strips(const uint16_t* from, int64_t step, int64_t apart, int64_t depth, int64_t lanes,
                 int64_t steps, uint16_t* to) {
  const int64_t strip = steps * kTileElements;
  if (apart == 1 && step != 1) {  // along the lanes, since that is how they lie
    for (int64_t p = 0; p < steps; ++p)
      for (int64_t i = 0; i < lanes; i += 2 * kTileSide) {
        uint16_t* const tile = to + i / kTileSide * strip + p * kTileElements;
        const uint16_t* const at = from + p * kTileDepth * step + i;
        const int64_t deep = depth - p * kTileDepth;
        if (deep >= kTileDepth && lanes - i >= 2 * kTileSide)
          pack_two_tiles<kPairs, true>(at, step, deep, lanes - i, tile, tile + strip);
        else pack_two_tiles<kPairs, false>(at, step, deep, lanes - i, tile, tile + strip);
      }
    return;
  }
  for (int64_t i = 0; i < lanes; i += kTileSide)
    for (int64_t p = 0; p < steps; ++p)
      pack_tile<kPairs>(from + p * kTileDepth * step + i * apart, step, apart,
                        depth - p * kTileDepth, lanes - i,
                        to + i / kTileSide * strip + p * kTileElements);
}

}  // namespace
}  // namespace facula::FACULA_ISA
#endif
