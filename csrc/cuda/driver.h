// The CUDA driver API as a table of functions read from libcuda at run time. Only what Facula
// calls is declared; types carry the prefix Cu and are binary compatible with those of cuda.h.
#pragma once
#include <cstddef>
#include <string>

#include "cuda/error.h"

namespace facula::cuda {

using CuResult = int;
using CuDevice = int;
using CuDevicePtr = unsigned long long;
using CuContext = struct CuContextRecord*;
using CuModule = struct CuModuleRecord*;
using CuFunction = struct CuFunctionRecord*;
using CuStream = struct CuStreamRecord*;
using CuEvent = struct CuEventRecord*;
using CuGraph = struct CuGraphRecord*;
using CuGraphExec = struct CuGraphExecRecord*;
using CuMemHandle = unsigned long long;  // physical memory without an address

struct CuMemLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};
struct CuMemProperties {  // CUmemAllocationProp
  int type = 1;           // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  CuMemLocation location;
  void* windows_handle = nullptr;
  unsigned char flags[8] = {};
};
struct CuMemAccess {
  CuMemLocation location;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

enum : CuResult {
  kCuSuccess = 0,
  kCuOutOfMemory = 2,
  kCuNotInitialized = 3,
  kCuDeinitialized = 4,
  kCuStubLibrary = 34,
  kCuNoDevice = 100,
  kCuInvalidDevice = 101,
  kCuUnsupportedPtxVersion = 222,
  kCuNotReady = 600,
  kCuAssert = 710,
};

enum CuDeviceAttribute : int {
  kCuMaxThreadsPerBlock = 1,
  kCuMaxSharedMemoryPerBlock = 8,
  kCuWarpSize = 10,
  kCuClockRate = 13,
  kCuMultiprocessorCount = 16,
  kCuIntegrated = 18,
  kCuPciBus = 33,
  kCuPciDevice = 34,
  kCuMemoryClockRate = 36,
  kCuMemoryBusWidth = 37,
  kCuL2CacheSize = 38,
  kCuMaxThreadsPerMultiprocessor = 39,
  kCuPciDomain = 50,
  kCuComputeCapabilityMajor = 75,
  kCuComputeCapabilityMinor = 76,
  kCuMaxSharedMemoryPerMultiprocessor = 81,
  kCuMaxRegistersPerMultiprocessor = 82,
  kCuMultiGpuBoard = 84,
  kCuMaxSharedMemoryPerBlockOptin = 97,
};

enum : unsigned {
  kCuStreamNonBlocking = 1,
  kCuEventBlockingSync = 1,
  kCuEventDisableTiming = 2,
};

enum CuCaptureMode : int { kCuCaptureGlobal = 0, kCuCaptureThreadLocal = 1, kCuCaptureRelaxed = 2 };

// X(function as exported by libcuda, parameter types)
#define FACULA_DRIVER_FUNCTIONS(X)                                                           \
  X(cuInit, (unsigned))                                                                      \
  X(cuDriverGetVersion, (int*))                                                              \
  X(cuGetErrorName, (CuResult, const char**))                                                \
  X(cuGetErrorString, (CuResult, const char**))                                              \
  X(cuDeviceGetCount, (int*))                                                                \
  X(cuDeviceGet, (CuDevice*, int))                                                           \
  X(cuDeviceGetAttribute, (int*, CuDeviceAttribute, CuDevice))                               \
  X(cuDeviceGetUuid, (void*, CuDevice))                                                      \
  X(cuDeviceGetName, (char*, int, CuDevice))                                                 \
  X(cuDeviceTotalMem_v2, (size_t*, CuDevice))                                                \
  X(cuDeviceCanAccessPeer, (int*, CuDevice, CuDevice))                                       \
  X(cuDevicePrimaryCtxRetain, (CuContext*, CuDevice))                                        \
  X(cuCtxGetCurrent, (CuContext*))                                                           \
  X(cuCtxSetCurrent, (CuContext))                                                            \
  X(cuCtxSynchronize, ())                                                                    \
  X(cuCtxGetStreamPriorityRange, (int*, int*))                                               \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                                     \
  X(cuMemAlloc_v2, (CuDevicePtr*, size_t))                                                   \
  X(cuMemFree_v2, (CuDevicePtr))                                                             \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                                              \
  X(cuMemFreeHost, (void*))                                                                  \
  X(cuMemcpyHtoDAsync_v2, (CuDevicePtr, const void*, size_t, CuStream))                      \
  X(cuMemcpyDtoHAsync_v2, (void*, CuDevicePtr, size_t, CuStream))                            \
  X(cuMemcpyDtoDAsync_v2, (CuDevicePtr, CuDevicePtr, size_t, CuStream))                      \
  X(cuMemcpyPeerAsync, (CuDevicePtr, CuContext, CuDevicePtr, CuContext, size_t, CuStream))   \
  X(cuMemsetD8Async, (CuDevicePtr, unsigned char, size_t, CuStream))                         \
  X(cuModuleLoadDataEx, (CuModule*, const void*, unsigned, int*, void**))                    \
  X(cuModuleGetFunction, (CuFunction*, CuModule, const char*))                               \
  X(cuModuleUnload, (CuModule))                                                              \
  X(cuFuncGetAttribute, (int*, int, CuFunction))                                             \
  X(cuFuncSetAttribute, (CuFunction, int, int))                                              \
  X(cuLaunchKernel, (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, CuStream, void**, void**))                                    \
  X(cuStreamCreateWithPriority, (CuStream*, unsigned, int))                                  \
  X(cuStreamDestroy_v2, (CuStream))                                                          \
  X(cuStreamSynchronize, (CuStream))                                                         \
  X(cuStreamQuery, (CuStream))                                                               \
  X(cuStreamWaitEvent, (CuStream, CuEvent, unsigned))                                        \
  X(cuEventCreate, (CuEvent*, unsigned))                                                     \
  X(cuEventDestroy_v2, (CuEvent))                                                            \
  X(cuEventRecord, (CuEvent, CuStream))                                                      \
  X(cuEventQuery, (CuEvent))                                                                 \
  X(cuEventSynchronize, (CuEvent))                                                           \
  X(cuEventElapsedTime, (float*, CuEvent, CuEvent))                                          \
  X(cuProfilerStart, ())                                                                     \
  X(cuProfilerStop, ())                                                                      \
  X(cuStreamGetPriority, (CuStream, int*))                                                   \
  X(cuPointerGetAttribute, (void*, int, CuDevicePtr))                                        \
  X(cuMemGetAllocationGranularity, (size_t*, const CuMemProperties*, int))                   \
  X(cuMemAddressReserve, (CuDevicePtr*, size_t, size_t, CuDevicePtr, unsigned long long))    \
  X(cuMemAddressFree, (CuDevicePtr, size_t))                                                 \
  X(cuMemCreate, (CuMemHandle*, size_t, const CuMemProperties*, unsigned long long))         \
  X(cuMemRelease, (CuMemHandle))                                                             \
  X(cuMemMap, (CuDevicePtr, size_t, size_t, CuMemHandle, unsigned long long))                \
  X(cuMemUnmap, (CuDevicePtr, size_t))                                                       \
  X(cuMemSetAccess, (CuDevicePtr, size_t, const CuMemAccess*, size_t))                       \
  X(cuStreamBeginCapture_v2, (CuStream, CuCaptureMode))                                      \
  X(cuStreamEndCapture, (CuStream, CuGraph*))                                                \
  X(cuStreamIsCapturing, (CuStream, int*))                                                   \
  X(cuThreadExchangeStreamCaptureMode, (CuCaptureMode*))                                     \
  X(cuGraphInstantiateWithFlags, (CuGraphExec*, CuGraph, unsigned long long))                \
  X(cuGraphLaunch, (CuGraphExec, CuStream))                                                  \
  X(cuGraphExecDestroy, (CuGraphExec))                                                       \
  X(cuGraphDestroy, (CuGraph))                                                               \
  X(cuGraphGetNodes, (CuGraph, void**, size_t*))                                             \
  X(cuGraphDebugDotPrint, (CuGraph, const char*, unsigned))

struct DriverTable {
#define X(name, parameters) CuResult(*name) parameters = nullptr;
  FACULA_DRIVER_FUNCTIONS(X)
#undef X
};

// The table, after cuInit. Throws NoDevice with unavailable_reason() where CUDA cannot be used.
const DriverTable& driver();

// GPUs that can be used; 0 without a driver.
int device_count();
bool is_available();
// Why device_count() is 0 ("" if it is not). The text lives as long as the program.
const char* unavailable_reason();
// As cuDriverGetVersion gives it, e.g. 13000; 0 without a driver.
int driver_version();

// Throws DriverError (OutOfMemory is left to the allocator) with function, error name and text.
[[noreturn]] void throw_driver_error(CuResult result, const char* function);

inline void check_driver(CuResult result, const char* function) {
  if (result != kCuSuccess) [[unlikely]]
    throw_driver_error(result, function);
}

// FACULA_CU(cuStreamSynchronize, stream) calls a driver function and throws if it fails.
#define FACULA_CU(function, ...) \
  ::facula::cuda::check_driver(::facula::cuda::driver().function(__VA_ARGS__), #function)

}  // namespace facula::cuda
