// NVIDIA's profiling interface, read from libcupti at run time: its functions, and the records of
// what a device did. Records are binary compatible with those of cupti_activity.h, of which they
// are the beginning: newer versions add to the end, and what stands here lies at the same places
// in those of CUDA 12.0, 12.4, 12.9, 13.0 and 13.4 (CUpti_ActivityKernel9 to 13, Memcpy5 to 7,
// MemcpyPtoP4, Memset4 and 5).
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula::cuda::cupti {

using Result = int;
enum : Result { kSuccess = 0, kEndOfBuffer = 12 };

enum class Kind : int32_t {
  Copy = 1,
  Fill = 2,
  DriverCall = 4,
  RuntimeCall = 5,
  Kernel = 10,    // without making kernels wait for each other
  PeerCopy = 22,  // between devices
  ExternalCorrelation = 39,
};

struct KernelRecord {
  Kind kind;
  uint8_t cache_config, shared_memory_config;
  uint16_t registers;
  int32_t global_caches[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared_memory, dynamic_shared_memory;
  uint32_t local_memory[2];
  uint32_t correlation;
  int64_t grid_id;
  const char* name;  // mangled
};
static_assert(offsetof(KernelRecord, registers) == 6 && offsetof(KernelRecord, start) == 16);
static_assert(offsetof(KernelRecord, device) == 40 && offsetof(KernelRecord, grid) == 52);
static_assert(offsetof(KernelRecord, block) == 64 && offsetof(KernelRecord, correlation) == 92);
static_assert(offsetof(KernelRecord, static_shared_memory) == 76);
static_assert(offsetof(KernelRecord, name) == 104);

struct CopyRecord {
  Kind kind;
  uint8_t direction, from_memory, to_memory, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
};
static_assert(offsetof(CopyRecord, direction) == 4 && offsetof(CopyRecord, bytes) == 8);
static_assert(offsetof(CopyRecord, device) == 32 && offsetof(CopyRecord, correlation) == 44);

struct PeerCopyRecord {
  Kind kind;
  uint8_t direction, from_memory, to_memory, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t from_device, from_context, to_device, to_context;
  uint32_t correlation;
};
static_assert(offsetof(PeerCopyRecord, from_device) == 44);
static_assert(offsetof(PeerCopyRecord, correlation) == 60);

struct FillRecord {
  Kind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
  uint16_t flags, memory;
};
static_assert(offsetof(FillRecord, device) == 32 && offsetof(FillRecord, correlation) == 44);
static_assert(offsetof(FillRecord, memory) == 50);

struct CallRecord {  // of a function of the driver or of the run time
  Kind kind;
  uint32_t function;
  uint64_t start, end;
  uint32_t process, thread;
  uint32_t correlation;
  uint32_t result;
};
static_assert(offsetof(CallRecord, start) == 8 && offsetof(CallRecord, thread) == 28);
static_assert(offsetof(CallRecord, correlation) == 32);

// What the thread that made the call had pushed last; comes with the record of the call.
struct ExternalRecord {
  Kind kind;
  int32_t external_kind;
  uint64_t external;
  uint32_t correlation;
};
static_assert(offsetof(ExternalRecord, external) == 8);
static_assert(offsetof(ExternalRecord, correlation) == 16);

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                                size_t used);

enum : int { kDriverCalls = 1, kRuntimeCalls = 2 };  // domains of functions
constexpr int kOwnCorrelation = 3;                   // one of the kinds left to tools
constexpr uint32_t kForced = 1;                      // flush what is incomplete, too

// A record is known by its first member. X(member, name, parameter types)
#define FACULA_CUPTI_FUNCTIONS(X)                                                        \
  X(register_callbacks, cuptiActivityRegisterCallbacks, (RequestBuffer, CompleteBuffer)) \
  X(enable, cuptiActivityEnable, (Kind))                                                 \
  X(disable, cuptiActivityDisable, (Kind))                                               \
  X(flush_all, cuptiActivityFlushAll, (uint32_t))                                        \
  X(next_record, cuptiActivityGetNextRecord, (uint8_t*, size_t, Kind**))                 \
  X(dropped_records, cuptiActivityGetNumDroppedRecords, (void*, uint32_t, size_t*))      \
  X(push, cuptiActivityPushExternalCorrelationId, (int, uint64_t))                       \
  X(pop, cuptiActivityPopExternalCorrelationId, (int, uint64_t*))                        \
  X(timestamp, cuptiGetTimestamp, (uint64_t*))                                           \
  X(function_name, cuptiGetCallbackName, (int, uint32_t, const char**))                  \
  X(result_text, cuptiGetResultString, (Result, const char**))

struct Table {
#define X(member, name, parameters) Result(*member) parameters;
  FACULA_CUPTI_FUNCTIONS(X)
#undef X
  // Which calls are recorded; null before CUDA 12.5.
  Result (*choose_driver_call)(uint32_t function, uint8_t on);
  Result (*choose_runtime_call)(uint32_t function, uint8_t on);

  Table();
};

// Throws MissingLibrary.
const Table& table();

// Throws CudaError with the function's name and CUPTI's text unless the result is success.
void check(Result result, const char* function);

}  // namespace facula::cuda::cupti
