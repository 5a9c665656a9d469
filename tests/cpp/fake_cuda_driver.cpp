// A libcuda for machines without a GPU: memory is host memory, copies are done at once, kernels are
// not run. It lets tests drive the allocator, streams, events, graphs and the argument checks of
// operators through the package. What the driver would refuse (freeing twice, using a stream that
// does not exist, allocating during a capture) is an error here too.
//
// With FAKE_CUDA_GUARD set, device memory can be neither read nor written by the program, as on a
// real device: host code that touches it ends in a segmentation fault. FAKE_CUDA_CAPABILITY is the
// compute capability, such as 80; without it 90.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include <sys/mman.h>
#include <unistd.h>

namespace {

bool guarded() {
  static const bool on = std::getenv("FAKE_CUDA_GUARD") != nullptr;
  return on;
}

std::mutex mutex;
size_t total = size_t(1) << 30;
size_t used = 0;
struct Stream {
  bool capturing = false;
  int priority = 0;
};
struct Event {
  bool recorded = false;
  uint64_t when = 0;
};
struct Graph {
  uint64_t launches = 0;
};
std::map<uintptr_t, size_t> device_memory, host_memory, reserved, created, mapped;
std::set<Stream*> streams;
std::set<Event*> events;
uint64_t clock_ticks = 0, launches = 0, next_handle = 1;
int captures = 0;
thread_local int capture_mode = 0;  // global, as the driver's threads start
thread_local void* current_context = nullptr;
int context_of_device;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidHandle = 400, kUnsafeInCapture = 900;

bool unsafe() {
  return captures > 0 && capture_mode != 2;
}
bool inside(const std::map<uintptr_t, size_t>& blocks, uintptr_t p) {
  auto after = blocks.upper_bound(p);
  return after != blocks.begin() && p < std::prev(after)->first + std::prev(after)->second;
}

// Lets this library touch guarded device memory for the span of a scope.
class Opened {
 public:
  Opened(const void* p, size_t n) {
    const auto address = uintptr_t(p);
    if (!guarded() || n == 0 || !(inside(device_memory, address) || inside(reserved, address)))
      return;
    const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
    first_ = address / page * page;
    bytes_ = (address + n + page - 1) / page * page - first_;
    mprotect(reinterpret_cast<void*>(first_), bytes_, PROT_READ | PROT_WRITE);
  }
  ~Opened() {
    if (bytes_) mprotect(reinterpret_cast<void*>(first_), bytes_, PROT_NONE);
  }

