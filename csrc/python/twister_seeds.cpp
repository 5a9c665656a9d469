#include "python/twister_seeds.h"

#include <array>
#include <iterator>

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

namespace {

// Each word waits for the one before, so two twisters take hardly longer than one.
template <size_t kLanes>
void seed_side_by_side(const TwisterSeed* seeds) {
  constexpr size_t kMostKeys = std::size(TwisterSeed{}.key);
  const size_t count = seeds->count;  // of numbers in the key, which is as long for all
  uint32_t* words[kLanes];
  uint32_t last[kLanes], key[kMostKeys][kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    words[lane] = seeds[lane].words;
    last[lane] = kFirst[0];
    for (size_t j = 0; j < count; ++j) key[j][lane] = seeds[lane].key[j] + uint32_t(j);
  }
  auto mixed = [&](size_t lane, uint32_t by) { return (last[lane] ^ last[lane] >> 30) * by; };
  size_t place = 0;
  for (size_t i = 1; i < kWords; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      words[lane][i] = last[lane] = (kFirst[i] ^ mixed(lane, 1664525u)) + key[place][lane];
    if (++place == count) place = 0;
  }
  for (size_t lane = 0; lane < kLanes; ++lane)
    words[lane][1] = last[lane] = (words[lane][1] ^ mixed(lane, 1664525u)) + key[place][lane];
  for (size_t i = 2; i <= kWords; ++i) {
    const size_t at = i < kWords ? i : 1;
    for (size_t lane = 0; lane < kLanes; ++lane)
      words[lane][at] = last[lane] = (words[lane][at] ^ mixed(lane, 1566083941u)) - uint32_t(at);
  }
  for (size_t lane = 0; lane < kLanes; ++lane) words[lane][0] = 0x80000000u;
}

}  // namespace

void seed_twisters(const TwisterSeed* seeds, size_t count) {
  while (count) {
    const bool pair = count > 1 && seeds[0].count == seeds[1].count;
    if (pair) seed_side_by_side<2>(seeds);
    else seed_side_by_side<1>(seeds);
    seeds += pair ? 2 : 1;
    count -= pair ? 2 : 1;
  }
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
