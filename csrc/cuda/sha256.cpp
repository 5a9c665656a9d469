#include "cuda/sha256.h"

#include <bit>
#include <cstring>

namespace facula::cuda {
namespace {

// The constants are the leading 32 bits of the fractional parts of the square roots (initial state)
// and cube roots (rounds) of the first primes, found here by exact integer search.
struct Constants {
  uint32_t initial[8];
  uint32_t round[64];
};

// floor(root * 2^32) mod 2^32 for root = prime^(1/power), by bisection on exact products.
constexpr uint32_t fraction_bits(uint32_t prime, int power) {
  uint64_t low = 0, high = uint64_t(1) << 37;  // roots of the primes below 312 are below 2^5
  while (high - low > 1) {
    uint64_t middle = (low + high) / 2;
    using Wide = unsigned __int128;
    bool below;
    if (power == 2) {
      below = Wide(middle) * middle <= (Wide(prime) << 64);
    } else {
      // middle < 2^35 for cube roots below 8, so that the cube fits in 105 bits.
      below = middle < (uint64_t(1) << 35) && Wide(middle) * middle * middle <= (Wide(prime) << 96);
    }
    (below ? low : high) = middle;
  }
  return uint32_t(low);
}

constexpr Constants make_constants() {
  Constants c{};
  int found = 0;
  for (uint32_t n = 2; found < 64; ++n) {
    bool prime = true;
    for (uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    if (found < 8) c.initial[found] = fraction_bits(n, 2);
    c.round[found++] = fraction_bits(n, 3);
  }
  return c;
}

constexpr Constants kConstants = make_constants();
static_assert(kConstants.initial[0] == 0x6a09e667 && kConstants.round[63] == 0xc67178f2);

void compress(uint32_t state[8], const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 |
           uint32_t(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t s[8];
  std::memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    uint32_t e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    uint32_t a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    uint32_t t1 = s[7] + e + choice + kConstants.round[i] + w[i];
    uint32_t t2 = a + majority;
    std::memmove(s + 1, s, 7 * sizeof(uint32_t));
    s[0] = t1 + t2;
    s[4] += t1;
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

}  // namespace

std::array<uint8_t, 32> sha256(std::string_view data) {
  uint32_t state[8];
  std::memcpy(state, kConstants.initial, sizeof state);
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
  size_t whole = data.size() / 64 * 64;
  for (size_t i = 0; i < whole; i += 64) compress(state, bytes + i);

  // The rest, a one bit, zeros, and the length in bits fill one or two last blocks.
  uint8_t tail[128] = {};
  size_t rest = data.size() - whole;
  if (rest) std::memcpy(tail, bytes + whole, rest);
  tail[rest] = 0x80;
  size_t length = rest < 56 ? 64 : 128;
  uint64_t bits = uint64_t(data.size()) * 8;
  for (int i = 0; i < 8; ++i) tail[length - 1 - i] = uint8_t(bits >> (8 * i));
  for (size_t i = 0; i < length; i += 64) compress(state, tail + i);

  std::array<uint8_t, 32> digest;
  for (int i = 0; i < 32; ++i) digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string to_hex(const uint8_t* bytes, size_t count) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace facula::cuda
