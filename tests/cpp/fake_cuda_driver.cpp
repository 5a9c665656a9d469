// A libcuda for machines without a GPU: memory is host memory, copies are done at once, kernels are
// not run. It lets tests drive the allocator, streams, events, graphs and the argument checks of
// operators through the package. What the driver would refuse (freeing twice, using a stream that
// does not exist, allocating during a capture) is an error here too. Contexts, streams, events,
// modules and memory belong to a device; using them while the context of another one is current is
// an error, written to stderr as "misuse" as well, also where the real driver would let it pass:
// work on a default stream would go to the wrong device.
//
// FAKE_CUDA_DEVICES is how many devices there are, FAKE_CUDA_MEMORY the bytes of each (1 GiB),
// FAKE_CUDA_CAPABILITY the compute capability, such as 80 (90), FAKE_CUDA_VERSION that of CUDA
// (13000). With FAKE_CUDA_GUARD set, device memory can be neither read nor written by the program,
// as on a real device: host code that touches it ends in a segmentation fault. The functions at the
// end are for tests.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4, kInvalidDevice = 101,
              kInvalidContext = 201, kInvalidHandle = 400, kNotReady = 600, kUnsafeInCapture = 900,
              kInvalidated = 901, kUnjoined = 904, kIsolation = 905, kWrongThread = 908;
constexpr int kMostDevices = 8;

struct Context {
  int device = 0;
};
struct Capture {
  int mode = 0;
  std::thread::id thread;
  struct Stream* origin = nullptr;
  bool broken = false;
};
struct Stream {
  Context* context = nullptr;
  int priority = 0;
  Capture* capture = nullptr;
  uint64_t work = 0;    // pieces of work queued so far
  uint64_t joined = 0;  // how many of them the capture's first stream waits for
};
struct Event {
  Context* context = nullptr;
  bool timing = true, recorded = false;
  uint64_t when = 0, work = 0;
  Stream* stream = nullptr;  // where it was recorded in a capture
  Capture* capture = nullptr;
};
struct Graph {
  Context* context = nullptr;
  uint64_t launches = 0;
};
struct Piece {  // of memory
  size_t size;
  int device;
};
using Memory = std::map<uintptr_t, Piece>;

// Lives as long as the process: the program frees memory while it ends.
struct State {
  std::mutex mutex;
  std::condition_variable released;
  int devices = 1;
  size_t total = size_t(1) << 30;
  size_t used[kMostDevices] = {};
  Context contexts[kMostDevices];
  Memory device_memory, host_memory, reserved, created, mapped;
  std::set<int> retained;  // devices with a context
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::set<Capture*> captures;
  std::map<std::string, std::pair<int, int>> failures;  // function: code, how many times
  uint64_t clock_ticks = 0, next_handle = 1, launches[kMostDevices] = {}, misuses = 0;
  bool held = false, keeps_journal = false;
  std::string journal;
};
State& state() {
  static auto* s = new State;
  return *s;
}
bool ended = false;
struct End {
  ~End() { ended = true; }
} end;

thread_local int capture_mode = 0;  // global, as the driver's threads start
thread_local Context* current_context = nullptr;
thread_local char misuse_text[200] = "";

bool guarded() {
  static const bool on = std::getenv("FAKE_CUDA_GUARD") != nullptr;
  return on;
}

int misuse(int code, const char* function, const char* what) {
  std::snprintf(misuse_text, sizeof misuse_text, "misuse: %s: %s", function, what);
  std::fprintf(stderr, "fake driver: %s\n", misuse_text);
  ++state().misuses;
  return code;
}

int injected_failure(const char* function) {
  if (state().failures.empty()) return 0;
  auto found = state().failures.find(function);
  if (found == state().failures.end()) return 0;
  const int code = found->second.first;
  if (--found->second.second == 0) state().failures.erase(found);
  return code;
}

// What a call that may wait for the device, or that needs it, must not do during a capture.
bool unsafe() {
  if (capture_mode == 2) return false;
  const auto me = std::this_thread::get_id();
  bool found = false;
  for (Capture* c : state().captures)
    if ((c->thread == me && c->mode != 2) || (capture_mode == 0 && c->mode == 0))
      c->broken = found = true;
  return found;
}

