#include "cuda/device_profile.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "cuda/allocator.h"
#include "cuda/context.h"
#include "cuda/cupti.h"
#include "op/profiler.h"

namespace facula::cuda {
namespace {

using cupti::Kind;

constexpr size_t kBufferBytes = size_t(2) << 20;
constexpr Kind kRecorded[] = {
    Kind::Kernel,     Kind::Copy,        Kind::PeerCopy,           Kind::Fill,
    Kind::DriverCall, Kind::RuntimeCall, Kind::ExternalCorrelation};

// Calls that do no work on a device and that programs make all the time: where CUPTI can leave
// them out (cupti.h), it does. It tells of ranges only along with the records of calls, so the
// others are needed. The numbers are those of cupti_driver_cbid.h and cupti_runtime_cbid.h.
constexpr uint32_t kQuietDriverCalls[] = {
    9,    // cuDeviceGetAttribute
    16,   // cuCtxGetDevice
    85,   // cuFuncGetAttribute
    119,  // cuEventRecord
    120,  // cuEventQuery
    125,  // cuStreamQuery
    295,  // cuStreamWaitEvent
    303,  // cuCtxSetCurrent
    304,  // cuCtxGetCurrent
    310,  // cuPointerGetAttribute
    481,  // cuFuncSetAttribute
    499,  // cuStreamIsCapturing
    541,  // cuThreadExchangeStreamCaptureMode
};
constexpr uint32_t kQuietRuntimeCalls[] = {
    10,   // cudaGetLastError
    11,   // cudaPeekAtLastError
    15,   // cudaFuncGetAttributes
    16,   // cudaSetDevice
    17,   // cudaGetDevice
    135,  // cudaEventRecord
    138,  // cudaEventQuery
    147,  // cudaStreamWaitEvent
    200,  // cudaDeviceGetAttribute
    207,  // cudaOccupancyMaxActiveBlocksPerMultiprocessor
    251,  // the same with flags
    273,  // cudaFuncSetAttribute
    317,  // cudaStreamIsCapturing
    409,  // cudaStreamGetCaptureInfo
};

struct Session {
  std::mutex mutex;
  bool enabled = false;
  DeviceProfile found;              // names of calls and ranges are filled in at the end
  std::vector<uint32_t> functions;  // of found.calls
  std::unordered_map<uint32_t, uint64_t> ranges;       // by correlation
  std::unordered_map<const char*, std::string> names;  // of kernels, readable

  void clear() {
    found = {};
    functions.clear(), ranges.clear(), names.clear();
  }
};

// Never destroyed: CUPTI may deliver its buffers while the process ends.
Session& session() {
  static Session* instance = new Session;
  return *instance;
}

// CUPTI's clock may be adjusted while it runs, so it is compared at both ends of a recording.
struct ClockReading {
  int64_t own = 0, cupti = 0;

