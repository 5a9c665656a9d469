// Finds the elements of a tensor that are not zero: blocks are counted first, so that each block
// knows the number of the first element it finds and all can be visited in parallel.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/tensor.h"
#include "core/thread_pool.h"
#include "cpu/cast.h"

namespace facula {

class TrueElements {
 public:
  explicit TrueElements(const Tensor& mask);  // contiguous, of any dtype; must outlive this object
  int64_t count() const { return before_.back(); }

  static constexpr int64_t kBlock = 8192;
  // Those of one block: positions begin + places[k], in order, numbered from `number`.
  struct Block {
    int64_t begin, number, count;
    uint16_t places[kBlock + 8];  // eight are written at a time
  };

  // Calls f(const Block&) for every block with any; f runs on several threads at once.
  template <class F>
  void for_each_block(F&& f) const {
    parallel_for(0, int64_t(before_.size()) - 1, 1, [&](int64_t b, int64_t e) {
      bool buffer[kBlock];
      Block block;
      for (; b < e; ++b) {
        block.number = before_[size_t(b)];
        if (block.number == before_[size_t(b) + 1]) continue;
        block.begin = b * kBlock;
        list_places(load(b, buffer), std::min(kBlock, numel_ - block.begin), block);
        f(block);
      }
    });
  }
  // Calls f(position, number) for each, likewise. f is copied, so that what it writes cannot be
  // taken for what it knows.
  template <class F>
  void for_each(F given) const {
    for_each_block([&](const Block& block) {
      const F f = given;
      const int64_t begin = block.begin, number = block.number, count = block.count;
      for (int64_t k = 0; k < count; ++k) f(begin + block.places[k], number + k);
    });
  }

 private:
  static void list_places(const bool* found, int64_t n, Block& block);
  const bool* load(int64_t block, bool* buffer) const;
  const char* data_;
  int64_t numel_, item_;
  CastLoop to_bool_;  // null for bool itself
  std::vector<int64_t> before_;
};

}  // namespace facula