 private:
  uintptr_t first_ = 0;
  size_t bytes_ = 0;
};

bool known(Stream* s) {
  return !s || streams.count(s);
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int
#define LOCK std::lock_guard lock(mutex)

API cuInit(unsigned) {
  if (const char* text = std::getenv("FAKE_CUDA_MEMORY")) total = std::strtoull(text, nullptr, 10);
  return 0;
}
API cuDriverGetVersion(int* v) {
  return *v = 13000, 0;
}
API cuGetErrorName(int, const char** text) {
  return *text = "FAKE_ERROR", 0;
}
API cuGetErrorString(int, const char** text) {
  return *text = "an error of the fake driver", 0;
}
API cuDeviceGetCount(int* n) {
  return *n = 1, 0;
}
API cuDeviceGet(int* d, int i) {
  return *d = i, i == 0 ? 0 : kInvalidValue;
}
static int capability() {
  const char* text = std::getenv("FAKE_CUDA_CAPABILITY");
  return text ? std::atoi(text) : 90;
}
API cuDeviceGetAttribute(int* v, int which, int) {
  switch (which) {
    case 1: *v = 1024; break;
    case 8: *v = 49152; break;
    case 10: *v = 32; break;
    case 16: *v = 132; break;
    case 38: *v = 50 << 20; break;
    case 39: *v = 2048; break;
    case 75: *v = capability() / 10; break;
    case 76: *v = capability() % 10; break;
    case 82: *v = 65536; break;
    case 97: *v = capability() < 90 ? 166912 : 232448; break;
    default: *v = 0;
  }
  return 0;
}
API cuDeviceGetUuid(void* uuid, int) {
  return std::memset(uuid, 0xab, 16), 0;
}
API cuDeviceGetName(char* name, int n, int) {
  return std::strncpy(name, "Fake GPU", size_t(n)), 0;
}
API cuDeviceTotalMem_v2(size_t* n, int) {
  return *n = total, 0;
}
API cuDeviceCanAccessPeer(int* can, int, int) {
  return *can = 0, 0;
}
API cuDevicePrimaryCtxRetain(void** context, int) {
  return *context = &context_of_device, 0;
}
API cuCtxGetCurrent(void** context) {
  return *context = current_context, 0;
}
API cuCtxSetCurrent(void* context) {
  return current_context = context, 0;
}
API cuCtxSynchronize() {
  return captures ? kUnsafeInCapture : 0;
}
API cuCtxGetStreamPriorityRange(int* low, int* high) {
  return *low = 0, *high = -5, 0;
}
API cuMemGetInfo_v2(size_t* free, size_t* all) {
  LOCK;
  return *free = total - used, *all = total, 0;
}
API cuMemAlloc_v2(unsigned long long* p, size_t n) {
  LOCK;
  if (unsafe()) return kUnsafeInCapture;
  if (used + n > total) return kOutOfMemory;
  const int access = guarded() ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* memory = mmap(nullptr, n, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  device_memory[uintptr_t(memory)] = n;
  used += n;
  return *p = uintptr_t(memory), 0;
}
API cuMemFree_v2(unsigned long long p) {
  LOCK;
  if (unsafe()) return kUnsafeInCapture;
  auto found = device_memory.find(uintptr_t(p));
  if (found == device_memory.end()) return kInvalidValue;
  used -= found->second;
  munmap(reinterpret_cast<void*>(found->first), found->second);
  device_memory.erase(found);
  return 0;
}
API cuMemHostAlloc(void** p, size_t n, unsigned) {
  LOCK;
  if (unsafe()) return kUnsafeInCapture;
  *p = std::aligned_alloc(512, (n + 511) / 512 * 512);
  host_memory[uintptr_t(*p)] = n;
  return 0;
}
API cuMemFreeHost(void* p) {
  LOCK;
  if (!host_memory.erase(uintptr_t(p))) return kInvalidValue;
  return std::free(p), 0;
}
API cuPointerGetAttribute(void* value, int which, unsigned long long p) {
  LOCK;
  if (which == 9 && inside(device_memory, p)) return *static_cast<int*>(value) = 0, 0;
  if (which != 2) return kInvalidValue;
  if (inside(host_memory, p)) return *static_cast<unsigned*>(value) = 1, 0;
  if (inside(device_memory, p)) return *static_cast<unsigned*>(value) = 2, 0;
  return kInvalidValue;
}

static int copy(void* to, const void* from, size_t n, void* s) {
  LOCK;
  if (!known(static_cast<Stream*>(s))) return kInvalidHandle;
  const Opened source(from, n), destination(to, n);
  return std::memmove(to, from, n), 0;
}
API cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void* s) {
  return copy(reinterpret_cast<void*>(to), from, n, s);
}
API cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void* s) {
  return copy(to, reinterpret_cast<void*>(from), n, s);
}
API cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void* s) {
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n, s);
}
API cuMemcpyPeerAsync(unsigned long long to, void*, unsigned long long from, void*, size_t n,
                      void* s) {
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n, s);
}
API cuMemsetD8Async(unsigned long long to, unsigned char value, size_t n, void*) {
  LOCK;
  const Opened destination(reinterpret_cast<void*>(to), n);
  return std::memset(reinterpret_cast<void*>(to), value, n), 0;
}

API cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return *module = &context_of_device, 0;
}
API cuModuleGetFunction(void** function, void*, const char*) {
  return *function = &context_of_device, 0;
}
API cuModuleUnload(void*) {
  return 0;
}
API cuFuncGetAttribute(int* v, int, void*) {
  return *v = 0, 0;
}
API cuFuncSetAttribute(void*, int, int) {
  return 0;
}
API cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, void* s, void**, void**) {
  LOCK;
  if (!known(static_cast<Stream*>(s))) return kInvalidHandle;
  if (!gx || !gy || !gz || !bx || !by || !bz || gy > 65535 || gz > 65535 || bx * by * bz > 1024)
    return kInvalidValue;
  return ++launches, 0;
}

