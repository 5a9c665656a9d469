#include "cuda/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "autograd/node.h"
#include "cuda/block.h"
#include "cuda/memory_pool.h"

namespace facula::cuda {

SourceLocation (*locate_allocation)() = nullptr;

namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kSmallLimit = 1 * kMiB;  // requests below it share small segments
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kMediumLimit = 10 * kMiB;  // requests below it share medium segments
constexpr size_t kMediumSegment = 20 * kMiB;
constexpr size_t kLargeRounding = 2 * kMiB;  // the driver's own granularity

std::atomic<bool> tracking{false};
std::atomic<uint64_t> pool_numbers{0};

size_t round_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

CuDevicePtr address(const void* pointer) {
  return CuDevicePtr(reinterpret_cast<uintptr_t>(pointer));
}

std::string in_units(size_t bytes) {
  char text[32];
  if (bytes >= 1024 * kMiB) std::snprintf(text, sizeof text, "%.2f GiB", bytes / (1024.0 * kMiB));
  else if (bytes >= kMiB) std::snprintf(text, sizeof text, "%.2f MiB", double(bytes) / kMiB);
  else if (bytes >= kKiB) std::snprintf(text, sizeof text, "%.2f KiB", double(bytes) / kKiB);
  else std::snprintf(text, sizeof text, "%zu bytes", bytes);
  return text;
}

// What is known when memory runs out; made into a text without the allocator's lock, since naming
// Python lines takes the GIL.
struct Shortage {
  size_t requested, reserved, allocated, limit;
  std::vector<std::pair<size_t, SourceLocation>> largest;
};

class DeviceAllocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}

  void* allocate(size_t bytes, CuStream stream) {
    SourceLocation here;
    if (tracking.load(std::memory_order_relaxed) && locate_allocation) here = locate_allocation();
    Shortage shortage;
    {
      std::lock_guard lock(mutex_);
      if (Block* block = obtain(bytes, stream)) {
        block->made_at = here;
        return block->pointer;
      }
      shortage = describe_shortage(bytes);
    }
    throw_out_of_memory(shortage);
  }

  void deallocate(void* pointer) {
    std::lock_guard lock(mutex_);
    Block* block = live_.find(pointer);
    if (!block) return;
    live_.remove(block);
    const bool small = block->segment->arena->small;
    stats_.allocation.subtract(small, 1);
    stats_.allocated_bytes.subtract(small, int64_t(block->size));
    stats_.requested_bytes.subtract(small, int64_t(block->requested));
    if (block->other_streams.empty()) return make_free(block);
    // Events are of no use in a stream that is being captured: they come when captures are over.
    if (!captures_.empty()) deferred_.push_back(block);
    else wait_for_streams(block);
  }

  void record_stream(void* pointer, CuStream stream) {
    std::lock_guard lock(mutex_);
    Block* block = live_.find(pointer);
    if (!block || block->segment->arena->stream == stream) return;
    auto& known = block->other_streams;
    if (std::find(known.begin(), known.end(), stream) == known.end()) known.push_back(stream);
  }

  void empty_cache() {
    std::lock_guard lock(mutex_);
    release_cached();
  }

  AllocatorStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void for_each_count(void (*change)(Count&)) {
    std::lock_guard lock(mutex_);
    for (Counts* c : {&stats_.allocation, &stats_.allocated_bytes, &stats_.requested_bytes,
                      &stats_.active, &stats_.active_bytes, &stats_.segment, &stats_.reserved_bytes,
                      &stats_.inactive_split, &stats_.inactive_split_bytes}) {
      change(c->all), change(c->small), change(c->large);
    }
  }

  void reset_accumulated() {
    for_each_count([](Count& c) { c.allocated = c.freed = 0; });
    std::lock_guard lock(mutex_);
    stats_.retries = stats_.out_of_memory = stats_.driver_allocations = stats_.driver_frees = 0;
  }

  void set_limit(double fraction) {
    const size_t total = device_properties(device_).total_memory;
    std::lock_guard lock(mutex_);
    limit_ = fraction >= 1 ? SIZE_MAX : size_t(fraction * double(total));
  }

  std::vector<SegmentRecord> snapshot() {
    std::lock_guard lock(mutex_);
    std::vector<SegmentRecord> out;
    for (Segment* s : segments_) {
      SegmentRecord record{reinterpret_cast<uintptr_t>(s->base),
                           s->size,
                           s->arena->stream,
                           s->arena->pool,
                           s->arena->small,
                           s->reserved > 0,
                           {}};
      for (Block* b = s->first; b; b = b->after) {
        const int state = b->free ? 0 : live_.find(b->pointer) == b ? 1 : 2;
        record.blocks.push_back({reinterpret_cast<uintptr_t>(b->pointer), b->size,
                                 state ? b->requested : 0, state,
                                 state ? b->made_at : SourceLocation{}});
      }
      out.push_back(std::move(record));
    }
    return out;
  }

  void begin_capture(uint64_t pool) {
    std::lock_guard lock(mutex_);
    captures_.push_back({std::this_thread::get_id(), pool});
    ++pool_users(pool);
  }

  void end_capture(uint64_t pool) {
    std::lock_guard lock(mutex_);
    for (size_t i = captures_.size(); i-- > 0;) {
      if (captures_[i].pool == pool) {
        captures_.erase(captures_.begin() + int64_t(i));
        break;
      }
    }
    if (!captures_.empty()) return;
    for (Block* block : deferred_) wait_for_streams(block);
    deferred_.clear();
  }

  void release_pool(uint64_t pool) {
    std::lock_guard lock(mutex_);
    int& users = pool_users(pool);
    if (users > 0) --users;
  }

  void hold_pool(uint64_t pool) {
    std::lock_guard lock(mutex_);
    ++pool_users(pool);
  }

  int users_of(uint64_t pool) {
    std::lock_guard lock(mutex_);
    return pool_users(pool);
  }

  void begin_route(uint64_t pool) {
    std::lock_guard lock(mutex_);
    routes_.push_back({std::this_thread::get_id(), pool});
  }

  void end_route(uint64_t pool) {
    std::lock_guard lock(mutex_);
    for (size_t i = routes_.size(); i-- > 0;) {
      if (routes_[i].pool != pool || routes_[i].thread != std::this_thread::get_id()) continue;
      routes_.erase(routes_.begin() + int64_t(i));
      return;
    }
  }

 private:
  struct Pending {
    CuEvent event;
    Block* block;
  };
  struct Capture {
    std::thread::id thread;
    uint64_t pool;
  };

  // A live block, or null when there is no memory left.
  Block* obtain(size_t bytes, CuStream stream) {
    if (bytes > (size_t(1) << 60)) return nullptr;  // rounding would overflow
    const size_t size = round_up(bytes, kRounding);
    if (!pending_.empty() && captures_.empty()) collect_finished(false);
    const uint64_t pool = captures_.empty() && routes_.empty() ? 0 : pool_for(stream);
    Arena& arena = arena_of(stream, pool, size < kSmallLimit);
    Block* block = take_cached(arena, size);
    if (!block && grow(arena, size)) block = take_cached(arena, size);
    if (!block && captures_.empty()) {
      ++stats_.retries;
      release_cached();
      if (grow(arena, size)) block = take_cached(arena, size);
    }
    if (!block) {
      ++stats_.out_of_memory;
      return nullptr;
    }
    split(block, size);
    block->requested = bytes;
    live_.add(block);
    stats_.allocation.add(arena.small, 1);
    stats_.allocated_bytes.add(arena.small, int64_t(block->size));
    stats_.requested_bytes.add(arena.small, int64_t(bytes));
    stats_.active.add(arena.small, 1);
    stats_.active_bytes.add(arena.small, int64_t(block->size));
    return block;
  }

  uint64_t pool_for(CuStream stream) {
    const auto me = std::this_thread::get_id();
    int capturing = 0;
    if (stream && !captures_.empty()) {  // the default stream cannot be captured
      use_device(device_);
      FACULA_CU(cuStreamIsCapturing, stream, &capturing);
    }
    if (!capturing) {
      for (size_t i = routes_.size(); i-- > 0;)
        if (routes_[i].thread == me) return routes_[i].pool;
      return 0;
    }
    for (size_t i = captures_.size(); i-- > 0;)
      if (captures_[i].thread == me) return captures_[i].pool;
    return captures_.back().pool;
  }

  int& pool_users(uint64_t pool) {
    for (auto& [known, users] : pools_)
      if (known == pool) return users;
    return pools_.emplace_back(pool, 0).second;
  }

  // There are few: one or two for each stream.
  Arena& arena_of(CuStream stream, uint64_t pool, bool small) {
    for (Arena* a : arenas_)
      if (a->stream == stream && a->small == small && a->pool == pool) return *a;
    arenas_.push_back(new Arena{stream, pool, small, {}, nullptr});
    return *arenas_.back();
  }

  void add_free(Block* block) {
    Arena& arena = *block->segment->arena;
    block->free = true;
    arena.blocks.add(block);
    if (block->whole_segment()) return;
    stats_.inactive_split.add(arena.small, 1);
    stats_.inactive_split_bytes.add(arena.small, int64_t(block->size));
  }
  void remove_free(Block* block) {
    Arena& arena = *block->segment->arena;
    block->free = false;
    arena.blocks.remove(block);
    if (block->whole_segment()) return;
    stats_.inactive_split.subtract(arena.small, 1);
    stats_.inactive_split_bytes.subtract(arena.small, int64_t(block->size));
  }

  Block* take_cached(Arena& arena, size_t size) {
    Block* block = arena.blocks.find(size);
    if (!block) return nullptr;
    // Blocks beyond max_split stay whole: they serve requests of about their own size only.
    const size_t limit = max_split_;
    if (block->size >= limit && (size < limit || block->size >= size + kMediumSegment))
      return nullptr;
    remove_free(block);
    return block;
  }

  // Cuts what is not needed off the end, if the rest is worth keeping apart.
  void split(Block* block, size_t size) {
    const size_t rest = block->size - size;
    const bool small = block->segment->arena->small;
    if (rest < (small ? kRounding : kSmallLimit) || block->size >= max_split_) return;
    Block* tail = new_block(block->segment, block->pointer + size, rest);
    tail->before = block;
    tail->after = block->after;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->size = size;
    add_free(tail);
  }

  void make_free(Block* block) {
    const bool small = block->segment->arena->small;
    stats_.active.subtract(small, 1);
    stats_.active_bytes.subtract(small, int64_t(block->size));
    merge_free(block);
  }

  void merge_free(Block* block) {
    if (Block* next = block->after; next && next->free) {
      remove_free(next);
      absorb(block, next);
    }
    if (Block* previous = block->before; previous && previous->free) {
      remove_free(previous);
      absorb(previous, block);
      block = previous;
    }
    add_free(block);
  }

  void absorb(Block* block, Block* next) {
    block->size += next->size;
    block->after = next->after;
    if (block->after) block->after->before = block;
    recycle(next);
  }

  Block* new_block(Segment* segment, char* pointer, size_t size) {
    Block* block;
    if (spare_.empty()) {
      block = new Block;
    } else {
      block = spare_.back();
      spare_.pop_back();
      *block = Block{};
    }
    block->pointer = pointer;
    block->size = size;
    block->segment = segment;
    return block;
  }
  void recycle(Block* block) { spare_.push_back(block); }

  static Block* last_block(const Segment* segment) {
    Block* block = segment->first;
    while (block && block->after) block = block->after;
    return block;
  }

  // ---- memory from the driver

  bool within_limit(size_t more) const {
    return size_t(stats_.reserved_bytes.all.current) + more <= limit_;
  }

  void count_segment(bool small, size_t bytes) {
    ++stats_.driver_allocations;
    stats_.reserved_bytes.add(small, int64_t(bytes));
  }

  // Adds memory for a request of `size` to the arena; false if the driver has none left.
  bool grow(Arena& arena, size_t size) {
    use_device(device_);
    RelaxedCapture relaxed;
    const AllocatorSettings settings = allocator_settings();
    max_split_ = settings.max_split;
    if (settings.expandable || arena.growing) return extend(arena, size);
    const size_t bytes = arena.small           ? kSmallSegment
                         : size < kMediumLimit ? kMediumSegment
                                               : round_up(size, kLargeRounding);
    if (!within_limit(bytes)) return false;
    CuDevicePtr pointer = 0;
    CuResult result = driver().cuMemAlloc_v2(&pointer, bytes);
    if (result == kCuOutOfMemory) return false;
    check_driver(result, "cuMemAlloc_v2");
    auto* segment = new Segment{reinterpret_cast<char*>(pointer), bytes, 0, &arena};
    segments_.push_back(segment);
    stats_.segment.add(arena.small, 1);
    count_segment(arena.small, bytes);
    segment->first = new_block(segment, segment->base, bytes);
    add_free(segment->first);
    return true;
  }

  // The same by mapping memory behind the arena's last block.
  bool extend(Arena& arena, size_t size) {
    CuMemProperties properties;
    properties.location.id = device_;
    if (!arena.growing) {
      size_t step = 0;
      FACULA_CU(cuMemGetAllocationGranularity, &step, &properties, 0);
      const size_t range =
          round_up(device_properties(device_).total_memory / 8 * 9, std::max(step, kMediumSegment));
      CuDevicePtr base = 0;
      FACULA_CU(cuMemAddressReserve, &base, range, size_t(0), CuDevicePtr(0), 0ull);
      arena.growing = new Segment{reinterpret_cast<char*>(base), 0, range, &arena};
      segments_.push_back(arena.growing);
      stats_.segment.add(arena.small, 1);
    }
    Segment* segment = arena.growing;
    Block* last = last_block(segment);
    const size_t piece = arena.small ? kSmallSegment : kMediumSegment;
    const size_t there = last && last->free ? last->size : 0;
    const size_t wanted = size > there ? round_up(size - there, piece) : 0;
    const size_t before = segment->size;
    while (segment->size < before + wanted) {
      if (segment->size + piece > segment->reserved || !within_limit(piece)) break;
      CuMemHandle handle;
      CuResult result = driver().cuMemCreate(&handle, piece, &properties, 0);
      if (result == kCuOutOfMemory) break;
      check_driver(result, "cuMemCreate");
      CuDevicePtr at = address(segment->base + segment->size);
      CuMemAccess access;
      access.location.id = device_;
      result = driver().cuMemMap(at, piece, 0, handle, 0);
      if (result == kCuSuccess) {
        result = driver().cuMemSetAccess(at, piece, &access, 1);
        if (result != kCuSuccess) driver().cuMemUnmap(at, piece);
      }
      if (result != kCuSuccess) {
        driver().cuMemRelease(handle);
        check_driver(result, "cuMemMap");
      }
      segment->pieces.push_back(handle);
      segment->size += piece;
      count_segment(arena.small, piece);
    }
    const size_t more = segment->size - before;
    if (more && last && last->free) {
      remove_free(last);
      last->size += more;
      add_free(last);
    } else if (more) {
      Block* block = new_block(segment, segment->base + before, more);
      block->before = last;
      (last ? last->after : segment->first) = block;
      add_free(block);
    }
    return segment->size == before + wanted;
  }

  // Returns what nobody uses: whole segments, and the ends of those that grow.
  void release_cached() {
    if (!captures_.empty() || segments_.empty()) return;  // a device that nobody uses stays so
    use_device(device_);
    RelaxedCapture relaxed;  // another device may be capturing
    collect_finished(true);
    // Segments that are gone leave the list one by one: the driver may refuse any of them.
    for (size_t i = segments_.size(); i-- > 0;) {
      Segment* segment = segments_[i];
      Arena& arena = *segment->arena;
      const bool held = arena.pool && pool_users(arena.pool) > 0;
      if (!held && segment->reserved) shrink(segment);
      Block* first = segment->first;
      if (held || segment->size == 0) {
        if (!held) forget_range(segment, i);
        continue;
      }
      if (segment->reserved || !first->free || !first->whole_segment()) continue;
      // cuMemFree waits for work that still uses the memory.
      FACULA_CU(cuMemFree_v2, address(segment->base));
      remove_free(first);
      recycle(first);
      ++stats_.driver_frees;
      stats_.reserved_bytes.subtract(arena.small, int64_t(segment->size));
      forget_segment(segment, i);
    }
    forget_pools();
  }

  void forget_segment(Segment* segment, size_t place) {
    stats_.segment.subtract(segment->arena->small, 1);
    segments_.erase(segments_.begin() + int64_t(place));
    delete segment;
  }

  // Gives the addresses of a segment that can grow, and is empty, back.
  void forget_range(Segment* segment, size_t place) {
    FACULA_CU(cuMemAddressFree, address(segment->base), segment->reserved);
    segment->arena->growing = nullptr;
    forget_segment(segment, place);
  }

  // Pools that no graph holds and whose memory is gone: programs may make them without end.
  void forget_pools() {
    std::erase_if(pools_, [&](auto& entry) {
      const auto [pool, users] = entry;
      auto in_segment = [&](Segment* s) { return s->arena->pool == pool; };
      auto in_route = [&](const Capture& route) { return route.pool == pool; };
      if (users > 0 || std::any_of(segments_.begin(), segments_.end(), in_segment) ||
          std::any_of(routes_.begin(), routes_.end(), in_route))
        return false;
      std::erase_if(arenas_, [&](Arena* arena) {
        if (arena->pool != pool) return false;
        delete arena;
        return true;
      });
      return true;
    });
  }

  // Unmaps the pieces at the end of a segment that lie in a free block.
  void shrink(Segment* segment) {
    Block* last = last_block(segment);
    if (!last || !last->free) return;
    Arena& arena = *segment->arena;
    const size_t piece = arena.small ? kSmallSegment : kMediumSegment;
    const size_t pieces = last->size / piece;
    if (pieces == 0) return;
    FACULA_CU(cuCtxSynchronize);
    remove_free(last);
    for (size_t i = 0; i < pieces; ++i) {
      segment->size -= piece;
      FACULA_CU(cuMemUnmap, address(segment->base + segment->size), piece);
      FACULA_CU(cuMemRelease, segment->pieces.back());
      segment->pieces.pop_back();
      ++stats_.driver_frees;
      stats_.reserved_bytes.subtract(arena.small, int64_t(piece));
    }
    last->size -= pieces * piece;
    if (last->size) return add_free(last);
    (last->before ? last->before->after : segment->first) = nullptr;
    recycle(last);
  }

  // ---- use by several streams

  void wait_for_streams(Block* block) {
    // Held here meanwhile, so that the block is not free before all streams have their event.
    ++block->pending_events;
    use_device(device_);
    RelaxedCapture relaxed;
    for (CuStream stream : block->other_streams) {
      CuEvent event = take_event();
      // A stream that its owner has destroyed takes no event, but its work may still run.
      if (driver().cuEventRecord(event, stream) != kCuSuccess) {
        idle_events_.push_back(event);
        FACULA_CU(cuCtxSynchronize);
        continue;
      }
      pending_.push_back({event, block});
      ++block->pending_events;
    }
    block->other_streams.clear();
    if (--block->pending_events == 0) make_free(block);
  }

  CuEvent take_event() {
    if (idle_events_.empty()) return create_event(device_, false);
    CuEvent event = idle_events_.back();
    idle_events_.pop_back();
    return event;
  }

  // Frees blocks whose foreign streams have come past their last use.
  void collect_finished(bool wait) {
    use_device(device_);
    RelaxedCapture relaxed;
    // What is done leaves the list at once: the driver may raise at any event.
    for (size_t i = 0; i < pending_.size();) {
      const Pending pending = pending_[i];
      if (wait) FACULA_CU(cuEventSynchronize, pending.event);
      if (!wait && !event_is_done(device_, pending.event)) {
        ++i;
        continue;
      }
      pending_[i] = pending_.back();
      pending_.pop_back();
      idle_events_.push_back(pending.event);
      if (--pending.block->pending_events == 0) make_free(pending.block);
    }
  }

  // ---- running out

  Shortage describe_shortage(size_t bytes) const {
    Shortage s{bytes,
               size_t(stats_.reserved_bytes.all.current),
               size_t(stats_.allocated_bytes.all.current),
               limit_,
               {}};
    live_.for_each([&](Block* b) {
      if (b->made_at.code) s.largest.emplace_back(b->size, b->made_at);
    });
    auto larger = [](auto& a, auto& b) { return a.first > b.first; };
    const size_t shown = std::min<size_t>(s.largest.size(), 8);
    std::partial_sort(s.largest.begin(), s.largest.begin() + int64_t(shown), s.largest.end(),
                      larger);
    s.largest.resize(shown);
    return s;
  }

  [[noreturn]] void throw_out_of_memory(const Shortage& s) const {
    const MemoryInfo info = memory_info(device_);
    std::string text = "CUDA out of memory. Tried to allocate " + in_units(s.requested) + ". GPU " +
                       std::to_string(device_) + " (" + device_properties(device_).name +
                       ") has a total capacity of " + in_units(info.total) + " of which " +
                       in_units(info.free) + " is free. This process holds " +
                       in_units(s.reserved) + ", of which " + in_units(s.allocated) +
                       " is in live tensors and " + in_units(s.reserved - s.allocated) +
                       " is cached in pieces too small";
    if (s.reserved)
      text += " (fragmentation " + std::to_string(100 * (s.reserved - s.allocated) / s.reserved) +
              " %)";
    text += ".";
    if (s.limit != SIZE_MAX)
      text += " set_per_process_memory_fraction allows it " + in_units(s.limit) + ".";
    if (s.reserved - s.allocated >= s.requested)
      text +=
          " The cache would suffice if it were in one piece: "
          "FACULA_CUDA_ALLOC_CONF=expandable_segments:True avoids that.";
    for (auto& [size, where] : s.largest)
      text +=
          "\n  " + in_units(size) + " from " + (describe_location ? describe_location(where) : "");
    if (s.largest.empty())
      text +=
          " facula.cuda.memory._record_memory_history() before the run makes this report name the "
          "lines that made the largest tensors.";
    throw OutOfMemory(text, s.requested);
  }

  const int device_;
  std::mutex mutex_;
  std::vector<Arena*> arenas_;
  std::vector<Segment*> segments_;
  LiveBlocks live_;
  std::vector<Block*> spare_, deferred_;
  std::vector<Pending> pending_;
  std::vector<CuEvent> idle_events_;
  std::vector<Capture> captures_;
  std::vector<Capture> routes_;  // threads whose memory comes from a pool without a capture
  std::vector<std::pair<uint64_t, int>> pools_;
  size_t limit_ = SIZE_MAX, max_split_ = SIZE_MAX;
  AllocatorStats stats_;
};

