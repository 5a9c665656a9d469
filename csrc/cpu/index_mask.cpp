#include "cpu/index_mask.h"

namespace facula {

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
      int64_t c = 0;
      for (int64_t i = 0; i < n; ++i) c += found[i];
      before_[size_t(block) + 1] = c;
    }
  });
  for (size_t i = 1; i < before_.size(); ++i) before_[i] += before_[i - 1];
}

// Without branches where anything is found: whether an element is chosen can seldom be foretold.
void TrueElements::list_places(const bool* found, int64_t n, Block& block) {
  int64_t count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, found + i, 8);
    if (!eight) continue;
    for (int64_t k = i; k < i + 8; ++k) {
      block.places[count] = uint16_t(k);
      count += found[k];
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
