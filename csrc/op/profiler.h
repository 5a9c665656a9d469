// Records which operators run, when and for how long.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "op/value.h"

namespace facula {

struct OpDef;
struct Rets;

struct ProfileEvent {
  std::string name;
  int64_t start_ns, end_ns;
  uint64_t thread;
  uint64_t id;                 // from 1; no other range of the process has it
  int64_t memory;              // bytes of host memory that were allocated less those freed
  int64_t device_memory;       // the same of devices, where an observer counts it
  std::vector<Dims> shapes;    // of the arguments, when asked for; empty for what is no tensor
  std::optional<Dims> result;  // the shape of the first result, likewise
};

// What the profiler of a device is told of ranges. A range that told it of its beginning tells it
// of its end, from the same thread unless Python closes a block on another one.
struct RangeObserver {
  void (*begin)(uint64_t id);
  void (*end)();
  int64_t (*allocated)();  // bytes that tensors have on devices
};
extern std::atomic<const RangeObserver*> range_observer;  // null while no device is profiled

extern std::atomic<bool> profiling;

void start_profiling(bool shapes);
std::vector<ProfileEvent> stop_profiling();  // in the order in which they ended
int64_t profile_clock();                     // nanoseconds, from an arbitrary start

// Records from construction to destruction. Made only while `profiling`.
class ProfiledRange {
 public:
  explicit ProfiledRange(std::string name);
  ProfiledRange(const OpDef& op, const Value* args, bool in_place);
  ~ProfiledRange();
  void note_result(const Rets& rets);
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  ProfileEvent event_;
  uint64_t session_;
  const RangeObserver* observer_;
};

}  // namespace facula
