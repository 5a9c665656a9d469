#include "cuda/pinned.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/host_allocator.h"
#include "cuda/context.h"
#include "cuda/translate.h"

namespace facula::cuda {
namespace {

constexpr size_t kSmallest = 512;
constexpr int kClasses = 56;

struct Pending {
  int device;
  CuEvent event;
};
struct PinnedBlock {
  void* pointer;
  int size_class;
  std::vector<std::pair<int, CuStream>> streams = {};  // with copies that may not be done
  std::vector<Pending> events = {};
};

// Host memory belongs to no device: whoever needs some finds the context that it was about to
// launch in.
class KeptContext {
 public:
  KeptContext() { driver().cuCtxGetCurrent(&before_); }
  ~KeptContext() {
    if (before_) driver().cuCtxSetCurrent(before_);
  }
  KeptContext(const KeptContext&) = delete;
  KeptContext& operator=(const KeptContext&) = delete;

 private:
  CuContext before_ = nullptr;
};

// Sizes are powers of two: page-locking takes milliseconds, so that a block should serve many.
int class_of(size_t bytes) {
  return std::bit_width(std::max(bytes, kSmallest) - 1);
}

class PinnedAllocator {
 public:
  void* allocate(size_t bytes) {
    KeptContext kept;
    const int size_class = class_of(bytes);
    if (size_class >= kClasses)
      throw CudaError("Cannot allocate " + std::to_string(bytes) + " bytes of pinned memory");
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < idle_[size_class].size(); ++i) {
      PinnedBlock* block = idle_[size_class][i];
      if (!is_done(*block)) continue;
      idle_[size_class].erase(idle_[size_class].begin() + int64_t(i));
      return lend(block);
    }
    use_device(current_device());
    RelaxedCapture relaxed;
    constexpr unsigned kPortable = 1;  // page-locked for every device
    void* pointer = nullptr;
    FACULA_CU(cuMemHostAlloc, &pointer, size_t(1) << size_class, kPortable);
    stats_.segments.add(1);
    stats_.reserved.add(int64_t(1) << size_class);
    return lend(new PinnedBlock{pointer, size_class});
  }

  void deallocate(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = live_.find(pointer);
    if (found == live_.end()) return;
    PinnedBlock* block = found->second;
    live_.erase(found);
    stats_.live.subtract(1);
    stats_.live_bytes.subtract(int64_t(1) << block->size_class);
    for (auto [device, stream] : block->streams) {
      CuEvent event = create_event(device, false);
      record_event(device, event, stream);
      block->events.push_back({device, event});
    }
    block->streams.clear();
    idle_[block->size_class].push_back(block);
  }

  void record(const void* pointer, int device, CuStream stream) {
    std::lock_guard lock(mutex_);
    auto found = live_.find(const_cast<void*>(pointer));
    if (found == live_.end()) return;
    auto& streams = found->second->streams;
    const std::pair entry(device, stream);
    if (std::find(streams.begin(), streams.end(), entry) == streams.end()) streams.push_back(entry);
  }

  void empty_cache() {
    std::lock_guard lock(mutex_);
    for (auto& blocks : idle_) {
      std::erase_if(blocks, [&](PinnedBlock* block) {
        if (!is_done(*block)) return false;
        use_device(current_device());
        RelaxedCapture relaxed;
        driver().cuMemFreeHost(block->pointer);
        stats_.segments.subtract(1);
        stats_.reserved.subtract(int64_t(1) << block->size_class);
        delete block;
        return true;
      });
    }
  }

  PinnedStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_stats(bool peaks) {
    std::lock_guard lock(mutex_);
    for (Count* c : {&stats_.segments, &stats_.reserved, &stats_.live, &stats_.live_bytes}) {
      if (peaks) c->peak = c->current;
      else c->allocated = c->freed = 0;
    }
  }

 private:
  void* lend(PinnedBlock* block) {
    live_.emplace(block->pointer, block);
    stats_.live.add(1);
    stats_.live_bytes.add(int64_t(1) << block->size_class);
    return block->pointer;
  }

  static bool is_done(PinnedBlock& block) {
    while (!block.events.empty()) {
      const Pending& last = block.events.back();
      use_device(last.device);
      RelaxedCapture relaxed;
      if (driver().cuEventQuery(last.event) == kCuNotReady) return false;
      destroy_event(last.device, last.event);
      block.events.pop_back();
    }
    return true;
  }

  std::mutex mutex_;
  std::vector<PinnedBlock*> idle_[kClasses];
  std::unordered_map<void*, PinnedBlock*> live_;
  PinnedStats stats_;
};

PinnedAllocator& allocator() {
  static auto* instance = new PinnedAllocator;  // outlives static destruction
  return *instance;
}

void release_pinned(Storage* s) {
  deallocate_pinned(s->data);
}

}  // namespace

void* allocate_pinned(size_t bytes) {
  return bytes ? allocator().allocate(bytes) : nullptr;
}

void deallocate_pinned(void* pointer) noexcept {
  if (!pointer) return;
  ContextScope scope;
  try {
    allocator().deallocate(pointer);
  } catch (const std::exception&) {
    // A broken context: whoever synchronises next hears of it as an exception.
  }
}

Storage* pinned_storage(size_t bytes) {
  return translated([&] {
    driver();  // says why there is none, also for 0 bytes
    void* data = allocate_pinned(bytes);
    try {
      Storage* s = borrow_storage(data, bytes, Device{}, release_pinned, nullptr);
      return s;
    } catch (...) {
      deallocate_pinned(data);
      throw;
    }
  });
}

bool is_pinned(const void* pointer) {
  if (!pointer || !is_available()) return false;
  ContextScope scope;
  use_device(current_device());
  constexpr int kMemoryType = 2;
  unsigned type = 0;
  const CuResult result = driver().cuPointerGetAttribute(
      &type, kMemoryType, CuDevicePtr(reinterpret_cast<uintptr_t>(pointer)));
  return result == kCuSuccess && type == 1;  // CU_MEMORYTYPE_HOST; others are unknown to the driver
}

void record_pinned(const void* pointer, int device, CuStream stream) {
  allocator().record(pointer, device, stream);
}

void empty_pinned_cache() {
  allocator().empty_cache();
}

PinnedStats pinned_stats() {
  return allocator().stats();
}
void reset_pinned_stats(bool peaks) {
  allocator().reset_stats(peaks);
}

}  // namespace facula::cuda