API cuProfilerStart() {
  return 0;
}
API cuProfilerStop() {
  return 0;
}
API cuStreamCreateWithPriority(void** s, unsigned, int priority) {
  LOCK;
  auto* made = new Stream{false, priority};
  streams.insert(made);
  return *s = made, 0;
}
API cuStreamDestroy_v2(void* s) {
  LOCK;
  return streams.erase(static_cast<Stream*>(s)) ? 0 : kInvalidHandle;
}
API cuStreamGetPriority(void* s, int* priority) {
  LOCK;
  if (!known(static_cast<Stream*>(s))) return kInvalidHandle;
  return *priority = s ? static_cast<Stream*>(s)->priority : 0, 0;
}
API cuStreamSynchronize(void* s) {
  LOCK;
  if (!known(static_cast<Stream*>(s))) return kInvalidHandle;
  return captures ? kUnsafeInCapture : 0;
}
API cuStreamQuery(void* s) {
  LOCK;
  return known(static_cast<Stream*>(s)) ? 0 : kInvalidHandle;
}
API cuStreamWaitEvent(void* s, void* e, unsigned) {
  LOCK;
  return known(static_cast<Stream*>(s)) && events.count(static_cast<Event*>(e)) ? 0
                                                                                : kInvalidHandle;
}
API cuEventCreate(void** e, unsigned) {
  LOCK;
  auto* made = new Event;
  events.insert(made);
  return *e = made, 0;
}
API cuEventDestroy_v2(void* e) {
  LOCK;
  return events.erase(static_cast<Event*>(e)) ? (delete static_cast<Event*>(e), 0) : kInvalidHandle;
}
API cuEventRecord(void* e, void* s) {
  LOCK;
  if (!known(static_cast<Stream*>(s)) || !events.count(static_cast<Event*>(e)))
    return kInvalidHandle;
  static_cast<Event*>(e)->recorded = true;
  static_cast<Event*>(e)->when = ++clock_ticks;
  return 0;
}
API cuEventQuery(void* e) {
  LOCK;
  if (unsafe()) return kUnsafeInCapture;
  return events.count(static_cast<Event*>(e)) ? 0 : kInvalidHandle;
}
API cuEventSynchronize(void* e) {
  return cuEventQuery(e);
}
API cuEventElapsedTime(float* ms, void* a, void* b) {
  LOCK;
  *ms = float(static_cast<Event*>(b)->when - static_cast<Event*>(a)->when);
  return static_cast<Event*>(a)->recorded && static_cast<Event*>(b)->recorded ? 0 : kInvalidHandle;
}

// ---- memory without and with addresses
API cuMemGetAllocationGranularity(size_t* n, const void*, int) {
  return *n = 2 << 20, 0;
}
API cuMemAddressReserve(unsigned long long* p, size_t n, size_t, unsigned long long,
                        unsigned long long) {
  LOCK;
  void* range = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return kOutOfMemory;
  reserved[uintptr_t(range)] = n;
  return *p = uintptr_t(range), 0;
}
API cuMemAddressFree(unsigned long long p, size_t n) {
  LOCK;
  if (!reserved.erase(uintptr_t(p))) return kInvalidValue;
  return munmap(reinterpret_cast<void*>(p), n);
}
API cuMemCreate(unsigned long long* handle, size_t n, const void*, unsigned long long) {
  LOCK;
  if (unsafe()) return kUnsafeInCapture;
  if (used + n > total) return kOutOfMemory;
  used += n;
  created[uintptr_t(next_handle)] = n;
  return *handle = next_handle++, 0;
}
API cuMemRelease(unsigned long long handle) {
  LOCK;
  auto found = created.find(uintptr_t(handle));
  if (found == created.end()) return kInvalidValue;
  used -= found->second;
  created.erase(found);
  return 0;
}
API cuMemMap(unsigned long long p, size_t n, size_t, unsigned long long handle,
             unsigned long long) {
  LOCK;
  if (!created.count(uintptr_t(handle)) || mapped.count(uintptr_t(p))) return kInvalidValue;
  mapped[uintptr_t(p)] = n;
  return 0;
}
API cuMemUnmap(unsigned long long p, size_t n) {
  LOCK;
  if (!mapped.erase(uintptr_t(p))) return kInvalidValue;
  return mprotect(reinterpret_cast<void*>(p), n, PROT_NONE);
}
API cuMemSetAccess(unsigned long long p, size_t n, const void*, size_t) {
  LOCK;
  if (!mapped.count(uintptr_t(p))) return kInvalidValue;
  return guarded() ? 0 : mprotect(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE);
}

// ---- graphs
API cuStreamBeginCapture_v2(void* s, int) {
  LOCK;
  auto* stream = static_cast<Stream*>(s);
  if (!stream || !known(stream) || stream->capturing) return kUnsafeInCapture;
  stream->capturing = true;
  ++captures;
  return 0;
}
API cuStreamEndCapture(void* s, void** graph) {
  LOCK;
  auto* stream = static_cast<Stream*>(s);
  if (!stream || !stream->capturing) return kUnsafeInCapture;
  stream->capturing = false;
  --captures;
  return *graph = new Graph, 0;
}
API cuStreamIsCapturing(void* s, int* status) {
  LOCK;
  return *status = s && static_cast<Stream*>(s)->capturing, 0;
}
API cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  return capture_mode = *mode, *mode = before, 0;
}
API cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return *executable = new Graph(*static_cast<Graph*>(graph)), 0;
}
API cuGraphLaunch(void* executable, void*) {
  return ++static_cast<Graph*>(executable)->launches, 0;
}
API cuGraphExecDestroy(void* executable) {
  return delete static_cast<Graph*>(executable), 0;
}
API cuGraphDestroy(void* graph) {
  return delete static_cast<Graph*>(graph), 0;
}
API cuGraphGetNodes(void*, void**, size_t* n) {
  return *n = 0, 0;
}
API cuGraphDebugDotPrint(void*, const char*, unsigned) {
  return 0;
}

// How many kernels were launched, for tests.
extern "C" __attribute__((visibility("default"))) uint64_t fake_cuda_launches() {
  return launches;
}