  static ClockReading now() {
    ClockReading best;
    int64_t width = INT64_MAX;
    for (int i = 0; i < 5; ++i) {
      uint64_t there = 0;
      const int64_t before = profile_clock();
      cupti::check(cupti::table().timestamp(&there), "cuptiGetTimestamp");
      const int64_t after = profile_clock();
      if (after - before < width) {
        width = after - before;
        best = {before + width / 2, int64_t(there)};
      }
    }
    return best;
  }
};
ClockReading begin;

// ---- records

std::string readable(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 && text ? text : mangled;
  std::free(text);
  return name;
}

const char* memory_name(int kind) {
  constexpr const char* names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                   "Array",   "Managed",  "Device Static", "Managed Static"};
  return names[kind >= 0 && kind < int(std::size(names)) ? kind : 0];
}

std::string copy_name(int direction, int from, int to) {
  constexpr const char* names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                   "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  const char* name = names[direction >= 0 && direction < int(std::size(names)) ? direction : 0];
  return std::string("Memcpy ") + name + " (" + memory_name(from) + " -> " + memory_name(to) + ")";
}

template <class Record>
DeviceActivity activity(DeviceActivity::Kind kind, std::string name, const Record& r) {
  DeviceActivity a{};
  a.kind = kind;
  a.name = std::move(name);
  a.start_ns = int64_t(r.start), a.end_ns = int64_t(r.end);
  a.device = int(r.device);
  a.context = r.context, a.stream = r.stream, a.correlation = r.correlation;
  return a;
}

void add_kernel(Session& s, const cupti::KernelRecord& r) {
  auto [known, is_new] = s.names.try_emplace(r.name);
  if (is_new) known->second = r.name ? readable(r.name) : "kernel";
  DeviceActivity a = activity(DeviceActivity::Kind::Kernel, known->second, r);
  std::copy_n(r.grid, 3, a.grid), std::copy_n(r.block, 3, a.block);
  a.shared_memory = r.static_shared_memory + r.dynamic_shared_memory;
  a.registers = r.registers;
  s.found.activities.push_back(std::move(a));
}

template <class Record>
void add_copy(Session& s, const Record& r) {
  DeviceActivity a =
      activity(DeviceActivity::Kind::Copy, copy_name(r.direction, r.from_memory, r.to_memory), r);
  a.bytes = r.bytes;
  s.found.activities.push_back(std::move(a));
}

void add_fill(Session& s, const cupti::FillRecord& r) {
  DeviceActivity a = activity(DeviceActivity::Kind::Fill,
                              std::string("Memset (") + memory_name(r.memory) + ")", r);
  a.bytes = r.bytes;
  s.found.activities.push_back(std::move(a));
}

void add_call(Session& s, const cupti::CallRecord& r) {
  s.functions.push_back(r.function);
  s.found.calls.push_back({"", int64_t(r.start), int64_t(r.end), r.kind == Kind::RuntimeCall,
                           r.thread, r.correlation, 0});
}

void add(Session& s, const Kind* record) {
  switch (*record) {
    case Kind::Kernel: return add_kernel(s, *reinterpret_cast<const cupti::KernelRecord*>(record));
    case Kind::Copy: return add_copy(s, *reinterpret_cast<const cupti::CopyRecord*>(record));
    case Kind::PeerCopy:
      return add_copy(s, *reinterpret_cast<const cupti::PeerCopyRecord*>(record));
    case Kind::Fill: return add_fill(s, *reinterpret_cast<const cupti::FillRecord*>(record));
    case Kind::DriverCall:
    case Kind::RuntimeCall: return add_call(s, *reinterpret_cast<const cupti::CallRecord*>(record));
    case Kind::ExternalCorrelation: {
      auto& r = *reinterpret_cast<const cupti::ExternalRecord*>(record);
      if (r.external_kind == cupti::kOwnCorrelation) s.ranges[r.correlation] = r.external;
      return;
    }
  }
}

// ---- CUPTI's callbacks; they come from any thread

void request_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::malloc(kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void complete_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t used) {
  const cupti::Table& t = cupti::table();
  Session& s = session();
  {
    std::lock_guard lock(s.mutex);
    Kind* record = nullptr;
    while (used && t.next_record(buffer, used, &record) == cupti::kSuccess) add(s, record);
    size_t dropped = 0;
    if (t.dropped_records(context, stream, &dropped) == cupti::kSuccess) s.found.dropped += dropped;
  }
  std::free(buffer);
}

// ---- ranges

int64_t allocated_on_devices() {
  int64_t bytes = 0;
  for (int d = 0; d < device_count(); ++d)
    if (device_in_use(d)) bytes += allocator_stats(d).allocated_bytes.all.current;
  return bytes;
}

void begin_range(uint64_t id) {
  cupti::table().push(cupti::kOwnCorrelation, id);
}
void end_range() {
  uint64_t id = 0;
  cupti::table().pop(cupti::kOwnCorrelation, &id);
}

constexpr RangeObserver kObserver{begin_range, end_range, [] { return int64_t(0); }};
constexpr RangeObserver kMemoryObserver{begin_range, end_range, allocated_on_devices};

// ---- the end

void wait_for_devices() {
  ContextScope scope;
  for (int d = 0; d < device_count(); ++d)
    if (device_in_use(d)) {
      use_device(d);
      driver().cuCtxSynchronize();  // a failure is for whoever waits next
    }
}

// "cudaLaunchKernel" for "cudaLaunchKernel_v7000".
std::string call_name(bool of_runtime, uint32_t function) {
  const char* text = nullptr;
  const int domain = of_runtime ? cupti::kRuntimeCalls : cupti::kDriverCalls;
  if (cupti::table().function_name(domain, function, &text) != cupti::kSuccess || !text)
    return of_runtime ? "cuda call" : "cu call";
  std::string name = text;
  const size_t mark = name.rfind("_v");
  if (mark != std::string::npos && mark + 2 < name.size() &&
      name.find_first_not_of("0123456789", mark + 2) == std::string::npos)
    name.resize(mark);
  return name;
}

// Leaves the calls that queued work or waited, before the time when the profile ended. Where a
// function of the run time calls the driver for the same work, the outer one stays.
void choose_calls(Session& s, int64_t end) {
  std::unordered_set<uint32_t> queued;
  for (const DeviceActivity& a : s.found.activities) queued.insert(a.correlation);
  std::map<std::pair<bool, uint32_t>, std::string> names;
  std::unordered_map<uint32_t, size_t> places;
  std::vector<DeviceCall> chosen;
  for (size_t i = 0; i < s.found.calls.size(); ++i) {
    DeviceCall& call = s.found.calls[i];
    if (call.start_ns >= end) continue;
    auto [known, is_new] = names.try_emplace({call.of_runtime, s.functions[i]});
    if (is_new) known->second = call_name(call.of_runtime, s.functions[i]);
    if (!queued.count(call.correlation) && known->second.find("Synchronize") == std::string::npos)
      continue;
    call.name = known->second;
    auto [place, is_first] = places.try_emplace(call.correlation, chosen.size());
    if (is_first) chosen.push_back(std::move(call));
    else if (call.start_ns < chosen[place->second].start_ns) chosen[place->second] = call;
  }
  s.found.calls = std::move(chosen);
}

template <class Event>
void place(Event& e, const Session& s, const ClockReading& end) {
  const double slope =
      end.cupti > begin.cupti ? double(end.own - begin.own) / double(end.cupti - begin.cupti) : 1.0;
  const int64_t duration = e.end_ns - e.start_ns;
  e.start_ns = begin.own + int64_t(double(e.start_ns - begin.cupti) * slope);
  e.end_ns = e.start_ns + duration;
  auto range = s.ranges.find(e.correlation);
  e.range = range == s.ranges.end() ? 0 : range->second;
}

void disable(const cupti::Table& t) {
  for (Kind kind : kRecorded) t.disable(kind);
  session().enabled = false;
}

}  // namespace

