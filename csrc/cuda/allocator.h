// Device memory. A caching allocator in stream order: a freed block may be used again at once by
// work on its own stream, because that work runs after all work that used the block before.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/storage.h"
#include "cuda/context.h"

namespace facula::cuda {

// At least `bytes` bytes, aligned to 512, for work on `stream`; null for 0 bytes. Throws
// OutOfMemory with a report after cached memory has been given back to the driver.
void* allocate(size_t bytes, int device, CuStream stream);
void* allocate(size_t bytes, int device);  // on the thread's current stream

// Gives memory from `allocate` back. Never throws; null is ignored.
void deallocate(void* pointer, int device) noexcept;

// Says that `stream`, other than the one it was allocated for, uses the memory: once deallocated,
// it is not used again before the work now queued there is done. Memory of others is ignored.
void record_stream(void* pointer, int device, CuStream stream);

// Returns all unused segments to the driver.
void empty_cache(int device);

// One figure, as memory_stats gives it.
struct Count {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;

  void add(int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void subtract(int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

// For requests of all sizes, and for small and large ones apart.
struct Counts {
  Count all, small, large;

  void add(bool is_small, int64_t amount) { all.add(amount), part(is_small).add(amount); }
  void subtract(bool is_small, int64_t amount) {
    all.subtract(amount), part(is_small).subtract(amount);
  }
  Count& part(bool is_small) { return is_small ? small : large; }
};

struct AllocatorStats {
  Counts allocation, allocated_bytes, requested_bytes;  // live blocks
  Counts active, active_bytes;                          // and those that a stream still uses
  Counts segment, reserved_bytes;                       // from the driver
  Counts inactive_split, inactive_split_bytes;          // free pieces of segments in use
  uint64_t retries = 0;  // times the cache was emptied because memory ran out
  uint64_t out_of_memory = 0;
  uint64_t driver_allocations = 0, driver_frees = 0;
};
AllocatorStats allocator_stats(int device);
void reset_peak_stats(int device);
void reset_accumulated_stats(int device);

struct AllocatorSettings {
  size_t max_split = SIZE_MAX;  // larger blocks are not cut into pieces
  bool expandable = false;      // segments grow, by addresses reserved ahead
};
AllocatorSettings allocator_settings();
// Changes them by a text such as "max_split_size_mb:512,expandable_segments:True".
void configure_allocator(const std::string& text);
// The process holds at most this share of the device's memory.
void set_memory_fraction(int device, double fraction);

// While it is on, blocks remember the Python line that made them; reports and snapshots name it.
void track_allocations(bool on);
extern SourceLocation (*locate_allocation)();  // the Python layer's; called without any lock
bool tracking_allocations();

struct BlockRecord {
  uintptr_t address;
  size_t size, requested;
  int state;  // 0: free, 1: live, 2: freed while a stream may still use it
  SourceLocation made_at;
};
struct SegmentRecord {
  uintptr_t address;
  size_t size;
  CuStream stream;
  uint64_t pool;
  bool small, expandable;
  std::vector<BlockRecord> blocks;
};
std::vector<SegmentRecord> memory_snapshot(int device);

// ---- graphs: memory that a captured graph uses must stay its own as long as it may be replayed

uint64_t new_memory_pool();
// From here to end_pool_capture, what this thread allocates for capturing streams comes from
// `pool`, which is kept until as many release_memory_pool calls have been made.
void begin_pool_capture(int device, uint64_t pool);
void end_pool_capture(int device, uint64_t pool);
void release_memory_pool(int device, uint64_t pool);

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
