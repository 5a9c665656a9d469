// What a device backend does about memory and about copies between memories.
#pragma once
#include "op/device_hook.h"

namespace facula {

struct MemoryHooks {
  // The index of the device that "cuda" means in this thread.
  DeviceHook<int()> current_device{"current_device"};
  // Page-locked host memory.
  DeviceHook<Storage*(size_t bytes)> pinned_storage{"pin_memory"};
};
inline constinit MemoryHooks device_memory;

// Set while copies may return before they are done (non_blocking=True).
extern thread_local constinit bool copies_return_early;

class CopiesReturnEarly {
 public:
  explicit CopiesReturnEarly(bool on) : before_(copies_return_early) {
    copies_return_early = before_ || on;
  }
  ~CopiesReturnEarly() { copies_return_early = before_; }
  CopiesReturnEarly(const CopiesReturnEarly&) = delete;
  CopiesReturnEarly& operator=(const CopiesReturnEarly&) = delete;

 private:
  bool before_;
};

}  // namespace facula