void prepare_device_profile() {
  driver();  // throws where there is none
  const cupti::Table& t = cupti::table();
  if (session().enabled) return;
  cupti::check(t.register_callbacks(request_buffer, complete_buffer),
               "cuptiActivityRegisterCallbacks");
  session().enabled = true;
  for (Kind kind : kRecorded) {
    const cupti::Result result = t.enable(kind);
    if (result == cupti::kSuccess) continue;
    disable(t);
    cupti::check(result, "cuptiActivityEnable");
  }
  if (t.choose_driver_call)
    for (uint32_t function : kQuietDriverCalls) t.choose_driver_call(function, 0);
  if (t.choose_runtime_call)
    for (uint32_t function : kQuietRuntimeCalls) t.choose_runtime_call(function, 0);
}

void start_device_profile(bool memory) {
  prepare_device_profile();
  wait_for_devices();  // work queued before is not part of the profile
  cupti::check(cupti::table().flush_all(cupti::kForced), "cuptiActivityFlushAll");
  {
    std::lock_guard lock(session().mutex);
    session().clear();
  }
  begin = ClockReading::now();
  range_observer.store(memory ? &kMemoryObserver : &kObserver, std::memory_order_release);
}

DeviceProfile stop_device_profile() {
  range_observer.store(nullptr);
  if (!session().enabled) return {};
  const cupti::Table& t = cupti::table();
  uint64_t asked = 0;
  t.timestamp(&asked);
  wait_for_devices();
  t.flush_all(cupti::kForced);
  disable(t);
  const ClockReading end = ClockReading::now();
  Session& s = session();
  std::lock_guard lock(s.mutex);
  // Without a time CUPTI could not follow it.
  s.found.dropped += std::erase_if(s.found.activities, [](auto& a) { return a.start_ns == 0; });
  choose_calls(s, int64_t(asked));
  for (DeviceActivity& a : s.found.activities) place(a, s, end);
  for (DeviceCall& c : s.found.calls) place(c, s, end);
  DeviceProfile profile = std::move(s.found);
  s.clear();
  return profile;
}

}  // namespace facula::cuda
