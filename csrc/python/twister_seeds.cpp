#include "python/twister_seeds.h"

#include <array>

namespace facula::python {
namespace {

constexpr size_t kWords = 624;

// What the words are before a key is mixed in.
constexpr std::array<uint32_t, kWords> first_words() {
  std::array<uint32_t, kWords> words{19650218u};
  for (size_t i = 1; i < kWords; ++i)
    words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + uint32_t(i);
  return words;
}
constexpr std::array<uint32_t, kWords> kFirst = first_words();

}  // namespace

void seed_twister(uint32_t* words, const uint32_t* key, size_t count) {
  // Each word waits for the one before, so the rest of a step is kept off that way.
  uint32_t last = kFirst[0];
  auto mixed = [&](uint32_t by) { return (last ^ last >> 30) * by; };
  size_t j = 0;
  auto keyed = [&] {
    const uint32_t k = key[j] + uint32_t(j);
    if (++j == count) j = 0;
    return k;
  };
  for (size_t i = 1; i < kWords; ++i) words[i] = last = (kFirst[i] ^ mixed(1664525u)) + keyed();
  words[1] = last = (words[1] ^ mixed(1664525u)) + keyed();
  for (size_t i = 2; i < kWords; ++i)
    words[i] = last = (words[i] ^ mixed(1566083941u)) - uint32_t(i);
  words[1] = (words[1] ^ mixed(1566083941u)) - 1u;
  words[0] = 0x80000000u;
}

SeedWords sequence_of(const uint32_t (&entropy)[4]) {
  uint32_t pool[4], hash = 0x43b0d7e5u;
  auto hashed = [&](uint32_t v) {
    v ^= hash;
    hash *= 0x931e8875u;
    v *= hash;
    return v ^ v >> 16;
  };
  for (int i = 0; i < 4; ++i) pool[i] = hashed(entropy[i]);
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to)
      if (from != to) {
        const uint32_t v = 0xca01f9ddu * pool[to] - 0x4973f715u * hashed(pool[from]);
        pool[to] = v ^ v >> 16;
      }
  hash = 0x8b51f9ddu;
  SeedWords made;
  for (int i = 0; i < 4; ++i) {
    uint32_t v = pool[i] ^ hash;
    hash *= 0x58f38dedu;
    v *= hash;
    made.words[i] = v ^ v >> 16;
  }
  return made;
}

}  // namespace facula::python
