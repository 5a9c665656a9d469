// What devices do while a profile is recorded, by CUPTI: each kernel, copy and fill with its times,
// and the range (op/profiler.h) in which the program asked for it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace facula::cuda {

struct DeviceActivity {
  enum class Kind : uint8_t { Kernel, Copy, Fill };
  Kind kind;
  std::string name;
  int64_t start_ns, end_ns;  // of profile_clock()
  int device;
  uint32_t context, stream;  // as CUPTI numbers them
  uint32_t correlation;      // of the call that queued it
  uint64_t range;            // the innermost one around that call; 0: none
  int grid[3], block[3];     // of kernels
  int shared_memory, registers;
  uint64_t bytes;  // of copies and fills
};

// A call of the driver or of the run time that queued work or waited for it.
struct DeviceCall {
  std::string name;
  int64_t start_ns, end_ns;
  bool of_runtime;  // rather than of the driver
  uint32_t thread;  // as CUPTI numbers them
  uint32_t correlation;
  uint64_t range;
};

struct DeviceProfile {
  std::vector<DeviceActivity> activities;
  std::vector<DeviceCall> calls;
  size_t dropped = 0;  // records that found no room
};

// Makes CUPTI ready and lets it record, which takes long the first time; what is recorded before
// start_device_profile() is forgotten. Throws MissingLibrary or CudaError.
void prepare_device_profile();
// From here on ranges tell CUPTI of themselves, and count device memory if `memory` is true.
void start_device_profile(bool memory);
// Waits for all devices that this process has used, and ends the recording.
DeviceProfile stop_device_profile();

}  // namespace facula::cuda
