// Exceptions of the CUDA layer.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>

namespace facula::cuda {

// A failed call of the driver, NVRTC or cuBLAS. `code` is the library's own error number, or 0
// where no library call was involved.
class CudaError : public std::runtime_error {
 public:
  explicit CudaError(const std::string& what, int code = 0)
      : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// What the driver answered: the device or the work given to it is at fault.
class DriverError : public CudaError {
 public:
  using CudaError::CudaError;
};

// A shared library that could not be found; the text names it and the pip line that brings it.
class MissingLibrary : public CudaError {
 public:
  using CudaError::CudaError;
};

// No GPU or no driver.
class NoDevice : public CudaError {
 public:
  using CudaError::CudaError;
};

// Device memory ran out after the cache was emptied. The allocator stays usable.
class OutOfMemory : public CudaError {
 public:
  OutOfMemory(const std::string& what, size_t requested)
      : CudaError(what, 2), requested_(requested) {}
  size_t requested() const { return requested_; }

 private:
  size_t requested_;
};

}  // namespace facula::cuda
