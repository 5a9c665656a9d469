// The words that Python's and NumPy's twisters make of a seed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula::python {

// A key of so many numbers, and where the 624 words go that it becomes.
struct TwisterSeed {
  uint32_t* words;
  uint32_t key[4];
  size_t count;
};
// Matsumoto and Nishimura's init_by_array(), for so many twisters, of which the words are used up.
void seed_twisters(const TwisterSeed* seeds, size_t count);

// What numpy.random.SeedSequence makes of four words.
struct SeedWords {
  uint32_t words[4];
};
SeedWords sequence_of(const uint32_t (&entropy)[4]);

}  // namespace facula::python
