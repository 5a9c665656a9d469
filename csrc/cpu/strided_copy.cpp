#include "cpu/strided_copy.h"

#include <algorithm>
#include <bit>

#include "cpu/index_loops.h"
#include "cpu/line_loops.h"
#include "cpu/stream.h"

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

// Asks for memory that is far from what was read before, which the processor does not foresee.
void prefetch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// The dimension along which the source has its neighbours, where that is not dimension 0, in which
// the target has them; 0 if there is none, or if dimension 0 repeats elements often enough to fill
// rows with them.
int transposed_dim(const Iteration& it, int64_t item) {
  constexpr int64_t kShort = 8, kLong = 32;
  if (it.ndim < 2 || it.strides[0][0] != item || it.strides[1][0] == item || it.sizes[0] < kShort)
    return 0;
  if (it.strides[1][0] == 0 && it.sizes[0] >= kLong) return 0;
  for (int d = 1; d < it.ndim; ++d)
    if (it.strides[1][d] == item && it.sizes[d] >= 8 && it.strides[0][d] % item == 0 &&
        it.strides[1][0] % item == 0)
      return d;
  return 0;
}

void copy_transposed(Iteration it, int dim, int64_t item) {
  exchange_dims(it, 1, dim);
  // Whole lines of the target can be streamed where all its rows begin with one.
  bool streamed =
      exceeds_cache(2 * it.numel * item) && reinterpret_cast<uintptr_t>(it.data[0]) % 64 == 0;
  for (int d = 1; d < it.ndim; ++d) streamed = streamed && it.strides[0][d] % 64 == 0;
  const auto turn = line_loops().turn[std::countr_zero(uint64_t(item) | 16)];
  const int64_t columns = item < 4 ? 64 / item : 16;  // a line or two of the target
  const int64_t to_step = it.strides[0][1], from_step = it.strides[1][0];
  // As many rows as let the target stay in the cache, so that the source is read in long runs; few
  // where the target is not to be there.
  const int64_t block =
      streamed ? 64 : std::clamp<int64_t>((1 << 16) / (it.sizes[0] * item), 64, 512);
  for_each_block(it, block, [&](char* to, const char* from, int64_t rows) {
    for (int64_t j = 0; j < it.sizes[0]; j += columns) {
      const int64_t next = std::min(it.sizes[0], j + 2 * columns);
      if (!streamed)
        for (int64_t k = j + columns; k < next; ++k) prefetch(from + k * from_step, rows * item);
      turn(to + j * item, to_step, from + j * from_step, from_step, rows,
           std::min(columns, it.sizes[0] - j), streamed);
    }
    if (streamed) finish_streams();
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
      copy_bytes(to, from, bytes);
    }
  });
}

// Two to four planes whose elements alternate in the target (images with channels last), or in the
// source.
void copy_alternating(const Iteration& it, int planes, int64_t item, bool in_target) {
  constexpr int64_t kStretch = 4096;
  const auto& loops = index_loops();
  const auto alternate =
      (in_target ? loops.interleave : loops.deinterleave)[std::countr_zero(uint64_t(item))];
  const int pixels = 1 - planes, side = in_target ? 1 : 0;  // dimensions; the side with planes
  Iteration by_pixels = it;
  if (pixels == 0) exchange_dims(by_pixels, 0, 1);  // dimension 1 is split into stretches
  for_each_block(by_pixels, kStretch, [&](char* to, const char* from, int64_t n) {
    alternate(to, from, by_pixels.strides[side][0], by_pixels.sizes[0], n);
  });
}

// The dimension of the planes, or -1 if elements do not alternate so.
int alternating_planes(const Iteration& it, int64_t item, bool in_target) {
  constexpr int64_t kFewest = 2, kMost = 4, kLong = 16;
  const int mixed = in_target ? 0 : 1, apart = 1 - mixed;  // operands
  if (it.ndim < 2 || item > 8) return -1;
  for (int planes : {0, 1}) {
    const int pixels = 1 - planes;
    if (it.sizes[planes] >= kFewest && it.sizes[planes] <= kMost && it.sizes[pixels] >= kLong &&
        it.strides[mixed][planes] == item && it.strides[mixed][pixels] == it.sizes[planes] * item &&
        it.strides[apart][pixels] == item)
      return planes;
  }
  return -1;
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

void copy_strided_operands(const Iteration& it, CastLoop cast, int64_t to_item, int64_t from_item,
                           bool same_dtype) {
  const int64_t item = same_dtype ? to_item : 0;
  constexpr int64_t kShort = 16, kLongRun = 2048, kLongest = 8192;
  if (const int dim = item ? transposed_dim(it, item) : 0) return copy_transposed(it, dim, item);
  const int64_t bytes = it.ndim > 0 ? it.sizes[0] * item : 0;
  const bool runs = it.ndim > 0 && item && bytes >= kShort && it.strides[0][0] == item &&
                    it.strides[1][0] == item;
  // Longer ones are worth streaming where they do not stay in the cache.
  if (runs && it.ndim > 1 && bytes <= kLongest &&
      (bytes <= kLongRun || !exceeds_cache(2 * it.numel * item)))
    return copy_runs(it, bytes);
  for (const bool in_target : {true, false})
    if (const int planes = item ? alternating_planes(it, item, in_target) : -1; planes >= 0)
      return copy_alternating(it, planes, item, in_target);
  if (!runs && it.ndim > 1 && it.sizes[0] < kShort && it.sizes[1] > it.sizes[0])
    return copy_short_rows(it, cast);
  if (it.ndim > 0 && item && it.strides[0][0] == -item && it.strides[1][0] == item) {
    if (const Reverse reverse = reverse_loop(item))
      return it.run_parallel([&](char* const* p, const int64_t*, int64_t n) {
        reverse(p[0] - (n - 1) * item, p[1], n);
      });
  }
  auto body = [&](char* const* p, const int64_t* s, int64_t n) { cast(p[0], s[0], p[1], s[1], n); };
  int64_t distinct = 1;  // elements of the source
  for (int d = 0; d < it.ndim; ++d) distinct *= it.strides[1][d] ? it.sizes[d] : 1;
  if (exceeds_cache(it.numel * to_item + distinct * from_item)) run_streamed(it, to_item, body);
  else it.run_parallel(body);
}

}  // namespace facula
