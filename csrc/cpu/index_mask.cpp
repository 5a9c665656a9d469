#include "cpu/index_mask.h"

namespace facula {
namespace {

typedef uint8_t Sixteen __attribute__((vector_size(16)));

Sixteen sixteen_at(const bool* found) {
  Sixteen x;
  std::memcpy(&x, found, sizeof x);
  return x;
}

// The first 16 n elements that are set: each lane counts up to 255.
int64_t count_sixteens(const bool* found, int64_t n) {
  int64_t count = 0;
  while (n > 0) {
    const int64_t m = std::min<int64_t>(n, 255);
    Sixteen counts{};
    for (int64_t i = 0; i < m; ++i) counts -= Sixteen(sixteen_at(found + 16 * i) != 0);
    for (int lane = 0; lane < 16; ++lane) count += counts[lane];
    found += 16 * m;
    n -= m;
  }
  return count;
}

// Sixteen elements as bits, the first one lowest.
unsigned bits_of_sixteen(const bool* found) {
#if defined(__SSE2__)
  typedef char Bytes __attribute__((vector_size(16)));
  return unsigned(__builtin_ia32_pmovmskb128(Bytes(sixteen_at(found) != 0)));
#else
  unsigned bits = 0;
  for (int half = 0; half < 2; ++half) {
    uint64_t flags;
    const Sixteen one = Sixteen(sixteen_at(found) != 0) & 1;
    std::memcpy(&flags, reinterpret_cast<const char*>(&one) + 8 * half, 8);
    bits |= unsigned(flags * 0x0102040810204080u >> 56) << 8 * half;
  }
  return bits;
#endif
}

typedef uint16_t Eight __attribute__((vector_size(16)));
// Which of eight elements are set, in order, and how many.
struct PlacesOfBits {
  uint16_t places[256][8] = {};
  uint8_t count[256] = {};
  constexpr PlacesOfBits() {
    for (int bits = 0; bits < 256; ++bits)
      for (uint16_t k = 0; k < 8; ++k)
        if (bits >> k & 1) places[bits][count[bits]++] = k;
  }
};
constexpr PlacesOfBits kPlaces;

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
      int64_t i = n / 16 * 16, c = count_sixteens(found, n / 16);
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
    for (int64_t k = i; k < i + kSkipped; k += 16) {
      const unsigned bits = bits_of_sixteen(found + k);
      for (int half = 0; half < 2; ++half) {
        const unsigned eight = bits >> 8 * half & 255;
        Eight places;
        std::memcpy(&places, kPlaces.places[eight], sizeof places);
        places += uint16_t(k + 8 * half);
        std::memcpy(block.places + count, &places, sizeof places);
        count += kPlaces.count[eight];
      }
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
