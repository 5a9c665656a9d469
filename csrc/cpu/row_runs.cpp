#include "cpu/row_runs.h"

#include <algorithm>
#include <cstring>

namespace facula {

namespace {

// Processors compare the last 12 bits of addresses first.
constexpr int64_t kPage = 4096;
constexpr int64_t kLongestMoved = 4 * kPage;
constexpr int64_t kRowsToMove = 8;

}  // namespace

RowRuns::RowRuns(const Iteration& it, const int64_t* items) : it_(it) {
  if (it.ndim < 2) return;
  const int64_t rows = it.numel / it.sizes[0];
  possible_ = it.numel <= kGrain || rows >= 8 * num_threads();
  // Where a row begins anew at each page, the repeated row is read while what was written at the
  // same place of the page before is still on its way to memory, and has to wait for it. A copy
  // that lies half a page further on does not. It takes a fifth of the time of such an addition.
  row_bytes_ = it.sizes[0] * items[0];
  if (it.strides[0][0] != items[0] || it.strides[0][1] % kPage != 0 || row_bytes_ % kPage != 0 ||
      it.sizes[1] < kRowsToMove)
    return;
  for (int o = 1; o < it.operands; ++o)
    if (it.strides[o][0] == items[o] && it.strides[o][1] == 0 && items[o] == items[0] &&
        row_bytes_ <= kLongestMoved)
      moved_ = o;
}

void RowRuns::run_parallel(RowsLoop loop, const void* params) const {
  const int64_t length = it_.sizes[0], rows = it_.numel / length;
  if (it_.numel <= kGrain) return run(0, rows, loop, params);
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / length),
               [&](int64_t b, int64_t e) { run(b, e, loop, params); });
}

void RowRuns::run(int64_t from, int64_t to, RowsLoop loop, const void* params) const {
  char room[kLongestMoved + kPage];
  int64_t inner[kMaxOperands], steps[kMaxOperands];
  for (int o = 0; o < it_.operands; ++o) {
    inner[o] = it_.strides[o][0];
    steps[o] = it_.strides[o][1];
  }
  while (from < to) {
    char* p[kMaxOperands];
    const int64_t first = from % it_.sizes[1];
    int64_t rest = from / it_.sizes[1];
    for (int o = 0; o < it_.operands; ++o) p[o] = it_.data[o] + first * steps[o];
    for (int d = 2; d < it_.ndim; ++d) {
      const int64_t at = rest % it_.sizes[d];
      rest /= it_.sizes[d];
      for (int o = 0; o < it_.operands; ++o) p[o] += at * it_.strides[o][d];
    }
    const int64_t rows = std::min(it_.sizes[1] - first, to - from);
    if (moved_ && rows >= kRowsToMove) {
      const auto place = reinterpret_cast<uintptr_t>(p[0]) + kPage / 2;
      char* copy = room + ((place - reinterpret_cast<uintptr_t>(room)) & (kPage - 1));
      std::memcpy(copy, p[moved_], size_t(row_bytes_));
      p[moved_] = copy;
    }
    loop(p, inner, steps, it_.sizes[0], rows, params);
    from += rows;
  }
}

}  // namespace facula
