// A CUPTI for the fake driver: what the program queues there becomes records of kernels, copies and
// fills, with times that are made up, on CLOCK_REALTIME as CUPTI's are. Records are written by
// their offsets in cupti_activity.h, not by the declarations that the package reads them with.
//
// FAKE_CUPTI_FAILS makes it refuse to record. Without FAKE_CUPTI_BUFFER (in bytes) buffers are as
// large as the program makes them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <time.h>

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum Kind { kCopy = 1, kFill = 2, kDriverCall = 4, kRuntimeCall = 5, kKernel = 10, kExternal = 39 };
enum : uint32_t {
  kLaunch = 307,
  kGraphLaunch = 514,
  kCopyHere = 277,
  kFillHere = 219,
  kDriverWait = 126
};
enum : uint32_t { kCopyAsync = 41, kWait = 131, kQuiet = 10 };  // of the run time
constexpr size_t kKernelBytes = 160, kCopyBytes = 64, kFillBytes = 56, kCallBytes = 40,
                 kExternalBytes = 24;

struct State {
  std::mutex mutex;
  std::set<int> enabled;
  void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
  void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0;
  std::map<const void*, uint32_t> streams;
  uint32_t correlation = 100;
  int64_t idle_from = 0;  // when the device has done what was queued
};
State& state() {
  static auto* s = new State;
  return *s;
}
thread_local std::vector<uint64_t> external;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void hand_over() {
  State& s = state();
  if (!s.buffer) return;
  uint8_t* buffer = s.buffer;
  s.buffer = nullptr;
  s.complete(nullptr, 0, buffer, s.size, s.used);
}

uint8_t* record(int kind, size_t bytes) {
  State& s = state();
  if (s.buffer && s.used + bytes > s.size) hand_over();
  if (!s.buffer) {
    size_t most = 0;
    s.request(&s.buffer, &s.size, &most);
    if (const char* text = std::getenv("FAKE_CUPTI_BUFFER"))
      s.size = std::min(s.size, size_t(std::atoi(text)));
    s.used = 0;
  }
  uint8_t* r = s.buffer + s.used;
  s.used += bytes;
  std::memset(r, 0, bytes);
  std::memcpy(r, &kind, sizeof kind);
  return r;
}
template <class T>
void put(uint8_t* r, size_t offset, T value) {
  std::memcpy(r + offset, &value, sizeof value);
}
void put_times(uint8_t* r, size_t offset, int64_t length) {
  State& s = state();
  s.idle_from = std::max(s.idle_from, now() + 1000);
  put(r, offset, s.idle_from);
  s.idle_from += length;
  put(r, offset + 8, s.idle_from);
}
void put_place(uint8_t* r, size_t offset, int device, const void* stream) {
  put(r, offset, uint32_t(device));
  put(r, offset + 4, uint32_t(device + 1));
  State& s = state();
  put(r, offset + 8, s.streams.try_emplace(stream, 7 + uint32_t(s.streams.size())).first->second);
}

void put_call(int kind, uint32_t function, uint32_t correlation, int64_t start, int64_t end) {
  State& s = state();
  if (!s.enabled.count(kind)) return;
  if (s.enabled.count(kExternal) && !external.empty()) {
    uint8_t* r = record(kExternal, kExternalBytes);
    put(r, 4, 3);
    put(r, 8, external.back());
    put(r, 16, correlation);
  }
  uint8_t* r = record(kind, kCallBytes);
  put(r, 4, function);
  put(r, 8, start);
  put(r, 16, end);
  put(r, 28, uint32_t(1234));
  put(r, 32, correlation);
}

