#include "core/host_allocator.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

// A block that is kept for reuse hides a use after free from AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define FACULA_CACHE_BLOCKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FACULA_CACHE_BLOCKS false
#endif
#endif
#ifndef FACULA_CACHE_BLOCKS
#define FACULA_CACHE_BLOCKS true
#endif

namespace facula {

namespace {

// ---- size classes. Small blocks: multiples of 64 bytes up to 1 KiB. Above: eight steps per power
// of two, so that at most 1/8 of a block is wasted and any two blocks of a class are
// interchangeable.

constexpr size_t kSmallLimit = 1024;
constexpr int kSmallClasses = kSmallLimit / 64;
constexpr size_t kMapLimit = size_t(2) << 20;  // from here on blocks are mapped, on huge pages
constexpr int kLargeClasses = 8 * (48 - 10);   // up to 2^48 bytes
constexpr size_t kMaxBytes = size_t(7) << 45;  // more cannot be mapped anyway

constexpr int small_class(size_t bytes) {
  return int((bytes - 1) / 64);
}
constexpr size_t small_size(int c) {
  return size_t(c + 1) * 64;
}

constexpr int large_class(size_t bytes) {
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log <= bytes - 1
  return (log - 10) * 8 + int((bytes - 1) >> (log - 3)) - 8;
}
constexpr size_t large_size(int c) {
  return size_t(c % 8 + 9) << (c / 8 + 7);
}
static_assert(large_size(large_class(1025)) == 1152 && large_size(large_class(2048)) == 2048);
static_assert(large_class(kMaxBytes) < kLargeClasses);

size_t block_size(size_t bytes) {
  return bytes <= kSmallLimit ? small_size(small_class(bytes)) : large_size(large_class(bytes));
}

// ---- the system

void* system_allocate(size_t size) {
  if (size < kMapLimit) return std::aligned_alloc(kHostAlignment, size);
  // Mapped with room to spare and cut to a multiple of the huge page size.
  const size_t room = size + kMapLimit;
  void* start = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  const uintptr_t base = reinterpret_cast<uintptr_t>(start);
  const uintptr_t aligned = (base + kMapLimit - 1) & ~uintptr_t(kMapLimit - 1);
  if (aligned > base) munmap(start, aligned - base);
  munmap(reinterpret_cast<void*>(aligned + size), base + room - (aligned + size));
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
}

void system_free(void* block, size_t size) {
  if (size < kMapLimit) {
    std::free(block);
  } else {
    munmap(block, size);
  }
}

// The first number after `key` in a file of the kernel; 0 when there is none ("max", no such file).
size_t kernel_value(const char* file, const char* key = "") {
  char text[2048];
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* found = std::strstr(text, key);
  return found ? size_t(std::strtoull(found + std::strlen(key), nullptr, 10)) : 0;
}

// The limit of the control group (container), version 2 or 1, and what it uses of it.
struct ControlGroup {
  size_t limit = 0;
  const char* usage_file = nullptr;