const Piece* piece_at(const Memory& memory, uintptr_t p) {
  auto after = memory.upper_bound(p);
  if (after == memory.begin()) return nullptr;
  const auto& [start, piece] = *std::prev(after);
  return p < start + piece.size ? &piece : nullptr;
}
const Piece* device_piece(uintptr_t p) {
  if (const Piece* found = piece_at(state().device_memory, p)) return found;
  return piece_at(state().mapped, p);
}

// Lets this library touch guarded device memory for the span of a scope.
class Opened {
 public:
  Opened(const void* p, size_t n) {
    const auto address = uintptr_t(p);
    if (!guarded() || n == 0 || !device_piece(address)) return;
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

// Told of everything that is queued, with the lock held: what note() writes down, and the bytes.
using Observer = void (*)(const char* what, int device, const void* stream, size_t bytes);
Observer observer = nullptr;

void note(const char* what, const void* a, const void* b = nullptr, size_t bytes = 0) {
  if (observer && current_context) observer(what, current_context->device, a, bytes);
  if (!state().keeps_journal) return;
  char line[100];
  std::snprintf(
      line, sizeof line, "%s %d %llu %llu\n", what, current_context ? current_context->device : -1,
      static_cast<unsigned long long>(uintptr_t(a)), static_cast<unsigned long long>(uintptr_t(b)));
  state().journal += line;
}

// A stream that can be used: it exists and its context is current.
int check_stream(const char* function, void* s) {
  if (!current_context) return misuse(kInvalidContext, function, "no context is current");
  if (!s) return 0;
  if (!state().streams.count(static_cast<Stream*>(s)))
    return misuse(kInvalidHandle, function, "the stream does not exist");
  if (static_cast<Stream*>(s)->context != current_context)
    return misuse(kInvalidHandle, function, "the stream belongs to another context");
  return 0;
}
int check_event(const char* function, void* e) {
  return state().events.count(static_cast<Event*>(e))
             ? 0
             : misuse(kInvalidHandle, function, "the event does not exist");
}
// Device memory that lies on the current device.
int check_memory(const char* function, uintptr_t p, int device) {
  const Piece* found = device_piece(p);
  if (!found) return misuse(kInvalidValue, function, "the address is not device memory");
  if (found->device != device)
    return misuse(kInvalidContext, function, "the memory belongs to another device");
  return 0;
}
int queue_work(void* s) {
  if (s) ++static_cast<Stream*>(s)->work;
  return 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define API EXPORT int
#define LOCK std::unique_lock lock(state().mutex)
// The start of a function: after the end of the process, or where a test wants it, it fails.
#define ENTER                       \
  if (ended) return kDeinitialized; \
  LOCK;                             \
  if (int failed = injected_failure(__func__)) return failed
#define CHECK(expression) \
  if (int failed = (expression)) return failed
#define NEED_CONTEXT \
  if (!current_context) return misuse(kInvalidContext, __func__, "no context is current")
// Waits while a test holds the device.
#define WAIT state().released.wait(lock, [] { return !state().held; })

API cuInit(unsigned) {
  LOCK;
  if (const char* text = std::getenv("FAKE_CUDA_MEMORY"))
    state().total = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("FAKE_CUDA_DEVICES")) state().devices = std::atoi(text);
  for (int i = 0; i < kMostDevices; ++i) state().contexts[i].device = i;
  return state().devices <= kMostDevices ? 0 : kInvalidValue;
}
API cuDriverGetVersion(int* v) {
  const char* text = std::getenv("FAKE_CUDA_VERSION");
  return *v = text ? std::atoi(text) : 13000, 0;
}
API cuGetErrorName(int, const char** text) {
  return *text = "FAKE_ERROR", 0;
}
API cuGetErrorString(int, const char** text) {
  return *text = *misuse_text ? misuse_text : "an error of the fake driver", 0;
}
API cuDeviceGetCount(int* n) {
  return *n = state().devices, 0;
}
API cuDeviceGet(int* d, int i) {
  return *d = i, i >= 0 && i < state().devices ? 0 : kInvalidDevice;
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
  return *n = state().total, 0;
}
API cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return *can = device != peer, 0;
}
API cuDevicePrimaryCtxRetain(void** context, int device) {
  LOCK;
  state().retained.insert(device);
  return *context = &state().contexts[device], 0;
}
API cuCtxGetCurrent(void** context) {
  if (ended) return kDeinitialized;
  return *context = current_context, 0;
}
API cuCtxSetCurrent(void* context) {
  if (ended) return kDeinitialized;
  return current_context = static_cast<Context*>(context), 0;
}
API cuCtxSynchronize() {
  ENTER;
  NEED_CONTEXT;
  for (Capture* c : state().captures)
    if (c->origin->context == current_context) return c->broken = true, kUnsafeInCapture;
  WAIT;
  return 0;
}
API cuCtxGetStreamPriorityRange(int* low, int* high) {
  return *low = 0, *high = -5, 0;
}
API cuMemGetInfo_v2(size_t* free, size_t* all) {
  ENTER;
  NEED_CONTEXT;
  *all = state().total;
  return *free = *all - state().used[current_context->device], 0;
}
API cuMemAlloc_v2(unsigned long long* p, size_t n) {
  ENTER;
  NEED_CONTEXT;
  if (unsafe()) return kUnsafeInCapture;
  size_t& used = state().used[current_context->device];
  if (used + n > state().total) return kOutOfMemory;
  const int access = guarded() ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* memory = mmap(nullptr, n, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  state().device_memory[uintptr_t(memory)] = {n, current_context->device};
  used += n;
  return *p = uintptr_t(memory), 0;
}
API cuMemFree_v2(unsigned long long p) {
  ENTER;
  NEED_CONTEXT;
  if (unsafe()) return kUnsafeInCapture;
  WAIT;
  auto found = state().device_memory.find(uintptr_t(p));
  if (found == state().device_memory.end())
    return misuse(kInvalidValue, __func__, "this is not the address of an allocation");
  const auto [size, device] = found->second;
  if (device != current_context->device)
    return misuse(kInvalidContext, __func__, "the memory belongs to another device");
  state().used[device] -= size;
  munmap(reinterpret_cast<void*>(found->first), size);
  state().device_memory.erase(found);
  return 0;
}
API cuMemHostAlloc(void** p, size_t n, unsigned) {
  ENTER;
  NEED_CONTEXT;
  if (unsafe()) return kUnsafeInCapture;
  *p = std::aligned_alloc(512, (n + 511) / 512 * 512);
  state().host_memory[uintptr_t(*p)] = {n, current_context->device};
  return 0;
}
API cuMemFreeHost(void* p) {
  ENTER;
  NEED_CONTEXT;
  if (unsafe()) return kUnsafeInCapture;
  if (!state().host_memory.erase(uintptr_t(p)))
    return misuse(kInvalidValue, __func__, "this is not the address of an allocation");
  return std::free(p), 0;
}
API cuPointerGetAttribute(void* value, int which, unsigned long long p) {
  ENTER;
  const Piece* found = device_piece(p);
  if (which == 9 && found) return *static_cast<int*>(value) = found->device, 0;
  if (which != 2) return kInvalidValue;
  if (piece_at(state().host_memory, p)) return *static_cast<unsigned*>(value) = 1, 0;
  if (found) return *static_cast<unsigned*>(value) = 2, 0;
  return kInvalidValue;
}

static int copy(void* to, const void* from, size_t n, void* s) {
  note("copy", s, nullptr, n);
  const Opened source(from, n), destination(to, n);
  std::memmove(to, from, n);
  return queue_work(s);
}
API cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_memory(__func__, to, current_context->device));
  return copy(reinterpret_cast<void*>(to), from, n, s);
}
API cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_memory(__func__, from, current_context->device));
  return copy(to, reinterpret_cast<void*>(from), n, s);
}
API cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_memory(__func__, to, current_context->device));
  CHECK(check_memory(__func__, from, current_context->device));
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n, s);
}
API cuMemcpyPeerAsync(unsigned long long to, void* to_context, unsigned long long from,
                      void* from_context, size_t n, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_memory(__func__, to, static_cast<Context*>(to_context)->device));
  CHECK(check_memory(__func__, from, static_cast<Context*>(from_context)->device));
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n, s);
}
API cuMemsetD8Async(unsigned long long to, unsigned char value, size_t n, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_memory(__func__, to, current_context->device));
  note("set", s, nullptr, n);
  const Opened destination(reinterpret_cast<void*>(to), n);
  std::memset(reinterpret_cast<void*>(to), value, n);
  return queue_work(s);
}

