// Host memory for tensors: 64-byte aligned blocks, kept for reuse when they are freed.
// The system would hand back large blocks as fresh, zeroed pages every time, which costs as
// much as the arithmetic on them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {

constexpr size_t kHostAlignment = 64;

// Throws std::bad_alloc when neither the system nor the cache can give the memory.
// Zero bytes give nullptr. The memory is not cleared.
void* host_allocate(size_t bytes);

// `bytes` is the size the block was asked for; it selects the free list.
void host_free(void* block, size_t bytes) noexcept;

struct HostMemoryStats {
  size_t allocated_bytes = 0;       // in blocks that callers hold, rounded up to their size class
  size_t peak_bytes = 0;            // highest allocated_bytes; small blocks are seen with a delay
  size_t cached_bytes = 0;          // in free blocks kept for reuse
  size_t cache_limit_bytes = 0;     // the most cached_bytes may reach (small blocks aside)
  uint64_t allocations = 0;         // calls of host_allocate with bytes > 0
  uint64_t system_allocations = 0;  // those that had to ask the system
};
HostMemoryStats host_memory_stats();

// Gives all cached memory that this thread can reach back to the system: the shared lists and its
// own small blocks.
void host_trim();

// The cap on cached bytes; lowering it trims. The first value comes from FACULA_HOST_CACHE_MB, else
// it is 1/8 of the memory of the machine (or of the control group), at most 4 GiB.
void set_host_cache_limit(size_t bytes);

}  // namespace facula
