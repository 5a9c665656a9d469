#include "cuda/copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/kernel_types.h"
#include "cuda/pinned.h"

namespace facula::cuda {
namespace {

CuDevicePtr address(const void* pointer) {
  return CuDevicePtr(reinterpret_cast<uintptr_t>(pointer));
}

bool is_dense(int ndim, const int64_t* sizes, const int64_t* strides, int64_t item) {
  for (int d = ndim; d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != item) return false;
    item *= sizes[d];
  }
  return true;
}

// The type that carries a value from one dtype to the other, by the same steps as `convert`: the
// source's own, since the kernel converts on the way out.
DType carrier(DType from) {
  return is_reduced_float(from) ? DType::Float32 : from;
}

int64_t count_of(int ndim, const int64_t* sizes) {
  int64_t count = 1;
  for (int d = 0; d < ndim; ++d) count *= sizes[d];
  return count;
}

std::atomic<WaitReport> g_wait_report{WaitReport::None};

}  // namespace

WaitReport wait_report() {
  return g_wait_report.load(std::memory_order_relaxed);
}

void set_wait_report(WaitReport report) {
  g_wait_report.store(report, std::memory_order_relaxed);
}

void wait_for_value(int device, CuStream stream) {
  const WaitReport report = wait_report();
  if (report != WaitReport::None) {
    constexpr const char* kText = "called a synchronizing CUDA operation";
    if (report == WaitReport::Error) throw CudaError(kText);
    if (warn) warn(kText);
  }
  synchronize_stream(device, stream);
}

void copy_to_device(void* device_memory, const void* host_memory, size_t bytes, int device,
                    CuStream stream, bool blocking) {
  if (bytes == 0) return;
  use_device(device);
  FACULA_CU(cuMemcpyHtoDAsync_v2, address(device_memory), host_memory, bytes, stream);
  if (blocking) return wait_for_value(device, stream);
  record_pinned(host_memory, device, stream);
}

void copy_to_host(void* host_memory, const void* device_memory, size_t bytes, int device,
                  CuStream stream, bool blocking) {
  if (bytes == 0) return;
  use_device(device);
  FACULA_CU(cuMemcpyDtoHAsync_v2, host_memory, address(device_memory), bytes, stream);
  if (blocking) return wait_for_value(device, stream);
  record_pinned(host_memory, device, stream);
}

void copy_on_device(void* to, const void* from, size_t bytes, int device, CuStream stream) {
  if (bytes == 0 || to == from) return;
  use_device(device);
  FACULA_CU(cuMemcpyDtoDAsync_v2, address(to), address(from), bytes, stream);
}

void copy_between_devices(void* to, int to_device, const void* from, int from_device, size_t bytes,
                          CuStream stream) {
  if (bytes == 0) return;
  if (to_device == from_device) return copy_on_device(to, from, bytes, to_device, stream);
  CuContext source = device_context(from_device);
  use_device(to_device);
  FACULA_CU(cuMemcpyPeerAsync, address(to), device_context(to_device), address(from), source, bytes,
            stream);
}

void set_bytes(void* to, unsigned char value, size_t bytes, int device, CuStream stream) {
  if (bytes == 0) return;
  use_device(device);
  FACULA_CU(cuMemsetD8Async, address(to), value, bytes, stream);
}

void copy_strided(const StridedCopy& copy, int device, CuStream stream) {
  const bool cast = copy.to_dtype != copy.from_dtype;
  const int64_t item = int64_t(item_size(copy.to_dtype));
  if (!cast && is_dense(copy.ndim, copy.sizes, copy.to_strides, item) &&
      is_dense(copy.ndim, copy.sizes, copy.from_strides, item)) {
    return copy_on_device(copy.to, copy.from, size_t(count_of(copy.ndim, copy.sizes) * item),
                          device, stream);
  }
  ElementwiseLaunch launch;
  launch.name = cast ? "cast" : "copy";
  launch.body = "a";
  launch.inputs = 1;
  launch.ptrs[0] = copy.to;
  launch.ptrs[1] = const_cast<void*>(copy.from);
  launch.dtypes[0] = cast ? copy.to_dtype : mover_type(copy.to_dtype);
  launch.dtypes[1] = cast ? copy.from_dtype : mover_type(copy.from_dtype);
  launch.compute = carrier(launch.dtypes[1]);
  launch.ndim = copy.ndim;
  std::copy_n(copy.sizes, copy.ndim, launch.sizes);
  std::copy_n(copy.to_strides, copy.ndim, launch.strides[0]);
  std::copy_n(copy.from_strides, copy.ndim, launch.strides[1]);
  launch_elementwise(launch, device, stream);
}

void fill_strided(void* to, DType dtype, const void* value, int ndim, const int64_t* sizes,
                  const int64_t* strides, int device, CuStream stream) {
  const int64_t item = int64_t(item_size(dtype));
  const auto* bytes = static_cast<const unsigned char*>(value);
  const bool uniform = std::all_of(bytes, bytes + item, [&](auto b) { return b == bytes[0]; });
  if (uniform && is_dense(ndim, sizes, strides, item)) {
    return set_bytes(to, bytes[0], size_t(count_of(ndim, sizes) * item), device, stream);
  }
  ElementwiseLaunch launch;
  launch.name = "fill";
  launch.body = "p0";
  launch.ptrs[0] = to;
  launch.dtypes[0] = launch.compute = mover_type(dtype);
  launch.ndim = ndim;
  std::copy_n(sizes, ndim, launch.sizes);
  std::copy_n(strides, ndim, launch.strides[0]);
  launch.params.count = 1;
  launch.params.dtypes[0] = mover_type(dtype);
  launch.params.names[0] = nullptr;
  std::memcpy(launch.params.slots[0], value, size_t(item));
  launch_elementwise(launch, device, stream);
}

}  // namespace facula::cuda
