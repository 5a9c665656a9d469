#include "cuda/context.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "autograd/node_streams.h"
#include "cuda/fault.h"

namespace facula::cuda {
namespace {

struct DeviceState {
  std::atomic<CuContext> context{nullptr};
  std::atomic<const DeviceProperties*> properties{nullptr};
  std::mutex mutex;
};

DeviceState& device_state(int device) {
  static auto* states = new DeviceState[kMaxDevices];
  return states[device];
}

// Small on purpose: a module that is loaded late shares a few hundred bytes of static thread-local
// storage with all others. Null stands for default streams everywhere.
thread_local int thread_device = 0;
thread_local std::unique_ptr<CuStream[]> thread_streams;

CuDevice handle_of(int device) {
  CuDevice handle;
  FACULA_CU(cuDeviceGet, &handle, device);
  return handle;
}

// As nvidia-smi writes it, without its "GPU-".
std::string uuid_of(CuDevice handle) {
  unsigned char bytes[16] = {};
  FACULA_CU(cuDeviceGetUuid, bytes, handle);
  std::string out;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    constexpr char kDigits[] = "0123456789abcdef";
    out += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  }
  return out;
}

DeviceProperties* query_properties(int device) {
  CuDevice handle = handle_of(device);
  auto attribute = [&](CuDeviceAttribute which) {
    int value = 0;
    FACULA_CU(cuDeviceGetAttribute, &value, which, handle);
    return value;
  };
  auto* p = new DeviceProperties;
  char name[256] = "";
  FACULA_CU(cuDeviceGetName, name, int(sizeof name), handle);
  p->name = name;
  p->major = attribute(kCuComputeCapabilityMajor);
  p->minor = attribute(kCuComputeCapabilityMinor);
  FACULA_CU(cuDeviceTotalMem_v2, &p->total_memory, handle);
  p->multiprocessors = attribute(kCuMultiprocessorCount);
  p->warp_size = attribute(kCuWarpSize);
  p->max_threads_per_block = attribute(kCuMaxThreadsPerBlock);
  p->max_threads_per_multiprocessor = attribute(kCuMaxThreadsPerMultiprocessor);
  p->registers_per_multiprocessor = attribute(kCuMaxRegistersPerMultiprocessor);
  p->shared_memory_per_block = size_t(attribute(kCuMaxSharedMemoryPerBlock));
  p->shared_memory_per_block_optin = size_t(attribute(kCuMaxSharedMemoryPerBlockOptin));
  p->shared_memory_per_multiprocessor = size_t(attribute(kCuMaxSharedMemoryPerMultiprocessor));
  p->l2_cache_size = size_t(attribute(kCuL2CacheSize));
  p->clock_rate = attribute(kCuClockRate);
  p->memory_clock_rate = attribute(kCuMemoryClockRate);
  p->memory_bus_width = attribute(kCuMemoryBusWidth);
  p->pci_bus = attribute(kCuPciBus);
  p->pci_device = attribute(kCuPciDevice);
  p->pci_domain = attribute(kCuPciDomain);
  p->integrated = attribute(kCuIntegrated) != 0;
  p->multi_gpu_board = attribute(kCuMultiGpuBoard) != 0;
  p->uuid = uuid_of(handle);
  return p;
}

}  // namespace

void check_device(int device) {
  const int count = device_count();
  if (device >= 0 && device < count && device < kMaxDevices) [[likely]]
    return;
  driver();  // throws with the reason where there is no device at all
  throw DriverError("CUDA device " + std::to_string(device) + " does not exist; this machine has " +
                        std::to_string(count) + (count == 1 ? " (device 0)" : " (numbered from 0)"),
                    kCuInvalidDevice);
}

