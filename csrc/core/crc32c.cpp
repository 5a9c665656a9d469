#include "core/crc32c.h"

#include <array>

namespace facula {
namespace {

using Table = std::array<std::array<uint32_t, 256>, 8>;

// Row k: the checksum of a byte that k zero bytes follow, so that eight bytes go at a time.
constexpr Table make_table() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    table[0][i] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t i = 0; i < 256; ++i)
      table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

uint32_t crc32c(const void* data, size_t size, uint32_t before) {
  auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~before;
  for (; size >= 8; size -= 8, p += 8) {
    c ^= uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
    c = kTable[7][c & 255] ^ kTable[6][c >> 8 & 255] ^ kTable[5][c >> 16 & 255] ^
        kTable[4][c >> 24] ^ kTable[3][p[4]] ^ kTable[2][p[5]] ^ kTable[1][p[6]] ^ kTable[0][p[7]];
  }
  for (; size; --size) c = c >> 8 ^ kTable[0][(c ^ *p++) & 255];
  return ~c;
}

}  // namespace facula