// Never destroyed: at exit the driver may go first, and the process's memory goes with it.
DeviceAllocator& allocator_of(int device) {
  static std::atomic<DeviceAllocator*> allocators[kMaxDevices];
  if (device >= 0 && device < kMaxDevices) [[likely]] {
    if (auto* known = allocators[device].load(std::memory_order_acquire)) [[likely]]
      return *known;
  }
  check_device(device);
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!allocators[device]) allocators[device] = new DeviceAllocator(device);
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
  ContextScope scope;
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
  allocator_of(device).for_each_count([](Count& c) { c.peak = c.current; });
}
void reset_accumulated_stats(int device) {
  allocator_of(device).reset_accumulated();
}

void set_memory_fraction(int device, double fraction) {
  allocator_of(device).set_limit(fraction);
}

void track_allocations(bool on) {
  tracking = on;
}
bool tracking_allocations() {
  return tracking;
}
std::vector<SegmentRecord> memory_snapshot(int device) {
  return allocator_of(device).snapshot();
}

uint64_t new_memory_pool() {
  return ++pool_numbers;
}
void begin_pool_capture(int device, uint64_t pool) {
  allocator_of(device).begin_capture(pool);
}
void end_pool_capture(int device, uint64_t pool) {
  allocator_of(device).end_capture(pool);
}
void release_memory_pool(int device, uint64_t pool) {
  allocator_of(device).release_pool(pool);
}

void hold_memory_pool(int device, uint64_t pool) {
  allocator_of(device).hold_pool(pool);
}
int memory_pool_users(int device, uint64_t pool) {
  return allocator_of(device).users_of(pool);
}
void begin_pool_route(int device, uint64_t pool) {
  allocator_of(device).begin_route(pool);
}
void end_pool_route(int device, uint64_t pool) {
  allocator_of(device).end_route(pool);
}

}  // namespace facula::cuda
