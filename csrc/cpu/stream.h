// Results that are too large for the cache are written past it: an ordinary store reads its line
// first, which is a third of the traffic of an addition, and drives out what is still to be read.
#pragma once
#include <cstdint>

#include "cpu/few_bytes.h"
#include "cpu/iterate.h"

namespace facula {

// Whether work on this many bytes, read and written, leaves next to nothing of its result in the
// cache.
bool exceeds_cache(int64_t bytes);

// Copies a block that lies in the cache to memory past it. Other threads may read what was written
// after finish_streams() of the thread that wrote.
void stream_copy(char* to, const char* from, int64_t bytes);
void finish_streams();

// memcpy, by vectors of the machine where there are many bytes (cpu/copy_dense.h).
void copy_many_bytes(char* to, const char* from, int64_t bytes);
inline void copy_bytes(char* to, const char* from, int64_t bytes) {
  bytes < kManyBytes ? copy_few_bytes(to, from, bytes) : copy_many_bytes(to, from, bytes);
}

// Bytes computed at a time: so few that reading the next block and writing the last one overlap.
constexpr int64_t kStreamBlock = 512;

// Calls f(to, first, n) for blocks of the n items at `out`; what f writes at `to` is streamed.
template <class F>
void stream_blocks(char* out, int64_t item, int64_t n, F&& f) {
  alignas(64) char block[kStreamBlock];
  const int64_t most = kStreamBlock / item;
  // The first block ends where a line does.
  int64_t m = int64_t(-reinterpret_cast<uintptr_t>(out) & 63) / item;
  for (int64_t i = 0; i < n; i += m, m = most) {
    m = m == 0 ? most : m;
    m = n - i < m ? n - i : m;
    f(static_cast<char*>(block), i, m);
    stream_copy(out + i * item, block, m * item);
  }
}

// body(pointers, byte strides, n) for a result that is streamed where it is dense.
template <class F>
auto streamed_body(int operands, int64_t item, F& body) {
  constexpr int64_t kLeast = 2 * kStreamBlock;
  return [operands, item, &body](char* const* p, const int64_t* s, int64_t n) {
    if (s[0] != item || n * item < kLeast) return body(p, s, n);
    stream_blocks(p[0], item, n, [&](char* to, int64_t first, int64_t m) {
      char* q[kMaxOperands] = {to};
      for (int o = 1; o < operands; ++o) q[o] = p[o] + first * s[o];
      body(q, s, m);
    });
  };
}

// As Iteration::run_parallel, for a result that is too large for the cache.
template <class F>
void run_streamed(const Iteration& it, int64_t item, F&& body) {
  parallel_for(0, it.numel, kGrain, [&](int64_t b, int64_t e) {
    it.run(b, e, streamed_body(it.operands, item, body));
    finish_streams();
  });
}

}  // namespace facula
