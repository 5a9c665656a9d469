// Page-locked host memory, which copies read and write without a staging buffer and without
// waiting. Freed blocks are kept and used again, once the copies that used them are done.
#pragma once
#include <cstddef>

#include "core/storage.h"
#include "cuda/allocator.h"

namespace facula::cuda {

void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* pointer) noexcept;  // memory from allocate_pinned, or null

// Host memory in a storage of its own.
Storage* pinned_storage(size_t bytes);
// Whether an address is page-locked, by whomever.
bool is_pinned(const void* pointer);
// Says that a copy on `stream` uses the memory: it is not used again before the copy is done.
// Memory of others is ignored; they must keep it alive themselves.
void record_pinned(const void* pointer, int device, CuStream stream);
// Gives unused blocks back to the system.
void empty_pinned_cache();

struct PinnedStats {
  Count segments, reserved;  // blocks from the system, and their bytes
  Count live, live_bytes;    // those that tensors have
};
PinnedStats pinned_stats();
void reset_pinned_stats(bool peaks);  // the peaks, or the sums

}  // namespace facula::cuda