  ControlGroup() {
    usage_file = "/sys/fs/cgroup/memory.current";
    limit = kernel_value("/sys/fs/cgroup/memory.max");
    if (limit != 0) return;
    usage_file = "/sys/fs/cgroup/memory/memory.usage_in_bytes";
    limit = kernel_value("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  }
};

size_t machine_memory() {
  return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
}

size_t default_cache_limit(size_t group_limit) {
  if (const char* value = std::getenv("FACULA_HOST_CACHE_MB")) {
    char* end = nullptr;
    const long long mb = std::strtoll(value, &end, 10);
    if (end != value && mb >= 0 && mb < (1ll << 40)) return size_t(mb) << 20;
  }
  size_t memory = machine_memory();
  if (group_limit != 0) memory = std::min(memory, group_limit);
  return std::min(memory / 8, size_t(4) << 30);
}

// ---- free blocks. The links live in the blocks themselves.

struct SmallBlock {
  SmallBlock* next;
};

// Every large free block is in the list of its class and in the list of all by age.
struct LargeBlock {
  LargeBlock *class_next, *class_previous;
  LargeBlock *newer, *older;
  size_t size;
};

// Counters have one writer at a time; others only read them, for the statistics.
struct Counter {
  std::atomic<uint64_t> value{0};
  void add(uint64_t n) {
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value.load(std::memory_order_relaxed); }
};

struct SmallList {
  SmallBlock* first = nullptr;
  uint32_t count = 0;

  void push(SmallBlock* b) {
    b->next = first;
    first = b;
    ++count;
  }
  SmallBlock* pop() {
    SmallBlock* b = first;
    if (b) {
      first = b->next;
      --count;
    }
    return b;
  }
};

// Bytes per class in one thread; a batch is what moves to and from the shared lists.
constexpr uint32_t kSmallThreadLimit = 16384;
constexpr uint32_t small_capacity(int c) {
  return uint32_t(kSmallThreadLimit / small_size(c));
}
constexpr bool has_room(uint32_t count, int c) {  // count < small_capacity(c), but no division
  return (count + 1) * small_size(c) <= kSmallThreadLimit;
}
constexpr uint32_t small_batch(int c) {
  return small_capacity(c) / 2;
}
constexpr size_t kSmallSharedLimit = size_t(1) << 20;  // bytes per class in the shared lists

struct ThreadCache {
  SmallList list[kSmallClasses];
  Counter allocations, allocated_bytes, freed_bytes;
  ThreadCache *next = nullptr, *previous = nullptr;  // of the registry
};

class SharedCache {
 public:
  SharedCache() { limit_ = default_cache_limit(group_.limit); }

  void* allocate_large(size_t bytes);
  void free_large(void* block, size_t bytes) noexcept;
  void* allocate_small_directly(int c);  // for a thread that has no cache any more
  void free_small_directly(void* block, int c) noexcept;
  SmallBlock* refill(ThreadCache& cache, int c);
  void spill(ThreadCache& cache, int c, uint32_t keep) noexcept;
  void enter(ThreadCache& cache);
  void leave(ThreadCache& cache) noexcept;
  void set_limit(size_t bytes);
  void trim();
  HostMemoryStats stats();

  void before_fork() { mutex_.lock(); }
  void after_fork() { mutex_.unlock(); }
  void after_fork_in_child(ThreadCache* own);

 private:
  void insert(LargeBlock* block, size_t size) noexcept;
  void remove(LargeBlock* block) noexcept;
  // The oldest blocks, until at most `keep` bytes are cached; unlinked here, freed without the
  // lock.
  LargeBlock* take_oldest(size_t keep) noexcept;
  static void release(LargeBlock* chain) noexcept;
  bool memory_is_short(size_t size) const;
  void* allocate_from_system(size_t size);
  void count_allocation(size_t size) noexcept;

  std::mutex mutex_;
  LargeBlock* large_[kLargeClasses] = {};
  LargeBlock *newest_ = nullptr, *oldest_ = nullptr;
  SmallList small_[kSmallClasses];
  size_t cached_bytes_ = 0, limit_ = 0;
  const ControlGroup group_;
  size_t large_bytes_ = 0, peak_bytes_ = 0;  // held by callers
  uint64_t allocations_ = 0;                 // not counted by a thread cache
  int64_t departed_bytes_ = 0;               // small bytes held, of threads that ended
  std::atomic<uint64_t> system_allocations_{0};
  ThreadCache* threads_ = nullptr;
};

SharedCache& shared_cache();

thread_local ThreadCache* this_thread_cache = nullptr;
thread_local bool this_thread_ended = false;

// ---- large blocks

void SharedCache::insert(LargeBlock* block, size_t size) noexcept {
  LargeBlock*& head = large_[large_class(size)];
  *block = {head, nullptr, nullptr, newest_, size};
  if (head) head->class_previous = block;
  head = block;
  (newest_ ? newest_->newer : oldest_) = block;
  newest_ = block;
  cached_bytes_ += size;
}

void SharedCache::remove(LargeBlock* block) noexcept {
  (block->class_previous ? block->class_previous->class_next : large_[large_class(block->size)]) =
      block->class_next;
  if (block->class_next) block->class_next->class_previous = block->class_previous;
  (block->newer ? block->newer->older : newest_) = block->older;
  (block->older ? block->older->newer : oldest_) = block->newer;
  cached_bytes_ -= block->size;
}

LargeBlock* SharedCache::take_oldest(size_t keep) noexcept {
  LargeBlock* chain = nullptr;
  while (cached_bytes_ > keep) {
    LargeBlock* block = oldest_;
    remove(block);
    block->class_next = chain;
    chain = block;
  }
  return chain;
}

void SharedCache::release(LargeBlock* chain) noexcept {
  while (chain) {
    LargeBlock* block = chain;
    chain = block->class_next;
    system_free(block, block->size);
  }
}

// Whether a new block would push the machine or the control group near its limit.
bool SharedCache::memory_is_short(size_t size) const {
  if (group_.limit != 0) {
    const size_t used = kernel_value(group_.usage_file);
    if (used + size > group_.limit - group_.limit / 16) return true;
  }
  const size_t available = kernel_value("/proc/meminfo", "MemAvailable:") * 1024;
  return available != 0 && available < size + machine_memory() / 32;
}

// Called without the lock. Falls back on what the cache holds before it gives up.
void* SharedCache::allocate_from_system(size_t size) {
  if (size >= kMapLimit) {  // rare and slow anyway: the pages are about to be cleared
    std::unique_lock lock(mutex_);
    if (cached_bytes_ >= kMapLimit) {
      lock.unlock();
      if (memory_is_short(size)) {
        lock.lock();
        LargeBlock* chain = take_oldest(cached_bytes_ > size ? cached_bytes_ - size : 0);
        lock.unlock();
        release(chain);
      }
    }
  }
  void* block = system_allocate(size);
  if (!block) {
    trim();
    block = system_allocate(size);
    if (!block) throw std::bad_alloc();
  }
  system_allocations_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void SharedCache::count_allocation(size_t size) noexcept {
  ++allocations_;
  large_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, large_bytes_);
}

void* SharedCache::allocate_large(size_t bytes) {
  const int c = large_class(bytes);
  const size_t size = large_size(c);
  {
    std::lock_guard lock(mutex_);
    if (LargeBlock* block = large_[c]) {
      remove(block);
      count_allocation(size);
      return block;
    }
  }
  void* block = allocate_from_system(size);
  std::lock_guard lock(mutex_);
  count_allocation(size);
  return block;
}

void SharedCache::free_large(void* block, size_t bytes) noexcept {
  const size_t size = block_size(bytes);
  LargeBlock* evicted = nullptr;
  {
    std::lock_guard lock(mutex_);
    large_bytes_ -= size;
    if (size <= limit_) {
      insert(static_cast<LargeBlock*>(block), size);
      block = nullptr;
      if (cached_bytes_ > limit_) evicted = take_oldest(limit_);
    }
  }
  if (block) system_free(block, size);
  release(evicted);
}

// ---- small blocks

SmallBlock* SharedCache::refill(ThreadCache& cache, int c) {
  {
    std::lock_guard lock(mutex_);
    for (uint32_t i = small_batch(c); i != 0; --i) {
      SmallBlock* block = small_[c].pop();
      if (!block) break;
      cache.list[c].push(block);
    }
  }
  SmallBlock* block = cache.list[c].pop();
  return block ? block : static_cast<SmallBlock*>(allocate_from_system(small_size(c)));
}

void SharedCache::spill(ThreadCache& cache, int c, uint32_t keep) noexcept {
  SmallList& list = cache.list[c];
  SmallList surplus;
  {
    std::lock_guard lock(mutex_);
    while (list.count > keep) {
      const bool room = (small_[c].count + 1) * small_size(c) <= kSmallSharedLimit;
      (room ? small_[c] : surplus).push(list.pop());
    }
  }
  while (SmallBlock* block = surplus.pop()) system_free(block, small_size(c));
}

void* SharedCache::allocate_small_directly(int c) {
  void* block = nullptr;
  {
    std::lock_guard lock(mutex_);
    ++allocations_;
    departed_bytes_ += int64_t(small_size(c));
    block = small_[c].pop();
  }
  return block ? block : allocate_from_system(small_size(c));
}

void SharedCache::free_small_directly(void* block, int c) noexcept {
  std::lock_guard lock(mutex_);
  departed_bytes_ -= int64_t(small_size(c));
  small_[c].push(static_cast<SmallBlock*>(block));
}

// ---- threads

void SharedCache::enter(ThreadCache& cache) {
  std::lock_guard lock(mutex_);
  cache.next = threads_;
  if (threads_) threads_->previous = &cache;
  threads_ = &cache;
}

void SharedCache::leave(ThreadCache& cache) noexcept {
  for (int c = 0; c < kSmallClasses; ++c) spill(cache, c, 0);
  std::lock_guard lock(mutex_);
  (cache.previous ? cache.previous->next : threads_) = cache.next;
  if (cache.next) cache.next->previous = cache.previous;
  departed_bytes_ += int64_t(cache.allocated_bytes.get() - cache.freed_bytes.get());
  allocations_ += cache.allocations.get();
}

// The other threads do not exist in the child; what they had cached is lost to it, for they may
// have been in the middle of a change to their lists.
void SharedCache::after_fork_in_child(ThreadCache* own) {
  for (ThreadCache* t = threads_; t; t = t->next) {
    if (t == own) continue;
    departed_bytes_ += int64_t(t->allocated_bytes.get() - t->freed_bytes.get());
    allocations_ += t->allocations.get();
  }
  threads_ = own;
  if (own) own->next = own->previous = nullptr;
  mutex_.unlock();
}

// ---- limits and statistics

void SharedCache::set_limit(size_t bytes) {
  LargeBlock* chain;
  {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
    chain = take_oldest(limit_);
  }
  release(chain);
}

void SharedCache::trim() {
  LargeBlock* chain;
  SmallList small[kSmallClasses];
  {
    std::lock_guard lock(mutex_);
    chain = take_oldest(0);
    std::swap(small, small_);
  }
  release(chain);
  ThreadCache* cache = this_thread_cache;
  for (int c = 0; c < kSmallClasses; ++c) {
    while (SmallBlock* block = small[c].pop()) system_free(block, small_size(c));
    while (SmallBlock* block = cache ? cache->list[c].pop() : nullptr) {
      system_free(block, small_size(c));
    }
  }
}

HostMemoryStats SharedCache::stats() {
  HostMemoryStats s;
  std::lock_guard lock(mutex_);
  int64_t small_bytes = departed_bytes_;
  s.allocations = allocations_;
  for (ThreadCache* t = threads_; t; t = t->next) {
    small_bytes += int64_t(t->allocated_bytes.get() - t->freed_bytes.get());
    s.allocations += t->allocations.get();
  }
  s.allocated_bytes = large_bytes_ + size_t(std::max<int64_t>(0, small_bytes));
  peak_bytes_ = std::max(peak_bytes_, s.allocated_bytes);
  s.peak_bytes = peak_bytes_;
  s.cached_bytes = cached_bytes_;
  for (int c = 0; c < kSmallClasses; ++c) s.cached_bytes += small_[c].count * small_size(c);
  if (ThreadCache* own = this_thread_cache) {
    for (int c = 0; c < kSmallClasses; ++c) s.cached_bytes += own->list[c].count * small_size(c);
  }
  s.cache_limit_bytes = FACULA_CACHE_BLOCKS ? limit_ : 0;
  s.system_allocations = system_allocations_.load(std::memory_order_relaxed);
  return s;
}

// Never destroyed: tensors are freed by destructors of static objects and by late threads.
SharedCache& shared_cache() {
  alignas(SharedCache) static unsigned char storage[sizeof(SharedCache)];
  static SharedCache* const instance = [] {
    auto* cache = new (storage) SharedCache;
    pthread_atfork([] { shared_cache().before_fork(); }, [] { shared_cache().after_fork(); },
                   [] { shared_cache().after_fork_in_child(this_thread_cache); });
    return cache;
  }();
  return *instance;
}

// The cache itself is not thread-local: room there is scarce for libraries opened at run time.
struct ThreadCacheOwner {
  ThreadCacheOwner() {
    ThreadCache* cache = new (std::nothrow) ThreadCache;
    if (cache) shared_cache().enter(*cache);
    this_thread_cache = cache;
  }
  ~ThreadCacheOwner() {
    ThreadCache* cache = this_thread_cache;
    this_thread_cache = nullptr;  // later destructors of this thread use the shared lists
    this_thread_ended = true;
    if (cache) shared_cache().leave(*cache);
    delete cache;
  }
};

[[gnu::noinline]] ThreadCache* open_thread_cache() {
  if (this_thread_ended) return nullptr;
  static thread_local ThreadCacheOwner owner;
  return this_thread_cache;
}

[[gnu::noinline]] void* allocate_small_slowly(int c) {
  ThreadCache* cache = this_thread_cache ? this_thread_cache : open_thread_cache();
  if (!cache) return shared_cache().allocate_small_directly(c);
  SmallBlock* block = shared_cache().refill(*cache, c);
  cache->allocations.add(1);
  cache->allocated_bytes.add(small_size(c));
  return block;
}

[[gnu::noinline]] void free_small_slowly(void* block, int c) noexcept {
  ThreadCache* cache = this_thread_cache ? this_thread_cache : open_thread_cache();
  if (!cache) return shared_cache().free_small_directly(block, c);
  cache->freed_bytes.add(small_size(c));
  cache->list[c].push(static_cast<SmallBlock*>(block));
  if (cache->list[c].count > small_capacity(c)) {
    shared_cache().spill(*cache, c, small_capacity(c) - small_batch(c));
  }
}

// Without caching every block comes straight from the system, at its exact size, so that the
// sanitizer sees each byte beyond its end.
std::atomic<size_t> uncached_bytes{0}, uncached_peak{0};
std::atomic<uint64_t> uncached_count{0};

void* allocate_uncached(size_t bytes) {
  void* block = nullptr;
  if (bytes > kMaxBytes || posix_memalign(&block, kHostAlignment, bytes) != 0) {
    throw std::bad_alloc();
  }
  const size_t now = uncached_bytes.fetch_add(block_size(bytes)) + block_size(bytes);
  for (size_t p = uncached_peak.load(); p < now && !uncached_peak.compare_exchange_weak(p, now);) {}
  ++uncached_count;
  return block;
}

void free_uncached(void* block, size_t bytes) noexcept {
  uncached_bytes -= block_size(bytes);
  std::free(block);
}

}  // namespace

void* host_allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (!FACULA_CACHE_BLOCKS) return allocate_uncached(bytes);
  if (bytes <= kSmallLimit) {
    const int c = small_class(bytes);
    if (ThreadCache* cache = this_thread_cache) {
      if (SmallBlock* block = cache->list[c].pop()) {
        cache->allocations.add(1);
        cache->allocated_bytes.add(small_size(c));
        return block;
      }
    }
    return allocate_small_slowly(c);
  }
  if (bytes > kMaxBytes) throw std::bad_alloc();
  return shared_cache().allocate_large(bytes);
}

void host_free(void* block, size_t bytes) noexcept {
  if (!block || bytes == 0) return;
  if (!FACULA_CACHE_BLOCKS) return free_uncached(block, bytes);
  if (bytes > kSmallLimit) return shared_cache().free_large(block, bytes);
  const int c = small_class(bytes);
  ThreadCache* cache = this_thread_cache;
  if (!cache || !has_room(cache->list[c].count, c)) return free_small_slowly(block, c);
  cache->freed_bytes.add(small_size(c));
  cache->list[c].push(static_cast<SmallBlock*>(block));
}

HostMemoryStats host_memory_stats() {
  HostMemoryStats s = shared_cache().stats();
  if (!FACULA_CACHE_BLOCKS) {
    s.allocated_bytes = uncached_bytes;
    s.peak_bytes = uncached_peak;
    s.allocations = s.system_allocations = uncached_count;
  }
  return s;
}

void host_trim() {
  shared_cache().trim();
}

void set_host_cache_limit(size_t bytes) {
  shared_cache().set_limit(bytes);
}

}  // namespace facula
