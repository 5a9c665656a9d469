#include "op/profiler.h"

#include <chrono>
#include <mutex>

#include "core/host_allocator.h"
#include "op/def.h"

namespace facula {

std::atomic<bool> profiling{false};
std::atomic<const RangeObserver*> range_observer{nullptr};

namespace {

std::mutex mutex;
std::vector<ProfileEvent> events;
std::atomic<bool> wants_shapes{false};
std::atomic<uint64_t> session{0};  // ranges that outlive their session are dropped

std::atomic<uint64_t> next_range{1};

uint64_t thread_number() {
  static std::atomic<uint64_t> next{1};
  thread_local constinit uint64_t mine = 0;  // a constant first, which needs no guard beside it
  if (mine == 0) mine = next.fetch_add(1);
  return mine;
}

int64_t allocated() {
  return int64_t(host_memory_stats().allocated_bytes);
}

}  // namespace

int64_t profile_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void start_profiling(bool shapes) {
  std::lock_guard lock(mutex);
  events.clear();
  session.fetch_add(1);
  wants_shapes.store(shapes);
  profiling.store(true);
}

std::vector<ProfileEvent> stop_profiling() {
  profiling.store(false);
  std::lock_guard lock(mutex);
  session.fetch_add(1);
  return std::exchange(events, {});
}

ProfiledRange::ProfiledRange(std::string name)
    : event_{
          std::move(name), 0, 0, thread_number(), next_range.fetch_add(1), allocated(), 0, {}, {}},
      session_(session.load()),
      observer_(range_observer.load(std::memory_order_acquire)) {
  if (observer_) {
    event_.device_memory = observer_->allocated();
    observer_->begin(event_.id);
  }
  event_.start_ns = profile_clock();
}

ProfiledRange::ProfiledRange(const OpDef& op, const Value* args, bool in_place)
    : ProfiledRange(std::string("aten::") + (in_place ? op.in_place_name : op.name)) {
  if (!wants_shapes.load(std::memory_order_relaxed)) return;
  for (int i = 0; i < op.arg_count; ++i)
    event_.shapes.push_back(args[i].is_tensor() ? Dims(args[i].tensor().sizes()) : Dims());
}

void ProfiledRange::note_result(const Rets& rets) {
  if (wants_shapes.load(std::memory_order_relaxed) && !rets.list && rets.t[0].defined())
    event_.result = Dims(rets.t[0].sizes());
}

ProfiledRange::~ProfiledRange() {
  event_.end_ns = profile_clock();
  event_.memory = allocated() - event_.memory;
  if (observer_) {
    observer_->end();
    event_.device_memory = observer_->allocated() - event_.device_memory;
  }
  std::lock_guard lock(mutex);
  if (session_ == session.load()) events.push_back(std::move(event_));
}

}  // namespace facula
