// What the random kernels share: a locked generator that hands out words, the walk over a tensor in
// the order in which PyTorch fills it, and where creation functions write.
#pragma once
#include <algorithm>
#include <mutex>

#include "core/generator.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/random_loops.h"
#include "op/def.h"
#include "op/hooks/random.h"

namespace facula::kernels {

const RandomLoops& random_loops();  // the build for this machine

// The words of one operation: holds the generator from the first draw to the last.
class RandomStream {
 public:
  static constexpr int64_t kWords = 1024;        // at a time: they stay in the first-level cache
  static constexpr int64_t kDraws = kWords / 2;  // 64-bit draws at a time

  RandomStream(Generator* given, Device device)
      : generator_(choose(given, device)), lock_(generator_.mutex) {}

  const uint32_t* words(int64_t n) {  // n <= kWords; valid until the next call
    generator_.fill(words_, n);
    return words_;
  }
  uint32_t random32() { return generator_.random32(); }
  uint64_t random64() { return generator_.random64(); }
  double uniform() {  // 53 bits in [0, 1)
    return double(random64() & ((uint64_t(1) << 53) - 1)) * 0x1p-53;
  }
  void normals(double* out, int64_t n);  // standard ones; the generator may keep one for later
  double normal() {
    double x;
    normals(&x, 1);
    return x;
  }

 private:
  static Generator& choose(Generator* given, Device device);

  Generator& generator_;
  std::lock_guard<std::mutex> lock_;
  alignas(64) uint32_t words_[kWords];
};

// Fills host memory in memory order: draw(out, n), with n at most kDraws, makes the next n values
// as T, which become the tensor's dtype on the way.
template <class T, class Draw>
void fill_in_memory_order(const Tensor& self, Draw&& draw) {
  constexpr int64_t kItem = sizeof(T);
  const bool as_is = self.dtype() == DTypeOf<T>::value;
  const CastLoop cast = cast_loop(DTypeOf<T>::value, self.dtype());
  Iteration it;
  it.begin(self.sizes());
  it.add(self.data(), self.sizes(), self.strides(), int64_t(self.item_size()));
  it.finish();
  it.run(0, it.numel, [&](char* const* p, const int64_t* s, int64_t n) {
    alignas(64) T buffer[RandomStream::kDraws];
    for (int64_t done = 0; done < n; done += RandomStream::kDraws) {
      const int64_t m = std::min(RandomStream::kDraws, n - done);
      char* to = p[0] + done * s[0];
      if (as_is && (s[0] == kItem || m == 1)) {
        draw(reinterpret_cast<T*>(to), m);
      } else {
        draw(buffer, m);
        cast(to, s[0], reinterpret_cast<const char*>(buffer), kItem, m);
      }
    }
  });
}

// Calls f with every element as double: the arguments of distributions, checked before drawing.
template <class F>
void for_each_value(const Tensor& host, F&& f) {
  const CastLoop cast = cast_loop(host.dtype(), DType::Float64);
  Iteration it;
  it.begin(host.sizes());
  it.add(host.data(), host.sizes(), host.strides(), int64_t(host.item_size()));
  it.finish();
  it.run(0, it.numel, [&](char* const* p, const int64_t* s, int64_t n) {
    constexpr int64_t kChunk = 256;
    double values[kChunk];
    for (int64_t done = 0; done < n; done += kChunk) {
      const int64_t m = std::min(kChunk, n - done);
      cast(reinterpret_cast<char*>(values), sizeof(double), p[0] + done * s[0], s[0], m);
      for (int64_t i = 0; i < m; ++i) f(values[i]);
    }
  });
}

bool begins_writing(const Tensor& self);  // checks `self`; false when there is nothing to draw

// Draws into `self`: on the host by fill(), on devices by their own kernels.
template <class Fill>
void fill_random(const Tensor& self, const DrawnNumbers& numbers, Generator* generator,
                 Fill&& fill) {
  if (!begins_writing(self)) return;
  if (self.is_cuda()) return device_random.draw(self, numbers, generator);
  fill();
}

// The keywords of creation functions, and where these write: the out= tensor or a fresh one.
struct CreationOptions {
  DType dtype;
  Value layout;
  Device device;
  std::optional<bool> pin_memory;

  DType resolve_dtype(const Rets& rets, DType fallback) const;
  const Tensor& destination(Rets& rets, IntSpan size, DType resolved) const;
};

}  // namespace facula::kernels
