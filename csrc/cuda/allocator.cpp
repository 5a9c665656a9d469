#include "cuda/allocator.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace facula::cuda {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kRounding = 512;         // of every request, and the alignment of every block
constexpr size_t kSmallLimit = 1 * kMiB;  // requests below it share small segments
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kMediumLimit = 10 * kMiB;  // requests below it share medium segments
constexpr size_t kMediumSegment = 20 * kMiB;
constexpr size_t kLargeRounding = 2 * kMiB;  // the driver's own granularity

size_t round_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

// A piece of a segment. Neighbours in the segment are linked, so that free ones can be merged.
struct Block {
  char* pointer;
  size_t size;
  CuStream stream;
  bool small;
  bool free = false;
  Block* before = nullptr;
  Block* after = nullptr;
  std::vector<CuStream> other_streams = {};  // that use the block beside its own
  size_t pending_events = 0;

  bool whole_segment() const { return !before && !after; }
};

// Best fit: the smallest block of the stream that is large enough, then the lowest address.
struct ByStreamAndSize {
  bool operator()(const Block* a, const Block* b) const {
    if (a->stream != b->stream) return a->stream < b->stream;
    if (a->size != b->size) return a->size < b->size;
    return a->pointer < b->pointer;
  }
};
using FreeBlocks = std::set<Block*, ByStreamAndSize>;

std::string in_units(size_t bytes) {
  char text[32];
  if (bytes >= 1024 * kMiB) std::snprintf(text, sizeof text, "%.2f GiB", bytes / (1024.0 * kMiB));
  else if (bytes >= kMiB) std::snprintf(text, sizeof text, "%.2f MiB", double(bytes) / kMiB);
  else if (bytes >= kKiB) std::snprintf(text, sizeof text, "%.2f KiB", double(bytes) / kKiB);
  else std::snprintf(text, sizeof text, "%zu bytes", bytes);
  return text;
}

class DeviceAllocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}

  void* allocate(size_t bytes, CuStream stream) {
    std::lock_guard lock(mutex_);
    if (bytes > (size_t(1) << 62)) throw_out_of_memory(bytes);  // rounding would overflow
    const size_t size = round_up(bytes, kRounding);
    const bool small = size < kSmallLimit;
    if (!pending_.empty()) collect_finished(false);
    Block* block = take_cached(size, small, stream);
    if (!block) block = new_segment(size, small, stream);
    if (!block) {
      ++stats_.retries;
      release_cached();
      block = new_segment(size, small, stream);
    }
    if (!block) {
      ++stats_.out_of_memory;
      throw_out_of_memory(bytes);
    }
    split(block, size);
    live_.emplace(block->pointer, block);
    ++stats_.allocations;
    ++stats_.active_blocks;
    stats_.allocated += block->size;
    if (stats_.allocated > stats_.peak_allocated) stats_.peak_allocated = stats_.allocated;
    return block->pointer;
  }

  void deallocate(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = live_.find(static_cast<char*>(pointer));
    if (found == live_.end()) return;
    Block* block = found->second;
    live_.erase(found);
    --stats_.active_blocks;
    stats_.allocated -= block->size;
    if (block->other_streams.empty()) return make_free(block);
    for (CuStream stream : block->other_streams) {
      CuEvent event = create_event(device_, false);
      record_event(device_, event, stream);
      pending_.push_back({event, block});
      ++block->pending_events;
    }
    block->other_streams.clear();
  }

  void record_stream(void* pointer, CuStream stream) {
    std::lock_guard lock(mutex_);
    auto found = live_.find(static_cast<char*>(pointer));
    if (found == live_.end() || found->second->stream == stream) return;
    for (CuStream known : found->second->other_streams) {
      if (known == stream) return;
    }
    found->second->other_streams.push_back(stream);
  }

  void empty_cache() {
    std::lock_guard lock(mutex_);
    release_cached();
  }

  AllocatorStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peaks() {
    std::lock_guard lock(mutex_);
    stats_.peak_allocated = stats_.allocated;
    stats_.peak_reserved = stats_.reserved;
  }

 private:
  struct Pending {
    CuEvent event;
    Block* block;
  };

  FreeBlocks& free_blocks(bool small) { return small ? small_ : large_; }

  Block* take_cached(size_t size, bool small, CuStream stream) {
    FreeBlocks& blocks = free_blocks(small);
    Block wanted{nullptr, size, stream, small};
    auto found = blocks.lower_bound(&wanted);
    if (found == blocks.end() || (*found)->stream != stream) return nullptr;
    Block* block = *found;
    blocks.erase(found);
    block->free = false;
    return block;
  }

  // Null if the driver has no memory left; other failures throw.
  Block* new_segment(size_t size, bool small, CuStream stream) {
    const size_t segment = small                 ? kSmallSegment
                           : size < kMediumLimit ? kMediumSegment
                                                 : round_up(size, kLargeRounding);
    use_device(device_);
    CuDevicePtr pointer = 0;
    CuResult result = driver().cuMemAlloc_v2(&pointer, segment);
    if (result == kCuOutOfMemory) return nullptr;
    check_driver(result, "cuMemAlloc_v2");
    ++stats_.driver_allocations;
    ++stats_.segments;
    stats_.reserved += segment;
    if (stats_.reserved > stats_.peak_reserved) stats_.peak_reserved = stats_.reserved;
    return new Block{reinterpret_cast<char*>(pointer), segment, stream, small};
  }

  // Cuts what is not needed off the end, if the rest is worth keeping apart.
  void split(Block* block, size_t size) {
    const size_t rest = block->size - size;
    if (rest < (block->small ? kRounding : kSmallLimit)) return;
    Block* tail = new Block{block->pointer + size, rest, block->stream, block->small};
    tail->before = block;
    tail->after = block->after;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->size = size;
    tail->free = true;
    free_blocks(tail->small).insert(tail);
  }

  void make_free(Block* block) {
    FreeBlocks& blocks = free_blocks(block->small);
    if (Block* next = block->after; next && next->free) {
      blocks.erase(next);
      absorb(block, next);
    }
    if (Block* previous = block->before; previous && previous->free) {
      blocks.erase(previous);
      absorb(previous, block);
      block = previous;
    }
    block->free = true;
    blocks.insert(block);
  }

  static void absorb(Block* block, Block* next) {
    block->size += next->size;
    block->after = next->after;
    if (block->after) block->after->before = block;
    delete next;
  }

  // Frees blocks whose foreign streams have come past their last use.
  void collect_finished(bool wait) {
    size_t kept = 0;
    for (Pending& pending : pending_) {
      if (wait) synchronize_event(device_, pending.event);
      if (!wait && !event_is_done(device_, pending.event)) {
        pending_[kept++] = pending;
        continue;
      }
      destroy_event(device_, pending.event);
      if (--pending.block->pending_events == 0) make_free(pending.block);
    }
    pending_.resize(kept);
  }

  void release_cached() {
    collect_finished(true);
    use_device(device_);
    for (FreeBlocks* blocks : {&small_, &large_}) {
      for (auto it = blocks->begin(); it != blocks->end();) {
        Block* block = *it;
        if (!block->whole_segment()) {
          ++it;
          continue;
        }
        // cuMemFree waits for work that still uses the memory.
        FACULA_CU(cuMemFree_v2, CuDevicePtr(reinterpret_cast<uintptr_t>(block->pointer)));
        it = blocks->erase(it);
        stats_.reserved -= block->size;
        --stats_.segments;
        delete block;
      }
    }
  }

  [[noreturn]] void throw_out_of_memory(size_t bytes) {
    MemoryInfo info = memory_info(device_);
    throw OutOfMemory("CUDA out of memory. Tried to allocate " + in_units(bytes) + " on device " +
                          std::to_string(device_) + " (" + device_properties(device_).name + ", " +
                          in_units(info.total) + " in total): " + in_units(info.free) +
                          " is free; this process holds " + in_units(stats_.reserved) +
                          ", of which " + in_units(stats_.allocated) + " is in live tensors and " +
                          in_units(stats_.reserved - stats_.allocated) +
                          " is cached but in pieces too small",
                      bytes);
  }

  const int device_;
  std::mutex mutex_;
  FreeBlocks small_, large_;
  std::unordered_map<char*, Block*> live_;
  std::vector<Pending> pending_;
  AllocatorStats stats_;
};

// Never destroyed: at exit the driver may go first, and the process's memory goes with it.
DeviceAllocator& allocator_of(int device) {
  check_device(device);
  static DeviceAllocator* allocators[kMaxDevices];
  static std::once_flag once[kMaxDevices];
  std::call_once(once[device], [&] { allocators[device] = new DeviceAllocator(device); });
  return *allocators[device];
}

}  // namespace

void* allocate(size_t bytes, int device, CuStream stream) {
  return bytes ? allocator_of(device).allocate(bytes, stream) : nullptr;
}

void* allocate(size_t bytes, int device) {
  return allocate(bytes, device, current_stream(device));
}

void deallocate(void* pointer, int device) noexcept {
  if (!pointer) return;
  try {
    allocator_of(device).deallocate(pointer);
  } catch (const std::exception& error) {
    // Only a broken context gets here; whoever synchronises next hears of it as an exception.
    std::fprintf(stderr, "facula: freeing CUDA memory: %s\n", error.what());
  }
}

void record_stream(void* pointer, int device, CuStream stream) {
  if (pointer) allocator_of(device).record_stream(pointer, stream);
}

void empty_cache(int device) {
  allocator_of(device).empty_cache();
}
AllocatorStats allocator_stats(int device) {
  return allocator_of(device).stats();
}
void reset_peak_stats(int device) {
  allocator_of(device).reset_peaks();
}

void* allocate_pinned(size_t bytes) {
  if (bytes == 0) return nullptr;
  use_device(current_device());
  constexpr unsigned kPortable = 1;  // page-locked for every device
  void* pointer = nullptr;
  FACULA_CU(cuMemHostAlloc, &pointer, bytes, kPortable);
  return pointer;
}

void deallocate_pinned(void* pointer) noexcept {
  if (!pointer || !is_available()) return;
  driver().cuMemFreeHost(pointer);
}

}  // namespace facula::cuda
