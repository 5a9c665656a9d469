#include "cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "cpu/index_items.h"
#include "cpu/index_loops.h"
#include "cpu/turn_block.h"

namespace facula {
namespace {

// Calls f(target, source, n) for every stretch of up to `block` steps along dimension 1.
template <class F>
void for_each_block(const Iteration& it, int64_t block, F&& f) {
  int64_t outer = 1;
  for (int d = 2; d < it.ndim; ++d) outer *= it.sizes[d];
  const int64_t blocks = (it.sizes[1] + block - 1) / block;
  const int64_t grain = std::max<int64_t>(1, kGrain / (it.sizes[0] * block));
  parallel_for(0, outer * blocks, grain, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) {
      const int64_t first = b % blocks * block, n = std::min(block, it.sizes[1] - first);
      char* to = it.data[0] + first * it.strides[0][1];
      const char* from = it.data[1] + first * it.strides[1][1];
      int64_t rest = b / blocks;
      for (int d = 2; d < it.ndim; ++d) {
        const int64_t at = rest % it.sizes[d];
        rest /= it.sizes[d];
        to += at * it.strides[0][d];
        from += at * it.strides[1][d];
      }
      f(to, from, n);
    }
  });
}

void exchange_dims(Iteration& it, int a, int b) {
  std::swap(it.sizes[a], it.sizes[b]);
  for (int o = 0; o < it.operands; ++o) std::swap(it.strides[o][a], it.strides[o][b]);
}

constexpr int64_t kTileColumns = 16;

// Asks for memory that is far from what was read before, which the processor does not foresee.
void prefetch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// The dimension along which the source has its neighbours, where that is not dimension 0, in which
// the target has them; 0 if there is none.
int transposed_dim(const Iteration& it, int64_t item) {
  if (it.ndim < 2 || it.strides[0][0] != item || it.strides[1][0] == item || it.sizes[0] < 8)
    return 0;
  for (int d = 1; d < it.ndim; ++d)
    if (it.strides[1][d] == item && it.sizes[d] >= 8 && it.strides[0][d] % item == 0 &&
        it.strides[1][0] % item == 0)
      return d;
  return 0;
}

void copy_transposed(Iteration it, int dim, int64_t item) {
  exchange_dims(it, 1, dim);
  with_item_type(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t to_step = it.strides[0][1] / item, from_step = it.strides[1][0] / item;
    // As many rows as let the target stay in the cache, so that the source is read in long runs.
    const int64_t block = std::clamp<int64_t>((1 << 16) / (it.sizes[0] * item), 64, 512);
    for_each_block(it, block, [&](char* to, const char* from, int64_t rows) {
      for (int64_t j = 0; j < it.sizes[0]; j += kTileColumns) {
        const int64_t next = std::min(it.sizes[0], j + 2 * kTileColumns);
        for (int64_t k = j + kTileColumns; k < next; ++k)
          prefetch(from + k * it.strides[1][0], rows * item);
        turn_matrix(reinterpret_cast<T*>(to) + j, to_step,
                    reinterpret_cast<const T*>(from) + j * from_step, from_step, rows,
                    std::min(kTileColumns, it.sizes[0] - j));
      }
    });
  });
}

// Runs of neighbours that are far from each other.
void copy_runs(const Iteration& it, int64_t bytes) {
  constexpr int64_t kStretch = 256, kAhead = 2048;
  const int64_t ahead = std::max<int64_t>(1, kAhead / bytes);
  const int64_t to_step = it.strides[0][1], from_step = it.strides[1][1];
  for_each_block(it, kStretch, [&](char* to, const char* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i, to += to_step, from += from_step) {
      if (i + ahead < n) prefetch(from + ahead * from_step, bytes);
      std::memcpy(to, from, size_t(bytes));
    }
  });
}

// A short innermost dimension goes outside of stretches of the next one.
void copy_short_rows(const Iteration& it, CastLoop cast) {
  constexpr int64_t kStretch = 1024;
  for_each_block(it, kStretch, [&](char* to, const char* from, int64_t n) {
    for (int64_t j = 0; j < it.sizes[0]; ++j)
      cast(to + j * it.strides[0][0], it.strides[0][1], from + j * it.strides[1][0],
           it.strides[1][1], n);
  });
}

using Reverse = void (*)(char* to, const char* from, int64_t n);
Reverse reverse_loop(int64_t item) {
  switch (item) {
    case 1: return index_loops().reverse_1;
    case 2: return index_loops().reverse_2;
    case 4: return index_loops().reverse_4;
    case 8: return index_loops().reverse_8;
    default: return nullptr;
  }
}

}  // namespace

void copy_strided_operands(const Iteration& it, CastLoop cast, int64_t item) {
  constexpr int64_t kShort = 16, kLongRun = 2048;
  if (const int dim = item ? transposed_dim(it, item) : 0) return copy_transposed(it, dim, item);
  const int64_t bytes = it.ndim > 0 ? it.sizes[0] * item : 0;
  const bool runs = it.ndim > 0 && item && bytes >= kShort && it.strides[0][0] == item &&
                    it.strides[1][0] == item;
  if (runs && it.ndim > 1 && bytes <= kLongRun) return copy_runs(it, bytes);
  if (!runs && it.ndim > 1 && it.sizes[0] < kShort && it.sizes[1] > it.sizes[0])
    return copy_short_rows(it, cast);
  if (it.ndim > 0 && item && it.strides[0][0] == -item && it.strides[1][0] == item) {
    if (const Reverse reverse = reverse_loop(item))
      return it.run_parallel([&](char* const* p, const int64_t*, int64_t n) {
        reverse(p[0] - (n - 1) * item, p[1], n);
      });
  }
  it.run_parallel(
      [&](char* const* p, const int64_t* s, int64_t n) { cast(p[0], s[0], p[1], s[1], n); });
}

}  // namespace facula
