// Device memory. A caching allocator in stream order: a freed block may be used again at once by
// work on its own stream, because that work runs after all work that used the block before.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda/context.h"

namespace facula::cuda {

// At least `bytes` bytes, aligned to 512, for work on `stream`; null for 0 bytes. Throws
// OutOfMemory with a report after cached memory has been given back to the driver.
void* allocate(size_t bytes, int device, CuStream stream);
void* allocate(size_t bytes, int device);  // on the thread's current stream

// Gives memory from `allocate` back. Never throws; null is ignored.
void deallocate(void* pointer, int device) noexcept;

// Says that `stream`, other than the one it was allocated for, uses the memory: once deallocated,
// it is not used again before the work now queued there is done.
void record_stream(void* pointer, int device, CuStream stream);

// Returns all unused segments to the driver.
void empty_cache(int device);

struct AllocatorStats {
  size_t allocated = 0;  // bytes in live blocks, rounding included
  size_t reserved = 0;   // bytes held from the driver
  size_t peak_allocated = 0;
  size_t peak_reserved = 0;
  size_t active_blocks = 0;
  size_t segments = 0;
  uint64_t allocations = 0;  // calls since the start
  uint64_t driver_allocations = 0;
  uint64_t retries = 0;  // times the cache was emptied because memory ran out
  uint64_t out_of_memory = 0;
};
AllocatorStats allocator_stats(int device);
void reset_peak_stats(int device);

// Page-locked host memory, which copies read and write without a staging buffer.
void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* pointer) noexcept;

// Memory for the span of a scope, in stream order.
class Scratch {
 public:
  Scratch(size_t bytes, int device, CuStream stream)
      : pointer_(allocate(bytes, device, stream)), device_(device) {}
  ~Scratch() { deallocate(pointer_, device_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return pointer_; }

 private:
  void* pointer_;
  int device_;
};

}  // namespace facula::cuda