// A module, and its functions, are the context that they were loaded in.
API cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  ENTER;
  NEED_CONTEXT;
  return *module = current_context, 0;
}
API cuModuleGetFunction(void** function, void* module, const char*) {
  return *function = module, 0;
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
API cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, void* s, void**, void**) {
  ENTER;
  CHECK(check_stream(__func__, s));
  if (function != current_context)
    return misuse(kInvalidHandle, __func__, "the kernel belongs to another context");
  if (!gx || !gy || !gz || !bx || !by || !bz || gy > 65535 || gz > 65535 || bx * by * bz > 1024)
    return kInvalidValue;
  note("launch", s);
  ++state().launches[current_context->device];
  return queue_work(s);
}

API cuProfilerStart() {
  return 0;
}
API cuProfilerStop() {
  return 0;
}
API cuStreamCreateWithPriority(void** s, unsigned, int priority) {
  ENTER;
  NEED_CONTEXT;
  auto* made = new Stream{current_context, priority};
  state().streams.insert(made);
  return *s = made, 0;
}
API cuStreamDestroy_v2(void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  return state().streams.erase(static_cast<Stream*>(s)) ? 0 : kInvalidHandle;
}
API cuStreamGetPriority(void* s, int* priority) {
  ENTER;
  CHECK(check_stream(__func__, s));
  return *priority = s ? static_cast<Stream*>(s)->priority : 0, 0;
}
API cuStreamSynchronize(void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  if (s && static_cast<Stream*>(s)->capture)
    return static_cast<Stream*>(s)->capture->broken = true, kUnsafeInCapture;
  if (unsafe()) return kUnsafeInCapture;
  WAIT;
  return 0;
}
API cuStreamQuery(void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  if (unsafe()) return kUnsafeInCapture;
  return state().held ? kNotReady : 0;
}
API cuStreamWaitEvent(void* s, void* e, unsigned) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_event(__func__, e));
  note("wait", s, e);
  auto* event = static_cast<Event*>(e);
  auto* stream = static_cast<Stream*>(s);
  if (!event->recorded) return 0;
  if (stream && stream->capture && event->capture != stream->capture)
    return stream->capture->broken = true, kIsolation;
  if (event->capture && !state().captures.count(event->capture)) return 0;  // a capture of the past
  if (!event->capture) return queue_work(s);
  if (!stream) return event->capture->broken = true, kIsolation;
  stream->capture = event->capture;  // it joins the capture
  event->stream->joined = std::max(event->stream->joined, event->work);
  return queue_work(s);
}
API cuEventCreate(void** e, unsigned flags) {
  ENTER;
  NEED_CONTEXT;
  auto* made = new Event{current_context, !(flags & 2)};
  state().events.insert(made);
  return *e = made, 0;
}
API cuEventDestroy_v2(void* e) {
  ENTER;
  CHECK(check_event(__func__, e));
  state().events.erase(static_cast<Event*>(e));
  delete static_cast<Event*>(e);
  return 0;
}
API cuEventRecord(void* e, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  CHECK(check_event(__func__, e));
  auto* event = static_cast<Event*>(e);
  auto* stream = static_cast<Stream*>(s);
  if (event->context != current_context)
    return misuse(kInvalidHandle, __func__, "the event belongs to another context");
  note("record", s, e);
  event->recorded = true;
  event->when = ++state().clock_ticks;
  event->stream = stream;
  event->capture = stream ? stream->capture : nullptr;
  event->work = stream ? stream->work : 0;
  return 0;
}
static int event_state(const char* function, void* e) {
  CHECK(check_event(function, e));
  auto* event = static_cast<Event*>(e);
  if (event->capture && state().captures.count(event->capture))
    return event->capture->broken = true, kUnsafeInCapture;
  return unsafe() ? kUnsafeInCapture : 0;
}
API cuEventQuery(void* e) {
  ENTER;
  CHECK(event_state(__func__, e));
  return state().held && static_cast<Event*>(e)->recorded ? kNotReady : 0;
}
API cuEventSynchronize(void* e) {
  ENTER;
  CHECK(event_state(__func__, e));
  WAIT;
  return 0;
}
API cuEventElapsedTime(float* ms, void* a, void* b) {
  ENTER;
  CHECK(check_event(__func__, a));
  CHECK(check_event(__func__, b));
  auto *start = static_cast<Event*>(a), *stop = static_cast<Event*>(b);
  if (start->context != stop->context)
    return misuse(kInvalidHandle, __func__, "the events belong to different contexts");
  if (!start->recorded || !stop->recorded || !start->timing || !stop->timing) return kInvalidHandle;
  return *ms = float(double(stop->when) - double(start->when)), 0;
}