const DeviceProperties& device_properties(int device) {
  check_device(device);
  DeviceState& state = device_state(device);
  if (auto* known = state.properties.load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(state.mutex);
  if (auto* known = state.properties.load(std::memory_order_acquire)) return *known;
  const DeviceProperties* properties = query_properties(device);
  state.properties.store(properties, std::memory_order_release);
  return *properties;
}

int current_device() {
  return thread_device;
}

void set_current_device(int device) {
  if (device != 0 || !is_available()) check_device(device);
  if (device == thread_device) return;
  thread_device = device;
  // Other libraries shall see the change, but contexts take memory: none is made for it.
  CuContext known = device_state(device).context.load(std::memory_order_acquire);
  CuContext current = nullptr;
  FACULA_CU(cuCtxGetCurrent, &current);
  if (known && current != known) FACULA_CU(cuCtxSetCurrent, known);
}

CuContext device_context(int device) {
  check_device(device);
  DeviceState& state = device_state(device);
  if (CuContext known = state.context.load(std::memory_order_acquire)) return known;
  std::lock_guard lock(state.mutex);
  if (CuContext known = state.context.load(std::memory_order_acquire)) return known;
  CuContext context;
  FACULA_CU(cuDevicePrimaryCtxRetain, &context, handle_of(device));
  state.context.store(context, std::memory_order_release);
  return context;
}

bool device_in_use(int device) {
  return device_state(device).context.load(std::memory_order_acquire) != nullptr;
}

thread_local constinit int ContextScope::depth_ = 0;
thread_local constinit CuContext ContextScope::before_ = nullptr;

void ContextScope::restore() noexcept {
  driver().cuCtxSetCurrent(std::exchange(before_, nullptr));
}

void use_device(int device) {
  CuContext wanted = device_context(device);
  CuContext current = nullptr;
  FACULA_CU(cuCtxGetCurrent, &current);
  if (current == wanted) return;
  if (current && ContextScope::depth_ > 0 && !ContextScope::before_) {
    // A context of ours that is not the current device's was left by set_current_device.
    bool stale = false;
    for (int d = 0; device == thread_device && d < device_count() && !stale; ++d)
      stale = device_state(d).context.load(std::memory_order_acquire) == current;
    if (!stale) ContextScope::before_ = current;
  }
  FACULA_CU(cuCtxSetCurrent, wanted);
}

CuStream current_stream(int device) {
  check_device(device);
  return thread_streams ? thread_streams[device] : nullptr;
}

void set_current_stream(int device, CuStream stream) {
  check_device(device);
  if (stream) streams_in_use.store(true, std::memory_order_relaxed);
  if (!thread_streams) thread_streams = std::make_unique<CuStream[]>(kMaxDevices);
  thread_streams[device] = stream;
}

CuStream create_stream(int device, int priority) {
  use_device(device);
  CuStream stream;
  FACULA_CU(cuStreamCreateWithPriority, &stream, kCuStreamNonBlocking, priority);
  return stream;
}

void destroy_stream(int device, CuStream stream) {
  use_device(device);
  FACULA_CU(cuStreamDestroy_v2, stream);
}

CuStream pooled_stream(int device, int priority) {
  constexpr int kStreams = 32, kPriorities = 8;
  struct Pool {
    std::mutex mutex;
    CuStream streams[kPriorities][kStreams] = {};
    unsigned next[kPriorities] = {};
  };
  static auto* pools = new Pool[kMaxDevices];
  int lowest = 0, highest = 0;
  stream_priority_range(device, &lowest, &highest);
  priority = std::clamp(priority, highest, lowest);
  const int level = std::min(lowest - priority, kPriorities - 1);
  Pool& pool = pools[device];
  std::lock_guard lock(pool.mutex);
  CuStream& stream = pool.streams[level][pool.next[level]++ % kStreams];
  if (!stream) stream = create_stream(device, priority);
  return stream;
}

bool stream_is_idle(int device, CuStream stream) {
  use_device(device);
  CuResult result = driver().cuStreamQuery(stream);
  if (result == kCuNotReady) return false;
  check_driver(result, "cuStreamQuery");
  return true;
}

void synchronize_stream(int device, CuStream stream) {
  use_device(device);
  FACULA_CU(cuStreamSynchronize, stream);
  check_faults(device);
}

void synchronize(int device) {
  use_device(device);
  FACULA_CU(cuCtxSynchronize);
  check_faults(device);
}

void stream_priority_range(int device, int* lowest, int* highest) {
  use_device(device);
  FACULA_CU(cuCtxGetStreamPriorityRange, lowest, highest);
}

CuEvent create_event(int device, bool timing, bool blocking) {
  use_device(device);
  CuEvent event;
  FACULA_CU(cuEventCreate, &event,
            (timing ? 0u : unsigned(kCuEventDisableTiming)) |
                (blocking ? unsigned(kCuEventBlockingSync) : 0u));
  return event;
}

void destroy_event(int device, CuEvent event) {
  use_device(device);
  FACULA_CU(cuEventDestroy_v2, event);
}

void record_event(int device, CuEvent event, CuStream stream) {
  use_device(device);
  FACULA_CU(cuEventRecord, event, stream);
}

bool event_is_done(int device, CuEvent event) {
  use_device(device);
  CuResult result = driver().cuEventQuery(event);
  if (result == kCuNotReady) return false;
  check_driver(result, "cuEventQuery");
  return true;
}

void synchronize_event(int device, CuEvent event) {
  use_device(device);
  FACULA_CU(cuEventSynchronize, event);
  check_faults(device);
}

void wait_event(int device, CuStream stream, CuEvent event) {
  use_device(device);
  FACULA_CU(cuStreamWaitEvent, stream, event, 0u);
}

void order_streams(int device, CuStream earlier, CuStream later) {
  if (earlier == later) return;
  ContextScope scope;
  CuEvent done = create_event(device, false);
  record_event(device, done, earlier);
  wait_event(device, later, done);
  destroy_event(device, done);
}

int device_of_pointer(const void* pointer) {
  ContextScope scope;
  use_device(current_device());
  constexpr int kDeviceOrdinal = 9;
  int device = -1;
  const CuResult result = driver().cuPointerGetAttribute(
      &device, kDeviceOrdinal, CuDevicePtr(reinterpret_cast<uintptr_t>(pointer)));
  return result == kCuSuccess ? device : -1;
}

float elapsed_milliseconds(int device, CuEvent start, CuEvent end) {
  use_device(device);
  float milliseconds = 0;
  FACULA_CU(cuEventElapsedTime, &milliseconds, start, end);
  return milliseconds;
}

bool stream_is_capturing(int device, CuStream stream) {
  use_device(device);
  int status = 0;
  FACULA_CU(cuStreamIsCapturing, stream, &status);
  return status != 0;
}

MemoryInfo memory_info(int device) {
  use_device(device);
  MemoryInfo info;
  FACULA_CU(cuMemGetInfo_v2, &info.free, &info.total);
  return info;
}

void launch_kernel(CuFunction function, const LaunchShape& shape, CuStream stream,
                   void* arguments) {
  void* parameters[] = {arguments};
  FACULA_CU(cuLaunchKernel, function, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
            shape.block_y, shape.block_z, shape.shared_memory, stream, parameters, nullptr);
}

void allow_shared_memory(CuFunction function, size_t bytes) {
  constexpr int kMaxDynamicSharedSize = 8;
  FACULA_CU(cuFuncSetAttribute, function, kMaxDynamicSharedSize, int(bytes));
}

}  // namespace facula::cuda
