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

  // Calls f(position, number) for each, numbers counting up with the position; f runs on several
  // threads at once.
  template <class F>
  void for_each(F&& f) const {
    parallel_for(0, int64_t(before_.size()) - 1, 1, [&](int64_t b, int64_t e) {
      bool buffer[kBlock];
      for (int64_t block = b; block < e; ++block) {
        int64_t number = before_[size_t(block)];
        if (number == before_[size_t(block) + 1]) continue;
        const int64_t begin = block * kBlock, n = std::min(kBlock, numel_ - begin);
        const bool* found = load(block, buffer);
        int64_t i = 0;
        for (; i + 8 <= n; i += 8) {
          uint64_t eight;
          std::memcpy(&eight, found + i, 8);
          if (!eight) continue;
          for (int64_t k = i; k < i + 8; ++k)
            if (found[k]) f(begin + k, number++);
        }
        for (; i < n; ++i)
          if (found[i]) f(begin + i, number++);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 8192;
  const bool* load(int64_t block, bool* buffer) const;
  const char* data_;
  int64_t numel_, item_;
  CastLoop to_bool_;  // null for bool itself
  std::vector<int64_t> before_;
};

}  // namespace facula