// ---- memory without and with addresses
API cuMemGetAllocationGranularity(size_t* n, const void*, int) {
  return *n = 2 << 20, 0;
}
API cuMemAddressReserve(unsigned long long* p, size_t n, size_t, unsigned long long,
                        unsigned long long) {
  ENTER;
  void* range = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return kOutOfMemory;
  state().reserved[uintptr_t(range)] = {n, -1};
  return *p = uintptr_t(range), 0;
}
API cuMemAddressFree(unsigned long long p, size_t n) {
  ENTER;
  if (!state().reserved.erase(uintptr_t(p)))
    return misuse(kInvalidValue, __func__, "this is not the start of a range");
  return munmap(reinterpret_cast<void*>(p), n);
}
API cuMemCreate(unsigned long long* handle, size_t n, const void* properties, unsigned long long) {
  ENTER;
  if (unsafe()) return kUnsafeInCapture;
  const int device = static_cast<const int*>(properties)[3];
  if (device < 0 || device >= state().devices) return kInvalidDevice;
  if (state().used[device] + n > state().total) return kOutOfMemory;
  state().used[device] += n;
  state().created[uintptr_t(state().next_handle)] = {n, device};
  return *handle = state().next_handle++, 0;
}
API cuMemRelease(unsigned long long handle) {
  ENTER;
  auto found = state().created.find(uintptr_t(handle));
  if (found == state().created.end())
    return misuse(kInvalidValue, __func__, "there is no such memory");
  state().used[found->second.device] -= found->second.size;
  state().created.erase(found);
  return 0;
}
API cuMemMap(unsigned long long p, size_t n, size_t, unsigned long long handle,
             unsigned long long) {
  ENTER;
  auto found = state().created.find(uintptr_t(handle));
  if (found == state().created.end() || state().mapped.count(uintptr_t(p)))
    return misuse(kInvalidValue, __func__, "no such memory, or memory is there already");
  state().mapped[uintptr_t(p)] = {n, found->second.device};
  return 0;
}
API cuMemUnmap(unsigned long long p, size_t n) {
  ENTER;
  if (!state().mapped.erase(uintptr_t(p)))
    return misuse(kInvalidValue, __func__, "nothing is mapped there");
  return mprotect(reinterpret_cast<void*>(p), n, PROT_NONE);
}
API cuMemSetAccess(unsigned long long p, size_t n, const void* access, size_t) {
  ENTER;
  auto found = state().mapped.find(uintptr_t(p));
  if (found == state().mapped.end() || found->second.device != static_cast<const int*>(access)[1])
    return misuse(kInvalidValue, __func__, "nothing of this device is mapped there");
  return guarded() ? 0 : mprotect(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE);
}

