// Copies between host and device and on the device, casts, and filling.
#pragma once
#include "cuda/elementwise.h"

namespace facula::cuda {

// `blocking` waits until the copy is done; otherwise `host_memory` must be the start of pinned
// memory (allocate_pinned), which then is not used again before, or be kept alive by the caller.
void copy_to_device(void* device_memory, const void* host_memory, size_t bytes, int device,
                    CuStream stream, bool blocking = true);
void copy_to_host(void* host_memory, const void* device_memory, size_t bytes, int device,
                  CuStream stream, bool blocking = true);
// Waits for a stream where a program did not ask to wait, but for a value.
void wait_for_value(int device, CuStream stream);
// What wait_for_value does besides.
enum class WaitReport : int { None, Warning, Error };
WaitReport wait_report();
void set_wait_report(WaitReport report);

void copy_on_device(void* to, const void* from, size_t bytes, int device, CuStream stream);
// Between devices, queued on `stream` of `to_device`; the caller orders it after the work that
// makes the source (wait_event).
void copy_between_devices(void* to, int to_device, const void* from, int from_device, size_t bytes,
                          CuStream stream);
void set_bytes(void* to, unsigned char value, size_t bytes, int device, CuStream stream);

// to[i] = from[i] over one shape with any strides (bytes) and any dtypes.
struct StridedCopy {
  void* to = nullptr;
  const void* from = nullptr;
  DType to_dtype = DType::Float32;
  DType from_dtype = DType::Float32;
  int ndim = 0;
  int64_t sizes[kLaunchDims];
  int64_t to_strides[kLaunchDims];
  int64_t from_strides[kLaunchDims];
};
void copy_strided(const StridedCopy& copy, int device, CuStream stream);

// `value` is one element of the dtype, in host memory.
void fill_strided(void* to, DType dtype, const void* value, int ndim, const int64_t* sizes,
                  const int64_t* strides, int device, CuStream stream);

}  // namespace facula::cuda
