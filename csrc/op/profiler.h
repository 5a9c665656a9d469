// Records which operators run, when and for how long.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "op/value.h"

namespace facula {

struct OpDef;

struct ProfileEvent {
  std::string name;
  int64_t start_ns, end_ns;
  uint64_t thread;
  int64_t memory;            // bytes of host memory that were allocated less those freed
  std::vector<Dims> shapes;  // of the arguments, when asked for; empty for what is no tensor
};

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
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  ProfileEvent event_;
  uint64_t session_;
};

}  // namespace facula
