// Devices, streams and events. A device's primary context is retained on first use; the current
// device and the current stream of each device belong to the thread.
#pragma once
#include <cstddef>
#include <string>

#include "cuda/driver.h"

namespace facula::cuda {

constexpr int kMaxDevices = 64;

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  size_t total_memory = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  size_t shared_memory_per_block = 0;
  size_t shared_memory_per_block_optin = 0;
  size_t shared_memory_per_multiprocessor = 0;
  size_t l2_cache_size = 0;
  int clock_rate = 0, memory_clock_rate = 0;  // kHz
  int memory_bus_width = 0;                   // bits
  int pci_bus = 0, pci_device = 0, pci_domain = 0;
  bool integrated = false, multi_gpu_board = false;
  std::string uuid;
};
const DeviceProperties& device_properties(int device);

// Throws NoDevice unless 0 <= device < device_count().
void check_device(int device);

int current_device();
void set_current_device(int device);

// Makes the device's primary context current on this thread, whatever another library in the
// process has made current since. Every function of this layer that takes a device calls it.
void use_device(int device);
CuContext device_context(int device);
// Whether this process has worked on it: the context exists.
bool device_in_use(int device);

// Around every call from outside (translate.h): the context that the thread had before it is
// current again afterwards, for other libraries take the current one for theirs. A thread that had
// none, or that of another device than its current one, keeps the one of its current device.
class ContextScope {
 public:
  ContextScope() { ++depth_; }
  ~ContextScope() {
    if (--depth_ == 0 && before_) [[unlikely]]
      restore();
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  friend void use_device(int device);
  static void restore() noexcept;
  static thread_local constinit int depth_;
  static thread_local constinit CuContext before_;  // to be restored, or null
};

// Null is the legacy default stream, as in PyTorch.
CuStream current_stream(int device);
void set_current_stream(int device, CuStream stream);

CuStream create_stream(int device, int priority = 0);  // does not wait for the default stream
void destroy_stream(int device, CuStream stream);
// One of a fixed number of streams per device and priority, in turn. They live for ever, so that
// the allocator may remember them.
CuStream pooled_stream(int device, int priority = 0);
bool stream_is_idle(int device, CuStream stream);
void synchronize_stream(int device, CuStream stream);
void synchronize(int device);
// Lowest and highest priority that streams can have; higher ones are smaller numbers.
void stream_priority_range(int device, int* lowest, int* highest);

CuEvent create_event(int device, bool timing, bool blocking = false);
void destroy_event(int device, CuEvent event);
void record_event(int device, CuEvent event, CuStream stream);
bool event_is_done(int device, CuEvent event);
void synchronize_event(int device, CuEvent event);
void wait_event(int device, CuStream stream, CuEvent event);
// Work that comes to `later` waits for what is on `earlier` now.
void order_streams(int device, CuStream earlier, CuStream later);

// The device whose memory this is, or -1.
int device_of_pointer(const void* pointer);
float elapsed_milliseconds(int device, CuEvent start, CuEvent end);

// Allows this thread what must not happen while another of its streams is being captured, such as
// asking the driver for memory.
class RelaxedCapture {
 public:
  RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CuCaptureMode mode_ = kCuCaptureRelaxed;
};
bool stream_is_capturing(int device, CuStream stream);

struct MemoryInfo {
  size_t free = 0, total = 0;
};
MemoryInfo memory_info(int device);

struct LaunchShape {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  // Dynamic, in bytes. More than 48 KB must be allowed first (allow_shared_memory).
  unsigned shared_memory = 0;
};

// One launch; `arguments` points at the kernel's only parameter, a struct.
void launch_kernel(CuFunction function, const LaunchShape& shape, CuStream stream, void* arguments);
void allow_shared_memory(CuFunction function, size_t bytes);

}  // namespace facula::cuda