// ---- graphs
API cuStreamBeginCapture_v2(void* s, int mode) {
  ENTER;
  CHECK(check_stream(__func__, s));
  auto* stream = static_cast<Stream*>(s);
  if (!stream || stream->capture) return kUnsafeInCapture;
  stream->capture = new Capture{mode, std::this_thread::get_id(), stream};
  state().captures.insert(stream->capture);
  return 0;
}
API cuStreamEndCapture(void* s, void** graph) {
  ENTER;
  CHECK(check_stream(__func__, s));
  auto* stream = static_cast<Stream*>(s);
  *graph = nullptr;
  if (!stream || !stream->capture || stream->capture->origin != stream) return kUnsafeInCapture;
  Capture* capture = stream->capture;
  if (capture->mode != 2 && capture->thread != std::this_thread::get_id()) return kWrongThread;
  state().captures.erase(capture);
  bool unjoined = false;
  for (Stream* other : state().streams) {
    if (other->capture != capture) continue;
    unjoined |= other != stream && other->joined < other->work;
    other->capture = nullptr;
  }
  if (capture->broken) return kInvalidated;
  if (unjoined) return kUnjoined;
  auto* made = new Graph{current_context};
  state().graphs.insert(made);
  return *graph = made, 0;
}
API cuStreamIsCapturing(void* s, int* status) {
  ENTER;
  CHECK(check_stream(__func__, s));
  const Capture* capture = s ? static_cast<Stream*>(s)->capture : nullptr;
  return *status = !capture ? 0 : capture->broken ? 2 : 1, 0;
}
API cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  return capture_mode = *mode, *mode = before, 0;
}
API cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  ENTER;
  if (!state().graphs.count(static_cast<Graph*>(graph)))
    return misuse(kInvalidValue, __func__, "there is no such graph");
  auto* made = new Graph(*static_cast<Graph*>(graph));
  state().graphs.insert(made);
  return *executable = made, 0;
}
API cuGraphLaunch(void* executable, void* s) {
  ENTER;
  CHECK(check_stream(__func__, s));
  auto* graph = static_cast<Graph*>(executable);
  if (!state().graphs.count(graph)) return misuse(kInvalidValue, __func__, "no such graph");
  if (graph->context != current_context)
    return misuse(kInvalidContext, __func__, "the graph belongs to another context");
  note("graph", s);
  ++graph->launches;
  return queue_work(s);
}
API cuGraphDestroy(void* graph) {
  ENTER;
  if (!state().graphs.erase(static_cast<Graph*>(graph)))
    return misuse(kInvalidValue, __func__, "there is no such graph");
  return delete static_cast<Graph*>(graph), 0;
}
API cuGraphExecDestroy(void* executable) {
  return cuGraphDestroy(executable);
}
API cuGraphGetNodes(void*, void**, size_t* n) {
  return *n = 0, 0;
}
API cuGraphDebugDotPrint(void*, const char*, unsigned) {
  return 0;
}