// Fills and kernels take 2 us, copies 1 us and a nanosecond for each byte. Copies are asked of the
// run time, which asks the driver and then waits; as with the real one, the first has one number
// for both, and the other one for each.
void observe(const char* what, int device, const void* stream, size_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  const std::string name = what;
  const bool graph = name == "graph", launch = name == "launch" || graph;
  if (!launch && name != "copy" && name != "set") return;
  const uint32_t correlation = ++s.correlation;
  const int64_t t = now();
  if (name == "copy") {
    put_call(kRuntimeCall, kCopyAsync, correlation, t - 800, t - 500);
    put_call(kDriverCall, kCopyHere, correlation, t - 700, t - 600);
    put_call(kRuntimeCall, kQuiet, ++s.correlation, t - 490, t - 480);
    put_call(kRuntimeCall, kWait, ++s.correlation, t - 400, t - 100);
    put_call(kDriverCall, kDriverWait, ++s.correlation, t - 300, t - 200);
  } else {
    put_call(kDriverCall,
             graph    ? kGraphLaunch
             : launch ? kLaunch
                      : kFillHere,
             correlation, t - 200, t);
  }
  if (launch && s.enabled.count(kKernel)) {
    uint8_t* r = record(kKernel, kKernelBytes);
    put(r, 6, uint16_t(40));
    put_times(r, 16, 2000);
    put_place(r, 40, device, stream);
    for (int i = 0; i < 3; ++i) put(r, 52 + 4 * i, 2 + i), put(r, 64 + 4 * i, 32 >> i);
    put(r, 76, 1024), put(r, 80, 512);
    put(r, 92, correlation);
    put(r, 104, graph ? "replayed" : "_Z4workPfi");
  } else if (name == "copy" && s.enabled.count(kCopy)) {
    uint8_t* r = record(kCopy, kCopyBytes);
    put(r, 4, uint8_t(1)), put(r, 5, uint8_t(1)), put(r, 6, uint8_t(3));
    put(r, 8, uint64_t(bytes));
    put_times(r, 16, 1000 + int64_t(bytes));
    put_place(r, 32, device, stream);
    put(r, 44, correlation);
  } else if (name == "set" && s.enabled.count(kFill)) {
    uint8_t* r = record(kFill, kFillBytes);
    put(r, 8, uint64_t(bytes));
    put_times(r, 16, 2000);
    put_place(r, 32, device, stream);
    put(r, 44, correlation);
    put(r, 50, uint16_t(3));
  }
}

void watch_driver() {
  static const bool once = [] {
    const std::string path = std::string(std::getenv("FACULA_CUDA_PATH")) + "/libcuda.so.1";
    void* driver = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    auto set = reinterpret_cast<void (*)(decltype(&observe))>(dlsym(driver, "fake_cuda_observe"));
    set(observe);
    return true;
  }();
  (void)once;
}

}  // namespace

API cuptiGetVersion(uint32_t* v) {
  return *v = 1, 0;
}
API cuptiActivityRegisterCallbacks(decltype(State::request) request,
                                   decltype(State::complete) complete) {
  return state().request = request, state().complete = complete, 0;
}
API cuptiActivityEnable(int kind) {
  if (std::getenv("FAKE_CUPTI_FAILS")) return 35;
  watch_driver();
  std::lock_guard lock(state().mutex);
  return state().enabled.insert(kind), 0;
}
API cuptiActivityDisable(int kind) {
  std::lock_guard lock(state().mutex);
  return state().enabled.erase(kind), 0;
}
API cuptiActivityFlushAll(uint32_t) {
  std::lock_guard lock(state().mutex);
  return hand_over(), 0;
}
API cuptiActivityGetNextRecord(uint8_t* buffer, size_t used, uint8_t** r) {
  size_t bytes = 0;
  if (*r) {
    int kind;
    std::memcpy(&kind, *r, sizeof kind);
    bytes = kind == kKernel     ? kKernelBytes
            : kind == kCopy     ? kCopyBytes
            : kind == kFill     ? kFillBytes
            : kind == kExternal ? kExternalBytes
                                : kCallBytes;
  }
  *r = *r ? *r + bytes : buffer;
  return *r < buffer + used ? 0 : 12;
}
API cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* n) {
  const char* text = std::getenv("FAKE_CUPTI_DROPS");
  return *n = text ? size_t(std::atoi(text)) : 0, 0;
}
API cuptiActivityPushExternalCorrelationId(int, uint64_t id) {
  return external.push_back(id), 0;
}
API cuptiActivityPopExternalCorrelationId(int, uint64_t* id) {
  if (external.empty()) return 18;
  *id = external.back();
  return external.pop_back(), 0;
}
API cuptiGetTimestamp(uint64_t* t) {
  return *t = uint64_t(now()), 0;
}
API cuptiGetCallbackName(int domain, uint32_t function, const char** name) {
  static const std::map<uint32_t, const char*> driver = {{kLaunch, "cuLaunchKernel"},
                                                         {kGraphLaunch, "cuGraphLaunch"},
                                                         {kCopyHere, "cuMemcpyHtoDAsync_v2"},
                                                         {kFillHere, "cuMemsetD8Async"},
                                                         {kDriverWait, "cuStreamSynchronize"}};
  static const std::map<uint32_t, const char*> runtime = {{kCopyAsync, "cudaMemcpyAsync_v3020"},
                                                          {kWait, "cudaStreamSynchronize_v3020"},
                                                          {kQuiet, "cudaGetLastError_v3020"}};
  const auto& names = domain == 1 ? driver : runtime;
  const auto found = names.find(function);
  return found == names.end() ? 1 : (*name = found->second, 0);
}
API cuptiGetResultString(int, const char** text) {
  return *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", 0;
}
