#include "cpu/index_mask.h"

#include <array>

namespace facula {
namespace {

// Eight elements as bytes that are 0 or 1, whatever their memory holds.
uint64_t eight_flags(const bool* found) {
  uint64_t x;
  std::memcpy(&x, found, 8);
  x |= x >> 4;
  x |= x >> 2;
  x |= x >> 1;
  return x & 0x0101010101010101u;
}
int64_t count_of(uint64_t flags) {
  return int64_t(flags * 0x0101010101010101u >> 56);
}
// Their bits in one byte, the first element lowest.
int bits_of(uint64_t flags) {
  return int(flags * 0x0102040810204080u >> 56);
}

typedef uint16_t Eight __attribute__((vector_size(16)));
// Which of eight elements are set, in order.
constexpr auto kPlaces = [] {
  std::array<std::array<uint16_t, 8>, 256> table{};
  for (size_t bits = 0; bits < 256; ++bits) {
    size_t count = 0;
    for (uint16_t k = 0; k < 8; ++k)
      if (bits >> k & 1) table[bits][count++] = k;
  }
  return table;
}();

}  // namespace

TrueElements::TrueElements(const Tensor& mask)
    : data_(mask.data()),
      numel_(mask.numel()),
      item_(int64_t(mask.item_size())),
      to_bool_(mask.dtype() == DType::Bool ? nullptr : cast_loop(mask.dtype(), DType::Bool)),
      before_(size_t((mask.numel() + kBlock - 1) / kBlock + 1), 0) {
  parallel_for(0, int64_t(before_.size()) - 1, 4, [&](int64_t b, int64_t e) {
    bool buffer[kBlock];
    for (int64_t block = b; block < e; ++block) {
      const int64_t n = std::min(kBlock, numel_ - block * kBlock);
      const bool* found = load(block, buffer);
      int64_t c = 0, i = 0;
      for (; i + 8 <= n; i += 8) c += count_of(eight_flags(found + i));
      for (; i < n; ++i) c += found[i];
      before_[size_t(block) + 1] = c;
    }
  });
  for (size_t i = 1; i < before_.size(); ++i) before_[i] += before_[i - 1];
}

// Without branches where anything is found: whether an element is chosen can seldom be foretold.
void TrueElements::list_places(const bool* found, int64_t n, Block& block) {
  constexpr int64_t kSkipped = 64;  // looked at together
  int64_t count = 0, i = 0;
  for (; i + kSkipped <= n; i += kSkipped) {
    uint64_t words[kSkipped / 8], any = 0;
    std::memcpy(words, found + i, kSkipped);
    for (uint64_t word : words) any |= word;
    if (!any) continue;
    for (int64_t k = i; k < i + kSkipped; k += 8) {
      const uint64_t flags = eight_flags(found + k);
      Eight places;
      std::memcpy(&places, kPlaces[size_t(bits_of(flags))].data(), sizeof places);
      places += uint16_t(k);
      std::memcpy(block.places + count, &places, sizeof places);
      count += count_of(flags);
    }
  }
  for (; i < n; ++i)
    if (found[i]) block.places[count++] = uint16_t(i);
  block.count = count;
}

const bool* TrueElements::load(int64_t block, bool* buffer) const {
  const char* from = data_ + block * kBlock * item_;
  if (!to_bool_) return reinterpret_cast<const bool*>(from);
  to_bool_(reinterpret_cast<char*>(buffer), 1, from, item_,
           std::min(kBlock, numel_ - block * kBlock));
  return buffer;
}

}  // namespace facula