// ---- for tests

// How many kernels were launched, on all devices or on one.
EXPORT uint64_t fake_cuda_launches() {
  LOCK;
  uint64_t sum = 0;
  for (uint64_t n : state().launches) sum += n;
  return sum;
}
EXPORT uint64_t fake_cuda_launches_on(int device) {
  LOCK;
  return state().launches[device];
}
EXPORT uint64_t fake_cuda_misuses() {
  LOCK;
  return state().misuses;
}
// Contexts and events that exist, and bytes that are allocated on a device.
EXPORT uint64_t fake_cuda_contexts() {
  LOCK;
  return state().retained.size();
}
EXPORT uint64_t fake_cuda_events() {
  LOCK;
  return state().events.size();
}
EXPORT uint64_t fake_cuda_used(int device) {
  LOCK;
  return state().used[device];
}
// The device whose context is current on this thread, or -1.
EXPORT int fake_cuda_current() {
  return current_context ? current_context->device : -1;
}
// While the device is held, nothing on it is ever done: queries say so, and waiting does not end.
EXPORT void fake_cuda_hold(int on) {
  LOCK;
  state().held = on;
  state().released.notify_all();
}
// The next `times` calls of a function give the error `code`.
EXPORT void fake_cuda_fail(const char* function, int code, int times) {
  LOCK;
  state().failures[function] = {code, times};
}
// Starts to write down what is queued, a line for each: what, device, stream, event.
EXPORT void fake_cuda_keep_journal() {
  LOCK;
  state().keeps_journal = true;
  state().journal.clear();
}
// Set by the fake CUPTI.
EXPORT void fake_cuda_observe(Observer wanted) {
  LOCK;
  observer = wanted;
}
EXPORT const char* fake_cuda_journal() {
  LOCK;
  return state().journal.c_str();
}
