// Short rows that meet operands which are repeated, such as a bias of 64 channels: some rows are
// handled as one, with as many copies of what is repeated laid out in a buffer.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/iterate.h"
#include "cpu/line_loops.h"

namespace facula {

class JoinedRows {
 public:
  // `items`: the item size of each operand. Numbers have no strides.
  JoinedRows(const Iteration& it, const int64_t* items);
  explicit operator bool() const { return possible_; }

  // As Iteration::run_parallel; finish() is called at the end of each part.
  template <class F, class G>
  void run_parallel(F&& body, G&& finish) const {
    const int64_t rows = it_.numel / length_;
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / length_), [&](int64_t b, int64_t e) {
      run(b, e, body);
      finish();
    });
  }

 private:
  enum class Kind : uint8_t { Whole, Number, Row, Column };
  static constexpr int64_t kTileBytes = 4096;  // little enough to stay beside what streams through

  template <class F>
  void run(int64_t b, int64_t e, F&& body) const {
    alignas(64) char tile[kMaxOperands][kTileBytes];
    char *p[kMaxOperands], *q[kMaxOperands];
    while (b < e) {
      // Rows along dimension 1 from here on.
      int64_t rest = b / it_.sizes[1], first = b % it_.sizes[1];
      for (int o = 0; o < it_.operands; ++o) p[o] = it_.data[o] + first * it_.strides[o][1];
      for (int d = 2; d < it_.ndim; ++d) {
        const int64_t at = rest % it_.sizes[d];
        rest /= it_.sizes[d];
        for (int o = 0; o < it_.operands; ++o) p[o] += at * it_.strides[o][d];
      }
      const int64_t count = std::min(it_.sizes[1] - first, e - b);
      for (int o = 0; o < it_.operands; ++o) {
        q[o] = kind_[o] == Kind::Number ? p[o] : tile[o];
        if (kind_[o] != Kind::Row) continue;
        const size_t bytes = size_t(length_ * steps_[o]);
        for (int64_t r = 0; r < std::min(together_, count); ++r)
          std::memcpy(tile[o] + size_t(r) * bytes, p[o], bytes);
      }
      for (int64_t r = 0; r < count; r += together_) {
        const int64_t n = std::min(together_, count - r);
        for (int o = 0; o < it_.operands; ++o) {
          const int64_t step = it_.strides[o][1];
          if (kind_[o] == Kind::Whole) q[o] = p[o] + r * step;
          if (kind_[o] == Kind::Column) repeat_[o](tile[o], p[o] + r * step, step, n, length_);
        }
        body(q, steps_, n * length_);
      }
      b += count;
    }
  }

  const Iteration& it_;
  bool possible_ = false;
  int64_t length_ = 1, together_ = 1;
  int64_t steps_[kMaxOperands];
  Kind kind_[kMaxOperands];
  LineLoops::RepeatEach repeat_[kMaxOperands];
};

}  // namespace facula
