// The words that Python's and NumPy's twisters make of a seed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula::python {

// Matsumoto and Nishimura's init_by_array(): writes 624 words, of which a twister has drawn all.
void seed_twister(uint32_t* words, const uint32_t* key, size_t count);

// What numpy.random.SeedSequence makes of four words.
struct SeedWords {
  uint32_t words[4];
};
SeedWords sequence_of(const uint32_t (&entropy)[4]);

}  // namespace facula::python
